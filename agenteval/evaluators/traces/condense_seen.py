"""What stood before in a trace: texts, messages, offered tools, calls and attributes."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from agenteval.records.run import Message, ToolSpec

FOLD = 160  # characters; a shorter text is shown again rather than referred to
_RECENT = 8  # texts in which, or for which, a new one is searched


@dataclass(slots=True)
class Seen:
    """Texts by where they stood, messages by number. Each distinct text is held once.

    `folded` counts the texts and messages that were replaced by a reference.
    """

    folded: int = 0
    _texts: dict[str, str] = field(default_factory=dict)
    _recent: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _starts: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _numbers: dict[object, int] = field(default_factory=dict)
    _by_id: dict[int, int] = field(default_factory=dict)
    _tools: set[str] = field(default_factory=set)
    _offers: dict[str, str] = field(default_factory=dict)
    _calls: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _arguments: dict[str, str] = field(default_factory=dict)
    _pairs: set[tuple[str, str]] = field(default_factory=set)

    def fold(self, text: str, here: str) -> str:
        """`text`, or a reference to where all of it stood, or the text with references in the
        place of recent texts that it repeats. From now on it stands at `here`."""
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
        key = (message.role, message.name, message.content.strip(), _calls_key(message))
        number = self._numbers.get(key)
        new = number is None
        if number is None:
            number = self._numbers[key] = len(self._numbers) + 1
        else:
            self.folded += 1
        self._by_id[id(message)] = number
        return number, new

    def tool(self, spec: ToolSpec) -> bool:
        """Whether this tool, with this description and these parameters, is offered anew."""
        key = "\0".join((spec.name, spec.description, plain(spec.parameters)))
        new = key not in self._tools
        self._tools.add(key)
        return new

    def offer(self, names: str, here: str) -> str | None:
        """The span that offered exactly these tools before, None for the first."""
        where = self._offers.setdefault(names, here)
        return None if where == here else where

    def call(self, tool: str, arguments: str, here: str) -> tuple[list[str], int]:
        """Where the same tool was called before with the same arguments (the first and the last
        ones), and how often."""
        before = self._calls.setdefault((tool, same(arguments)), [])
        found = list(before) if len(before) < 5 else [before[0], "...", *before[-2:]]
        times = len(before)
        before.append(here)
        return found, times

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

    def pair(self, key: str, value: str) -> bool:
        """Whether this attribute with this value is new."""
        known = (key, value) in self._pairs
        self._pairs.add((key, value))
        return not known


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


def _calls_key(message: Message) -> Sequence[tuple[str, str]]:
    return tuple((c.name, plain(c.arguments)) for c in message.tool_calls)


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
