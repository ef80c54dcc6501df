"""Measure texts, and excerpt long ones.

An excerpt keeps both ends of a text, and the lines between them that look like errors, rules or
claims. Every cut is marked with the number of omitted characters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

ERROR = re.compile(
    r"Traceback|(?:Error|Exception)\b|\b(?:FATAL|CRITICAL|OOM|Killed|panic)\b"
    r"|(?i:\b(?:http|status|code|error|returned)\W{1,4}[45]\d\d\b|\b[45]\d\d (?:too many|unauthor"
    r"|forbidden|not found|internal|bad gateway|service|gateway|client error|server error)"
    r"|out of memory|memory limit|errno|permission denied|access denied|timed? ?out\b"
    r"|rate.?limit|quota|api.?key|unauthori[sz]ed|segmentation fault|core dumped|no such file"
    r"|connection (?:refused|reset)|context.{0,12}(?:length|window)|no space left)"
)
# Rules in instructions, and claims of an agent about its own work
_RULE = re.compile(
    r"(?i:\b(?:must|never|always|not|don't|exactly|required?|forbidden|important|only|without"
    r"|unless|at most|at least|no more than|every|each"
    r"|(?:end|start|begin|close|finish)s? (?:your|with|the))\b"
    r"|\bI(?:'ve| have| already| just| then)* (?:verified|checked|confirmed|searched|looked|found"
    r"|tested|ran|read|visited|calculated|computed|called|used|will|know|remember|assume)"
    r"|final answer|the answer is|in conclusion|according to)"
)
# Segments of long lines end with a sentence if possible, else with a word. By maximum length
_SEGMENTS = {
    width: re.compile(
        rf".{{{width // 3},{width}}}(?<=[.!?;}}\]>]\s)|.{{{width // 2},{width}}}(?<=[\s,}}\]>])"
        rf"|.{{1,{width}}}",
        re.DOTALL,
    )
    for width in (60, 120)
}
_MARK = 32  # maximum bytes of a mark and its line breaks


def size(text: str) -> int:
    """Return the size of the text in UTF-8 bytes; a lone surrogate counts as one byte."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def clip(text: str, most: int, end: bool = False) -> str:
    """Return the longest prefix (or suffix) of at most `most` bytes, but at least one character."""
    if size(text) <= most:
        return text
    clipped = text[-max(most, 1) :] if end else text[: max(most, 1)]
    while size(clipped) > most and len(clipped) > 1:
        excess = max(1, (size(clipped) - most) // 4)
        clipped = clipped[excess:] if end else clipped[:-excess]
    return clipped


def estimate_tokens(text: str) -> int:
    """Estimate tokens at four UTF-8 bytes each, which is close for English and JSON."""
    return size(text) // 4 + 1


def segments(text: str, width: int) -> list[str]:
    """Split a text into lines, keeping line ends, so that joining them gives the text.

    Lines above twice `width` (60 or 120 characters) are split into segments of at most `width`.
    """
    parts: list[str] = []
    for line in text.splitlines(keepends=True):
        parts += [line] if len(line) <= 2 * width else _SEGMENTS[width].findall(line)
    return parts


def excerpt(text: str, room: int) -> str:
    """Shorten a text to `room` bytes, with marks where characters were cut.

    Half of the room goes to lines that look like errors, then rules and claims, starting with lines
    of a new shape; the rest goes to the beginning and end of the text. If `room` is too small for
    marks, the result may be a single mark, longer than `room`.
    """
    if size(text) <= room:
        return text
    parts = segments(text, 60 if room < 600 else 120)
    if len(parts) < 2 or room < 4 * _MARK:
        return _ends(text, room)
    last = len(parts) - 1
    chosen = {0: clip(parts[0], room // 8), last: clip(parts[last], room // 6, end=True)}
    used = sum(map(size, chosen.values())) + 3 * _MARK
    from_ends = [i for k in range((last + 2) // 2) for i in (k, last - k)]
    for limit, order in ((used + (room - used) // 2, _telling(parts)), (room, from_ends)):
        for i in order:
            gap = 0 if i - 1 in chosen or i + 1 in chosen else _MARK
            cost = size(parts[i]) + gap - size(chosen.get(i, ""))
            if chosen.get(i) != parts[i] and used + cost <= limit:
                chosen[i] = parts[i]
                used += cost
    return _join(parts, chosen)


def _telling(parts: Sequence[str]) -> list[int]:
    """Return the positions of informative lines: errors before rules, repeated shapes last."""
    ranked = []
    shapes: Counter[str] = Counter()
    for i, part in enumerate(parts):
        is_error = ERROR.search(part) is not None
        if is_error or _RULE.search(part):
            shape = re.sub(r"\d+", "0", part.strip())
            ranked.append((shapes[shape], not is_error, i))
            shapes[shape] += 1
    return [i for *_, i in sorted(ranked)]


def _ends(text: str, room: int) -> str:
    half = (room - _MARK) // 2
    if half < _MARK // 2:
        return _mark(len(text))
    head, tail = clip(text, half), clip(text, half, end=True)
    return f"{head}{_mark(len(text) - len(head) - len(tail))}{tail}"


def _mark(characters: int) -> str:
    return f"[cut: {characters:,} characters]"


def _join(parts: Sequence[str], chosen: dict[int, str]) -> str:
    """Return the chosen segments, with marks for the gaps."""
    shown, gap = "", ""
    for i, part in enumerate(parts):
        text = chosen.get(i, "")
        before, after = (part, "") if i not in chosen else ("", part[len(text) :])
        if i == len(parts) - 1:
            before, after = part[: len(part) - len(text)], ""
        gap += before
        if text:
            if size(gap) > len(_mark(len(gap))):
                space = "" if not shown or shown.endswith("\n") else " "
                gap = f"{space}{_mark(len(gap))}" + ("\n" if gap.endswith("\n") else " ")
            shown += gap + text
            gap = after
    return shown
