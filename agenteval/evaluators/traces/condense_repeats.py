"""What a trace says twice: texts, messages, offered tools, calls and attributes that stood before,
and wrappers around spans that repeat what those say."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from agenteval.evaluators.traces.condense_lines import STRONG
from agenteval.records.run import Message, Span

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
    children: list[list[int]] = [[] for _ in spans]
    for i, parent in enumerate(parents):
        if parent is not None:
            children[parent].append(i)
    texts, names, known_pairs = set(_texts(spans)), set[str](), set[tuple[str, str]]()

    def known(i: int, side: int) -> bool:
        """Whether all that the input (side 0) or output (side -1) says stands in other spans."""
        values = _values(spans[i].output if side else spans[i].input, numbers=side == -1)
        unknown = [value for value in values if value not in texts]
        if not unknown:
            return True
        near = list(_near(spans, children, i, side))
        if (parent := parents[i]) is not None:  # it is kept, or says nothing of its own
            near.append(spans[parent].input)
        return len(unknown) <= _MANY and all(any(v in t for t in near) for v in unknown)

    reasons: list[str | None] = []
    for i, span in enumerate(spans):
        # names that differ in numbers alone, as of steps, are one
        name = span.kind + ":" + re.sub(r"\d+", "0", span.name)
        needed = span.kind not in ("chain", "agent") or _says_more(span)
        if not needed:
            pairs = {
                (key, plain(value))
                for key, value in span.attributes.items()
                if TELLING.search(key) or (isinstance(value, str) and STRONG.stands_in(value))
            }
            first = name not in names and (span.kind == "agent" or not children[i])
            needed = not pairs <= known_pairs or first or not (known(i, 0) and known(i, -1))
            known_pairs |= pairs
        names.add(name)
        if needed:  # what it says, those below it need not say again
            texts.update(t for t in (span.input.strip(), span.output.strip()) if t)
            reasons.append(None)
        else:
            reasons.append("repeats" if span.input.strip() or span.output.strip() else "empty")
    return reasons


def _says_more(span: Span) -> bool:
    failed = span.status == "error" or span.status_message or span.events
    return bool(failed or span.messages or span.reply or span.tools)


def _near(
    spans: Sequence[Span], children: Sequence[Sequence[int]], below: int, side: int
) -> Iterator[str]:
    """Some texts of the first (side 0) or last (side -1) spans below that are always kept."""
    count = 0
    for _ in range(_DEEP):
        if not children[below]:
            return
        below = children[below][side]
        span = spans[below]
        if span.kind in ("chain", "agent"):
            continue
        messages = [*span.messages[:3], *span.messages[-2:], *span.reply]
        for text in (span.input, span.output, *(m.content for m in messages)):
            if text and count < _NEAR:
                count += 1
                yield text


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


FOLD = 160  # characters; a shorter text is shown again rather than referred to
_RECENT = 8  # texts in which, or for which, a new one is searched


@dataclass(slots=True)
class Seen:
    """Texts by where they stood, messages by number. Each distinct text is held once.

    `folded` counts the texts and messages that were replaced by a reference.
    """

    folded: int = 0
    task: str = ""  # what the agent was asked, shown where it comes first and as a reference then
    _told: bool = False
    _texts: dict[str, str] = field(default_factory=dict)
    _recent: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _starts: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _numbers: dict[object, int] = field(default_factory=dict)
    _by_id: dict[int, int] = field(default_factory=dict)
    _offers: dict[str, str] = field(default_factory=dict)
    _calls: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _arguments: dict[str, str] = field(default_factory=dict)
    _known: set[tuple[str, ...]] = field(default_factory=set)

    def new(self, *what: str) -> bool:
        """Whether this has not been asked about before."""
        known = what in self._known
        self._known.add(what)
        return not known

    def fold(self, text: str, here: str) -> str:
        """`text`, or a reference to where all of it stood, or the text with references in the
        place of recent texts that it repeats. From now on it stands at `here`."""
        if len(self.task) >= FOLD and self.task in text:
            if self._told:
                self.folded += 1
                text = text.replace(self.task, f"[the task: {len(self.task):,} characters]")
            self._told = True
        whole = text.strip()
        if len(whole) < FOLD:
            return text
        if where := self._texts.get(whole):
            self.folded += 1
            return f"[same as {where}: {len(whole):,} characters]"
        for other, where in self._recent:
            if whole in other:
                self.folded += 1
                self._texts[whole] = here
                return f"[stands within {where}: {len(whole):,} characters]"
        self._texts[whole] = here
        for other, where in sorted(self._recent, key=lambda r: -len(r[0])):
            if len(other) < len(text) and other in text:
                self.folded += 1
                text = text.replace(other, f"[{where}: {len(other):,} characters]")
        self._recent.append((whole, here))
        return text

    def fold_start(self, text: str, here: str) -> str:
        """For texts that grow from call to call: the beginning that a recent one shares is
        replaced by a reference."""
        found, where = max(
            ((_common(text, other), where) for other, where in self._starts), default=(0, "")
        )
        self._starts.append((text, here))
        if found < 2 * FOLD:
            return self.fold(text, here)
        self.folded += 1
        return f"[begins with the same {found:,} characters as {where}]{text[found:]}"

    def number(self, message: Message) -> tuple[int, bool]:
        """The number of a message, and whether it is new. Messages of the same role and content
        are one, whatever the ids of their calls. Keep the messages alive: they are known again by
        identity, which spares hashing what readers share."""
        if known := self._by_id.get(id(message)):
            self.folded += 1
            return known, False
        calls = tuple((c.name, plain(c.arguments)) for c in message.tool_calls)
        key = (message.role, message.name, message.content.strip(), calls)
        number = self._numbers.get(key)
        new = number is None
        if number is None:
            number = self._numbers[key] = len(self._numbers) + 1
        else:
            self.folded += 1
        self._by_id[id(message)] = number
        return number, new

    def offer(self, names: str, here: str) -> str | None:
        """The span that offered exactly these tools before, None for the first."""
        where = self._offers.setdefault(names, here)
        return None if where == here else where

    def call(self, tool: str, arguments: str, here: str) -> tuple[list[str], int]:
        """Where the same tool was called before with the same arguments (the first and the last
        ones), and how often."""
        before = self._calls.setdefault((tool, same(arguments)), [])
        listed = list(before) if len(before) < 5 else [before[0], "...", *before[-2:]]
        times = len(before)
        before.append(here)
        return listed, times

    def arguments(self, text: str, here: str) -> str:
        """Arguments of a call. They stay where they stood before, for no call can be judged
        without; only the end of long ones is replaced by a reference."""
        if len(text) < 2 * FOLD:
            return text
        where = self._arguments.setdefault(same(text), here)
        if where == here:
            return text
        self.folded += 1
        return f"{text[:FOLD]} [and so on, same as arguments in {where}: {len(text):,} characters]"


def plain(value: JsonValue) -> str:
    """A text as it is, anything else as JSON; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def same(text: str) -> str:
    """A form in which two texts of arguments are equal when they mean the same JSON."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text.strip()


def ranges(numbers: Iterable[int]) -> str:
    """Message numbers in their order, "M1-M9, M12, M13 x3"."""
    runs: list[list[int]] = []  # first, last, times
    for n in numbers:
        if runs and runs[-1][2] == 1 and n == runs[-1][1] + 1:
            runs[-1][1] = n
        elif runs and runs[-1][0] == runs[-1][1] == n:
            runs[-1][2] += 1
        elif runs and runs[-1][1] == n:  # the last of a range again
            runs[-1][1] -= 1
            runs.append([n, n, 2])
        else:
            runs.append([n, n, 1])
    return ", ".join(
        f"M{a}" + (f"-M{b}" if b > a else "") + (f" x{times}" if times > 1 else "")
        for a, b, times in runs
    )


def _common(a: str, b: str) -> int:
    """Length of the common beginning, by halving."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
