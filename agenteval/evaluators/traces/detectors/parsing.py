"""Replies that the framework could not read, and code that does not parse."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agenteval.evaluators.traces.detectors.conversations import Conversations
from agenteval.evaluators.traces.detectors.failures import all_facts
from agenteval.evaluators.traces.detectors.registry import (
    Hit,
    TraceView,
    arguments_text,
    quote,
    rule,
)
from agenteval.records import Span

_UNREAD = re.compile(
    r"(?:^|\.)(?:AgentParsingError|OutputParserException|OutputParserError|OutputParsingError)$"
)
_SYNTAX = {"SyntaxError", "IndentationError", "TabError"}
_SYNTAX_WORDS = re.compile(
    r"(?:^|: ?|\n)(?:SyntaxError|IndentationError|TabError): |\(<\w+>, line \d+\)\Z"
)


@rule(
    "unreadable-reply",
    "Formatting Errors",
    "MEDIUM",
    "The framework raised its own error for a reply that is not in its format (smolagents, "
    "LangChain, LlamaIndex); frameworks that ask again without an error are not covered.",
)
def unreadable_reply(view: TraceView) -> Iterator[Hit]:
    """The first such reply of each agent: the last request before the error, in the same step."""
    found: dict[int, str] = {}
    for i, told in enumerate(view.once(all_facts)):
        for fact in told:
            if _UNREAD.search(fact.type):
                found.setdefault(i, fact.message)
    last: dict[int, Span] = {}
    for span in (
        view.llms if found else ()
    ):  # each request is the last one of all failed spans above it
        above: int | None = view.position[span.id]
        while above is not None:
            if above in found:
                last[above] = span
            above = view.parents[above]
    seen: set[int | None] = set()
    for i, message in found.items():
        agent = view.agents[i]
        where = last.get(i)
        if where is None or agent in seen:
            continue
        seen.add(agent)
        text = "\n".join(m.content for m in where.reply)
        yield Hit(where, quote(where, text, where.output, where.name), message[:200])


@rule(
    "code-syntax",
    "Formatting Errors",
    "MEDIUM",
    "A tool that was given code failed with Python's SyntaxError, and the call holds the code; "
    "errors of other languages, and code that runs and is wrong, are not covered.",
    confidence=0.9,
)
def code_syntax(view: TraceView) -> Iterator[Hit]:
    """The first such call of each tool, at the request that wrote the code."""
    seen: set[str] = set()
    told = view.once(all_facts)
    for conversation in view.once(Conversations).all:
        for call in conversation.calls:
            if call.execution is None or call.name in seen or not call.arguments:
                continue
            if any(
                _broken(fact.type, fact.message) for fact in told[view.position[call.execution.id]]
            ):
                seen.add(call.name)
                words = quote(call.span, arguments_text(call.arguments), call.name, call.span.input)
                yield Hit(call.span, words, f"the code given to {call.name} is no valid Python")


def _broken(kind: str, message: str) -> bool:
    return kind in _SYNTAX or _SYNTAX_WORDS.search(message[-2000:]) is not None
