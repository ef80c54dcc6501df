"""Equality of values by rule, and the assignment of calls to each other.

Values are compared exactly, then normalized, never by substring. All comparisons of values of
calls, results or states use these functions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from pydantic import JsonValue

from agenteval.records import canonical_json


def filled(arguments: JsonValue) -> dict[str, JsonValue]:
    """Return the arguments without those that are "", [], {} or null, which count as omitted; {}
    for a value that is not an object."""
    if not isinstance(arguments, dict):
        return {}
    return {key: value for key, value in arguments.items() if value not in ("", [], {}, None)}


def kind(value: Any) -> str:
    """Return the JSON type; all numbers are one type, and true is none of them."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__


def normalised(value: JsonValue) -> JsonValue:
    """Return one form for all values that are equal by rule: the tokens of texts, whole numbers,
    objects without empty members."""
    if isinstance(value, str):
        return " ".join(tokens(value)) or value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: normalised(inner) for key, inner in filled(value).items()}
    return [normalised(inner) for inner in value] if isinstance(value, list) else value


def equal_by_rule(gold: JsonValue, given: JsonValue) -> bool:
    """Return whether two values are equal by the rules alone, without schema and judge."""
    return canonical_json(normalised(gold)) == canonical_json(normalised(given))


def contains_tokens(words: str, text: str) -> bool:
    """Return whether the tokens of `words` are in the text in a row. No tokens are in no text."""
    needle, haystack = tokens(words), tokens(text)
    return bool(needle) and any(
        haystack[at : at + len(needle)] == needle for at in range(len(haystack) - len(needle) + 1)
    )


def assigned(worth: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the best pairs (row, column), each row and column at most once, by row.

    `worth` has a rank for every pair: 0 for none, and more pairs of a higher rank are worth more
    than any number of lower ones. Of equal choices the earliest rows and columns are taken, in
    their order. Optimal by `scipy.optimize.linear_sum_assignment`.
    """
    rows, columns = len(worth), max(map(len, worth), default=0)
    most = min(rows, columns)
    if not most or not any(map(any, worth)):
        return []
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    early = rows * columns * most + 1  # more than all that keeping the order can bring
    pair = early * (rows + columns) * most + 1  # more than all that being early can bring
    ranks = np.array(worth, dtype=float)
    order = np.multiply.outer(np.arange(rows), np.arange(columns))
    lateness = np.add.outer(np.arange(rows), np.arange(columns))
    value = pair * (most + 1.0) ** (ranks - 1) - early * lateness + order
    chosen = linear_sum_assignment(np.where(ranks > 0, value, 0), maximize=True)
    pairs = zip(*(indices.tolist() for indices in chosen), strict=True)
    return [(i, j) for i, j in pairs if worth[i][j]]


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
_MEANINGFUL = frozenset("%#&@*‰′″")  # signs that change a value: 5% is not 5, C# is not C


def fold(text: str) -> str:
    """Return the text in NFKC, case folded, with single blanks. Punctuation stays, and 10² becomes
    10^2, not 102."""
    text = _RUN_ON.sub("^", text)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


def tokens(text: str) -> tuple[str, ...]:
    """Return the words, numbers and signs of a text, by which values are compared.

    Case, blanks, punctuation and compatible characters (NFKC) make no difference; letters and
    digits are apart ("7pm" is "7 pm"); symbols and % # & @ * count, so do ":" and "/" between
    digits (but for dates such as 2031/03/12), a minus, and every mark in an address, a link or a
    name such as a_b. Numbers go by value ("2.50" is "2.5", "1,000" is "1000", ".5" is "0.5"), but
    not those with leading zeros or right behind a letter, which may be codes ("v1.10").
    """
    words: list[str] = []
    run: list[str] = []
    for chunk in fold(text).split():
        if _NAME.search(chunk):
            words += [*_pieces(" ".join(run)), chunk.strip(_AROUND)]
            run = []
        else:
            run.append(chunk)
    return (*words, *_pieces(" ".join(run)))


def _pieces(text: str) -> Iterator[str]:
    """Yield the tokens of folded text without names."""
    text = _SLASHED_DATE.sub(r"\1-\2-\3", _APOSTROPHE.sub("", text))
    at = 0
    for match in _PIECE.finditer(text):
        yield from _words(text[at : match.start()])
        at = match.end()
        if (
            match.lastgroup == "number"
            and not text[max(match.start() - 1, 0) : match.start()].isalpha()
        ):
            yield _number(match.group())
        else:
            yield "-" if match.lastgroup == "minus" else match.group()
    yield from _words(text[at:])


def _words(text: str) -> list[str]:
    """Return the runs of letters, marks and digits, and the signs that count."""
    spaced = []
    for char in text:
        category = unicodedata.category(char)[0]
        sign = category == "S" or char in _MEANINGFUL
        spaced.append(char if category in "LMN" else f" {char} " if sign else " ")
    return "".join(spaced).split()


def _number(text: str) -> str:
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    plain = text.isascii() and text.count(".") <= 1 and "," not in text and len(text) <= 400
    if not plain or re.match(r"0\d", text):
        return text
    value = format(Decimal(text), "f")
    return value.rstrip("0").rstrip(".") if "." in value else value
