"""Which spans say nothing of their own: wrappers around others that repeat what those say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from agenteval.evaluators.traces.condense_lines import STRONG
from agenteval.evaluators.traces.condense_seen import plain
from agenteval.records.run import Span

# Attributes of a wrapper that a reader of the trace may need, by their key.
TELLING = re.compile(
    r"error|exception|fail|task$|goal|instruction|max|limit|timeout|retr|tools?_names|managed"
    r"|memory|budget|version_conflict|abort|cancel",
    re.IGNORECASE,
)
_MANY = 50  # values of a structured text that are looked for as parts of others
_DEEP = 8  # how far below a wrapper its text is looked for
_NEAR = 12  # texts of the spans found there in which it may stand as a part


def wrappers(spans: Sequence[Span], parents: Sequence[int | None]) -> list[str | None]:
    """For each span the reason to leave it out, None for those to keep.

    Only spans of kind chain and agent without an error or an event are left out: "repeats" for
    those whose input and output stand in other spans, "empty" for those without either. An agent
    stays when its name comes for the first time; a span without children when its name does;
    one with a telling attribute when that is new.
    """
    return _Wrappers(spans, parents).reasons()


class _Wrappers:
    def __init__(self, spans: Sequence[Span], parents: Sequence[int | None]) -> None:
        self.spans, self.parents = spans, parents
        self.children: list[list[int]] = [[] for _ in spans]
        for i, parent in enumerate(parents):
            if parent is not None:
                self.children[parent].append(i)
        self.texts = set(_texts(spans))
        self.names: set[str] = set()
        self.told: set[tuple[str, str]] = set()

    def reasons(self) -> list[str | None]:
        found: list[str | None] = []
        for i, span in enumerate(self.spans):
            reason = self._reason(i) if span.kind in ("chain", "agent") else None
            self.names.add(_name(span))
            if reason is None:  # what it says, those below it need not say again
                self.texts.update(t for t in (span.input.strip(), span.output.strip()) if t)
            found.append(reason)
        return found

    def _reason(self, i: int) -> str | None:
        span = self.spans[i]
        if span.status == "error" or span.status_message or span.events:
            return None
        if span.messages or span.reply or span.tools or self._telling(span):
            return None
        new = _name(span) not in self.names
        if new and (span.kind == "agent" or not self.children[i]):
            return None
        if not self._known(span.input, i, 0) or not self._known(span.output, i, -1):
            return None
        return "repeats" if span.input.strip() or span.output.strip() else "empty"

    def _telling(self, span: Span) -> bool:
        pairs = {
            (key, plain(value))
            for key, value in span.attributes.items()
            if TELLING.search(key) or (isinstance(value, str) and STRONG.stands_in(value))
        }
        new = pairs - self.told
        self.told |= pairs
        return bool(new)

    def _known(self, text: str, i: int, side: int) -> bool:
        """Whether all that `text` says stands in other spans."""
        values = list(_values(text, numbers=side == -1))
        unknown = [value for value in values if value not in self.texts]
        if not unknown:
            return True
        near = list(self._near(i, side))
        return len(unknown) <= _MANY and all(any(v in t for t in near) for v in unknown)

    def _near(self, i: int, side: int) -> Iterator[str]:
        """Texts of the first (side 0) or last (side -1) spans below that are always kept, and of
        the parent, which is kept or has said nothing that does not stand elsewhere."""
        count = 0
        parent = self.parents[i]
        below = i
        for _ in range(_DEEP):
            if not self.children[below]:
                break
            below = self.children[below][side]
            span = self.spans[below]
            if span.kind in ("chain", "agent"):
                continue
            messages = [*span.messages[:3], *span.messages[-2:], *span.reply]
            for text in (span.input, span.output, *(m.content for m in messages)):
                if text and count < _NEAR:
                    count += 1
                    yield text
        if parent is not None:
            yield self.spans[parent].input


def _texts(spans: Sequence[Span]) -> Iterator[str]:
    """All that is said in spans that are always kept; equal objects are looked at once."""
    looked: set[int] = set()
    for span in spans:
        if span.kind in ("chain", "agent"):
            continue
        for text in (span.input, span.output):
            if text:
                yield text.strip()
        for message in (*span.messages, *span.reply):
            if id(message) not in looked:
                looked.add(id(message))
                yield message.content.strip()


def _values(text: str, numbers: bool) -> Iterator[str]:
    """The text, or when it is a JSON object or list, the texts (and numbers) in it."""
    text = text.strip()
    if not text:
        return
    if text[0] in "{[":
        try:
            yield from _leaves(json.loads(text), numbers)
        except (ValueError, RecursionError):
            yield text
        return
    yield text


def _leaves(value: Any, numbers: bool) -> Iterator[str]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, str) and item.strip():
            yield item.strip()
        elif numbers and isinstance(item, int | float) and not isinstance(item, bool):
            yield str(item)


def _name(span: Span) -> str:
    """Names that differ in numbers alone, as of steps, are one."""
    return span.kind + ":" + re.sub(r"\d+", "0", span.name)
