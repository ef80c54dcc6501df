"""Rates of planning trials: success, types of errors, causes, effort, and pairs of systems.

Trials without a verdict (AgentFailure) are excluded from denominators and counted separately.
Trials of one case depend on each other, so the unit of every interval is the case.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agenteval.agents import AgentLog
from agenteval.analysis.system_pairs import Pair, by_system, holm, pairs
from agenteval.planning.case import Case
from agenteval.planning.dissect import CAUSES
from agenteval.planning.evaluator import Attempt
from agenteval.planning.oracle import OUTCOMES
from agenteval.records import Usage
from agenteval.records.table import column
from agenteval.stats import Interval, mean_interval, pass_rate, proportion_interval, sign_test
from agenteval.stats.paired import PairedTest
from agenteval.stats.vectors import Floats, normal_quantile, t_quantile

ERRORS = OUTCOMES[1:]  # in order of precedence
_BIN_WIDTHS = (5, 10, 20, 25, 50, 100, 250, 500)
_MAX_BINS = 8
_EVERY_K = 5  # every k of pass^k up to this one; above it, only the largest

Feature = Callable[[Case], int | str | None]


@dataclass(frozen=True, slots=True)
class CaseLabel:
    """The label of one system at one case: a type of error, or the cause of a failure."""

    case: str
    system: str
    label: str


@dataclass(frozen=True, slots=True)
class SuccessRate:
    """Success of one system in one group of trials, as a row of a table.

    `guess` is the mean of valid plans / n! over the trials with a verdict; None if the valid plans
    of a case were not counted. In an extended case, it assumes suitable start hours.
    """

    system: str = column("system")
    success: Interval = column(
        "success", "share", "share of correct plans among trials with a verdict"
    )
    right: int = column("right", "count", "trials with a correct plan")
    trials: int = column("trials", "count", "trials with a verdict")
    cases: int = column("cases", "count", "distinct cases among them (the units of the interval)")
    failures: int = column(
        "no verdict", "count", "the endpoint or adapter failed; excluded from rates"
    )
    guess: float | None = column(
        "random\norders", "share", "share of correct plans among random orders of all tools"
    )
    group: str = "all"
    place: float = 0.0  # the value of a numeric group, such as the number of actions


@dataclass(frozen=True, slots=True)
class LabelShare:
    """Count and share of one label among all errors or dissected cases of a system.

    The labels of a system are mutually exclusive: the counts add up to `total`.
    """

    system: str
    label: str
    count: int
    share: Interval
    total: int


@dataclass(frozen=True, slots=True)
class Effort:
    """Resources used by the trials of a system, as a row of a table.

    Means are over trials with a log, `tokens` over trials with reported tokens. None if nothing was
    reported.
    """

    system: str = column("system")
    seconds: float | None = column("seconds", "seconds", "mean per trial")
    turns: float | None = column("turns", "seconds", "mean per trial")
    plans: float | None = column(
        "plans", "number", "attempts at a plan: 1 + restarts; mean per trial"
    )
    tokens: float | None = column("tokens", "count", "mean per trial, if reported by the endpoint")
    stated: int = column("reported\nfor", "count", "trials with known tokens")
    trials: int = column("trials", "count")
    requests: int = column("requests", "count", "in all")
    total_seconds: float = column("total\nseconds", "seconds")
    cost: float | None = column("total\ncost", "money", "in the currency of the prices")


@dataclass(frozen=True, slots=True)
class RepeatedTrials:
    """pass^k (all of k trials correct) and pass@k (at least one correct), as means over cases."""

    system: str = column("system")
    k: int = column("k", "count")
    all_right: Interval = column("all k right,\npass^k", "share")
    one_right: Interval = column("one of k right,\npass@k", "share")
    cases: int = column("cases", "count", "with at least k trials")
    left_out: int = column("left out", "count", "cases with fewer than k trials with a verdict")


def clustered_share(
    hits: Sequence[bool], cases: Sequence[Hashable], *, level: float = 0.95
) -> Interval:
    """Return the share of hits with a Wilson interval over cases (`cases` has a label per hit).

    With one trial per case, it is Wilson's interval; with several, Wilson's with the number of
    independent trials that would give the same standard error, p (1 - p) / se^2 with the
    cluster-robust se, times (z / t)^2 for the C - 1 degrees of freedom, and at most n (Korn and
    Graubard, Survey Methodology 24, 1998; with Wilson: Dean and Pagano, Journal of Survey
    Statistics and Methodology 3, 2015). If cases do not differ, the se is 0 and that number is the
    number of cases. One case with several trials has no interval.

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
    z = normal_quantile((1 + level) / 2)
    se = mean_interval([float(h) for h in hits], cases, level=level).se
    size, reason = float(units), "cases do not differ: no standard error"
    if se:
        penalty = (z / t_quantile((1 + level) / 2, units - 1)) ** 2
        size, reason = min(share * (1 - share) / se**2 * penalty, n), ""
    # Wilson's ends for a size that may be fractional
    middle = share + z**2 / (2 * size)
    half = math.sqrt(z**2 * (share * (1 - share) / size + z**2 / (4 * size * size)))
    low, high = (
        max((middle - half) / (1 + z**2 / size), 0.0),
        min((middle + half) / (1 + z**2 / size), 1.0),
    )
    method = f"Wilson, {size:.1f} effective trials of {units} cases"
    return Interval(share, low, high, se or None, n, units, method, reason or None)


def guess_rate(case: Case) -> float | None:
    """Return the chance that a random order of all tools is valid; None if not counted."""
    return None if case.valid_plans is None else case.valid_plans / math.factorial(case.n)


def success_rates(
    attempts: Iterable[Attempt],
    feature: Feature | None = None,
    label: Callable[[Any], str] = str,
) -> list[SuccessRate]:
    """Return a rate per system, or per system and value of the feature in ascending order.

    `label` formats a value as the name of its group. Cases without a value form the last group,
    "not known".
    """
    rates = []
    for system, trials in by_system(attempts).items():
        groups: dict[tuple[float, str], list[Attempt]] = {}
        for trial in trials:
            value = feature(trial.case) if feature else "all"
            place = math.inf if value is None else 0.0 if isinstance(value, str) else float(value)
            group = (place, "not known" if value is None else label(value))
            groups.setdefault(group, []).append(trial)
        rates += [_success(system, name, at, groups[at, name]) for at, name in sorted(groups)]
    return rates


def _success(system: str, group: str, place: float, trials: Sequence[Attempt]) -> SuccessRate:
    graded = [t for t in trials if t.verdict is not None]
    hits = [t.outcome == "pass" for t in graded]
    rate = clustered_share(hits, [t.case.id for t in graded])
    guesses = [g for t in graded if (g := guess_rate(t.case)) is not None]
    return SuccessRate(
        system,
        rate,
        right=sum(hits),
        trials=len(graded),
        cases=rate.n_clusters or 0,
        failures=len(trials) - len(graded),
        guess=math.fsum(guesses) / len(guesses) if guesses and len(guesses) == len(hits) else None,
        group=group,
        place=place,
    )


FEATURES: dict[str, Feature] = {
    "actions": lambda case: case.n,
    "constraints": lambda case: len(case.constraints),  # distinct ones, including time limits
    "sub-sentences": lambda case: None if case.size is None else case.size.sub_sentences,
    "topic": lambda case: case.topic or "(no topic)",
}


def by_actions(attempts: Iterable[Attempt]) -> list[SuccessRate]:
    """Return a rate per system and number of actions."""
    return success_rates(attempts, FEATURES["actions"])


def by_words(attempts: Sequence[Attempt]) -> list[SuccessRate]:
    """Return a rate per system and number of words, in at most 8 bins of equal width.

    The width is at most 500, so more than 4,000 words give more bins.
    """

    def words(case: Case) -> int | None:
        return case.size.words if case.size is not None else len(case.text.split()) or None

    counts = [w for a in attempts if (w := words(a.case)) is not None]
    low, high = min(counts, default=1), max(counts, default=1)
    fits = (w for w in _BIN_WIDTHS if (high - 1) // w - (low - 1) // w < _MAX_BINS)
    width = next(fits, _BIN_WIDTHS[-1])

    def bin_start(case: Case) -> int | None:
        count = words(case)
        return None if count is None else (count - 1) // width * width

    return success_rates(attempts, bin_start, lambda start: f"{start + 1} to {start + width}")


def error_shares(attempts: Iterable[Attempt]) -> list[LabelShare]:
    """Return the types of errors as shares of each system's errors; every type has a row."""
    graded = [a for a in attempts if a.verdict is not None]
    wrong = [CaseLabel(a.case.id, a.system, a.outcome) for a in graded if a.outcome != "pass"]
    return _label_shares(wrong, [a.system for a in graded], ERRORS)


def cause_shares(labelled: Sequence[CaseLabel]) -> list[LabelShare]:
    """Return the causes as shares of each system's dissected cases; the paper's five come first."""
    return _label_shares(labelled, [entry.system for entry in labelled], CAUSES)


def _label_shares(
    labelled: Sequence[CaseLabel], systems: Iterable[str], labels: Sequence[str]
) -> list[LabelShare]:
    labels = [*labels, *sorted({entry.label for entry in labelled} - set(labels))]
    shares = []
    for system in dict.fromkeys(systems):
        entries = [entry for entry in labelled if entry.system == system]
        cases = [entry.case for entry in entries]
        for label in labels:
            hits = [entry.label == label for entry in entries]
            share = clustered_share(hits, cases)
            shares.append(LabelShare(system, label, sum(hits), share, len(hits)))
    return shares


def effort(attempts: Iterable[Attempt]) -> list[Effort]:
    """Return the resources used by the trials of each system."""
    rows = []
    for system, trials in by_system(attempts).items():
        logs = [t.log for t in trials if isinstance(t.log, AgentLog)]
        tokens = [
            float((log.usage.prompt_tokens or 0) + (log.usage.completion_tokens or 0))
            for log in logs
            if (log.usage.prompt_tokens, log.usage.completion_tokens) != (None, None)
        ]
        usage = sum((t.log.usage for t in trials), Usage())
        rows.append(
            Effort(
                system,
                seconds=_mean([log.seconds for log in logs]),
                turns=_mean([float(log.turns) for log in logs]),
                plans=_mean([float(t.verdict.attempts) for t in trials if t.verdict is not None]),
                tokens=_mean(tokens),
                stated=len(tokens),
                trials=len(trials),
                requests=usage.requests,
                total_seconds=math.fsum(t.log.seconds for t in trials),
                cost=usage.cost,
            )
        )
    return rows


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def repeated(attempts: Iterable[Attempt]) -> list[RepeatedTrials]:
    """Return pass^k and pass@k for k >= 2, if any case has several trials with a verdict."""
    rows = []
    for system, trials in by_system(attempts).items():
        number = Counter(t.case.id for t in trials if t.verdict is not None)
        right = Counter(t.case.id for t in trials if t.outcome == "pass")
        tasks = [(right[case], n) for case, n in number.items()]
        most = max(number.values(), default=0)
        for k in sorted({*range(2, min(most, _EVERY_K) + 1), most} - {0, 1}):
            power, any_right = (pass_rate(tasks, k, kind=kind) for kind in ("hat", "at"))
            rows.append(
                RepeatedTrials(system, k, power.rate, any_right.rate, power.rate.n, power.left_out)
            )
    return rows


def system_pairs(attempts: Iterable[Attempt]) -> list[Pair]:
    """Compare every two systems that share cases.

    Uses McNemar's exact test or, with several trials per case, the exact sign test on the
    differences between shares of passes; p is corrected over all pairs (Holm).
    """
    hits: dict[str, dict[str, list[float]]] = {}
    for attempt in attempts:
        by_case = hits.setdefault(attempt.system, {})
        if attempt.verdict is not None:
            by_case.setdefault(attempt.case.id, []).append(float(attempt.outcome == "pass"))

    def exact(apart: Floats, single: bool) -> PairedTest:
        name = "McNemar, exact" if single else "sign test over cases, exact"
        return replace(sign_test(apart), method=name)  # the same test for single outcomes

    return holm(pairs(hits, exact))
