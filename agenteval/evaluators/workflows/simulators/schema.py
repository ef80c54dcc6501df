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


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Any:
    import json

    from jsonschema import Draft202012Validator
    from referencing.jsonschema import EMPTY_REGISTRY

    return Draft202012Validator(json.loads(schema), registry=EMPTY_REGISTRY)
