"""Calls that no tool could have taken: broken arguments, unknown names, violated schemas, as far as
the trace proves it. Nothing is fetched for a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pydantic import JsonValue

from agenteval.evaluators.traces.detectors.conversations import Conversations
from agenteval.evaluators.traces.detectors.failures import failed
from agenteval.evaluators.traces.detectors.registry import (
    Hit,
    TraceView,
    arguments_text,
    quote,
    rule,
)
from agenteval.records import Span, ToolCall, ToolSpec

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
    draft = find({"$schema": named}, default=None) if isinstance(named, str) else None
    if draft is None:
        raise Unchecked
    return draft


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


_UNKNOWN = re.compile(
    r"\s*(?:Error: tool '([^'\n]{1,200})' not found in any workbench"  # AutoGen AgentChat
    r"|Error: (\S{1,200}) is not a valid tool, try one of \[.*\]\."  # LangGraph
    r"|Unknown tool:? '?([^\s',]{1,200})'?(?:[,:.].*)?"  # MCP, smolagents
    r"|Tool ([^\s.]{1,200}) not found\.)\s*",  # AutoGen core
    re.DOTALL,
)


def _asked(view: TraceView) -> Iterator[tuple[Span, ToolCall, ToolSpec | None]]:
    """Calls asked for in replies, with the tool as it was offered; None if it was not."""
    for span in view.llms:
        calls = [call for message in span.reply for call in message.tool_calls]
        if calls:
            offered = {tool.name: tool for tool in span.tools}
            for call in calls:
                yield span, call, offered.get(call.name)


@rule(
    "malformed-arguments",
    "Formatting Errors",
    "MEDIUM",
    "The arguments of a call are no JSON object although the tool was offered with a schema "
    "of one, or begin as JSON and are none; free text for a tool without a schema is not covered.",
)
def malformed_arguments(view: TraceView) -> Iterator[Hit]:
    """The first such call of each tool."""
    seen: set[str] = set()
    for span, call, offered in _asked(view):
        if call.name in seen or not _malformed(call, offered):
            continue
        seen.add(call.name)
        text = arguments_text(call.arguments)
        yield Hit(
            span,
            quote(span, text, call.name),
            f"the arguments of {call.name} are no JSON object",
        )


def _malformed(call: ToolCall, offered: ToolSpec | None) -> bool:
    value = call.arguments
    if value is None or isinstance(value, dict) or value == "":
        return False
    if offered is not None and offered.parameters is not None:
        return offered.parameters.get("type") == "object"
    return isinstance(value, str) and value.lstrip()[:1] == "{" and _no_json(value)


def _no_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False


@rule(
    "schema-violation",
    "Formatting Errors",
    "MEDIUM",
    "The arguments of a call violate the JSON schema with which the tool was offered in that very "
    "request; `pattern`, remote references and values that are allowed but wrong are not covered.",
)
def schema_violation(view: TraceView) -> Iterator[Hit]:
    """The first violating call of each tool."""
    seen: set[str] = set()
    texts: dict[int, str] = {}
    for span, call, offered in _asked(view):
        if call.name in seen or offered is None or offered.parameters is None:
            continue
        if not isinstance(call.arguments, dict):
            continue
        text = texts.get(id(offered)) or texts.setdefault(
            id(offered), schema_text(offered.parameters)
        )
        try:
            wrong = violation(call.arguments, text)
        except Unchecked:
            continue
        if wrong is not None:
            seen.add(call.name)
            words = quote(span, arguments_text(call.arguments), call.name)
            yield Hit(span, words, f"the arguments of {call.name} violate its schema: {wrong}")


@rule(
    "unknown-tool",
    "Tool-related",
    "MEDIUM",
    "A call names a tool that was not among those offered in that request and that never ran well, "
    "or the framework answered that there is no such tool; a tool that exists and is the wrong one "
    "is not covered.",
)
def unknown_tool(view: TraceView) -> Iterator[Hit]:
    """The first call of each unknown name."""
    ran = {span.tool for span in view.tools if not failed(span) and not _denied(span.output)}
    seen: set[str] = set()
    for span, call, offered in _asked(view):
        if offered is None and span.tools and call.name and call.name not in ran | seen:
            seen.add(call.name)
            yield Hit(
                span, quote(span, call.name), f"no tool {call.name!r} was offered to the model"
            )
    yield from _answered(view, seen)


def _denied(text: str) -> str | None:
    """The name of the tool that a framework says it does not have."""
    match = _UNKNOWN.fullmatch(text) if len(text) < 10_000 else None
    return next(filter(None, match.groups()), None) if match else None


def _answered(view: TraceView, seen: set[str]) -> Iterator[Hit]:
    for conversation in view.once(Conversations).all:
        for call in conversation.calls:
            name = _denied(call.result or "")
            if name is None or name != call.name or name in seen:
                continue
            seen.add(name)
            yield Hit(
                call.span,
                quote(call.span, name, call.result or ""),
                f"the framework has no tool {name!r}",
            )
    for span in view.tools:  # where no request is traced that asked for it
        name = _denied(span.output)
        if name is not None and name == span.tool and name not in seen:
            seen.add(name)
            yield Hit(span, quote(span, span.output), f"the framework has no tool {name!r}")
