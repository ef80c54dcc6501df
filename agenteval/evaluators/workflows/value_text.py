"""Texts of parameter values, normalised without changing what they say."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

_APOSTROPHE = re.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_])")
_NUMBER = re.compile(r"(?<![\w.])[-−](?=\d)|\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
# Signs that change what a value is: 5 % is not 5, C# is not C.
_MEANT = frozenset("%#&@*‰")


def fold(text: str) -> str:
    """NFKC, case folded, single blanks; punctuation stays."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


def tokens(text: str) -> tuple[str, ...]:
    """Words, numbers and signs of a text, by which values are compared.

    Case, blanks, punctuation and compatible characters (NFKC) make no difference; letters and
    digits are apart ("7pm" is "7 pm"); symbols and % # & @ * count. Numbers go by value ("2.50"
    is "2.5", "1,000" is "1000"), but not those with leading zeros, which may be codes.
    """
    folded = _APOSTROPHE.sub("", fold(text))
    found: list[str] = []
    at = 0
    for match in _NUMBER.finditer(folded):
        found += _words(folded[at : match.start()])
        found.append(_number(match.group()))
        at = match.end()
    return tuple(found + _words(folded[at:]))


def _words(text: str) -> list[str]:
    found: list[str] = []
    word: list[str] = []
    for char in text:
        kind = unicodedata.category(char)[0]
        if kind in "LMN":
            word.append(char)
            continue
        if word:
            found.append("".join(word))
            word = []
        if kind == "S" or char in _MEANT:
            found.append(char)
    return [*found, "".join(word)] if word else found


def _number(text: str) -> str:
    if text in "-−":
        return "-"
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    plain = text.isascii() and text.count(".") <= 1 and "," not in text and len(text) <= 400
    if not plain or re.match(r"0\d", text):
        return text
    value = format(Decimal(text), "f")
    return value.rstrip("0").rstrip(".") if "." in value else value
