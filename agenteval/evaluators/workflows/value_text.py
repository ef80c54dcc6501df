"""Texts of parameter values, normalised without changing what they say."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal

_APOSTROPHE = re.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_])")
# Raised and lowered digits and fractions, which NFKC would join to the digits before them.
_RUN_ON = re.compile(r"(?<=\d)(?=[¹²³⁰⁴-⁹₀-₉¼-¾⅐-⅞])")
# In an address, a link or a made name (a_b) every mark counts: a.b@c.org is not a_b@c.org.
_NAME = re.compile(r"\S@\S|\w://\S|[^\W_]_[^\W_]")
_AROUND = ".,;:!?()[]{}<>\"'“”‘’"
_SLASHED_DATE = re.compile(r"(?<![\w/])(\d{1,4})/(\d{1,2})/(\d{1,4})(?![\w/])")
_PIECE = re.compile(
    r"(?P<minus>(?<![\w.])[-−‐-―](?=\.?\d)|(?<=\w)[-−](?![^\s,;.)]))"  # -5, and A- of A
    r"|(?P<mark>(?<=\d)[:/](?=\d))"  # 10:30 is not 10-30, 1/2 not 1 2
    r"|(?P<number>(?<![\w.])\.\d+|\d+(?:[.,]\d+)*)"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
# Signs that change what a value is: 5 % is not 5, C# is not C.
_MEANT = frozenset("%#&@*‰′″")


def fold(text: str) -> str:
    """NFKC, case folded, single blanks; punctuation stays, and 10² becomes 10^2, not 102."""
    text = _RUN_ON.sub("^", text)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


def tokens(text: str) -> tuple[str, ...]:
    """Words, numbers and signs of a text, by which values are compared.

    Case, blanks, punctuation and compatible characters (NFKC) make no difference; letters and
    digits are apart ("7pm" is "7 pm"); symbols and % # & @ * count, so do ":" and "/" between
    digits (but for dates such as 2031/03/12), a minus, and every mark in an address, a link or a
    name such as a_b. Numbers go by value ("2.50" is "2.5", "1,000" is "1000", ".5" is "0.5"), but
    not those with leading zeros or right behind a letter, which may be codes ("v1.10").
    """
    found: list[str] = []
    run: list[str] = []
    for chunk in fold(text).split():
        if _NAME.search(chunk):
            found += _pieces(" ".join(run))
            found.append(chunk.strip(_AROUND))
            run = []
        else:
            run.append(chunk)
    return (*found, *_pieces(" ".join(run)))


def _pieces(text: str) -> Iterator[str]:
    """The tokens of folded text without such names."""
    text = _SLASHED_DATE.sub(r"\1-\2-\3", _APOSTROPHE.sub("", text))
    at = 0
    for match in _PIECE.finditer(text):
        yield from _words(text[at : match.start()])
        at = match.end()
        if match.lastgroup == "number":
            behind_letter = match.start() > 0 and text[match.start() - 1].isalpha()
            yield match.group() if behind_letter else _number(match.group())
        else:
            yield "-" if match.lastgroup == "minus" else match.group()
    yield from _words(text[at:])


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
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    plain = text.isascii() and text.count(".") <= 1 and "," not in text and len(text) <= 400
    if not plain or re.match(r"0\d", text):
        return text
    value = format(Decimal(text), "f")
    return value.rstrip("0").rstrip(".") if "." in value else value
