"""Helpers for detectors: the tree of spans, their texts, and quotes from them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import JsonValue

from agenteval.records import Message, Run, Span

_QUOTE = 300  # maximum characters of evidence


class SpanTree:
    """The tree of a run's spans, which are referred to by position.

    Of several spans with the same id, the first counts. A parent that does not precede its child
    counts as missing, so that broken or circular links do no harm.
    """

    def __init__(self, run: Run) -> None:
        first: dict[str, Span] = {}
        for span in run.spans:
            first.setdefault(span.id, span)
        self.spans = list(first.values())
        self.parents: list[int | None] = []
        self.agents: list[int | None] = []  # nearest agent span at or above each span
        self._actors: list[int | None] = []  # nearest llm, tool or agent span above each span
        positions: dict[str, int] = {}
        for i, span in enumerate(self.spans):
            parent = None if span.parent_id is None else positions.get(span.parent_id)
            positions[span.id] = i
            self.parents.append(parent)
            passive = parent is not None and self.spans[parent].kind in ("chain", "user")
            self._actors.append(self._actors[parent] if parent is not None and passive else parent)
        enclosing: set[int] = set()  # positions of spans that run a tool
        for i in range(len(self.spans) - 1, -1, -1):
            parent = self.parents[i]
            if parent is not None and (self.spans[i].kind == "tool" or i in enclosing):
                enclosing.add(parent)
        for i, span in enumerate(self.spans):
            parent = self.parents[i]
            inherited = None if parent is None else self.agents[parent]
            is_client = span.model and i not in enclosing  # wraps a model request
            self.agents.append(i if span.kind == "agent" and not is_client else inherited)

    def requests(self) -> dict[int | None, list[int]]:
        """Return the positions of model requests by agent.

        A request traced twice (a client inside a wrapper) counts once, as the outer span; spans
        without any content of a request are omitted.
        """
        requests: dict[int | None, list[int]] = {}
        for i, span in enumerate(self.spans):
            actor = self._actors[i]
            outer = None if actor is None else self.spans[actor]
            nested = False
            if outer is not None and outer.kind == "llm" and is_recorded(outer):
                nested = outer.tool == span.tool
            if span.kind == "llm" and is_recorded(span) and not nested:
                requests.setdefault(self.agents[i], []).append(i)
        return requests

    def ends(self) -> list[int]:
        """Return for each span the position of the last span below it, or its own."""
        ends = list(range(len(self.spans)))
        for i in range(len(ends) - 1, -1, -1):
            parent = self.parents[i]
            if parent is not None:
                ends[parent] = max(ends[parent], ends[i])
        return ends


def is_recorded(request: Span) -> bool:
    """Return whether a model request records messages, a reply or a finish reason."""
    return bool(request.messages or request.reply or request.finish)


def texts(span: Span) -> Iterator[str]:
    """Yield every text of a span that a finding may quote, messages last."""
    yield from (span.status_message, span.output, span.input, span.name, span.finish or "")
    yield span.tool or ""
    for message in span.reply:
        yield from _message_texts(message)
    for event in span.events:
        yield from _strings(event.attributes)
    yield from _strings(span.attributes)
    for tool in span.tools:
        yield tool.name
        yield tool.description
        yield json.dumps(tool.parameters, ensure_ascii=False)
    for message in span.messages:
        yield from _message_texts(message)


def _message_texts(message: Message) -> Iterator[str]:
    yield message.content
    for call in message.tool_calls:
        yield call.name
        arguments = call.arguments  # a string if the model's arguments were not JSON
        yield arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _strings(value: JsonValue) -> Iterator[str]:
    stack: list[JsonValue] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(reversed(list(item.values())))
        elif isinstance(item, list):
            stack.extend(reversed(item))
        elif item is not None:
            yield item if isinstance(item, str) else json.dumps(item)


def quote(span: Span, *candidates: str) -> str:
    """Return the first candidate, cut to 300 characters, that occurs in the span, or ""."""
    for candidate in candidates:
        cut = candidate.strip()[:_QUOTE].strip()
        if cut and any(cut in text for text in texts(span)):
            return cut
    return ""
