"""Grades of whole traces (1 to 5) against gold: correlation and distance, with what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.evaluators.traces.annotations import OVERALL
from agenteval.evaluators.traces.scorer import Scoring
from agenteval.records import GRADES, Findings
from agenteval.stats.bootstrap import bootstrap_interval, bootstrap_mean
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
