"""Which way a list of accepted values runs, and what is made of what its author states.

A score is the rank of a label, so a best-first list read as worst-first turns every result round.
The evidence, strongest first: what the author states; the words of the two end levels; plain
numbers, percentages and letters; numbers with a unit of time, cost or count, of which less is
better. The name of a criterion never turns a list. It can only withhold: of bare amounts of
something unwelcome ("Error rate": 1 to 5) nobody can tell which end is meant to be the best.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from agenteval.records.criteria import Order, Scale
from agenteval.utility.labels import fold
from agenteval.utility.scale_words import (
    CATEGORIES,
    COUNTED,
    FILLERS,
    MOST_UNKNOWN,
    NEGATING_PREFIXES,
    NONE,
    SECONDS,
    TOO,
    UNITS,
    WEIGHTLESS,
    ScalePlace,
    asks_for_a_kind,
    at_degree,
    is_not_applicable,
    place,
    polarity,
    sign,
    tokens_of,
    two_faults,
    welcome,
)

OrderVerdict = Literal["worst_to_best", "best_to_worst", "unclear", "nominal"]
Stated = Literal["worst_to_best", "best_to_worst"]

_NUMBER = r"\d+(?:[.,]\d+)?"
_LEAD = re.compile(
    r"^(?:(?:level|grade|score|stage|tier|rank|rating|about|approximately)\s+)?"
    r"(?:(?P<below>less than|fewer than|under|below|<=?)|(?P<above>(?:more|longer|greater|higher)"
    r" than|over|above|>=?)|up to|at (?:most|least)|within)?\s*[$€£]?"
    rf"(?P<number>-?{_NUMBER})(?:\s*(?:%|[a-z]{{1,7}}\b)?\s*(?:-|–|to)\s*[$€£]?{_NUMBER})?"
    r"\s*(?P<more>\+)?"
)
_RUNS = {
    "worst_to_best": "run from worst to best",
    "best_to_worst": "run from best to worst",
}
_STATED_KINDS = "stated as kinds, not grades"
_OF_ALL = re.compile(
    r"%|\b(?:all|every|each|most|half|always|fully|completely|entirely|partially|partly)\b"
)
# A number and right behind it what it counts: "5+ errors", "10 or more steps".
_UNIT = re.compile(
    rf"(?:{_NUMBER}|\bone|\btwo)\s*\+?\s*(?:or (?:more|less|fewer)\s*)?(?:[a-z]+\s)?"
    rf"(?:{'|'.join(sorted(UNITS))})\b"
)
_BEST = "best|highest|excellent|perfect|optimal|ideal|outstanding"
_WORST = "worst|lowest|poor|poorest|terrible|unacceptable|inadequate"
_COMPARED = re.compile(
    r"\b(?:(?P<more>more|higher|greater|larger|longer)|fewer|less|lower|smaller|shorter)\b"
    r"(?P<what>[^.;,]{0,40}?)\b(?:is|are|being|means?|indicates?|implies|imply|the)\s+(?:\w+ly\s+)?"
    r"(?:(?:the\s+)?better|best|more \w+|preferr?(?:ed|able)|desirable|good"
    r"|(?P<worse>worse|worst|less \w+|bad))\b"
)
_END = re.compile(
    rf"(?P<number>{_NUMBER})\s*(?:is|being|=|:|-|–|\(|means|indicates|represents|as|for)?\s*"
    rf"(?:(?:the|being|is|a|an|completely|very)\s+)*(?:(?P<best>{_BEST})|{_WORST})\b"
)
_NUMBERS = frozenset(
    [
        "value",
        "values",
        "score",
        "scores",
        "number",
        "numbers",
        "rating",
        "ratings",
        "one",
        "ones",
        "it",
    ]
)
_DIFFER = 0.1  # values of words nearer than this are one grade
_APART = 0.25  # on the line from -1 to 1: two ends nearer than this are equally good
_LONG = 40  # characters of a level that is a description
_SHORT = 3  # words of a label that may be the name of a kind
_BEYOND = 0.5  # a level that lies so far outside of both ends makes the list no scale


class Told(NamedTuple):
    """A direction, and why in words. What is `plain` withholds a statement that says otherwise.

    `ranks` are the places of the levels from worst to best, where these run neither way and their
    words tell the order all the same.
    """

    verdict: OrderVerdict
    reason: str
    plain: bool = False
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Settled:
    """What is made of a list: its values (worst first where the order is known), order and scale.

    `reason` is for the record, None where the order is as it was stated.
    """

    values: tuple[str, ...]
    order: Order
    scale: Scale
    reason: str | None

    @property
    def turned(self) -> bool:
        """Whether the list was turned round."""
        return (self.reason or "").startswith("turned round")

    @property
    def note(self) -> str | None:
        """A line for a person where something was turned, withheld or taken as no scale."""
        if self.scale == "nominal":
            return None if self.reason == _STATED_KINDS else f"nominal scale: {self.reason}"
        if self.order == "unclear":
            return (
                f"order {self.reason}; it has no mean until its values stand worst first with "
                '"order_confirmed": true'
            )
        return (
            self.reason if self.turned or (self.reason or "").startswith("put in order") else None
        )


def settle(
    labels: Sequence[str],
    stated: Stated | None,
    name: str,
    *,
    description: str = "",
    meanings: Mapping[str, str] | None = None,
    kinds: bool = False,
) -> Settled:
    """The order of a list as its author states it, else as its levels say. Needs two labels.

    `meanings` are what the author writes of a label, beside it.
    `kinds` says that the author calls the scale nominal. A statement is withheld, and the
    order then unclear, where the levels plainly run the other way or are names of kinds.
    """
    values, meanings = tuple(labels), meanings or {}
    scale: Scale = "binary" if len(values) == 2 else "ordinal"
    texts = [f"{value}: {meanings[value]}" if value in meanings else value for value in values]
    numbered = all(re.fullmatch(_NUMBER, value) for value in values)  # else the labels speak
    order = order_of(texts if numbered else values, name, description)
    if kinds and not order.plain:
        return Settled(values, "unclear", "nominal", _STATED_KINDS)
    if order.plain and (kinds or (stated is not None and order.verdict != stated)):
        author = "a nominal scale" if kinds else f"order {stated}"
        levels = "are kinds, not grades" if order.verdict == "nominal" else _RUNS[order.verdict]
        reason = f"unclear: stated is {author}, but its values {levels} ({order.reason})"
        return Settled(values, "unclear", scale, reason)
    if stated is None and order.verdict == "nominal":
        return Settled(values, "unclear", "nominal", order.reason)
    if stated is None and order.ranks:
        why = f"put in order: by {order.reason}, worst first"
        return Settled(tuple(values[n] for n in order.ranks), "worst_to_best", scale, why)
    if stated is None and order.verdict == "unclear":
        return Settled(values, "unclear", scale, f"unclear: {order.reason}")
    if (stated or order.verdict) == "worst_to_best":
        return Settled(values, "worst_to_best", scale, None if stated else order.reason)
    why = "stated best first" if stated else f"its values ran best first ({order.reason})"
    return Settled(values[::-1], "worst_to_best", scale, f"turned round: {why}")


def settle_range(
    bounds: tuple[float, float], stated: Stated | None, name: str, description: str = ""
) -> Settled:
    """As `settle`, of a range of numbers. Stated bounds are worst and best as they stand."""
    low, high = (f"{bound:g}" for bound in bounds)
    order: Order = "worst_to_best"
    reason = None if stated else f"more is better, {high} the best"
    more = 0 if stated else more_is_better(description, name)
    if stated is None and (more is None or (more == 0 and welcome(name) == -1)):
        order, reason = "unclear", f"unclear: more of {name!r} may be the worse"
    elif stated == "best_to_worst" or (
        stated is None and (more or 1) * (bounds[1] - bounds[0]) < 0
    ):
        reason = f"turned round: {low} is the best, {high} the worst"
    return Settled((), order, "numeric", reason)


def order_of(labels: Sequence[str], name: str = "", description: str = "") -> Told:
    """The direction that a list of accepted values shows by itself.

    "unclear": it does not show one. "nominal": no end carries a graded word or a number, the
    labels name kinds of things, or the best level stands in the middle. "Not applicable" is no
    level and is passed over. `name` and `description` are those of the criterion.
    """
    levels = [text for label in labels if (text := fold(label)) and not is_not_applicable(text)]
    if len(levels) < 2:
        return Told("unclear", "fewer than two levels")
    kinds = sum(level in CATEGORIES for level in map(_unnumbered, levels))
    if kinds >= 2 and 2 * kinds >= len(levels):
        return Told("nominal", "the values name kinds of things, not grades", plain=True)
    if all(re.fullmatch(r"(?:grade )?[a-f]", level) for level in levels):
        return _direction([-float(ord(level[-1])) for level in levels], "letters, A the best")
    if asks_for_a_kind(name):
        return Told("unclear", f"{name!r} asks for a kind, not for a grade")
    told, strength = _evidence(levels)
    weak = strength < 2 or (not told.plain and counted_in_units(levels))
    if weak and (stated := _stated_by(description, name, levels)):
        return stated
    if re.search("difficult|complex", name.casefold()):
        strength = min(strength, 1)  # of the problem, perhaps: "easy … hard" is no quality of work
    if told.verdict in _RUNS and welcome(name) < 1 - strength:
        return Told("unclear", f"{told.reason}: more of {name!r} may be the worse")
    return told


def _evidence(levels: Sequence[str]) -> tuple[Told, int]:
    """What the levels say, and how strongly.

    2: words of quality, or a unit, which no name withholds. 1: plain numbers, and the whole of
    something. 0: bare degrees ("low … high"), which tell only of what a name calls good.
    """
    if set(levels) == {"true", "false"}:  # as yes and no; beside other words it is a grade
        levels = ["yes" if level == "true" else "no" for level in levels]
    ends = f"{levels[0]!r} … {levels[-1]!r}"
    behind = [_unnumbered(level) for level in levels]
    whole = any(_OF_ALL.search(level) for level in levels)
    places = [place(text, whole=whole) for text in behind]
    numbers = [n for level in levels if (n := _quantity(level)) is not None]
    numbered = len(numbers) == len(levels)
    differ = behind[0] != behind[-1]
    order = _by_quality(places, ends) if differ else None
    if numbered and order is not None:
        order = _beside_numbers(order, numbers, places, behind)
    if numbered and (order is None or order.verdict == "unclear"):
        order = _by_unit(numbers, levels) or order
    if order is not None:
        return order, 2
    if differ and (order := _by_amount(places, ends)):
        if numbered and (order := _beside_numbers(order, numbers, places, behind)) is None:
            return _direction(numbers, ends), 1
        return order, int(any(p.heads or p.whole for p in (places[0], places[-1])))
    doubtful = any(p.polarity is None for p in places)
    if numbered and not doubtful and (order := _by_number(numbers, behind, ends, levels)):
        return order, 1
    short = all(len(text.split()) <= _SHORT for text in behind)
    if not numbers and short and all(p == ScalePlace(heads=p.heads) for p in places):
        return Told("nominal", "no value carries a graded word or a number"), 0
    return Told("unclear", f"nothing in {ends} says which end is the best"), 0


def counted_in_units(labels: Sequence[str]) -> bool:
    """Whether every label is a number of seconds, calls, dollars or the like."""
    levels = [fold(label) for label in labels]
    amounts = [_quantity(level) is not None and "%" not in level for level in levels]
    units = [re.search(r"[$€£]", level) or _UNIT.search(level) for level in levels]
    return all(amounts) and any(units)


# ---------------------------------------------------------------- what a description states


def _stated_by(description: str, name: str, levels: Sequence[str]) -> Told | None:
    """The direction of plain numbers that a description states, None where it states none."""
    numbers = [_quantity(level) for level in levels]
    more = more_is_better(description, name)
    if None in numbers or more == 0:
        return None
    if more is None:
        return Told("unclear", "less of something is better, but perhaps not of these numbers")
    return _direction([more * (n or 0.0) for n in numbers], "so its description states")


def more_is_better(description: str, name: str) -> int | None:
    """1 where a description says that a greater number is better, -1 where it says the contrary
    ("lower is better", "1 is the best"), 0 where it says neither, or both.

    "Fewer moves are more efficient" is said of numbers of moves: of "Total moves", and not of a
    rating of "Efficiency" (0). Of a name that says neither it may be (None).
    """
    text, named = fold(description), tokens_of(fold(name))
    said: set[int | None] = set()
    for match in _COMPARED.finditer(text):
        way = (1 if match["more"] else -1) * (-1 if match["worse"] else 1)
        what = set(tokens_of(match["what"])) - FILLERS - _NUMBERS
        if not what or welcome(name) == -1 or {w[:4] for w in what} & {w[:4] for w in named}:
            said.add(way)
        elif way == -1 and welcome(name) == 0:
            said.add(None)
    ends: dict[bool, set[float]] = {True: set(), False: set()}
    for match in _END.finditer(text):
        ends[bool(match["best"])].add(float(match["number"]))
    if ends[True] and ends[False]:
        said = {1 if min(ends[True]) > max(ends[False]) else -1}
    return said.pop() if len(said) == 1 else 0


# ---------------------------------------------------------------- words


def _by_quality(places: list[ScalePlace], ends: str) -> Told | None:
    """By the values of the two ends, or None when words of quality do not decide."""
    if _best_in_the_middle(places):
        return Told("nominal", f"{ends} are opposite faults: the best level is in the middle", True)
    values = [p.value for p in places]
    first, last = values[0], values[-1]
    if first is None and last is not None:
        first = _against(places[0], places[-1], [v for v in values[::-1] if v is not None])
    elif last is None and first is not None:
        last = _against(places[-1], places[0], [v for v in values if v is not None])
    if first is None or last is None:
        return None
    if two_faults(places):
        return Told("unclear", "too little and too much are different faults")
    low, high = min(first, last) - _BEYOND, max(first, last) + _BEYOND
    if any(value is not None and not low < value < high for value in values):
        return _by_strength(places) or Told(
            "unclear", f"a level between them is better or worse than both {ends}"
        )
    if abs(last - first) < _APART:
        return Told("unclear", f"{ends} are about equally good")
    verdict: OrderVerdict = "worst_to_best" if last > first else "best_to_worst"
    graded = None not in (values[0], values[-1]) or not (places[0].heads and places[-1].heads)
    return Told(verdict, ends, plain=graded and abs(last - first) >= 2 * _APART)


def _beside_numbers(
    order: Told, numbers: Sequence[float], places: Sequence[ScalePlace], behind: Sequence[str]
) -> Told | None:
    """What words tell of numbered levels. Words of a long description, or of one end alone, turn
    no numbers; where they are unclear, the numbers of long descriptions stand (None)."""
    long = any(len(text) > _LONG for text in behind)
    if order.verdict not in _RUNS:
        return None if long and order.verdict == "unclear" else order
    weak = long or None in (places[0].value, places[-1].value)
    if weak and _direction(numbers, "").verdict not in ("unclear", order.verdict):
        reason = f"{order.reason}: the words and the numbers run against each other"
        return Told("unclear", reason)
    return order


def _best_in_the_middle(places: Sequence[ScalePlace]) -> bool:
    """Whether the ends say too much of something, or too little, and a level between does not."""
    first, *between, last = places
    too = all(TOO.intersection(end.heads) for end in (first, last)) or two_faults([first, last])
    return too and any(not TOO.intersection(p.heads) and (p.value or 0) >= 0 for p in between)


def _by_strength(places: Sequence[ScalePlace]) -> Told | None:
    """The order of levels that are all words of quality in no order ("accurate, inaccurate,
    completely accurate"); None unless they are plainly apart."""
    values = [p.value for p in places if p.value is not None]
    unknown = any(not sign(head) for p in places for head in p.heads)
    if unknown or len(values) < len(places):
        return None
    ranks = sorted(range(len(values)), key=lambda n: values[n])
    if any(values[b] - values[a] < _DIFFER for a, b in pairwise(ranks)):
        return None
    return Told("unclear", "the strength of its words", ranks=tuple(ranks))


def _against(end: ScalePlace, other: ScalePlace, values: Sequence[float]) -> float | None:
    """The value of an end that no word of quality places, by that of the other, `values[0]`.

    None of something unknown ("no hiccups") is its opposite, and so is the whole of it ("fully
    boxed") where the other is bad. A mere degree ("none", "limited vocabulary") is one of what the
    other speaks of ("rich vocabulary"). What the lexicon does not know is the opposite where it
    stands at the end of `values` that lead away from the other end, or that leaves nothing beyond.
    """
    heads, worth = set(end.heads), values[0]
    if heads and heads == set(other.heads) - {"complete"} != set(other.heads) and len(values) == 1:
        return None  # "no rework … complete rework"
    if 0 < len(heads) <= MOST_UNKNOWN and (end.amount == NONE or (end.whole and worth < 0)):
        return 0.8 if worth < 0 else -0.8
    if end.amount is not None:
        return at_degree(other, end.amount) if heads <= set(other.heads) else None
    away = all((a - b) * worth > 0 for a, b in pairwise(values))
    pole = values[-1] * worth < -0.5  # the best may stand in the middle
    known = worth >= 1.0 or (not pole and (len(values) > 1 or worth <= -1.0))
    negated = any(prefix + h in other.heads for h in heads for prefix in NEGATING_PREFIXES)
    return -worth if len(heads) <= MOST_UNKNOWN and away and (known or negated) else None


def _by_amount(places: list[ScalePlace], ends: str) -> Told | None:
    """From none to all of something that is not known to be bad: more of it is better.

    Of something that no word of the lexicon names, only the whole of it is known to be wanted:
    "few steps … many steps" and "never interrupts … always interrupts" say nothing.
    """
    first, last = places[0], places[-1]
    if first.polarity is None or last.polarity is None:
        return None
    if first.amount is None or last.amount is None or abs(last.amount - first.amount) < _APART:
        return None
    less, more = sorted((first, last), key=lambda p: p.amount or 0.0)
    same = not less.heads or not more.heads or set(less.heads) & set(more.heads)
    if len({*less.heads, *more.heads}) > MOST_UNKNOWN and set(less.heads) != set(more.heads):
        return None
    bare = not less.heads and not more.heads
    if not bare and not (more.whole and (same or less.amount == NONE)):
        return None
    return Told("worst_to_best" if more is last else "best_to_worst", ends)


# ---------------------------------------------------------------- numbers


def _quantity(level: str) -> float | None:
    """The number at the head of a level, times in seconds; None when there is none."""
    match = _LEAD.match(level)
    if match is None:
        return None
    number = float(match["number"].replace(",", "."))
    units = re.findall(r"(?<![a-z])[a-z]+", level[match.end("number") :])
    number *= next((SECONDS[u] for u in units if u in SECONDS), 1.0)
    return number - 1e-6 if match["below"] else number + 1e-6 if match["above"] else number


def _unnumbered(level: str) -> str:
    """The words behind a level's number: "3 - very clear" and "3 (very clear)" both count."""
    return _LEAD.sub("", level).strip(" -–—:.)(=/%+")


def _by_unit(numbers: Sequence[float], levels: Sequence[str]) -> Told | None:
    """Less is better of what is counted in a unit of time, cost or count, and of faults.

    None where the numbers stand for something else.
    """
    ends = f"{levels[0]!r} … {levels[-1]!r}"
    behind = [_unnumbered(level) for level in levels]
    wanted = _counted_polarity(behind)
    if wanted == -1:
        return _direction([-n for n in numbers], f"{ends}: more of a fault is worse")
    if wanted != 1 and counted_in_units(levels):
        less = f"{ends}: less time, cost or count is better"
        return _direction([-n for n in numbers], less)._replace(plain=False)
    return None


def _counted_polarity(behind: Sequence[str]) -> int | None:
    """Whether what several labels count in the same words ("0 errors … 5+ errors") is wanted."""
    if len(set(behind)) == len(behind):
        return 0
    return polarity([t for t in tokens_of(behind[-1]) if t not in WEIGHTLESS | COUNTED])


def _by_number(
    numbers: Sequence[float], behind: Sequence[str], ends: str, levels: Sequence[str]
) -> Told | None:
    """More is better of plain numbers, percentages and what is good; else nothing is told."""
    tokens = {t for text in behind for t in tokens_of(text)} - COUNTED - WEIGHTLESS
    counted = len(set(behind)) < len(behind)  # "0 sources … 5+ sources"
    if tokens and counted and "%" not in levels[-1] and _counted_polarity(behind) != 1:
        return None
    order = _direction(numbers, ends)
    return order if not tokens or counted else order._replace(plain=False)


def _direction(values: Sequence[float], reason: str) -> Told:
    steps = [b - a for a, b in pairwise(values)]
    if all(step > 0 for step in steps):
        return Told("worst_to_best", reason, plain=True)
    if all(step < 0 for step in steps):
        return Told("best_to_worst", reason, plain=True)
    return Told("unclear", f"the numbers from {reason} neither rise nor fall throughout")
