"""What a person wrote into a file and a noun does not take, in words: keys, near ones, lacks."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

_NEAR = 0.3  # a hint in the form of a question may be wide of the mark

Place = tuple[int | str, ...]


def in_words(
    error: ValidationError, noun: TypeAdapter[Any], data: Any, taken: Collection[str] = ()
) -> str:
    """One line on the first object that is wrong: its unknown keys, the one that each may stand
    for, which are allowed, and all that are missing; or what is wrong with the first value.

    `noun` is what `data` was read as. `taken` are keys of the whole that no file may hold.
    """
    errors = error.errors()
    first = errors[0]
    if first["type"] not in ("missing", "extra_forbidden"):
        return _on_value(first)
    place: Place = first["loc"][:-1]
    here = [e for e in errors if e["loc"][:-1] == place]
    missing = [str(e["loc"][-1]) for e in here if e["type"] == "missing"]
    unknown = [str(e["loc"][-1]) for e in here if e["type"] == "extra_forbidden"]
    if not unknown:
        what = "field" if len(missing) == 1 else "fields"
        return _at(place, missing[0] if len(missing) == 1 else None) + (
            f"{what} required" + (f": {', '.join(missing)}" if len(missing) > 1 else "")
        )
    allowed = [key for key in _keys(noun.json_schema(), place) if place or key not in taken]
    return _on_keys(place, unknown, missing, allowed, _present(data, place))


def _on_value(first: ErrorDetails) -> str:
    message = first["msg"].removeprefix("Value error, ").replace("valid tuple", "valid list")
    return _at(first["loc"]) + message[:1].lower() + message[1:]


def _on_keys(
    place: Place,
    unknown: Sequence[str],
    missing: Sequence[str],
    allowed: Sequence[str],
    present: Collection[str],
) -> str:
    free = [key for key in allowed if key not in present]
    meant: list[str] = []
    for key in unknown:
        near = difflib.get_close_matches(key, free, 1, _NEAR)
        meant += near
        free = [name for name in free if name not in near]
    one = len(unknown) == 1
    parts = ["unknown key" if one else f"unknown keys {', '.join(unknown)}"]
    if meant:
        verb = "is" if len(meant) == 1 else "are"
        parts.append(f"{verb} {', '.join(f'`{name}`' for name in meant)} meant?")
    line = _at(place, unknown[0] if one else None) + "; ".join(parts)
    line += f"{' ' if meant else '; '}allowed: {', '.join(allowed)}"
    left = [name for name in missing if name not in meant]
    return line + (f"; missing: {', '.join(left)}" if left else "")


def _at(place: Sequence[int | str], last: str | None = None) -> str:
    key = ".".join(str(part) for part in (*place, *([] if last is None else [last])))
    return f"{key}: " if key else ""


def _present(data: Any, place: Place) -> Collection[str]:
    for part in place:
        data = data[part]
    return data.keys() if isinstance(data, Mapping) else ()


def _keys(schema: dict[str, Any], place: Place) -> tuple[str, ...]:
    """The keys of the object at this place, by the JSON schema that pydantic makes of a noun."""
    at = _resolved(schema, schema)
    for part in place:
        inner = at.get("items") if isinstance(part, int) else at.get("properties", {}).get(part)
        at = _resolved(inner or {}, schema)
    return tuple(at.get("properties", {}))


def _resolved(at: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in at:
        at = schema["$defs"][at["$ref"].rsplit("/", 1)[-1]]
    return at
