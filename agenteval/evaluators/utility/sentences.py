"""Text to sentences, as character spans: what an operator may drop and a judge may count.

One unit is a sentence of prose, a fenced block of code (whole, so that no fence is ever broken), a
tool call, or a line of what a tool returned. Headings that `readers.view` writes are no units.
The rules are plain and deterministic; no model is asked.

Usage::

    for unit in split_sentences(view.trajectory):
        text = view.trajectory[unit.start : unit.end]
        if unit.prose:   # written by the system under evaluation, in sentences
            ...
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agenteval.readers.view import HEADING

Kind = Literal["prose", "code", "call", "output", "mark"]

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})")
_CALL = "[tool call]"
_CUT = re.compile(r"^\[\.\.\. [\d,]+ characters cut out here \.\.\.\]$")
# What opens a formula or inline code, its closer, and how far off the closer may be.
_OPENER = re.compile(r"\\\[|\\\(|\$\$|(?<![\\$])\$(?=[^\s$])|(?<!`)`(?=[^`\n])")
_CLOSERS = {
    "\\[": ("\\]", 2000),
    "\\(": ("\\)", 500),
    "$$": ("$$", 2000),
    "$": ("$", 300),
    "`": ("`", 300),
}
_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n")
_END = re.compile(r"(?:[.!?…]+[)\]\"'”’»*_`]*(?=\s|$))|(?:[。！？]+[」』）”]*)")
_MARKER = re.compile(r"(?:[-*+•>]|#{1,6}|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})[.):])(?=\s|$)")
_ALWAYS = frozenset(
    [
        "e.g",
        "i.e",
        "dr",
        "mr",
        "mrs",
        "ms",
        "prof",
        "fig",
        "figs",
        "eq",
        "eqs",
        "vs",
        "cf",
        "approx",
        "ca",
        "viz",
    ]
)
_BEFORE_LOWER = frozenset(
    [
        "etc",
        "a.m",
        "p.m",
        "al",
        "inc",
        "ltd",
        "co",
        "u.s",
        "u.k",
        "e.u",
        "min",
        "max",
        "hrs",
        "dept",
        "ed",
        "jr",
        "sr",
    ]
)
_BEFORE_DIGIT = frozenset(["no", "nr", "p", "pp", "vol", "art", "sec", "ch"])
_WRAPPED = 40  # a line shorter than this was not broken by an editor's right margin


@dataclass(frozen=True, slots=True)
class Sentence:
    """text[start:end], without blanks at either end.

    `speaker` is the role of the turn that holds it, None where the text has no headings. The final
    output counts as the assistant's.
    """

    start: int
    end: int
    kind: Kind = "prose"
    speaker: str | None = None

    @property
    def own(self) -> bool:
        """Whether the system under evaluation produced it, not a user, a tool or a cut."""
        return self.speaker in (None, "assistant") and self.kind in ("prose", "code", "call")

    @property
    def prose(self) -> bool:
        """Whether it is a sentence of the system under evaluation."""
        return self.own and self.kind == "prose"


def split_sentences(text: str) -> list[Sentence]:
    """The units of a text in order: disjoint, and covering every visible character but headings."""
    units: list[Sentence] = []
    for speaker, lines in _turns(text):
        units.extend(_units(text, lines, speaker))
    return units


Line = tuple[int, int]


def _turns(text: str) -> Iterator[tuple[str | None, list[Line]]]:
    """(speaker, lines) for each turn; lines are spans without their line break."""
    speaker: str | None = None
    lines: list[Line] = []
    for line in _lines(text):
        heading = HEADING.match(text[line[0] : line[1]])
        if heading:
            yield speaker, lines
            speaker, lines = heading.group(1) or "assistant", []
        else:
            lines.append(line)
    yield speaker, lines


def _lines(text: str) -> Iterator[Line]:
    at = 0
    for match in re.finditer(r"\r\n?|\n", text):
        yield at, match.start()
        at = match.end()
    yield at, len(text)


def _units(text: str, lines: list[Line], speaker: str | None) -> Iterator[Sentence]:
    if speaker == "tool":
        for start, end in lines:
            yield from _trimmed(text, start, end, "output", speaker)
        return
    at = 0
    while at < len(lines):
        stop, kind = _block(text, lines, at)
        start, end = lines[at][0], lines[stop - 1][1]
        if kind == "prose":
            yield from _prose(text, start, end, speaker)
        else:
            yield from _trimmed(text, start, end, kind, speaker)
        at = stop


def _block(text: str, lines: list[Line], at: int) -> tuple[int, Kind]:
    """Index after the block that begins at line `at`, and what it is."""
    kind = _opens(text, lines[at])
    if kind == "mark":
        return at + 1, "mark"
    stop = at + 1
    if kind == "code":
        fence = _FENCE.match(_of(text, lines[at]))
        mark = fence.group(1) if fence else ""
        while stop < len(lines) and not _closes(_of(text, lines[stop]), mark):
            stop += 1
        return min(stop + 1, len(lines)), "code"
    if kind == "call":  # arguments may run over several lines, to the next call or the turn's end
        while stop < len(lines) and not _of(text, lines[stop]).startswith(_CALL):
            stop += 1
        return stop, "call"
    while stop < len(lines) and _opens(text, lines[stop]) == "prose":
        stop += 1
    return stop, "prose"


def _opens(text: str, line: Line) -> Kind:
    shown = _of(text, line)
    if _FENCE.match(shown):
        return "code"
    if shown.startswith(_CALL):
        return "call"
    return "mark" if _CUT.match(shown) else "prose"


def _closes(line: str, mark: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(mark) and bare == mark[0] * len(bare)


def _of(text: str, span: Line) -> str:
    return text[span[0] : span[1]]


def _trimmed(
    text: str, start: int, end: int, kind: Kind, speaker: str | None
) -> Iterator[Sentence]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield Sentence(start, end, kind, speaker)


def _prose(text: str, start: int, end: int, speaker: str | None) -> Iterator[Sentence]:
    atoms = list(unbroken(text, start, end))
    for first, last in _pieces(text, start, end, atoms):
        at = first
        for cut in _ends(text, first, last, atoms):
            yield from _trimmed(text, at, cut, "prose", speaker)
            at = cut
        yield from _trimmed(text, at, last, "prose", speaker)


def unbroken(text: str, start: int, end: int) -> Iterator[Line]:
    """Spans in which no sentence ends: formulas and inline code.

    A single dollar follows pandoc's rule, so that "$5 and $10" is no formula.
    """
    at = start
    while opener := _OPENER.search(text, at, end):
        at = opener.end()
        sign = opener.group()
        closer, reach = _CLOSERS[sign]
        found = text.find(closer, at, min(end, at + reach))
        if found < 0 or _BLANK_LINE.search(text, at, found):
            continue
        if sign in "$`" and "\n" in text[at:found]:
            continue
        if sign == "$" and (text[found - 1].isspace() or text[found + 1 : found + 2].isdigit()):
            continue
        at = found + len(closer)
        yield opener.start(), at


def _pieces(text: str, start: int, end: int, atoms: list[Line]) -> Iterator[Line]:
    """Lines, joined where a sentence runs on: wrapped by a margin, or inside a formula."""
    at = start
    for match in re.finditer(r"\r\n?|\n", text[start:end]):
        here, after = start + match.start(), start + match.end()
        line = max(at, text.rfind("\n", at, here) + 1)  # the last one, however long the paragraph
        if _inside(here, atoms) or _runs_on(text[line:here], text[after : after + 1]):
            continue
        yield at, here
        at = after
    yield at, end


def _runs_on(before: str, first: str) -> bool:
    line = before.splitlines()[-1].rstrip() if before.strip() else ""
    return len(line) >= _WRAPPED and line[-1] not in ".!?:;…" and first.islower()


def _inside(position: int, atoms: list[Line]) -> bool:
    i = bisect_left(atoms, (position, -1)) - 1
    return i >= 0 and position < atoms[i][1]


def _ends(text: str, start: int, end: int, atoms: list[Line]) -> Iterator[int]:
    """Positions after a sentence's last character."""
    at = start
    for match in _END.finditer(text, start, end):
        if _inside(match.start(), atoms):
            continue
        so_far = text[at : match.end()].strip()
        after = text[match.end() : min(end, match.end() + 40)].lstrip()
        if _goes_on(so_far, after):
            continue
        yield match.end()
        at = match.end()


def _goes_on(so_far: str, after: str) -> bool:
    """Whether the mark that ends `so_far` does not end a sentence."""
    if not after:  # nothing follows, or a long gap
        return False
    if _MARKER.fullmatch(so_far):  # "2." at the start of a step
        return True
    first = after[0]
    if not so_far.endswith("."):  # "Really?" he asked.   (maybe.) so
        return first.islower() and not _is_variable(after)
    if so_far.endswith(".."):
        return first.islower()
    words = so_far[-40:-1].split()
    word = words[-1].lstrip("([\"'“‘").casefold() if words else ""
    if word in _ALWAYS:
        return True
    if word in _BEFORE_LOWER:
        return first.islower() or first in ",;"
    if word in _BEFORE_DIGIT:
        return first.isdigit()
    # Initials: "J. R. Smith"
    return bool(re.fullmatch(r"(?:[A-Z]\.\s*)+", so_far[-20:])) or bool(
        re.search(r"(?:^|\s)[A-Z]\.$", so_far[-3:]) and re.match(r"[A-Z]\.\s", after)
    )


def _is_variable(after: str) -> bool:
    return re.match(r"[b-z](?![A-Za-z'])", after) is not None
