"""Checks of arguments against the schema that a tool was offered with. Nothing is fetched."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from pydantic import JsonValue

MOST = 100_000  # characters of a schema; a larger one is not checked
_HOSTILE = ('"$schema"', '"patternProperties"', '"$dynamicRef"', '"$recursiveRef"')


class Unchecked(Exception):
    """A schema that cannot be used for a check, or not safely."""


def schema_text(parameters: dict[str, JsonValue]) -> str:
    """The schema as one text, by which its check is remembered."""
    return json.dumps(parameters, sort_keys=True)


def _draft(schema: dict[str, JsonValue]) -> Any:
    """The draft that a schema names, 2020-12 if it names none. Unchecked for one unknown."""
    from jsonschema import Draft202012Validator, validators

    named = schema.get("$schema")
    if named is None:
        return Draft202012Validator
    find: Any = validators.validator_for
    found = find({"$schema": named}, default=None) if isinstance(named, str) else None
    if found is None:
        raise Unchecked
    return found


@lru_cache(maxsize=512)
def invalid(text: str) -> str:
    """What makes a schema no valid JSON schema of its draft; "" for a valid one.

    One of an unknown draft, or too large to check, counts as valid."""
    import jsonschema

    value = json.loads(text)
    if len(text) > MOST:
        return ""
    try:
        _draft(value).check_schema(value)
    except (Unchecked, RecursionError):
        return ""
    except jsonschema.SchemaError as error:
        where = "/".join(str(part) for part in error.absolute_path)
        return f"{where + ': ' if where else ''}{error.message[:200]}"
    return ""


@lru_cache(maxsize=512)
def _validator(text: str) -> Any:
    """A check without `pattern`: a pattern from outside may take for ever."""
    from jsonschema import validators
    from referencing.jsonschema import EMPTY_REGISTRY

    value = json.loads(text)
    draft = _draft(value)
    value.pop("$schema", None)  # else the library takes its own validator for it, with `pattern`
    plain = json.dumps(value)
    if len(text) > MOST or any(word in plain for word in _HOSTILE) or invalid(text):
        raise Unchecked
    extend: Any = validators.extend
    return extend(draft, {"pattern": _nothing})(value, registry=EMPTY_REGISTRY)


def _nothing(*_: object) -> None:
    return None


def violation(arguments: JsonValue, text: str) -> str | None:
    """What in the arguments violates the schema, in words; None if nothing does.

    Raises Unchecked for a schema that is invalid, too large, or refers to what is not in it.
    """
    from referencing.exceptions import Unresolvable

    try:
        error = next(_validator(text).iter_errors(arguments), None)
    except (Unresolvable, RecursionError, ArithmeticError) as unusable:
        raise Unchecked from unusable
    if error is None:
        return None
    where = "/".join(str(part) for part in error.absolute_path)
    return f"{where + ': ' if where else ''}{error.message[:300]}"
