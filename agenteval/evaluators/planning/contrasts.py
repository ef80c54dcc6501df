"""Differences: cases that hold a clause form against those that do not; two systems on the same.

A form is not given to cases at random: longer requests hold more forms. So a difference by form
is no effect of the form; that within equal numbers of actions is given beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from agenteval.errors import InputError
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.grammar import forms_in
from agenteval.evaluators.planning.suite import paragraph_of
from agenteval.evaluators.planning.tallies import Tally, by_system, tally
from agenteval.evaluators.planning.trials import Attempt
from agenteval.evaluators.planning.words import Lexicon, built_in
from agenteval.stats import Interval, adjust, discordant, mcnemar, sign_test
from agenteval.stats.bounded import bounded_interval
from agenteval.stats.vectors import normal_quantile

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


@dataclass(frozen=True, slots=True)
class PairedSystems:
    """Two systems on the cases that both have a verdict on.

    `difference` is the mean over cases of the first's share of passes less the second's; `p` is
    of McNemar's exact test, or with several trials per case of the sign test on these
    differences; `p_holm` is corrected for all pairs of the table. `left_out` counts cases that
    only one of the two has a verdict on.
    """

    first: str
    second: str
    cases: int
    left_out: int
    difference: Interval
    only_first: int
    only_second: int
    p: float | None
    p_holm: float | None
    method: str
    reason: str | None


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
    found = []
    for system, own in by_system(a for a, _ in read).items():
        for name in names:
            sides: tuple[list[Attempt], list[Attempt]] = ([], [])
            for attempt in own:
                sides[name not in holds[id(attempt)]].append(attempt)
            found.append(_contrast(system, name, *sides))
    return Forms(tuple(found), len(attempts) - len(read))


def difference(first: Interval, second: Interval) -> Interval:
    """first - second for independent groups, from the two intervals.

    Low: d - sqrt((m1 - l1)^2 + (u2 - m2)^2), high likewise (Newcombe, Statistics in Medicine 17,
    1998, method 10; for any two intervals: Zou and Donner, Statistics in Medicine 27, 2008).
    """
    n, method = first.n + second.n, "Newcombe"
    if first.mean is None or second.mean is None:
        return Interval(None, None, None, None, n, None, "none", "one side is empty")
    found = first.mean - second.mean
    ends = (first.low, first.high, second.low, second.high)
    if any(end is None for end in ends):
        return Interval(found, None, None, None, n, None, "none", "one side has no interval")
    l1, u1, l2, u2 = (end for end in ends if end is not None)
    low = found - math.hypot(first.mean - l1, u2 - second.mean)
    high = found + math.hypot(u1 - first.mean, second.mean - l2)
    return Interval(found, max(low, -1.0), min(high, 1.0), None, n, None, method)


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


def paired(attempts: Iterable[Attempt]) -> list[PairedSystems]:
    """Every two systems that share cases, in the order of the systems."""
    shares = {
        system: _case_shares([a for a in own if a.verdict is not None])
        for system, own in by_system(attempts).items()
    }
    rows = []
    for first, second in combinations(shares, 2):
        a, b = shares[first], shares[second]
        if common := [case for case in a if case in b]:
            rows.append((first, second, len(set(a) ^ set(b)), [(a[c], b[c]) for c in common]))
    pairs = [_pair(*row) for row in rows]
    corrected = adjust([pair.p for pair in pairs]).adjusted
    return [replace(pair, p_holm=q) for pair, q in zip(pairs, corrected, strict=True)]


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


def _case_shares(attempts: Iterable[Attempt]) -> dict[str, tuple[float, int, int]]:
    """Share of passes, number of trials with a verdict, and number of actions by case."""
    found: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.verdict is not None:
            found.setdefault(attempt.case.id, []).append(attempt)
    return {
        case: (sum(a.outcome == "pass" for a in own) / len(own), len(own), own[0].case.n)
        for case, own in found.items()
    }


def _by_size(attempts: Sequence[Attempt]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for share, _, n in _case_shares(attempts).values():
        found.setdefault(n, []).append(share)
    return found


def _variance(values: Sequence[float]) -> float:
    """p (1 - p), which bounds the variance of shares with mean p."""
    p = float(np.mean(values))
    moved = (p * len(values) + 1) / (len(values) + 2)
    return max(p * (1 - p), moved * (1 - moved))


def _pair(
    first: str,
    second: str,
    left_out: int,
    values: Sequence[tuple[tuple[float, int, int], tuple[float, int, int]]],
) -> PairedSystems:
    apart = np.array([a[0] - b[0] for a, b in values])
    p: float | None
    spread = bounded_interval(apart, (-1.0, 1.0))
    if all(a[1] == b[1] == 1 for a, b in values):
        counts = discordant([a[0] == 1 for a, _ in values], [b[0] == 1 for _, b in values])
        test = mcnemar(*counts)
        p, reason, method = test.p, test.reason, "McNemar, exact"
    else:
        signs = sign_test(apart)
        p, reason, method = signs.p, signs.reason, "sign test over cases, exact"
        counts = (signs.positive, signs.negative)
    return PairedSystems(
        first, second, len(values), left_out, spread, *counts, p, None, method, reason
    )
