"""From what a judge wrote to an accepted value: exact, else tolerant, else off the scale.

Tolerant means case, spacing, underscores, end punctuation, full-width and invisible characters, a
level's number, also in words or over the top of the scale ("four out of five"), and small typos
within words of six letters and more. It never moves a label to a neighbour: "mostly clear" is
not "very clear", and "unclear" is not "clear".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rapidfuzz.distance import OSA

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

_EDGES = " .,;:!\"'`*"
_DECIMAL = re.compile(r"[ ,;:!\"'`*]*\.\d")  # .8 is not 8
_GLOSSED = re.compile(r"([^()]{1,60}?) ?\(([^()]{1,60})\)|(\d{1,3}) [-–—] ([^()]{1,60})")
_HEDGED = re.compile(
    r"\b(?:not?|nor|or|almost|nearly|barely|hardly|maybe|perhaps|if|but)\b|n't|[\d?]"
)

Match = Literal["exact", "tolerant"]


@dataclass(frozen=True, slots=True)
class Label:
    """One of the accepted values and how it matched; None means not applicable."""

    value: str | None
    match: Match


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text; for tables of words in the code."""
    return tuple(text.split())


def fold(text: str) -> str:
    """Case, underscores, runs of space, quotes and end punctuation do not tell labels apart.

    Nor do the width of a character and characters that are not seen.
    """
    text = text if text.isascii() else text.translate(_SHAPES)
    text = " ".join(text.replace("_", " ").casefold().split())
    return text.rstrip(_EDGES).lstrip(_EDGES if not _DECIMAL.match(text) else " ,;:!\"'`*")


def read_label(raw: Any, accepted: Sequence[str], *, allow_na: bool = False) -> Label | None:
    """The accepted value meant by `raw`, or None when it is off the scale.

    `raw` may be text, or a whole number when the accepted values are numbered. A boolean is only
    ever the word true or false. With `allow_na`, "not applicable" and its short forms are read.
    """
    if isinstance(raw, bool):
        raw = str(raw).lower()
    if isinstance(raw, int | float):
        return _only(value for value in accepted if _own_number(value) == raw)
    if not isinstance(raw, str):
        return None
    if raw in accepted:
        return Label(raw, "exact")
    text = fold(raw)
    if label := _only(value for value in accepted if fold(value) == text):
        return label
    if allow_na and text in _NOT_APPLICABLE:
        return Label(None, "exact")
    return (
        _by_stated_number(text, accepted)
        or _only(value for value in accepted if _same_words(text, value))
        or _only(value for value in accepted if _same_but_for_typos(text, value))
        or _glossed(text, accepted)
    )


def _glossed(text: str, accepted: Sequence[str]) -> Label | None:
    """The level of "4 (good)", "4 - good" and "efficient (4)": the words are that level or none."""
    parts = _GLOSSED.fullmatch(text)
    if parts is None:
        return None
    words, gloss = filter(None, parts.groups())
    label, other = read_label(words, accepted), read_label(gloss, accepted)
    if label is None or other is not None:
        return label if label == other else None
    numeric = stated_number(fold(words)) is not None
    return label if numeric and not _HEDGED.search(gloss) else None


def _only(hits: Iterable[str]) -> Label | None:
    values = list(hits)
    return Label(values[0], "tolerant") if len(values) == 1 else None


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
    label = _only(value for value in accepted if _own_number(value) == stated.number)
    if stated.unit is None or label is None or label.value is None:
        return label
    _, words = _split(fold(label.value))  # of a bare number: the number itself
    return label if words.isdecimal() or words.startswith(stated.unit) else None


def _split(text: str) -> tuple[str | None, str]:
    numbered = _NUMBERED.match(text)
    return (numbered.group(1), numbered.group(2)) if numbered else (None, text)


def _same_words(text: str, value: str) -> bool:
    """The words without the level's number, on either side. Two numbers must agree."""
    (number, words), (own_number, own_words) = _split(text), _split(fold(value))
    agree = number is None or own_number == number
    return words == own_words and agree


def _same_but_for_typos(text: str, value: str) -> bool:
    (number, words), (own_number, own_words) = _split(text), _split(fold(value))
    ours, theirs = words.split(), own_words.split()
    return (
        number in (None, own_number)
        and len(ours) == len(theirs)
        and all(a == b or _typo(a, b) for a, b in zip(ours, theirs, strict=True))
    )


def _typo(written: str, meant: str) -> bool:
    """One slip in a word of six letters, two in a word of ten; a negating prefix is no slip."""
    if any(written == p + meant or meant == p + written for p in _NEGATIONS):
        return False
    shorter = min(len(written), len(meant))
    allowed = 2 if shorter >= 10 else 1 if shorter >= 6 else 0
    same_start = written[:2] == meant[:2] or sorted(written[:2]) == sorted(meant[:2])
    return same_start and 0 < OSA.distance(written, meant) <= allowed


# ---------------------------------------------------------------- numbers

_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBER = rf"-?(?:(?:0|[1-9]\d{{0,8}})(?:\.\d{{1,9}})?|\.\d{{1,9}})|{'|'.join(_WORDS)}"
OUT_OF = r"(?:(?:out\s)?of(?:\sa\spossible)?|von|sur|de|из|van|z)"
_UNIT = r"stars?|points?|分|点"
_STARS = re.compile(r"([★⭐]{1,10})(☆{0,9})")
_STATED = re.compile(
    rf"(?:(?:score|rating|grade|level)(?:\s?:\s?|\s))?"
    rf"(?:an?\s)?(?P<number>{NUMBER})(?:\s?(?P<unit>{_UNIT}))?"
    rf"(?:(?P<percent>%)|(?:\s?/\s?|\s{OUT_OF}\s)(?P<top>{NUMBER}))?"
    rf"(?:\s?(?P<unit2>{_UNIT}))?",
    re.A,
)


@dataclass(frozen=True, slots=True)
class StatedNumber:
    """A number, the denominator it was given with (100 for a percentage), and "star" or "point".

    A denominator is believed only where it is the top of the scale that was asked for: 4/10 on a
    scale to 5 was given on another scale and means nothing there.
    """

    number: float
    top: float | None = None
    unit: str | None = None


def stated_number(text: str) -> StatedNumber | None:
    """The number that a text states and nothing else: 4, "four", "3 stars", "4/5", "a four out of
    five", "80%". None for any other text.

    `text` in lower case, single spaces, without punctuation at the end.
    """
    if stars := _STARS.fullmatch(text):
        filled, hollow = map(len, stars.groups())
        return StatedNumber(filled, filled + hollow, "star")
    match = _STATED.fullmatch(text) if len(text) <= 60 else None
    if match is None:
        return None
    unit = match["unit"] or match["unit2"]
    top = 100.0 if match["percent"] else _value(match["top"]) if match["top"] else None
    return StatedNumber(_value(match["number"]), top, unit.rstrip("s") if unit else None)


def _value(text: str) -> float:
    return float(_WORDS.index(text)) if text in _WORDS else float(text)
