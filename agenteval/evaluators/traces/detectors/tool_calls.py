"""Calls that no tool could have taken: broken arguments, unknown names, violated schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from agenteval.evaluators.traces.detectors.conversations import conversations
from agenteval.evaluators.traces.detectors.error_facts import failed
from agenteval.evaluators.traces.detectors.json_schema import Unchecked, schema_text, violation
from agenteval.evaluators.traces.detectors.prose import without_blocks
from agenteval.evaluators.traces.detectors.registry import Hit, rule
from agenteval.evaluators.traces.detectors.view import TraceView, arguments_text, quote
from agenteval.records import Span, ToolCall, ToolSpec

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
    for conversation in conversations(view).all:
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
