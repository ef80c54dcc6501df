"""JSON schemas of tools: is a value of this form?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import JsonValue

from agenteval.records import canonical_json


def complaint(schema: Mapping[str, Any], value: JsonValue) -> str | None:
    """The first thing that is wrong with the value, None when it fits. No `$ref` is fetched."""
    check = _validator(canonical_json(dict(schema)))
    for error in check.iter_errors(value):
        where = ".".join(map(str, error.absolute_path))
        return f"{where}: {error.message}" if where else str(error.message)
    return None


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Why this is no JSON schema of objects; None when it is one."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    if schema.get("type") != "object":
        return "is no schema of objects: its type has to be object"
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = ".".join(map(str, error.absolute_path))
        return f"is no JSON schema ({where}: {error.message})"
    except RecursionError:
        return "is nested too deeply"
    return None


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Any:
    import json

    from jsonschema import Draft202012Validator
    from referencing.jsonschema import EMPTY_REGISTRY

    return Draft202012Validator(json.loads(schema), registry=EMPTY_REGISTRY)
