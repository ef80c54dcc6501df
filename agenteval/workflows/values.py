"""When two values are the same by rule, and which of many calls stands for which.

Values are compared exactly, then normalised, never by substring. Everything that compares values
of calls, results or states does it by the functions here.
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
    """The arguments that say something: "", [], {} and null are as good as left out.

    No arguments (None) are {}; a raw text has none that could be read.
    """
    if not isinstance(arguments, dict):
        return {}
    return {key: value for key, value in arguments.items() if value not in ("", [], {}, None)}


def kind(value: Any) -> str:
    """JSON type; all numbers are one, and true is none of them."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__


def normalised(value: JsonValue) -> JsonValue:
    """One form for all values that are equal by rule: the tokens of texts, whole numbers, objects
    without empty members."""
    if isinstance(value, str):
        return " ".join(tokens(value)) or value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: normalised(inner) for key, inner in filled(value).items()}
    return [normalised(inner) for inner in value] if isinstance(value, list) else value


def equal_by_rule(gold: JsonValue, given: JsonValue) -> bool:
    """Whether two values are equal by the rules alone, no schema being known: what only a judge
    could take for equal is not."""
    return canonical_json(normalised(gold)) == canonical_json(normalised(given))


def contains_tokens(words: str, text: str) -> bool:
    """Whether words stand in a text: their tokens in a row, the last words of a text and its first
    ones alike. Nothing stands nowhere."""
    wanted, given = tokens(words), tokens(text)
    return bool(wanted) and any(
        given[at : at + len(wanted)] == wanted for at in range(len(given) - len(wanted) + 1)
    )


def assigned(worth: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The best pairs (row, column), each row and column at most once, by row.

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
    pairs = [(int(i), int(j)) for i, j in zip(*chosen, strict=True)]
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
# Signs that change what a value is: 5% is not 5, C# is not C.
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
    words: list[str] = []
    run: list[str] = []
    for chunk in fold(text).split():
        if _NAME.search(chunk):
            words += _pieces(" ".join(run))
            words.append(chunk.strip(_AROUND))
            run = []
        else:
            run.append(chunk)
    return (*words, *_pieces(" ".join(run)))


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
    words: list[str] = []
    word: list[str] = []
    for char in text:
        kind = unicodedata.category(char)[0]
        if kind in "LMN":
            word.append(char)
            continue
        if word:
            words.append("".join(word))
            word = []
        if kind == "S" or char in _MEANT:
            words.append(char)
    return [*words, "".join(word)] if word else words


def _number(text: str) -> str:
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    plain = text.isascii() and text.count(".") <= 1 and "," not in text and len(text) <= 400
    if not plain or re.match(r"0\d", text):
        return text
    value = format(Decimal(text), "f")
    return value.rstrip("0").rstrip(".") if "." in value else value
