"""What a campaign of planning tests says, as counts and rates: by system, by feature of the cases.

A trial without a verdict (AgentFailure) is in no denominator; its count stands beside every rate.
Trials of one case are not independent of each other, so the cases are the units of an interval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from agenteval.agents import AgentLog
from agenteval.analysis.system_pairs import Pair, by_system, holm, pairs
from agenteval.planning.case import Case
from agenteval.planning.dissect import CAUSES
from agenteval.planning.evaluator import Attempt
from agenteval.planning.oracle import OUTCOMES
from agenteval.records import Usage
from agenteval.records.table import Cell, Estimate
from agenteval.stats import (
    Interval,
    mean_interval,
    pass_rate,
    proportion_interval,
    sign_test,
)
from agenteval.stats.vectors import Floats

ERRORS = OUTCOMES[1:]  # in order of precedence
ALL = "all"
_WIDTHS = (5, 10, 20, 25, 50, 100, 250, 500)
_MOST_BINS = 8
_EVERY_K = 5  # up to here every k of pass^k, beyond it only the largest

Group = tuple[str, float]  # its name, and its place among the others
Feature = Callable[[Case], Group | None]


@dataclass(frozen=True, slots=True)
class CaseLabel:
    """The label of one system at one case: a type of error, or the cause of a failure."""

    case: str
    system: str
    label: str


@dataclass(frozen=True, slots=True)
class SuccessTally:
    """Success of one system in one group of trials.

    `rate` is the share of trials with a verdict that passed, `rate.n` their number and
    `rate.n_clusters` the number of their cases; `failures` counts trials without a verdict.
    `guess` is the share that random orders of all tools would reach on the same trials, the mean
    of valid plans / n!; None where the valid plans of some case were not counted. In an extended
    case it takes fit start hours for granted.
    """

    system: str
    group: str
    place: float
    rate: Interval
    passes: int
    failures: int
    guess: float | None


@dataclass(frozen=True, slots=True)
class LabelShare:
    """How many of a system's errors (or dissected cases) have this label, and their share."""

    label: str
    count: int
    share: Interval


@dataclass(frozen=True, slots=True)
class LabelShares:
    """Exclusive labels of one system: the counts add up to `total`, the shares to 1."""

    system: str
    total: int
    parts: tuple[LabelShare, ...]


def clustered_share(
    hits: Sequence[bool], cases: Sequence[Hashable], *, level: float = 0.95
) -> Interval:
    """Share of hits, with a Wilson interval whose unit is the case (one label per hit).

    One trial per case: Wilson's interval. Several: Wilson's with the number of independent trials
    that would give the same standard error, p (1 - p) / se^2 with the cluster-robust se, times
    (z / t)^2 for the C - 1 degrees of freedom, and at most n (Korn and Graubard, Survey
    Methodology 24, 1998; with Wilson: Dean and Pagano, Journal of Survey Statistics and
    Methodology 3, 2015). Where cases do not differ the se is 0 and the number is that of the
    cases, as if trials of a case were copies. One case with several trials: no interval.

    Raises ValueError for lists of different lengths.
    """
    if len(hits) != len(cases):
        raise ValueError(f"{len(hits)} trials but {len(cases)} case labels")
    n, units, passes = len(hits), len(set(cases)), sum(hits)
    if units == n:
        return replace(proportion_interval(passes, n, level=level), n_clusters=units)
    share = passes / n
    if units == 1:
        return Interval(share, None, None, None, n, 1, "none", "one case: no interval")
    se = mean_interval([float(h) for h in hits], cases, level=level).se
    size, reason = float(units), "cases do not differ: no standard error"
    if se:
        size, reason = min(share * (1 - share) / se**2 * _heavier(units - 1, level), n), ""
    low, high = _wilson(share, size, level)
    method = f"Wilson, {size:.1f} effective trials of {units} cases"
    return Interval(share, low, high, se or None, n, units, method, reason or None)


def tally(attempts: Sequence[Attempt], system: str, group: Group = (ALL, 0.0)) -> SuccessTally:
    """Success in these trials, which are of one system and one group."""
    graded = [a for a in attempts if a.verdict is not None]
    hits = [a.outcome == "pass" for a in graded]
    guesses = [guess(a.case) for a in graded]
    known = [g for g in guesses if g is not None]
    return SuccessTally(
        system,
        *group,
        clustered_share(hits, [a.case.id for a in graded]),
        sum(hits),
        len(attempts) - len(graded),
        math.fsum(known) / len(known) if known and len(known) == len(guesses) else None,
    )


def guess(case: Case) -> float | None:
    """Chance that a random order of all tools is a valid plan; None where not counted."""
    return None if case.valid_plans is None else case.valid_plans / math.factorial(case.n)


def tallies(attempts: Iterable[Attempt], feature: Feature | None = None) -> list[SuccessTally]:
    """One tally per system, or per system and group of the feature, groups in their order.

    Cases for which the feature is not known are the group "not known", at the end.
    """
    rates = []
    for system, own in by_system(attempts).items():
        groups: dict[Group, list[Attempt]] = {}
        for attempt in own:
            group = (feature(attempt.case) or ("not known", math.inf)) if feature else (ALL, 0.0)
            groups.setdefault(group, []).append(attempt)
        ordered = sorted(groups, key=lambda g: (g[1], g[0]))
        rates += [tally(groups[g], system, g) for g in ordered]
    return rates


def actions(case: Case) -> Group:
    """Number of actions."""
    return str(case.n), float(case.n)


def constraints(case: Case) -> Group:
    """Number of different constraints, times included."""
    return str(len(case.constraints)), float(len(case.constraints))


def sub_sentences(case: Case) -> Group | None:
    """Number of sub-sentences of the text; None where nobody counted them."""
    return (str(case.size.sub_sentences), float(case.size.sub_sentences)) if case.size else None


def topic(case: Case) -> Group:
    """The profession."""
    return case.topic or "(no topic)", 0.0


def word_bins(attempts: Iterable[Attempt]) -> Feature:
    """Number of words in bins of one width, such that there are at most 8 (or width 500)."""
    counts = [w for a in attempts if (w := _words(a.case)) is not None]
    low, high = min(counts, default=1), max(counts, default=1)
    fits = (w for w in _WIDTHS if (high - 1) // w - (low - 1) // w < _MOST_BINS)
    width = next(fits, _WIDTHS[-1])

    def feature(case: Case) -> Group | None:
        words = _words(case)
        if words is None:
            return None
        start = (words - 1) // width * width
        return f"{start + 1} to {start + width}", float(start)

    return feature


def errors(attempts: Iterable[Attempt]) -> list[LabelShares]:
    """Types of errors by system, as shares of its errors; all types stand in every row."""
    outcomes = [
        CaseLabel(a.case.id, a.system, a.outcome) for a in attempts if a.verdict is not None
    ]
    systems = list(dict.fromkeys(entry.system for entry in outcomes))
    return _shares([entry for entry in outcomes if entry.label != "pass"], systems, ERRORS)


def causes(labelled: Sequence[CaseLabel]) -> list[LabelShares]:
    """Causes by system, as shares of the dissected cases; labels beside the paper's five follow."""
    return _shares(labelled, list(dict.fromkeys(entry.system for entry in labelled)), CAUSES)


def effort(attempts: Iterable[Attempt]) -> list[dict[str, Cell]]:
    """What the trials of each system took, as rows of a table: seconds, turns, plans (1 + restarts)
    and tokens are means over the trials with a log, tokens over those whose endpoint `stated`
    them; the rest are sums over all. None: nobody stated it."""
    rows: list[dict[str, Cell]] = []
    for system, own in by_system(attempts).items():
        logs = [a.log for a in own if isinstance(a.log, AgentLog)]
        tokens = [
            float((log.usage.prompt_tokens or 0) + (log.usage.completion_tokens or 0))
            for log in logs
            if (log.usage.prompt_tokens, log.usage.completion_tokens) != (None, None)
        ]
        usage = sum((a.log.usage for a in own), Usage())
        rows.append(
            {
                "system": system,
                "seconds": _mean([log.seconds for log in logs]),
                "turns": _mean([float(log.turns) for log in logs]),
                "plans": _mean([float(a.verdict.attempts) for a in own if a.verdict is not None]),
                "tokens": _mean(tokens),
                "stated": len(tokens),
                "trials": len(own),
                "requests": usage.requests,
                "cost": usage.cost,
                "total_seconds": math.fsum(a.log.seconds for a in own),
            }
        )
    return rows


def repeated(attempts: Iterable[Attempt]) -> list[dict[str, Cell]]:
    """pass^k (all of k trials right) and pass@k (at least one) for k from 2 on, means over cases,
    as rows of a table; where some case has several trials with a verdict."""
    rows: list[dict[str, Cell]] = []
    for system, own in by_system(attempts).items():
        trials = Counter(a.case.id for a in own if a.verdict is not None)
        right = Counter(a.case.id for a in own if a.outcome == "pass")
        tasks = [(right[case], n) for case, n in trials.items()]
        most = max(trials.values(), default=0)
        for k in sorted({*range(2, min(most, _EVERY_K) + 1), most} - {0, 1}):
            hat, at = (pass_rate(tasks, k, kind=kind) for kind in ("hat", "at"))
            rows.append(
                {
                    "system": system,
                    "k": k,
                    "all_right": Estimate.of(hat.rate),
                    "one_right": Estimate.of(at.rate),
                    "cases": hat.rate.n,
                    "left_out": hat.left_out,
                }
            )
    return rows


def _words(case: Case) -> int | None:
    if case.size is not None:
        return case.size.words
    return len(case.text.split()) or None


def _shares(
    labelled: Sequence[CaseLabel], systems: Sequence[str], labels: Sequence[str]
) -> list[LabelShares]:
    every = [*labels, *sorted({entry.label for entry in labelled} - set(labels))]
    rows = []
    for system in systems:
        of_system = [entry for entry in labelled if entry.system == system]
        cases = [entry.case for entry in of_system]
        parts = []
        for label in every:
            hits = [entry.label == label for entry in of_system]
            parts.append(LabelShare(label, sum(hits), clustered_share(hits, cases)))
        rows.append(LabelShares(system, len(of_system), tuple(parts)))
    return rows


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _heavier(df: int, level: float) -> float:
    """(z / t)^2: by how much few cases make a variance less certain."""
    from scipy.special import ndtri, stdtrit

    return float((ndtri((1 + level) / 2) / stdtrit(df, (1 + level) / 2)) ** 2)


def _wilson(share: float, size: float, level: float) -> tuple[float, float]:
    """Wilson's ends for a size that is no whole number, unlike that of `proportion_interval`."""
    from scipy.special import ndtri

    z2 = float(ndtri((1 + level) / 2)) ** 2
    middle = share + z2 / (2 * size)
    half = math.sqrt(z2 * (share * (1 - share) / size + z2 / (4 * size * size)))
    scale = 1 + z2 / size
    return max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)


def paired(attempts: Iterable[Attempt]) -> list[Pair]:
    """Compare every two systems that share cases.

    McNemar's exact test, or with several trials per case the exact sign test on the differences of
    their shares of passes; p is corrected over all pairs (Holm).
    """
    successes = {system: _hits(own) for system, own in by_system(attempts).items()}
    return holm(pairs(successes, _exact))


def _exact(apart: Floats, single: bool) -> tuple[float | None, str, str | None]:
    test = sign_test(apart)  # of single outcomes this is McNemar's exact test
    name = "McNemar, exact" if single else "sign test over cases, exact"
    return test.p, name, test.reason


def _hits(attempts: Iterable[Attempt]) -> dict[str, list[float]]:
    """Passes (1 or 0) of the trials with a verdict by case."""
    hits: dict[str, list[float]] = {}
    for attempt in attempts:
        if attempt.verdict is not None:
            hits.setdefault(attempt.case.id, []).append(float(attempt.outcome == "pass"))
    return hits
