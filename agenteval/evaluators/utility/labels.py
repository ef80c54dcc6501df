"""From what a judge wrote to an accepted value: exact, else tolerant, else off the scale.

Tolerant means case, spacing, underscores, end punctuation, a level's number, and small typos
within words of six letters and more. It never moves a label to a neighbour: "mostly clear" is
not "very clear", and "unclear" is not "clear".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rapidfuzz.distance import OSA

_NOT_APPLICABLE = {"not applicable", "n/a", "na", "n.a.", "n.a", "inapplicable"}
_NUMBERED = re.compile(r"^\(?(\d{1,3})\)?\s*(?:[-–—:.)=]\s*|\s+)(\S.*)$")
_NEGATIONS = ("un", "in", "im", "ir", "il", "non", "non-", "dis", "mis", "ab", "a")

Match = Literal["exact", "tolerant"]


@dataclass(frozen=True, slots=True)
class Label:
    """A label read: one of the accepted values, how it matched, or not applicable."""

    value: str | None
    match: Match
    not_applicable: bool = False


def fold(text: str) -> str:
    """Case, underscores, runs of space, quotes and end punctuation do not tell labels apart."""
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
    if re.fullmatch(r"\d{1,3}", text):
        return _by_number(int(text), accepted)
    return _by_bare_text(text, accepted) or _by_typo(text, accepted)


def _by_number(number: float, accepted: Sequence[str]) -> Label | None:
    """A bare number means the accepted value that carries or is that number."""
    hits = []
    for value in accepted:
        numbered = _NUMBERED.match(value.strip())
        own = numbered.group(1) if numbered else value.strip()
        if re.fullmatch(r"-?\d+(\.\d+)?", own) and float(own) == number:
            hits.append(value)
    return Label(hits[0], "tolerant") if len(hits) == 1 else None


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
    near = [a for a in accepted if _same_but_for_typos(text, fold(a))]
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
