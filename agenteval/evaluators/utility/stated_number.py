"""Numbers as judges write them: 4, "four", "3 stars", "4/5", "a four out of five", "80%".

A denominator is believed only where it is the top of the scale that was asked for: 4/10 on a
scale to 5 was given on another scale and means nothing here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBER = rf"-?(?:0|[1-9]\d{{0,8}})(?:\.\d{{1,9}})?|{'|'.join(_WORDS)}"
_UNIT = r"stars?|points?"
_STATED = re.compile(
    rf"(?:an?\s)?(?P<number>{NUMBER})(?:\s?(?P<unit>{_UNIT}))?"
    rf"(?P<of>\s?/\s?|\s(?:out\s)?of\s|%)?(?P<top>{NUMBER})?(?:\s?(?P<unit2>{_UNIT}))?",
    re.A,
)


@dataclass(frozen=True, slots=True)
class Stated:
    """A number, the denominator it was given with (100 for a percentage), and "star" or "point"."""

    number: float
    top: float | None = None
    unit: str | None = None


def stated_number(text: str) -> Stated | None:
    """The number that a text states and nothing else; None for any other text.

    `text` in lower case, single spaces, without punctuation at the end.
    """
    match = _STATED.fullmatch(text) if len(text) <= 60 else None
    if match is None:
        return None
    of, top = match["of"], match["top"]
    percent = of == "%"
    if (of is None or percent) != (top is None):
        return None
    unit = match["unit"] or match["unit2"]
    denominator = 100.0 if percent else None if top is None else _value(top)
    return Stated(_value(match["number"]), denominator, unit.rstrip("s") if unit else None)


def _value(text: str) -> float:
    return float(_WORDS.index(text)) if text in _WORDS else float(text)
