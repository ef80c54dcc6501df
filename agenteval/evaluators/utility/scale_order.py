"""Which way a list of accepted values runs, told from its words and numbers.

A score is the rank of a label, so a best-first list read as worst-first turns every result round.
Each label is placed on a line from -1 to 1 by the lexicon in `scale_words`: a head word (a quality
or a fault), moved by its words of degree. The two ends decide the direction and everything known
in between must agree; what cannot be told is said to be unclear, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from agenteval.evaluators.utility import scale_words as words
from agenteval.evaluators.utility.labels import fold

OrderVerdict = Literal["worst_to_best", "best_to_worst", "unclear", "nominal"]

_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?")
_CLAUSE = re.compile(r"\bbut\b|[,;:]")
_NUMBER = re.compile(
    r"^(?:(?:level|grade|score|stage|tier|rank)\s+)?"
    r"(?P<below>(?:less|fewer) than|under|below|up to|at most|<=?)?\s*[$€]?"
    r"(?P<number>-?\d+(?:\.\d+)?)\s*%?(?:\s*(?:-|–|to)\s*[$€]?\d+(?:\.\d+)?)?\s*[+%]?"
)
_ABOVE = re.compile(r"^(?:more than|over|above|at least|>=?)\s*[$€]?(\d+(?:\.\d+)?)")
_FILLERS = words.FILLERS | {"case", "cases", "part", "parts", "extent", "way", "i", "we"}
_SAME_HEAD, _OTHER_HEAD = 0.0, 0.25  # inversion tolerated between neighbours


@dataclass(frozen=True, slots=True)
class Place:
    """Where one label stands. `value` is None when its words say nothing about good or bad.

    `amount` is how much of an unnamed or neutral thing the label speaks of.
    """

    value: float | None = None
    amount: float | None = None
    whole: bool = False
    head: str = ""


def order_of(labels: Sequence[str], name: str = "") -> tuple[OrderVerdict, str]:
    """The direction of a list of accepted values, and the reason in words.

    "unclear": there are graded words, but they do not tell one direction. "nominal": no label
    carries a graded word or a number, or they name kinds of things. "Not applicable" is no level
    and is passed over. `name` of the criterion settles bare degrees ("low", "high") only.
    """
    levels = [text for label in labels if (text := fold(label)) and not is_not_applicable(text)]
    if len(levels) < 2:
        return "unclear", "fewer than two levels"
    if named_kinds(levels):
        return "nominal", "the values name kinds of things, not grades"
    if _letters(levels):
        return _direction([-float(ord(t)) for t in levels], "letter grades, A the best")
    bare, numbers = [_unnumbered(t) for t in levels], [_number(t) for t in levels]
    if all(n is not None for n in numbers):
        return _numbered([n for n in numbers if n is not None], bare, name)
    return _worded(levels, name)


def is_not_applicable(label: str) -> bool:
    """True for "not applicable" and its other spellings."""
    return fold(label) in words.NOT_APPLICABLE


def named_kinds(labels: Sequence[str]) -> bool:
    """True when at least two labels, and half of all, are names of kinds from the lexicon."""
    kinds = sum(fold(label) in words.CATEGORIES for label in labels)
    return kinds >= 2 and 2 * kinds >= len(labels)


def more_is(name: str) -> Literal["better", "worse"] | None:
    """Whether more of what a criterion's name says is good or bad; None when it cannot be told."""
    tokens = [t for t in _TOKEN.findall(fold(name).replace("-", " ")) if t not in _FILLERS]
    turned = any(t.startswith(words.TURNS_IT_ROUND) for t in tokens)
    if any(t.startswith(words.WORSE_WHEN_MORE) for t in tokens):
        return "better" if turned else "worse"
    signs = {sign for t in tokens if (sign := _sign(t)) is not None}
    if signs == {1}:
        return "better"
    return "worse" if signs == {-1} and not turned else "better" if turned else None


def _letters(levels: list[str]) -> bool:
    return all(re.fullmatch(r"(?:grade )?[a-f]", t) for t in levels)


def _number(text: str) -> float | None:
    if above := _ABOVE.match(text):
        return float(above.group(1)) + 0.5
    if match := _NUMBER.match(text):
        return float(match.group("number")) - (0.5 if match.group("below") else 0.0)
    return None


def _unnumbered(text: str) -> str:
    """The words behind a level's number: "3 - very clear" and "3 (very clear)" both count."""
    text = _ABOVE.sub("", text) if _ABOVE.match(text) else _NUMBER.sub("", text)
    return text.strip(" -–—:.)(=/")


def _numbered(numbers: list[float], rest: list[str], name: str) -> tuple[OrderVerdict, str]:
    """All labels carry numbers: their words decide where they can, else the numbers."""
    worded = [t for t in rest if t and _TOKEN.search(t)]
    if len(worded) == len(rest) and len(set(rest)) == len(rest):
        verdict, reason = _worded(rest, name)
        if verdict in ("worst_to_best", "best_to_worst") or named_kinds(rest):
            return verdict, reason
    unit = " ".join(worded)
    if unit and any(t.startswith(words.WORSE_WHEN_MORE) for t in _TOKEN.findall(unit)):
        return _direction([-n for n in numbers], "more of it is worse")
    if not unit and more_is(name) == "worse":
        return _direction([-n for n in numbers], f"more {name} is worse")
    return _direction(numbers, "the numbers say so")


def _direction(values: Sequence[float], reason: str) -> tuple[OrderVerdict, str]:
    steps = [b - a for a, b in pairwise(values)]
    if all(s > 0 for s in steps):
        return "worst_to_best", reason
    if all(s < 0 for s in steps):
        return "best_to_worst", reason
    return "unclear", "the numbers neither rise nor fall throughout"


def _worded(levels: list[str], name: str) -> tuple[OrderVerdict, str]:
    places = [place(text) for text in levels]
    if all(p.value is None and p.amount is None for p in places):
        return "nominal", "no value carries a graded word or a number"
    if _opposite_faults(levels):
        return "unclear", "too little and too much are different faults; neither is the worse one"
    if all(p.amount is not None for p in places):
        return _amounts(places, name)
    values = [p.value if p.value is not None else _bare_value(p) for p in places]
    return _ends(levels, places, values)


def _opposite_faults(levels: list[str]) -> bool:
    tokens = [t for text in levels for t in _TOKEN.findall(text)]
    short = ("under", "insuffic", "incomplet", "inadequa", "missing")
    under = any(t.startswith(short) and not t.startswith("underst") for t in tokens)
    over = any(t.startswith(("over", "too", "excessiv")) and t != "overall" for t in tokens)
    return under and over


def _amounts(places: list[Place], name: str) -> tuple[OrderVerdict, str]:
    """Only degrees ("never" ... "always"): more is better if the name or a whole at the top say."""
    amounts = [p.amount for p in places if p.amount is not None]
    verdict, reason = _direction(amounts, "from less to more")
    if verdict == "unclear":
        return verdict, "the degrees neither rise nor fall throughout"
    sign = more_is(name)
    top = places[-1] if verdict == "worst_to_best" else places[0]
    if sign is None and top.whole:
        sign = "better"
    if sign is None:
        return "unclear", "more or less of something, but not whether more is better"
    if sign == "worse":
        verdict = "best_to_worst" if verdict == "worst_to_best" else "worst_to_best"
    return verdict, f"{reason}, and more is {sign}"


def _bare_value(p: Place) -> float | None:
    """A degree that stands alone ("partially", "no") among words of quality."""
    return None if p.amount is None or p.head else _of_head(0.8, p.amount)


def _ends(
    levels: list[str], places: list[Place], values: list[float | None]
) -> tuple[OrderVerdict, str]:
    """The two ends decide; what is known between them must not contradict."""
    first, last = values[0], values[-1]
    if first is None or last is None:
        where = levels[0] if first is None else levels[-1]
        return "unclear", f"{where!r} is no graded word that is known"
    if abs(last - first) < 0.25:
        return "unclear", f"{levels[0]!r} and {levels[-1]!r} are about equally good"
    if sum(v is not None for v in values) * 2 < len(values) or (
        first * last > 0 and any(v is None for v in values)
    ):
        return "unclear", "too few of the values are graded words that are known"
    sign = 1 if last > first else -1
    known = [(t, p, v) for t, p, v in zip(levels, places, values, strict=True) if v is not None]
    for (_, before, low), (text, after, high) in pairwise(known):
        slack = _SAME_HEAD if before.head == after.head else _OTHER_HEAD
        if (high - low) * sign < -slack - 1e-9:
            return "unclear", f"{text!r} does not fit between its neighbours"
    reason = f"from {levels[0]!r} to {levels[-1]!r}"
    return ("worst_to_best" if sign > 0 else "best_to_worst"), reason


def place(label: str) -> Place:
    """Where a label stands by the lexicon; several clauses count by their mean."""
    text = fold(label).replace("-", " ").replace("/", " ")
    if text in ("no", "false"):
        return Place(-0.8, 0.0) if text == "no" else Place(-0.8)
    if text == "yes":
        return Place(0.8, 1.0, whole=True)
    read = [_clause(part) for part in _CLAUSE.split(text) if part.strip()]
    if len(read) == 1:
        return read[0]
    values = [p.value for p in read if p.value is not None]
    if values:
        return Place(sum(values) / len(values), head=next((p.head for p in read if p.head), ""))
    return read[0] if read else Place()


def _clause(text: str) -> Place:
    tokens = [t for t in _TOKEN.findall(text) if t not in _FILLERS]
    quality = [t for t in tokens if t in words.QUALITY]
    degrees = [words.DEGREES[t] for t in tokens if t in words.DEGREES and t not in quality]
    heads = [t for t in tokens if t not in words.DEGREES and t not in quality]
    signed = [(t, sign) for t in heads if (sign := _sign(t)) is not None]
    if quality and not (signed and words.QUALITY[quality[0]] == 0 and signed[0][1] < 0):
        base = words.QUALITY[quality[0]]
        return Place(_of_head(base, _degree(degrees)), head=quality[0])
    if "free" in tokens and "of" in text:
        return Place(1.0 if any(s < 0 for _, s in signed) else None, head="free")
    if signed:
        negative = [t for t, s in signed if s < 0]
        head = negative[0] if negative else signed[0][0]
        return Place(_of_head(-0.8 if negative else 0.8, _degree(degrees)), head=_stem(head))
    if not degrees:
        return Place()
    whole = any(t in words.WHOLE for t in tokens)
    alone = words.GRADE_ALONE.get(text.strip())
    return Place(alone, _degree(degrees), whole=whole, head=heads[0] if heads else "")


def _degree(degrees: list[float]) -> float:
    """A negation wins; "very" on another degree ("very high", "very few") does not move it."""
    if not degrees:
        return words.BARE
    if min(degrees) == words.NONE:
        return words.NONE if len(degrees) == 1 else 0.1 if max(degrees) >= 0.8 else words.NONE
    return degrees[-1] if len(degrees) > 1 and degrees[0] >= 1.0 else degrees[0]


def _of_head(base: float, degree: float) -> float:
    """Value of a head word at a degree: none of it is the opposite end, all of it a bit beyond."""
    sign = 1.0 if base >= 0 else -1.0
    if degree > words.BARE:
        return base + sign * (degree - words.BARE) * 2
    return -sign + (base + sign) * degree / words.BARE


def _sign(token: str) -> int | None:
    """1 for a quality, -1 for a fault, None for a word that says neither."""
    if token in words.EXCEPT:
        return None
    if token in words.QUALITY:
        value = words.QUALITY[token]
        return None if value == 0 else 1 if value > 0 else -1
    if token.startswith(("over", "under")) and not token.startswith(("underst", "overall")):
        return -1
    if token.startswith(words.BAD):
        return -1
    if token.endswith("less") and token[:-4].startswith(words.BAD):
        return 1
    for prefix in words.NEGATING_PREFIXES:
        if token.startswith(prefix) and token[len(prefix) :].startswith(words.GOOD):
            return -1
    return 1 if token.startswith(words.GOOD) else None


def _stem(token: str) -> str:
    """Beginning by which two forms of a head word are told to be the same."""
    for prefix in words.NEGATING_PREFIXES:
        if token.startswith(prefix) and token[len(prefix) :].startswith(words.GOOD):
            token = token[len(prefix) :]
            break
    return token[:6]
