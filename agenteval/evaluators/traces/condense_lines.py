"""Excerpts: which lines of a text stay when there is no room for all of them.

What stays is what a reader needs to see an error: the beginning and the very end, lines that look
like errors, rules in instructions, claims in replies, and lines with names and numbers that the
agent uses later. Every cut is marked with the number of characters.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agenteval.evaluators.traces.pieces import clip, size


@dataclass(frozen=True, slots=True)
class Sign:
    """Words of which one must be there (lower case), and where that is not enough, a pattern.

    Looking for the words first is many times faster than the pattern alone.
    """

    words: tuple[str, ...]
    pattern: re.Pattern[str] | None = None

    def stands_in(self, text: str, low: str | None = None) -> bool:
        """Whether the text has the sign; `low` is its lower case where that is at hand."""
        low = text.lower() if low is None else low
        if not any(word in low for word in self.words):
            return False
        return self.pattern is None or self.pattern.search(text) is not None


_STRONG = re.compile(
    r"Traceback|(?:Error|Exception)\b|\b(?:FATAL|CRITICAL|OOM|Killed|panic)\b"
    r"|(?i:\b(?:http|status|code|error|returned)\W{1,4}[45]\d\d\b|\b[45]\d\d (?:too many|unauthor"
    r"|forbidden|not found|internal|bad gateway|service|gateway|client error|server error)"
    r"|out of memory|memory limit|errno|permission denied|access denied|timed? ?out\b"
    r"|rate.?limit|quota|api.?key|unauthori[sz]ed|segmentation fault|core dumped|no such file"
    r"|connection (?:refused|reset)|context.{0,12}(?:length|window)|no space left)"
)
# An error that happens, by the form of its line; and lines that only speak of errors, as code does.
_PLAIN = re.compile(
    r"^\W{0,20}[\w.]*(?:Error|Exception): \S|^Traceback \(|^Killed\b|\bHTTP\S* [45]\d\d\b"
    r"|\b[45]\d\d (?i:too many|unauthor|forbidden|not found|internal s|bad gateway|service un)"
    r"|(?i:timed out after \d|memory limit of \d|\blevel=(?:error|fatal)\b)|^.{0,40}\bERROR\b"
)
CODE = re.compile(
    r"^\s*(?:(?:raise|except|try|class|def|import|from|return|assert|if|elif|else|for|while|self)\b"
    r"|#|//|/?\*|\.\.)"
)
RULE = re.compile(
    r"(?i:\b(?:must|never|always|not|don't|exactly|required?|forbidden|important|only|without"
    r"|unless|at most|at least|no more than|every|each"
    r"|(?:end|start|begin|close|finish)s? (?:your|with|the))\b)"
    r"|</?[A-Za-z]\w*>|\b[A-Z]{3,}(?:[-_][A-Z]{2,})+\b|`[^`\n]+`"
)
MILD = re.compile(
    r"\b(?:should|format|before|after|instead|rules?|return|output|limit|maximum|answer|task|your?"
    r"|takes inputs|def \w+\(|arguments|question|goal|if|use|write|please|give|find|name)\b",
    re.IGNORECASE,
)
CLAIM = re.compile(
    r"\bI(?:'ve| have| already| just| then)* (?:verified|checked|confirmed|searched|looked|found"
    r"|tested|ran|read|visited|calculated|computed|called|used|will|know|remember|assume)"
    r"|final answer|the answer is|in conclusion|according to|</?[a-z]\w*>",
    re.IGNORECASE,
)
HEDGE = re.compile(
    r"assum|probably|likely|instead|therefore|based on|as (?:shown|stated|reported)|in fact"
    r"|well known|guess|believe|skip|ignore|give up|done|so far|next|plan",
    re.IGNORECASE,
)

STRONG = Sign(
    (
        *("error", "exception", "traceback", "fatal", "critical", "oom", "killed", "panic", "http"),
        *("status", "code", "returned", "too many", "unauthor", "forbidden", "not found"),
        *("internal", "bad gateway", "service", "gateway", "out of memory", "memory limit"),
        *("errno", "denied", "timed out", "timedout", "time out", "timeout", "rate", "quota"),
        *("api", "segmentation", "core dumped", "no such file", "refused", "reset", "context"),
        *("no space left",),
    ),
    _STRONG,
)
PLAIN = Sign(STRONG.words, _PLAIN)
WEAK = Sign(
    (
        *("error", "fail", "denied", "forbidden", "not found", "missing", "invalid", "unable"),
        *("cannot", "can't", "could not", "refused", "exceed", "truncat", "warning", "abort"),
        *("undefined", "unexpected", "no results", "not supported", "unsupported", "deprecated"),
        *("retry", "reject", "conflict", "mismatch", "unknown", "unavailable", "expired"),
        *("overflow", "malformed"),
    )
)


Role = Literal["rules", "talk", "agent", "call", "data", "rest"]

WIDTH = 240  # characters; a longer line is looked at in segments
# Of three widths, the wider for more room; each prefers to end with a sentence, then with a word.
_SEGMENTS = {
    width: re.compile(
        rf".{{{width // 3},{width}}}(?<=[.!?;}}\]>]\s)|.{{{width // 2},{width}}}(?<=[\s,}}\]>])"
        rf"|.{{1,{width}}}",
        re.DOTALL,
    )
    for width in (60, 120, WIDTH)
}
_TERM = re.compile(r"\d[\d.,:]*\d|[^\W\d_]{4,}")
_ONCE = 24  # characters from which on a segment that stood before is known again
_SHORTEST = 24  # bytes; less room than this is not worth another segment
_ODD = 2.5  # points of a line unlike the others
_MARK = 32  # bytes of a mark and its line breaks, at most


@dataclass(frozen=True, slots=True)
class _Taste:
    """What makes a segment worth keeping in texts of one role: points for each sign."""

    strong: float = 0.0
    weak: float = 0.0
    first: re.Pattern[str] | None = None  # worth 4
    second: re.Pattern[str] | None = None  # worth 1.5
    quoted: float = 0.0  # names and numbers that the agent uses later
    unheard: float = 0.0  # names and numbers that stood nowhere before


_TASTES: dict[Role, _Taste] = {
    "rules": _Taste(1.5, 0.5, RULE, MILD, quoted=0.5),
    "talk": _Taste(4.0, 2.0, RULE, MILD, quoted=1.0),
    "agent": _Taste(2.5, 1.0, CLAIM, HEDGE, unheard=1.0),
    "call": _Taste(1.5, 0.5, quoted=0.5, unheard=1.0),
    "data": _Taste(5.0, 2.5, quoted=1.5),
    "rest": _Taste(4.0, 1.0),
}


@dataclass(slots=True)
class Lore:
    """What is known of a trace up to a position: terms that agents use later, what stood before.

    `uses` gives for each term of a reply or call how many of them hold it and the last position.
    """

    uses: dict[str, tuple[int, int]] = field(default_factory=dict)
    heard: set[str] = field(default_factory=set)
    lines: set[str] = field(default_factory=set)

    def used(self, text: str, position: int) -> None:
        """The agent says `text` at `position`; call it in the order of the trace."""
        for term in set(terms(text)):
            count, _ = self.uses.get(term, (0, 0))
            self.uses[term] = (count + 1, position)

    def learn(self, text: str) -> None:
        """`text` has been read."""
        self.heard.update(terms(text))
        self.lines.update(s for s in map(str.strip, segments(text)) if len(s) >= _ONCE)


def terms(text: str) -> Iterable[str]:
    """Words of four letters and more in lower case, and numbers without their commas."""
    return (t.replace(",", "") for t in _TERM.findall(text.lower()))


def segments(text: str, width: int = WIDTH) -> list[str]:
    """The lines of a text with their ends, longer ones than `width` (60, 120 or WIDTH characters)
    in segments; together they are the text."""
    passages: list[str] = []
    for line in text.splitlines(keepends=True):
        if len(line) <= width:
            passages.append(line)
        else:
            passages.extend(_SEGMENTS[width].findall(line))
    return passages


def mark(characters: int) -> str:
    """How a cut is shown."""
    return f"[cut: {characters:,} characters]"


def excerpt(text: str, room: int, role: Role, lore: Lore, position: int) -> tuple[str, int]:
    """What of `text` fits into `room` bytes, and the number of characters that were cut.

    The outermost characters of both ends are kept: where an agent speaks always, of other texts
    when there is room. With too little room for marks the result may be a mark alone, which is
    longer than `room`.
    """
    if size(text) <= room:
        return text, 0
    parts = segments(text, 60 if room < 500 else 120 if room < 1000 else WIDTH)
    if len(parts) < 2 or room < 4 * _MARK:
        return _ends(text, room)
    points = _points(parts, room, role, lore, position)
    chosen: dict[int, str] = {}
    if role in ("agent", "call") or room >= 10 * _MARK:
        chosen[len(parts) - 1] = clip(parts[-1], room // 6, end=True)
    if room >= 10 * _MARK:
        chosen[0] = clip(parts[0], room // 8)
    used = sum(map(size, chosen.values())) + (1 + len(chosen)) * _MARK
    for i in sorted(range(len(parts)), key=lambda i: (-points[i], i)):
        if room - used < _SHORTEST:
            break
        gap = 0 if i - 1 in chosen or i + 1 in chosen else _MARK
        cost = size(parts[i]) + gap - size(chosen.get(i, ""))
        if chosen.get(i) != parts[i] and used + cost <= room:
            chosen[i] = parts[i]
            used += cost
    return _join(parts, chosen)


def _ends(text: str, room: int) -> tuple[str, int]:
    """Head and tail alone."""
    half = (room - _MARK) // 2
    if half < _SHORTEST // 2:
        return mark(len(text)), len(text)
    head, tail = clip(text, half), clip(text, half, end=True)
    cut = len(text) - len(head) - len(tail)
    return f"{head}{mark(cut)}{tail}", cut


def _join(parts: Sequence[str], chosen: dict[int, str]) -> tuple[str, int]:
    """The chosen segments in order, with marks where something is missing."""
    last = len(parts) - 1
    shown: list[str] = []
    gap: list[str] = []
    total = 0

    def close() -> None:
        nonlocal total
        missing = "".join(gap)
        gap.clear()
        if size(missing) <= len(mark(len(missing))):
            shown.append(missing)
            return
        total += len(missing)
        before = "" if not shown or shown[-1].endswith("\n") else " "
        after = "\n" if missing.endswith("\n") else " "
        shown.append(f"{before}{mark(len(missing))}{after}")

    for i, part in enumerate(parts):
        if i not in chosen:
            gap.append(part)
            continue
        taken = chosen[i]
        if i == last and taken != part:
            gap.append(part[: len(part) - len(taken)])
        close()
        shown.append(taken)
        if i < last:
            gap.append(part[len(taken) :])
    close()
    return "".join(shown), total


def _points(parts: Sequence[str], room: int, role: Role, lore: Lore, position: int) -> list[float]:
    """How much each segment is worth; position in the text, signs, terms and neighbours count."""
    taste = _TASTES[role]
    points = _signs(parts, taste, lore)
    if taste.quoted:
        _add_quoted(points, parts, taste.quoted, lore, position)
    if taste.unheard:
        for i, part in enumerate(parts):
            new = {t for t in terms(part) if t not in lore.heard}
            worth = math.fsum(1.0 if t[0].isdigit() else 0.4 for t in new)
            points[i] += taste.unheard * min(3.0, worth)
    around = [0.5 if max(points[max(0, i - 1) : i + 2]) >= 3 else 0.0 for i in range(len(parts))]
    before, after = 0, sum(map(size, parts))
    for i, part in enumerate(parts):
        after -= size(part)
        head, tail = 1 - before / (room * 0.3), 1 - after / (room * 0.25)
        points[i] += around[i] + 1.2 * max(0.0, head) + 1.5 * max(0.0, tail)
        before += size(part)
    return points


def _signs(parts: Sequence[str], taste: _Taste, lore: Lore) -> list[float]:
    """Points for signs, less for a sign the oftener it came, for a line of the same shape, and
    for a line that stood in another text before; and for a line of its own shape in a text that
    is made of few shapes, as logs and tables are."""
    signs = [(PLAIN, 1.6 * taste.strong), (STRONG, taste.strong), (WEAK, taste.weak)]
    patterns = [p for p in ((taste.first, 4.0), (taste.second, 1.5)) if p[0]]
    times: Counter[float] = Counter()
    shapes = [re.sub(r"\d+", "0", part.strip()) for part in parts]
    frequent = Counter(shapes)
    regular = sum(n for n in frequent.values() if n > 2) >= len(parts) / 2
    earlier: Counter[str] = Counter()
    points = []
    for part, shape in zip(parts, shapes, strict=True):
        low = part.lower()
        worths = [worth for sign, worth in signs if sign.stands_in(part, low)]
        worths += [worth for pattern, worth in patterns if pattern and pattern.search(part)]
        times.update(worths)
        found = max((w / math.sqrt(1 + times[w] / 12) for w in worths), default=0.0)
        if taste.strong > 2 and CODE.match(part):
            found /= 2
        if regular and frequent[shape] == 1:
            found = max(found, _ODD)
        found /= 1 + math.log2(1 + earlier[shape])
        earlier[shape] += 1
        points.append(found / 2 - 1.0 if part.strip() in lore.lines else found)
    return points


def _add_quoted(
    points: list[float], parts: Sequence[str], worth: float, lore: Lore, position: int
) -> None:
    """A term counts the more, the fewer replies and segments hold it; numbers count double."""
    rows = []
    local: dict[str, int] = {}
    for part in parts:
        row = {t for t in terms(part) if (use := lore.uses.get(t)) and use[1] > position}
        rows.append(row)
        for term in row:
            local[term] = local.get(term, 0) + 1
    for i, row in enumerate(rows):
        # fsum: sets have another order in each process, and the excerpt must not
        total = math.fsum((2 if t[0].isdigit() else 1) / (lore.uses[t][0] * local[t]) for t in row)
        points[i] += worth * min(3.0, total)
