"""Match a judge's label to an accepted value: exact, else tolerant, else off the scale.

Tolerant matching ignores case, spacing, underscores, end punctuation, full-width and invisible
characters, and small typos in words of six or more letters. It accepts a level's number, also in
words or with the top of the scale ("four out of five"). It never matches a different level:
"mostly clear" is not "very clear", and "unclear" is not "clear".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from configparser import ConfigParser
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from operator import eq
from typing import Any, Literal

from rapidfuzz.distance import OSA

_NO_LEVEL = {  # answers that are not levels, with all their spellings
    "not applicable": {"not applicable", "n/a", "na", "n.a.", "n.a", "inapplicable"},
    "cannot tell": {
        *("cannot tell", "can't tell", "can not tell", "cannot assess", "cannot say"),
        *("cannot determine", "cannot be determined", "unable to tell", "undecidable"),
    },
}
_NUMBERED = re.compile(r"^\(?(\d{1,3})\)?\s*(?:[-–—:.)=]\s*|\s+)(\S.*)$")
_NEGATIONS = ("un", "in", "im", "ir", "il", "non", "non-", "dis", "mis", "ab", "a")

# Full-width and typographic variants of ASCII characters, and invisible characters.
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
    """An accepted value (None for the answer that is not a level) and how it was matched."""

    value: str | None
    match: Match


def words(text: str) -> tuple[str, ...]:
    """Split a text into words; used for word lists in the code."""
    return tuple(text.split())


@cache
def reply_words(section: str) -> dict[str, tuple[str, ...]]:
    """Return the word lists in a section of `data/reply_words.ini`, by name."""
    file = ConfigParser(delimiters=("=",), interpolation=None)
    file.read_string(files("agenteval.utility").joinpath("data/reply_words.ini").read_text("utf-8"))
    return {name: words(text) for name, text in file[section].items()}


def fold(text: str) -> str:
    """Normalise case, underscores, spaces, quotes, end punctuation and full-width characters, and
    remove invisible characters."""
    text = text if text.isascii() else text.translate(_SHAPES)
    text = " ".join(text.replace("_", " ").casefold().split())
    return text.rstrip(_EDGES).lstrip(_EDGES if not _DECIMAL.match(text) else " ,;:!\"'`*")


def read_label(raw: Any, accepted: Sequence[str], *, na: str | None = None) -> Label | None:
    """Return the accepted value that `raw` means, or None if it is off the scale.

    `raw` may be text, or a whole number if the accepted values are numbered. A boolean is read as
    the word true or false. `na` is the answer that is not a level, "not applicable" or "cannot
    tell"; its other spellings are also recognised.
    """
    if isinstance(raw, bool):
        raw = str(raw).lower()
    if isinstance(raw, int | float):
        return _only(value for value in accepted if _level_number(value) == raw)
    if not isinstance(raw, str):
        return None
    if raw in accepted:
        return Label(raw, "exact")
    text = fold(raw)
    if label := _only(value for value in accepted if fold(value) == text):
        return label
    if na is not None and text in _NO_LEVEL[na]:
        return Label(None, "exact")
    return (
        _by_stated_number(text, accepted)
        or _only(value for value in accepted if _matches(text, value, eq))
        or _only(value for value in accepted if _matches(text, value, _same_but_for_typos))
        or _glossed(text, accepted)
    )


def _glossed(text: str, accepted: Sequence[str]) -> Label | None:
    """Read "4 (good)", "4 - good" and "efficient (4)", unless the words mean another level."""
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


def _level_number(value: str) -> float | None:
    """Return the number in front of an accepted value, or the value as a number."""
    numbered = _NUMBERED.match(value.strip())
    number = numbered.group(1) if numbered else value.strip()
    return float(number) if re.fullmatch(r"-?\d+(\.\d+)?", number) else None


def _by_stated_number(text: str, accepted: Sequence[str]) -> Label | None:
    """Return the accepted value with the stated number, if scale and unit match."""
    stated = stated_number(text)
    if stated is None:
        return None
    if stated.top is not None:
        numbers = [_level_number(value) for value in accepted]
        if None in numbers or stated.top != max(n for n in numbers if n is not None):
            return None
    label = _only(value for value in accepted if _level_number(value) == stated.number)
    if stated.unit is None or label is None or label.value is None:
        return label
    _, words = _split(fold(label.value))  # a plain number is its own text
    return label if words.isdecimal() or words.startswith(stated.unit) else None


def _split(text: str) -> tuple[str | None, str]:
    numbered = _NUMBERED.match(text)
    return (numbered.group(1), numbered.group(2)) if numbered else (None, text)


def _matches(text: str, value: str, same: Callable[[str, str], bool]) -> bool:
    """Whether all words match, ignoring a level number on either side; two numbers must be
    equal."""
    (number, written), (level, meant) = _split(text), _split(fold(value))
    ours, theirs = written.split(), meant.split()
    comparable = number in (None, level) and len(ours) == len(theirs)
    return comparable and all(map(same, ours, theirs))


def _same_but_for_typos(written: str, meant: str) -> bool:
    """Allow one typo from six letters, two from ten; a negating prefix is not a typo."""
    if written == meant:
        return True
    if any(written == p + meant or meant == p + written for p in _NEGATIONS):
        return False
    shorter = min(len(written), len(meant))
    allowed = 2 if shorter >= 10 else 1 if shorter >= 6 else 0
    same_start = written[:2] == meant[:2] or sorted(written[:2]) == sorted(meant[:2])
    return same_start and OSA.distance(written, meant) <= allowed


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
    """A number, its denominator (100 for a percentage), and its unit, "star" or "point".

    Callers must check that the denominator is the top of their scale: 4/10 is not a level on a
    scale to 5.
    """

    number: float
    top: float | None = None
    unit: str | None = None


def stated_number(text: str) -> StatedNumber | None:
    """Return the number if a text consists of one: 4, "four", "3 stars", "4/5", "a four out of
    five", "80%". None for any other text.

    `text` must be lower case with single spaces and without end punctuation.
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
