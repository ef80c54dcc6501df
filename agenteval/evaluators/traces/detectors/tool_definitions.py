"""Tools that were defined wrongly, as far as the trace proves it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agenteval.evaluators.traces.detectors.conversations import Call, conversations
from agenteval.evaluators.traces.detectors.error_facts import Fact, all_facts
from agenteval.evaluators.traces.detectors.json_schema import invalid, schema_text
from agenteval.evaluators.traces.detectors.registry import Hit, rule
from agenteval.evaluators.traces.detectors.view import TraceView, quote
from agenteval.records import Span, ToolSpec

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
    for conversation in conversations(view).all:
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
