"""Grades of whole traces (1 to 5) against gold, correlation and distance with what is missing; and
scores of traces against their length: do long traces make a finder fail?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.evaluators.traces.annotations import OVERALL
from agenteval.evaluators.traces.scorer import Scores, Scoring
from agenteval.evaluators.traces.tallies import LEVELS
from agenteval.records import GRADES, Findings
from agenteval.stats.bootstrap import bootstrap_interval, bootstrap_mean
from agenteval.stats.correlation import spearman
from agenteval.stats.interval import Interval


@dataclass(frozen=True)
class GradeScore:
    """One grade over the `pearson.n` traces that have it on both sides.

    `error` is the mean absolute difference in points; `constant` what it would be if every trace
    were given the median of gold: a grader that is not better says nothing. `missing` counts
    traces with gold but without a prediction of it, `no_gold` traces whose gold lacks it.
    `pearson.mean` is None with the reason where a side does not vary.
    """

    grade: str
    pearson: Interval
    error: Interval
    constant: float | None
    missing: int
    no_gold: int


def values(findings: Findings | None) -> Mapping[str, float]:
    """The grades that have a value; overall, where it is not given, as the mean of all four."""
    if findings is None:
        return {}
    found = {n: g.value for n, g in findings.grades.items() if g.value is not None}
    four = [found[name] for name in GRADES if name in found]
    if OVERALL not in found and len(four) == len(GRADES):
        found[OVERALL] = sum(four) / len(four)
    return found


def score_grades(
    pairs: Iterable[tuple[Findings, Findings | None]], how: Scoring | None = None
) -> tuple[GradeScore, ...]:
    """Scores of the grades that gold holds at least once. Order of the pairs: no matter."""
    ordered = sorted(pairs, key=lambda pair: pair[0].trace)
    both = [(values(gold), values(predicted)) for gold, predicted in ordered]
    return tuple(
        _one(name, both, how or Scoring())
        for name in (*GRADES, OVERALL)
        if any(name in gold for gold, _ in both)
    )


def _one(
    name: str, both: list[tuple[Mapping[str, float], Mapping[str, float]]], how: Scoring
) -> GradeScore:
    gold = np.array([g[name] for g, p in both if name in g and name in p])
    said = np.array([p[name] for g, p in both if name in g and name in p])
    apart = np.abs(gold - said)
    return GradeScore(
        grade=name,
        pearson=correlation(gold, said, how),
        error=bootstrap_mean(apart, how=how.how()),
        constant=float(np.abs(gold - np.median(gold)).mean()) if len(gold) else None,
        missing=sum(name in g and name not in p for g, p in both),
        no_gold=sum(name not in g for g, _ in both),
    )


def correlation(first: NDArray[np.float64], second: NDArray[np.float64], how: Scoring) -> Interval:
    """Pearson's r with an interval by resampling pairs; None with the reason where undefined."""
    n = len(first)
    if n < 3:
        return Interval(None, None, None, None, n, None, "none", f"{n} traces have both")
    if not (np.ptp(first) and np.ptp(second)):
        return Interval(None, None, None, None, n, None, "none", "constant")
    return bootstrap_interval(_pearson, (first, second), how=how.how())


def _pearson(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    a, b = first - first.mean(), second - second.mean()
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / scale if scale > 1e-12 else None


BINS = 4


@dataclass(frozen=True)
class Bin:
    """Traces of a range of lengths: `low` and `high` in tokens, both included."""

    low: int
    high: int
    score: Interval
    answered: int | None  # traces with a readable prediction; None where that is not told

    @property
    def traces(self) -> int:
        """How many traces lie in it."""
        return self.score.n


@dataclass(frozen=True)
class LengthScore:
    """One score against length. `unknown` counts traces whose length is not known."""

    score: str
    pearson: Interval
    spearman: Interval
    bins: tuple[Bin, ...]
    unknown: int


def against_length(
    name: str,
    scores: Mapping[str, float],
    tokens: Mapping[str, int],
    how: Scoring | None = None,
    answered: Mapping[str, bool] | None = None,
) -> LengthScore:
    """`scores` by trace against `tokens` by trace.

    Pearson with a bootstrap interval, Spearman with Bonett and Wright's, and the mean in bins of
    about equal numbers of traces (quartiles of length; traces of one length stay together).
    """
    how = how or Scoring()
    known = sorted((tokens[trace], trace) for trace in scores if trace in tokens)
    lengths = np.array([length for length, _ in known], dtype=np.float64)
    values = np.array([scores[trace] for _, trace in known], dtype=np.float64)
    return LengthScore(
        score=name,
        pearson=correlation(lengths, values, how),
        spearman=spearman(lengths, values),
        bins=_bins(known, scores, how, answered),
        unknown=len(scores) - len(known),
    )


def levels_against_length(
    scores: Scores, tokens: Mapping[str, int], how: Scoring | None = None
) -> tuple[LengthScore, ...]:
    """F1 of location, category and joint per trace against length."""
    answered = {one.trace: one.answered for one in scores.per_trace}
    found = []
    for level in LEVELS:
        values = {
            one.trace: worth
            for one in scores.per_trace
            if (worth := one.worth[level]["f1"]) is not None
        }
        found.append(against_length(f"{level} F1", values, tokens, how, answered))
    return tuple(found)


def _bins(
    known: list[tuple[int, str]],
    scores: Mapping[str, float],
    how: Scoring,
    answered: Mapping[str, bool] | None,
) -> tuple[Bin, ...]:
    if not known:
        return ()
    lengths = np.array([length for length, _ in known])
    edges = np.quantile(lengths, np.arange(1, BINS) / BINS, method="inverted_cdf")
    places = np.searchsorted(edges, lengths, side="left")
    bins = []
    for place in np.unique(places):
        inside = [one for one, at in zip(known, places, strict=True) if at == place]
        traces = [trace for _, trace in inside]
        made = None if answered is None else sum(answered[trace] for trace in traces)
        score = bootstrap_mean([scores[trace] for trace in traces], how=how.how())
        bins.append(Bin(inside[0][0], inside[-1][0], score, made))
    return tuple(bins)
