"""Differences: cases that hold a clause form against those that do not; two systems on the same.

A form is not given to cases at random: longer requests hold more forms. So a difference by form
is no effect of the form; that within equal numbers of actions is given beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.errors import InputError
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.grammar import forms_in
from agenteval.evaluators.planning.suite import paragraph_of
from agenteval.evaluators.planning.tallies import Tally, tally
from agenteval.evaluators.planning.trials import Attempt
from agenteval.evaluators.planning.words import Lexicon, built_in
from agenteval.evaluators.systems import Pair, by_system, holm, pairs
from agenteval.stats import Interval, mcnemar, sign_test
from agenteval.stats.vectors import Floats, normal_quantile

EXAMPLES = {
    "verb prec": "A precedes B",
    "verb succ": "A comes after B",
    "preposition prec": "A occurs before B",
    "preposition succ": "A occurs after B",
    "fronted preposition prec": "Before B, A occurs",
    "fronted preposition succ": "After B, A occurs",
    "pair prec": "A occurs before B occurs",
    "pair succ": "A occurs after B occurs",
    "fronted pair prec": "Before B occurs, A occurs",
    "fronted pair succ": "After B occurs, A occurs",
    "relative prec": "…, which precedes B, …",
    "relative succ": "…, which follows B, …",
    "time prec": "A occurs before 15:00",
    "time succ": "A occurs after 15:00",
    "plural": "A and B …",
    "conjunction": "…, while …",
}


@dataclass(frozen=True, slots=True)
class Contrast:
    """Success in cases that hold a form, in those that do not, and the difference of the two.

    `difference` is with - without; `within` is the same within equal numbers of actions. Both in
    [-1, 1], without a mean where one side is empty.
    """

    system: str
    form: str
    holding: Tally
    others: Tally
    difference: Interval
    within: Interval


@dataclass(frozen=True, slots=True)
class Forms:
    """Contrasts by system and form; `unread` counts trials of texts outside of the language."""

    contrasts: tuple[Contrast, ...]
    unread: int


def by_form(attempts: Sequence[Attempt], lexicon: Lexicon | None = None) -> Forms:
    """Every form that some case holds, alphabetically, for every system.

    `lexicon`: words of the suite where they are not the built-in ones. Texts that it cannot read
    are counted and left out.
    """
    words = lexicon or built_in()
    known: dict[str, frozenset[str] | None] = {}
    for attempt in attempts:
        if attempt.case.sha256 not in known:
            known[attempt.case.sha256] = _forms(attempt.case, words)
    read = [(a, f) for a in attempts if (f := known[a.case.sha256]) is not None]
    names = sorted({name for _, forms in read for name in forms})
    holds = {id(attempt): forms for attempt, forms in read}
    contrasts = []
    for system, own in by_system(a for a, _ in read).items():
        for name in names:
            sides: tuple[list[Attempt], list[Attempt]] = ([], [])
            for attempt in own:
                sides[name not in holds[id(attempt)]].append(attempt)
            contrasts.append(_contrast(system, name, *sides))
    return Forms(tuple(contrasts), len(attempts) - len(read))


def difference(first: Interval, second: Interval) -> Interval:
    """first - second for independent groups, from the two intervals.

    Low: d - sqrt((m1 - l1)^2 + (u2 - m2)^2), high likewise (Newcombe, Statistics in Medicine 17,
    1998, method 10; for any two intervals: Zou and Donner, Statistics in Medicine 27, 2008).
    """
    n, method = first.n + second.n, "Newcombe"
    if first.mean is None or second.mean is None:
        return Interval(None, None, None, None, n, None, "none", "one side is empty")
    difference = first.mean - second.mean
    ends = (first.low, first.high, second.low, second.high)
    if any(end is None for end in ends):
        return Interval(difference, None, None, None, n, None, "none", "one side has no interval")
    l1, u1, l2, u2 = (end for end in ends if end is not None)
    low = difference - math.hypot(first.mean - l1, u2 - second.mean)
    high = difference + math.hypot(u1 - first.mean, second.mean - l2)
    return Interval(difference, max(low, -1.0), min(high, 1.0), None, n, None, method)


def within_sizes(holding: Sequence[Attempt], others: Sequence[Attempt]) -> Interval:
    """Difference within equal numbers of actions: strata weighted as Mantel and Haenszel do.

    Strata k have a_k and b_k cases on the two sides, weights w_k = a_k b_k / (a_k + b_k); the
    values are the cases' shares of passes. Variance: sum w_k^2 (v_k / a_k + u_k / b_k) over the
    square of the sum of the weights, with the variances p (1 - p) of either side, the larger of
    the plain and the one with one success and one failure added, so that a small stratum without
    variation is not taken for certain (Greenland and Robins, Biometrics 41, 1985, with Agresti
    and Caffo's addition, American Statistician 54, 2000). Several trials of a case count as one
    value, which makes the interval wider than it need be, never narrower.
    """
    sides = [_by_size(side) for side in (holding, others)]
    strata = sorted(set(sides[0]) & set(sides[1]))
    n = sum(len(s[k]) for s in sides for k in strata)
    if not strata:
        return Interval(None, None, None, None, 0, None, "none", "no size has both")
    weight = total = variance = 0.0
    for k in strata:
        a, b = (s[k] for s in sides)
        w = len(a) * len(b) / (len(a) + len(b))
        weight += w
        total += w * (float(np.mean(a)) - float(np.mean(b)))
        variance += w * w * (_variance(a) / len(a) + _variance(b) / len(b))
    found, half = total / weight, normal_quantile(0.975) * math.sqrt(variance) / weight
    method = f"Mantel-Haenszel over {len(strata)} numbers of actions"
    return Interval(found, max(found - half, -1.0), min(found + half, 1.0), None, n, n, method)


def paired(attempts: Iterable[Attempt]) -> list[Pair]:
    """Every two systems that share cases: McNemar's exact test, or with several trials per case
    the sign test on the differences of their shares of passes."""
    successes = {system: _hits(own) for system, own in by_system(attempts).items()}
    return holm(pairs(successes, _exact))


def _exact(apart: Floats, single: bool) -> tuple[float | None, str, str | None]:
    signs = sign_test(apart)
    if single:
        test = mcnemar(signs.positive, signs.negative)
        return test.p, "McNemar, exact", test.reason
    return signs.p, "sign test over cases, exact", signs.reason


def _forms(case: Case, lexicon: Lexicon) -> frozenset[str] | None:
    try:
        return frozenset(forms_in(paragraph_of(case, lexicon))) if case.text else None
    except InputError:
        return None  # counted by the caller


def _contrast(
    system: str, form: str, holding: Sequence[Attempt], others: Sequence[Attempt]
) -> Contrast:
    yes, no = tally(holding, system, (form, 0.0)), tally(others, system, (f"no {form}", 1.0))
    return Contrast(
        system, form, yes, no, difference(yes.rate, no.rate), within_sizes(holding, others)
    )


def _hits(attempts: Iterable[Attempt]) -> dict[str, list[float]]:
    """Passes (1 or 0) of the trials with a verdict by case."""
    hits: dict[str, list[float]] = {}
    for attempt in attempts:
        if attempt.verdict is not None:
            hits.setdefault(attempt.case.id, []).append(float(attempt.outcome == "pass"))
    return hits


def _by_size(attempts: Sequence[Attempt]) -> dict[int, list[float]]:
    """The cases' shares of passes by number of actions."""
    sizes, shares = {a.case.id: a.case.n for a in attempts}, dict[int, list[float]]()
    for case, hits in _hits(attempts).items():
        shares.setdefault(sizes[case], []).append(sum(hits) / len(hits))
    return shares


def _variance(values: Sequence[float]) -> float:
    """p (1 - p), which bounds the variance of shares with mean p."""
    p = float(np.mean(values))
    moved = (p * len(values) + 1) / (len(values) + 2)
    return max(p * (1 - p), moved * (1 - moved))
