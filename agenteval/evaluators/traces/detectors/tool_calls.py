"""Calls that no tool could have taken (broken arguments, unknown names, violated schemas), and
tools that were defined wrongly, as far as the trace proves it. Nothing is fetched for a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from pydantic import JsonValue

from agenteval.evaluators.traces.detectors.conversations import Call, Conversations
from agenteval.evaluators.traces.detectors.failures import Fact, all_facts, failed
from agenteval.evaluators.traces.detectors.prose import without_blocks
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


_TAGGED = re.compile(r"^[ \t]*<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL | re.MULTILINE)
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
    "malformed-call-text",
    "Formatting Errors",
    "MEDIUM",
    "A reply holds a <tool_call> element (the form of Hermes and Qwen) that is no JSON, and no "
    "call was read from the reply; other forms of calls in text, and quoted ones, are not covered.",
    confidence=0.95,
)
def malformed_call_text(view: TraceView) -> Iterator[Hit]:
    """The first such reply of the trace."""
    for span in view.llms:
        for message in span.reply:
            if not span.tools or message.tool_calls or "<tool_call>" not in message.content:
                continue
            for found in _TAGGED.finditer(without_blocks(message.content)):
                inside = found[1].strip()
                if inside[:1] == "{" and _no_json(inside):
                    words = quote(span, found[0], inside)
                    yield Hit(span, words, "a call in the text of the reply is no JSON")
                    return


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
    found = _UNKNOWN.fullmatch(text) if len(text) < 10_000 else None
    return next(filter(None, found.groups()), None) if found else None


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


_UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")
_MISSING = re.compile(r"missing \d+ required (?:positional|keyword-only) arguments?: (.+)")


def _offers(view: TraceView) -> Iterator[tuple[Span, ToolSpec]]:
    """Each tool with the first request that offers it in this form."""
    seen: set[tuple[str, str, str]] = set()
    objects: set[int] = set()
    for span in view.llms:
        for tool in span.tools:
            if id(tool) in objects:
                continue
            objects.add(id(tool))
            text = "" if tool.parameters is None else schema_text(tool.parameters)
            if (tool.name, tool.description, text) not in seen:
                seen.add((tool.name, tool.description, text))
                yield span, tool


@rule(
    "invalid-tool-schema",
    "Tool Definition Issues",
    "MEDIUM",
    "A tool was offered with parameters that are no valid JSON schema, or require a property that "
    "a closed schema does not have; a schema that is valid and wrong is not covered.",
)
def invalid_tool_schema(view: TraceView) -> Iterator[Hit]:
    """The first offer of each such tool."""
    seen: set[str] = set()
    for span, tool in _offers(view):
        if tool.parameters is None or tool.name in seen:
            continue
        wrong = invalid(schema_text(tool.parameters)) or _impossible(tool)
        if wrong:
            seen.add(tool.name)
            yield Hit(
                span, quote(span, tool.name), f"the schema of tool {tool.name!r} is wrong: {wrong}"
            )


def _impossible(tool: ToolSpec) -> str:
    """A required property that must not be there; "" if there is none."""
    given = tool.parameters or {}
    required, has = given.get("required"), given.get("properties")
    if given.get("additionalProperties") is not False or not isinstance(required, list):
        return ""
    if "patternProperties" in given or not isinstance(has, dict | None):
        return ""
    lost = [name for name in required if isinstance(name, str) and name not in (has or {})]
    return f"it requires {lost[0]!r} and allows no such property" if lost else ""


@rule(
    "definition-mismatch",
    "Tool Definition Issues",
    "HIGH",
    "The tool refused, as a Python function does, an argument that its offered schema names, or "
    "missed one that the schema does not; mismatches in meaning are not covered.",
)
def definition_mismatch(view: TraceView) -> Iterator[Hit]:
    """The first such execution of each tool."""
    seen: set[str] = set()
    told = view.once(all_facts)
    for conversation in view.once(Conversations).all:
        for call in conversation.calls:
            if call.execution is None or call.name in seen:
                continue
            words = _mismatch(call, told[view.position[call.execution.id]])
            if words:
                seen.add(call.name)
                yield Hit(
                    call.execution,
                    quote(call.execution, words, call.execution.output),
                    f"{call.name} does not take what its definition says",
                )


def _mismatch(call: Call, told: Sequence[Fact]) -> str:
    offered = next((tool for tool in call.span.tools if tool.name == call.name), None)
    if offered is None or offered.parameters is None:
        return ""
    has, required = offered.parameters.get("properties"), offered.parameters.get("required")
    names = set(has) if isinstance(has, dict) else set()
    needed = {n for n in required if isinstance(n, str)} if isinstance(required, list) else set()
    for fact in told:
        found = _UNEXPECTED.search(fact.message[:2000])
        if found and found[1] in names:
            return found[0]
        lost = _MISSING.search(fact.message[:2000])
        if lost and not set(re.findall(r"'(\w+)'", lost[1])) & needed:
            return lost[0]
    return ""
