"""Arguments of a call as an agent gave them: a copy of the JSON object, or what is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from agenteval.agents.protocol import Tool

MAX_RAW = 2000  # characters kept of what could not be read
_MAX_ARGUMENTS = 100_000  # characters of JSON
_MAX_DEPTH = 64


def clean(text: str) -> str:
    """The text without lone surrogates, which no UTF-8 file can hold; they become "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


def as_object(arguments: object) -> tuple[JsonValue, str | None]:
    """A copy of the arguments as a JSON object, and what is wrong with them (None: nothing)."""
    if isinstance(arguments, bytes):
        arguments = arguments.decode("utf-8", "replace")
    if arguments is None or (isinstance(arguments, str) and not arguments):
        return {}, None
    value: object = dict(arguments) if isinstance(arguments, Mapping) else arguments
    try:
        if isinstance(arguments, str):
            if len(arguments) > _MAX_ARGUMENTS:
                return raw(arguments), "the arguments are too long"
            value = json.loads(arguments)
    except (ValueError, RecursionError):
        return raw(arguments), "the arguments are not valid JSON"
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        if len(text) > _MAX_ARGUMENTS:
            return raw(text), "the arguments are too long"
        parsed: JsonValue = json.loads(clean(text))
    except (TypeError, ValueError, RecursionError):
        return raw(arguments), "the arguments are not JSON values"
    if _depth(parsed) > _MAX_DEPTH:
        return raw(text), "the arguments are nested too deeply"
    return parsed, None if isinstance(parsed, dict) else "the arguments must be a JSON object"


def raw(arguments: object) -> str:
    """Return the logged form of arguments that are not a JSON object."""
    return clean((arguments if isinstance(arguments, str) else repr(arguments))[:MAX_RAW])


def _depth(value: JsonValue) -> int:
    level, depth = [value], 0
    while level and depth <= _MAX_DEPTH:
        inner: list[JsonValue] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        level, depth = inner, depth + 1
    return depth


class Schemas:
    """The parameters of tools, to check arguments against."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._parameters = {tool.name: tool.parameters for tool in tools}
        self._checks: dict[str, Any] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._parameters

    def complaint(self, name: str, arguments: JsonValue) -> str | None:
        """Return the problem with the arguments of a known tool, or None."""
        check = self._checks.get(name)
        if check is None:
            check = self._checks[name] = _validator(self._parameters[name])
        try:
            for error in check.iter_errors(arguments):
                where = ".".join(map(str, error.absolute_path))
                return f"{where}: {error.message}" if where else str(error.message)
        except OverflowError:  # an integer of hundreds of digits against `multipleOf`
            return "a number in the arguments is too large"
        return None


def _validator(parameters: dict[str, JsonValue]) -> Any:
    """A check that never fetches a remote `$ref`: a suite of cases is data, not a reason to."""
    from jsonschema import Draft202012Validator
    from referencing.jsonschema import EMPTY_REGISTRY

    return Draft202012Validator(parameters, registry=EMPTY_REGISTRY)
