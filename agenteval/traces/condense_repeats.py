"""Find repetition in a trace: wrapper spans, and repeated texts, messages and calls."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from agenteval.records.run import Message, Span
from agenteval.traces.excerpt import ERROR

# Attributes of a wrapper that a reader of the trace may need
TELLING = re.compile(
    r"error|exception|fail|task$|goal|instruction|max|limit|timeout|retr|tools?_names|managed"
    r"|memory|budget|version_conflict|abort|cancel",
    re.IGNORECASE,
)
_MAX_VALUES = 50  # values of a structured text that are searched for in other texts
_MAX_DEPTH = 8  # levels below a wrapper that are searched for its text
_MAX_NEAR = 12  # texts of spans to search
FOLD = 160  # characters; a shorter text is repeated instead of referenced
_RECENT = 8  # the number of recent texts compared with a new one


def wrappers(spans: Sequence[Span], parents: Sequence[int | None]) -> list[str | None]:
    """Return for each span the reason to omit it, or None to keep it.

    Only chain and agent spans without errors and events are omitted: "repeats" if their input and
    output occur in other spans, "empty" if they have neither. An agent or a span without children
    is kept when its name is new, and any span when it has a new informative attribute.
    """
    children: list[list[int]] = [[] for _ in spans]
    for i, parent in enumerate(parents):
        if parent is not None:
            children[parent].append(i)
    kept_spans = [span for span in spans if span.kind not in ("chain", "agent")]
    texts = {text.strip() for span in kept_spans for text in (span.input, span.output) if text}
    messages = {id(m): m for span in kept_spans for m in (*span.messages, *span.reply)}
    texts.update(message.content.strip() for message in messages.values())
    names, seen_pairs = set[str](), set[tuple[str, str]]()

    def is_repeated(i: int, side: int) -> bool:
        """Return whether other spans contain all of the input (side 0) or output (side -1)."""
        values = _values(spans[i].output if side else spans[i].input, numbers=side == -1)
        new = [value for value in values if value not in texts]
        if not new:
            return True
        near = list(_near(spans, children, i, side))
        if (parent := parents[i]) is not None:  # the parent is kept, or repeats other spans
            near.append(spans[parent].input)
        return len(new) <= _MAX_VALUES and all(any(v in text for text in near) for v in new)

    reasons: list[str | None] = []
    for i, span in enumerate(spans):
        # Names that differ only in numbers, such as "Step 1" and "Step 2", count as one.
        name = span.kind + ":" + re.sub(r"\d+", "0", span.name)
        failed = span.status == "error" or span.status_message or span.events
        needed = span.kind not in ("chain", "agent") or bool(
            failed or span.messages or span.reply or span.tools
        )
        if not needed:
            pairs = {
                (key, plain(value))
                for key, value in span.attributes.items()
                if TELLING.search(key) or (isinstance(value, str) and ERROR.search(value))
            }
            first = name not in names and (span.kind == "agent" or not children[i])
            needed = not pairs <= seen_pairs or first
            needed = needed or not (is_repeated(i, 0) and is_repeated(i, -1))
            seen_pairs |= pairs
        names.add(name)
        inputs_outputs = [text for text in (span.input.strip(), span.output.strip()) if text]
        if needed:
            texts.update(inputs_outputs)  # wrappers below that repeat them can be omitted
        reasons.append(None if needed else "repeats" if inputs_outputs else "empty")
    return reasons


def _near(
    spans: Sequence[Span], children: Sequence[Sequence[int]], below: int, side: int
) -> Iterator[str]:
    """Yield texts of the first (side 0) or last (side -1) always-kept spans below."""
    count = 0
    for _ in range(_MAX_DEPTH):
        if not children[below]:
            return
        below = children[below][side]
        span = spans[below]
        if span.kind in ("chain", "agent"):
            continue
        messages = [*span.messages[:3], *span.messages[-2:], *span.reply]
        for text in (span.input, span.output, *(m.content for m in messages)):
            if text and count < _MAX_NEAR:
                count += 1
                yield text


def _values(text: str, numbers: bool) -> Iterator[str]:
    """Yield the text, or the strings (and numbers) in it if it is a JSON object or list."""
    text = text.strip()
    stack: list[Any] = [text]
    if text[:1] in ("{", "["):
        try:
            stack = [json.loads(text)]
        except (ValueError, RecursionError):
            pass  # the text itself counts
    while stack:
        item = stack.pop()
        if isinstance(item, dict | list):
            stack.extend(item.values() if isinstance(item, dict) else item)
        elif isinstance(item, str) and item.strip():
            yield item.strip()
        elif numbers and isinstance(item, int | float) and not isinstance(item, bool):
            yield str(item)


@dataclass(slots=True)
class Seen:
    """Remembers where each text was first shown, and numbers messages. Each text is stored once."""

    task: str = ""  # the agent's request; shown once, then referenced
    _task_shown: bool = False
    _texts: dict[str, str] = field(default_factory=dict)
    _recent: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _starts: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _numbers: dict[object, int] = field(default_factory=dict)
    _by_id: dict[int, int] = field(default_factory=dict)
    _calls: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _first: dict[tuple[str, ...], str] = field(default_factory=dict)

    def before(self, here: str, *key: str) -> str:
        """Return where `key` first occurred, or "" if it is new."""
        first = self._first.get(key, "")
        self._first.setdefault(key, here)
        return first

    def fold(self, text: str, here: str) -> str:
        """Return `text`, a reference if all of it was shown before, or the text with references in
        place of recent texts that it repeats. Records the text as shown at `here`."""
        if len(self.task) >= FOLD and self.task in text:
            if self._task_shown:
                text = text.replace(self.task, f"[the task: {len(self.task):,} characters]")
            self._task_shown = True
        stripped = text.strip()
        if len(stripped) < FOLD:
            return text
        if where := self._texts.get(stripped):
            return f"[same as {where}: {len(stripped):,} characters]"
        self._texts[stripped] = here
        for other, where in self._recent:
            if stripped in other:
                return f"[stands within {where}: {len(stripped):,} characters]"
        for other, where in sorted(self._recent, key=lambda r: -len(r[0])):
            if len(other) < len(text) and other in text:
                text = text.replace(other, f"[{where}: {len(other):,} characters]")
        self._recent.append((stripped, here))
        return text

    def fold_start(self, text: str, here: str) -> str:
        """Return a text that grows from call to call, with a reference in place of the beginning
        that it shares with a recent text."""
        shared, where = max(
            ((_common(text, other), where) for other, where in self._starts), default=(0, "")
        )
        self._starts.append((text, here))
        if shared < 2 * FOLD:
            return self.fold(text, here)
        return f"[begins with the same {shared:,} characters as {where}]{text[shared:]}"

    def number(self, message: Message) -> tuple[int, bool]:
        """Return the number of a message, and whether it is new.

        Messages with the same role and content are one, even if the ids of their calls differ. Keep
        the messages alive: they are recognized by identity, so that shared ones are hashed once.
        """
        number = self._by_id.get(id(message))
        if number is None:
            calls = tuple((c.name, plain(c.arguments)) for c in message.tool_calls)
            key = (message.role, message.name, message.content.strip(), calls)
            new = key not in self._numbers
            number = self._numbers.setdefault(key, len(self._numbers) + 1)
            self._by_id[id(message)] = number
            if new:
                return number, True
        return number, False

    def call(self, tool: str, arguments: str, here: str) -> tuple[list[str], int]:
        """Return where (first and last) and how often this tool was called with the same
        arguments."""
        calls = self._calls.setdefault((tool, _same(arguments)), [])
        calls.append(here)
        before = calls[:-1]
        return before if len(before) < 5 else [before[0], "...", *before[-2:]], len(before)

    def arguments(self, text: str, here: str) -> str:
        """Return the arguments of a call; for long ones shown before, the end becomes a reference.

        The beginning is kept, because a call cannot be judged without it.
        """
        where = "" if len(text) < 2 * FOLD else self.before(here, "arguments", _same(text))
        if where in ("", here):
            return text
        return f"{text[:FOLD]} [and so on, same as arguments in {where}: {len(text):,} characters]"


def plain(value: JsonValue) -> str:
    """Return a string unchanged, "" for None, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _same(text: str) -> str:
    """Normalize a text so that two texts of the same JSON are equal."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text.strip()


def ranges(numbers: Iterable[int]) -> str:
    """Format message numbers in order, as "M1-M9, M12, M13 x3"."""
    runs: list[list[int]] = []  # first, last, times
    for n in numbers:
        first, last, times = runs[-1] if runs else (0, -1, 0)
        if times == 1 and n == last + 1:
            runs[-1][1] = n
        elif n == last and first == last:
            runs[-1][2] += 1
        elif n == last:  # the last number of a range repeated
            runs[-1][1] -= 1
            runs.append([n, n, 2])
        else:
            runs.append([n, n, 1])
    return ", ".join(
        f"M{a}" + (f"-M{b}" if b > a else "") + (f" x{times}" if times > 1 else "")
        for a, b, times in runs
    )


def _common(a: str, b: str) -> int:
    """Return the length of the common prefix, by bisection."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low
