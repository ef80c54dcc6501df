"""From what a judge wrote to an accepted value: exact, else tolerant, else off the scale.

Tolerant means case, spacing, underscores, end punctuation, full-width and invisible characters, a
level's number, also in words or over the top of the scale ("four out of five"), and small typos
within words of six letters and more. It never moves a label to a neighbour: "mostly clear" is
not "very clear", and "unclear" is not "clear".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rapidfuzz.distance import OSA

from agenteval.evaluators.utility.stated_number import stated_number

_NOT_APPLICABLE = {"not applicable", "n/a", "na", "n.a.", "n.a", "inapplicable"}
_NUMBERED = re.compile(r"^\(?(\d{1,3})\)?\s*(?:[-–—:.)=]\s*|\s+)(\S.*)$")
_NEGATIONS = ("un", "in", "im", "ir", "il", "non", "non-", "dis", "mis", "ab", "a")

# Other widths and shapes of what a keyboard writes, and what is not seen at all.
_SHAPES = (
    {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    | dict.fromkeys(range(0x2010, 0x2016), "-")
    | dict.fromkeys(map(ord, "‘’"), "'")
    | dict.fromkeys(map(ord, "“”„"), '"')
    | dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f"))
)

Match = Literal["exact", "tolerant"]


@dataclass(frozen=True, slots=True)
class Label:
    """A label read: one of the accepted values, how it matched, or not applicable."""

    value: str | None
    match: Match
    not_applicable: bool = False


def fold(text: str) -> str:
    """Case, underscores, runs of space, quotes and end punctuation do not tell labels apart.

    Nor do the width of a character and characters that are not seen.
    """
    text = text if text.isascii() else text.translate(_SHAPES)
    return " ".join(text.replace("_", " ").casefold().split()).strip(" .,;:!\"'`*")


def read_label(raw: Any, accepted: Sequence[str], *, allow_na: bool = False) -> Label | None:
    """The accepted value meant by `raw`, or None when it is off the scale.

    `raw` may be text, or a whole number when the accepted values are numbered. A boolean is only
    ever the word true or false. With `allow_na`, "not applicable" and its short forms are read.
    """
    if isinstance(raw, bool):
        raw = str(raw).lower()
    if isinstance(raw, int | float):
        return _by_number(raw, accepted)
    if not isinstance(raw, str):
        return None
    if raw in accepted:
        return Label(raw, "exact")
    text = fold(raw)
    by_fold = [a for a in accepted if fold(a) == text]
    if len(by_fold) == 1:
        return Label(by_fold[0], "tolerant")
    if allow_na and text in _NOT_APPLICABLE:
        return Label(None, "exact", not_applicable=True)
    stated = _by_stated_number(text, accepted)
    return stated or _by_bare_text(text, accepted) or _by_typo(text, accepted)


def _by_number(number: float, accepted: Sequence[str]) -> Label | None:
    """A bare number means the accepted value that carries or is that number."""
    hits = [value for value in accepted if _own_number(value) == number]
    return Label(hits[0], "tolerant") if len(hits) == 1 else None


def _own_number(value: str) -> float | None:
    """The number that an accepted value carries or is."""
    numbered = _NUMBERED.match(value.strip())
    own = numbered.group(1) if numbered else value.strip()
    return float(own) if re.fullmatch(r"-?\d+(\.\d+)?", own) else None


def _by_stated_number(text: str, accepted: Sequence[str]) -> Label | None:
    """The accepted value with the number that the text states, on this scale and in its unit."""
    stated = stated_number(text)
    if stated is None:
        return None
    if stated.top is not None:
        numbers = [_own_number(value) for value in accepted]
        if None in numbers or stated.top != max(n for n in numbers if n is not None):
            return None
    label = _by_number(stated.number, accepted)
    if stated.unit is None or label is None or label.value is None:
        return label
    _, words = _split(fold(label.value))  # of a bare number: the number itself
    bare = words.isdecimal()
    return label if bare or words.startswith(stated.unit) else None


def _by_bare_text(text: str, accepted: Sequence[str]) -> Label | None:
    """The words without the level's number, on either side. Two numbers must agree."""
    number, words = _split(text)
    hits = []
    for value in accepted:
        own_number, own_words = _split(fold(value))
        conflict = number is not None and own_number is not None and number != own_number
        if words == own_words and not conflict and (number is None or own_number is not None):
            hits.append(value)
    return Label(hits[0], "tolerant") if len(hits) == 1 else None


def _split(text: str) -> tuple[str | None, str]:
    numbered = _NUMBERED.match(text)
    return (numbered.group(1), numbered.group(2)) if numbered else (None, text)


def _by_typo(text: str, accepted: Sequence[str]) -> Label | None:
    number, words = _split(text)
    near = []
    for value in accepted:
        own_number, own_words = _split(fold(value))
        if number in (None, own_number) and _same_but_for_typos(words, own_words):
            near.append(value)
    return Label(near[0], "tolerant") if len(near) == 1 else None


def _same_but_for_typos(text: str, label: str) -> bool:
    ours, theirs = text.split(), label.split()
    return len(ours) == len(theirs) and all(
        a == b or _typo(a, b) for a, b in zip(ours, theirs, strict=True)
    )


def _typo(written: str, meant: str) -> bool:
    """One slip in a word of six letters, two in a word of ten; a negating prefix is no slip."""
    if any(written == p + meant or meant == p + written for p in _NEGATIONS):
        return False
    shorter = min(len(written), len(meant))
    allowed = 2 if shorter >= 10 else 1 if shorter >= 6 else 0
    same_start = written[:2] == meant[:2] or sorted(written[:2]) == sorted(meant[:2])
    return same_start and 0 < OSA.distance(written, meant) <= allowed
