"""Decide whether a list of accepted values runs from worst to best or from best to worst.

A score is the rank of a label, so a best-first list read as worst-first inverts every result.
The evidence, strongest first: the order that the author states; the words of the two end levels;
plain numbers, percentages and letters; numbers with a unit of time, cost or count, for which less
is better. The name of a criterion never reverses a list. It can only leave the order unclear: for
plain amounts of something bad ("Error rate": 1 to 5), either end may be the best.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from agenteval.records.criteria import Order, Scale
from agenteval.utility.labels import fold, words
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
    name_polarity,
    place,
    polarity,
    sign,
    tokens_of,
    two_faults,
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
# A number followed by the unit that it counts: "5+ errors", "10 or more steps".
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
_NUMBERS = frozenset(words("value values score scores number numbers rating ratings one ones it"))
_DIFFER = 0.1  # words whose values differ less are one grade
_APART = 0.25  # two ends whose values (-1 to 1) differ less are equally good
_LONG = 40  # a level with more characters is a description
_SHORT = 3  # maximum words of a label that names a kind
_BEYOND = 0.5  # a level this far beyond both ends means that the list is not a scale


class OrderEvidence(NamedTuple):
    """A direction and its reason. `plain` evidence overrides a contradicting statement.

    `ranks` are the indices of the levels from worst to best, if the list is in neither order but
    the words show one.
    """

    verdict: OrderVerdict
    reason: str
    plain: bool = False
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Settled:
    """The resolved list: its values (worst first if the order is known), order and scale.

    `reason` is stored with the criterion; None if the order is as stated.
    """

    values: tuple[str, ...]
    order: Order
    scale: Scale
    reason: str | None

    @property
    def turned(self) -> bool:
        """Whether the list was reversed."""
        return (self.reason or "").startswith("reversed")

    @property
    def note(self) -> str | None:
        """A note for the user if the order was changed or unclear or the scale is nominal."""
        if self.scale == "nominal":
            return None if self.reason == _STATED_KINDS else f"nominal scale: {self.reason}"
        if self.order == "unclear":
            return (
                f"order {self.reason}; it has no mean until its values are listed worst first with "
                '"order_confirmed": true'
            )
        changed = (self.reason or "").startswith(("reversed", "put in order"))
        return self.reason if changed else None


def settle(
    labels: Sequence[str],
    stated: Stated | None,
    name: str,
    *,
    description: str = "",
    meanings: Mapping[str, str] | None = None,
    kinds: bool = False,
) -> Settled:
    """Resolve the order of a list from its author's statement, else from its levels.

    Needs at least two labels. `meanings` are the author's descriptions of labels. `kinds` means
    that the author calls the scale nominal. The order is unclear if the levels plainly contradict
    the statement.
    """
    values, meanings = tuple(labels), meanings or {}
    scale: Scale = "binary" if len(values) == 2 else "ordinal"
    texts = [f"{value}: {meanings[value]}" if value in meanings else value for value in values]
    numbered = all(re.fullmatch(_NUMBER, value) for value in values)  # then their meanings decide
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
    return Settled(values[::-1], "worst_to_best", scale, f"reversed: {why}")


def settle_range(
    bounds: tuple[float, float], stated: Stated | None, name: str, description: str = ""
) -> Settled:
    """Resolve the order of a numeric range. A stated order is used as is."""
    low, high = (f"{bound:g}" for bound in bounds)
    order: Order = "worst_to_best"
    reason = None if stated else f"more is better, {high} the best"
    more = 0 if stated else more_is_better(description, name)
    if stated is None and (more is None or (more == 0 and name_polarity(name) == -1)):
        order, reason = "unclear", f"unclear: more of {name!r} may be the worse"
    elif stated == "best_to_worst" or (
        stated is None and (more or 1) * (bounds[1] - bounds[0]) < 0
    ):
        reason = f"reversed: {low} is the best, {high} the worst"
    return Settled((), order, "numeric", reason)


def order_of(labels: Sequence[str], name: str = "", description: str = "") -> OrderEvidence:
    """Return the direction of a list of accepted values, judged by the levels alone.

    "unclear": no direction can be derived. "nominal": no end has a graded word or a number, the
    labels name kinds of things, or the best level is in the middle. "Not applicable" is not a
    level and is ignored. `name` and `description` are those of the criterion.
    """
    texts = [text for label in labels if (text := fold(label)) and not is_not_applicable(text)]
    if len(texts) < 2:
        return OrderEvidence("unclear", "fewer than two levels")
    levels = _Levels(texts)
    kinds = sum(words in CATEGORIES for words in levels.words)
    if kinds >= 2 and 2 * kinds >= len(texts):
        return OrderEvidence("nominal", "the values name kinds of things, not grades", plain=True)
    if all(re.fullmatch(r"(?:grade )?[a-f]", text) for text in texts):
        return _direction([-float(ord(text[-1])) for text in texts], "letters, A the best")
    if asks_for_a_kind(name):
        return OrderEvidence("unclear", f"{name!r} asks for a kind, not for a grade")
    evidence, strength = levels.evidence()
    weak = strength < 2 or (not evidence.plain and counted_in_units(texts))
    if weak and None not in levels.numbers:
        more = more_is_better(description, name)
        if more is None:
            why = "less of something is better, but perhaps not of these numbers"
            return OrderEvidence("unclear", why)
        if more:
            values = [more * (n or 0.0) for n in levels.numbers]
            return _direction(values, "so its description states")
    if re.search("difficult|complex", name.casefold()):
        strength = min(strength, 1)  # "easy … hard" may describe the problem, not the work
    if evidence.verdict in _RUNS and name_polarity(name) < 1 - strength:
        return OrderEvidence("unclear", f"{evidence.reason}: more of {name!r} may be the worse")
    return evidence


def counted_in_units(labels: Sequence[str]) -> bool:
    """Return whether every label is an amount of time, money or countable units."""
    levels = [fold(label) for label in labels]
    amounts = [_quantity(level) is not None and "%" not in level for level in levels]
    return all(amounts) and any(re.search(r"[$€£]", x) or _UNIT.search(x) for x in levels)


def more_is_better(description: str, name: str) -> int | None:
    """Return 1 if a description states that a greater number is better, -1 if it states the
    opposite ("lower is better", "1 is the best"), 0 if it states neither or both.

    "Fewer moves are more efficient" is about the number of moves: it applies to "Total moves"
    (-1), but not to a rating of "Efficiency" (0). None if the name does not settle it.
    """
    name_stems = {word[:4] for word in tokens_of(fold(name))}
    ways: set[int | None] = set()
    for match in _COMPARED.finditer(fold(description)):
        way = (1 if match["more"] else -1) * (-1 if match["worse"] else 1)
        what = set(tokens_of(match["what"])) - FILLERS - _NUMBERS
        if not what or name_polarity(name) == -1 or {word[:4] for word in what} & name_stems:
            ways.add(way)
        elif way == -1 and name_polarity(name) == 0:
            ways.add(None)
    ends: dict[bool, set[float]] = {True: set(), False: set()}
    for match in _END.finditer(fold(description)):
        ends[bool(match["best"])].add(float(match["number"]))
    if ends[True] and ends[False]:
        return 1 if min(ends[True]) > max(ends[False]) else -1
    return ways.pop() if len(ways) == 1 else 0


class _Levels:
    """Folded levels with their numbers, the words after these, and their lexicon places."""

    def __init__(self, texts: Sequence[str]) -> None:
        if set(texts) == {"true", "false"}:  # as yes and no; with other words it is a grade
            texts = ["yes" if text == "true" else "no" for text in texts]
        self.texts = texts
        self.ends = f"{texts[0]!r} … {texts[-1]!r}"
        self.words = [_unnumbered(text) for text in texts]
        self.numbers = [_quantity(text) for text in texts]
        of_all = any(_OF_ALL.search(text) for text in texts)
        self.places = [place(words, whole=of_all) for words in self.words]

    def evidence(self) -> tuple[OrderEvidence, int]:
        """Return the evidence in the levels, and its strength.

        2: words of quality or a unit; the name cannot override these. 1: plain numbers, and "all"
        of something. 0: mere degrees ("low … high"), which count only if the name is a quality.
        """
        numbers = [n for n in self.numbers if n is not None]
        numbered = len(numbers) == len(self.texts)
        differ = self.words[0] != self.words[-1]
        order = self._by_quality() if differ else None
        if numbered and order is not None:
            order = self._beside_numbers(order, numbers)
        if numbered and (order is None or order.verdict == "unclear"):
            order = self._by_unit(numbers) or order
        if order is not None:
            return order, 2
        if differ and (order := self._by_amount()):
            if numbered and (order := self._beside_numbers(order, numbers)) is None:
                return _direction(numbers, self.ends), 1
            return order, int(any(p.heads or p.whole for p in (self.places[0], self.places[-1])))
        doubtful = any(p.polarity is None for p in self.places)
        if numbered and not doubtful and (order := self._by_number(numbers)):
            return order, 1
        short = all(len(words.split()) <= _SHORT for words in self.words)
        if not numbers and short and all(p == ScalePlace(heads=p.heads) for p in self.places):
            return OrderEvidence("nominal", "no value carries a graded word or a number"), 0
        why = f"nothing in {self.ends} says which end is the best"
        return OrderEvidence("unclear", why), 0

    # ------------------------------------------------------------ words

    def _by_quality(self) -> OrderEvidence | None:
        """Return the order by the values of the two ends, or None if words of quality do not
        settle it."""
        places, ends = self.places, self.ends
        if self._best_in_the_middle():
            why = f"{ends} are opposite faults: the best level is in the middle"
            return OrderEvidence("nominal", why, plain=True)
        values = [p.value for p in places]
        graded = [value for value in values if value is not None]
        first, last = values[0], values[-1]
        if first is None and last is not None:
            first = _opposite(places[0], places[-1], graded[::-1])
        elif last is None and first is not None:
            last = _opposite(places[-1], places[0], graded)
        if first is None or last is None:
            return None
        if two_faults(places):
            return OrderEvidence("unclear", "too little and too much are different faults")
        low, high = min(first, last) - _BEYOND, max(first, last) + _BEYOND
        if any(not low < value < high for value in graded):
            why = f"a level between them is better or worse than both {ends}"
            return self._by_strength() or OrderEvidence("unclear", why)
        if abs(last - first) < _APART:
            return OrderEvidence("unclear", f"{ends} are about equally good")
        verdict: OrderVerdict = "worst_to_best" if last > first else "best_to_worst"
        both = None not in (values[0], values[-1]) or not (places[0].heads and places[-1].heads)
        return OrderEvidence(verdict, ends, plain=both and abs(last - first) >= 2 * _APART)

    def _beside_numbers(
        self, order: OrderEvidence, numbers: Sequence[float]
    ) -> OrderEvidence | None:
        """Return the evidence of the words of numbered levels. Words of long descriptions, or of
        only one end, cannot reverse numbers. None if long descriptions are unclear: the numbers
        count."""
        long = any(len(words) > _LONG for words in self.words)
        if order.verdict not in _RUNS:
            return None if long and order.verdict == "unclear" else order
        weak = long or None in (self.places[0].value, self.places[-1].value)
        if weak and _direction(numbers, "").verdict not in ("unclear", order.verdict):
            why = f"{order.reason}: the words and the numbers run against each other"
            return OrderEvidence("unclear", why)
        return order

    def _best_in_the_middle(self) -> bool:
        """Whether both ends mean too much or too little, and a level between does not."""
        first, *between, last = self.places
        too = all(TOO.intersection(end.heads) for end in (first, last)) or two_faults([first, last])
        return too and any(not TOO.intersection(p.heads) and (p.value or 0) >= 0 for p in between)

    def _by_strength(self) -> OrderEvidence | None:
        """Rank unordered levels that are all words of quality ("accurate, inaccurate, completely
        accurate"); None unless they differ clearly."""
        values = [p.value for p in self.places if p.value is not None]
        unknown = any(not sign(head) for p in self.places for head in p.heads)
        if unknown or len(values) < len(self.places):
            return None
        ranks = sorted(range(len(values)), key=lambda n: values[n])
        if any(values[b] - values[a] < _DIFFER for a, b in pairwise(ranks)):
            return None
        return OrderEvidence("unclear", "the strength of its words", ranks=tuple(ranks))

    def _by_amount(self) -> OrderEvidence | None:
        """Levels from none to all of something that is not known to be bad: more is better.

        If the thing is not in the lexicon, the scale must reach all of it: "few steps … many
        steps" and "never interrupts … always interrupts" show no order.
        """
        first, last = self.places[0], self.places[-1]
        if first.polarity is None or last.polarity is None:
            return None
        if first.amount is None or last.amount is None or abs(last.amount - first.amount) < _APART:
            return None
        less, more = sorted((first, last), key=lambda p: p.amount or 0.0)
        heads, more_heads = set(less.heads), set(more.heads)
        if len(heads | more_heads) > MOST_UNKNOWN and heads != more_heads:
            return None
        same = not heads or not more_heads or heads & more_heads
        if (heads or more_heads) and not (more.whole and (same or less.amount == NONE)):
            return None
        return OrderEvidence("worst_to_best" if more is last else "best_to_worst", self.ends)

    # ------------------------------------------------------------ numbers

    def _by_unit(self, numbers: Sequence[float]) -> OrderEvidence | None:
        """Return the order of amounts of time, cost, units or faults, where less is better.

        None if the numbers count something else.
        """
        direction = self._counted_polarity()
        falling = [-n for n in numbers]
        if direction == -1:
            return _direction(falling, f"{self.ends}: more of a fault is worse")
        if direction != 1 and counted_in_units(self.texts):
            less = f"{self.ends}: less time, cost or count is better"
            return _direction(falling, less)._replace(plain=False)
        return None

    def _counted_polarity(self) -> int | None:
        """Return the polarity of the unit that several labels share ("0 errors … 5+ errors")."""
        if len(set(self.words)) == len(self.words):
            return 0
        return polarity([t for t in tokens_of(self.words[-1]) if t not in WEIGHTLESS | COUNTED])

    def _by_number(self, numbers: Sequence[float]) -> OrderEvidence | None:
        """More is better for plain numbers, percentages and qualities; None for other numbers."""
        tokens = {t for words in self.words for t in tokens_of(words)} - COUNTED - WEIGHTLESS
        counted = len(set(self.words)) < len(self.words)  # "0 sources … 5+ sources"
        if tokens and counted and "%" not in self.texts[-1] and self._counted_polarity() != 1:
            return None
        order = _direction(numbers, self.ends)
        return order if not tokens or counted else order._replace(plain=False)


def _opposite(end: ScalePlace, other: ScalePlace, values: Sequence[float]) -> float | None:
    """Return the value of an end without a word of quality from the other end's, `values[0]`.

    None of something unknown ("no hiccups") is the opposite, and so is all of it ("fully boxed")
    if the other end is bad. A mere degree ("none", "limited vocabulary") refers to the thing that
    the other end mentions ("rich vocabulary"). Words that are not in the lexicon are the opposite
    if `values` lead steadily away from the other end, or if that end is extreme.
    """
    heads, worth = set(end.heads), values[0]
    if heads and heads == set(other.heads) - {"complete"} != set(other.heads) and len(values) == 1:
        return None  # "no rework … complete rework"
    if 0 < len(heads) <= MOST_UNKNOWN and (end.amount == NONE or (end.whole and worth < 0)):
        return 0.8 if worth < 0 else -0.8
    if end.amount is not None:
        return at_degree(other, end.amount) if heads <= set(other.heads) else None
    away = all((a - b) * worth > 0 for a, b in pairwise(values))
    pole = values[-1] * worth < -0.5  # the best may be in the middle
    extreme = worth >= 1.0 or (not pole and (len(values) > 1 or worth <= -1.0))
    negated = any(prefix + h in other.heads for h in heads for prefix in NEGATING_PREFIXES)
    return -worth if len(heads) <= MOST_UNKNOWN and away and (extreme or negated) else None


def _quantity(level: str) -> float | None:
    """Return the number at the start of a level, times in seconds; None without a number."""
    match = _LEAD.match(level)
    if match is None:
        return None
    number = float(match["number"].replace(",", "."))
    units = re.findall(r"(?<![a-z])[a-z]+", level[match.end("number") :])
    number *= next((SECONDS[u] for u in units if u in SECONDS), 1.0)
    return number - 1e-6 if match["below"] else number + 1e-6 if match["above"] else number


def _unnumbered(level: str) -> str:
    """Return the words after a level's number, as in "3 - very clear" and "3 (very clear)"."""
    return _LEAD.sub("", level).strip(" -–—:.)(=/%+")


def _direction(values: Sequence[float], reason: str) -> OrderEvidence:
    steps = [b - a for a, b in pairwise(values)]
    if all(step > 0 for step in steps):
        return OrderEvidence("worst_to_best", reason, plain=True)
    if all(step < 0 for step in steps):
        return OrderEvidence("best_to_worst", reason, plain=True)
    return OrderEvidence("unclear", f"the numbers from {reason} neither rise nor fall throughout")
