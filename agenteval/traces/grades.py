"""Score grades of whole traces (1 to 5) against gold, and scores of traces against their length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.records import GRADES, Findings
from agenteval.stats.bootstrap import Bootstrap, bootstrap_interval, bootstrap_mean
from agenteval.stats.correlation import spearman
from agenteval.stats.interval import Interval
from agenteval.traces.annotations import OVERALL

_Floats = NDArray[np.float64]
How = Callable[[], Bootstrap]  # a bootstrap that begins at its seed
_BINS = 4


@dataclass(frozen=True)
class GradeScore:
    """One grade over the `pearson.n` traces that have it on both sides.

    `error` is the mean absolute difference in points; `constant` the same if every trace got the
    median of gold: a grader that is not better is useless. `missing` counts traces with gold but
    without a prediction, `no_gold` traces without gold. `pearson.mean` is None, with a reason, if
    a side does not vary.
    """

    grade: str
    pearson: Interval
    error: Interval
    constant: float | None
    missing: int
    no_gold: int


def values(findings: Findings | None) -> Mapping[str, float]:
    """Return the grades with a value; a missing `overall` is the mean of the other four."""
    grades = findings.grades if findings else {}
    by_name = {name: grade.value for name, grade in grades.items() if grade.value is not None}
    four = [by_name[name] for name in GRADES if name in by_name]
    if OVERALL not in by_name and len(four) == len(GRADES):
        by_name[OVERALL] = sum(four) / len(four)
    return by_name


def score_grades(
    pairs: Iterable[tuple[Findings, Findings | None]], how: How
) -> tuple[GradeScore, ...]:
    """Return the scores of the grades that gold holds at least once; the order does not matter."""
    ordered = sorted(pairs, key=lambda pair: pair[0].trace)
    graded = [(values(gold), values(predicted)) for gold, predicted in ordered]
    scores = []
    for name in (*GRADES, OVERALL):
        with_gold = [(g[name], p.get(name)) for g, p in graded if name in g]
        if not with_gold:
            continue
        both = [(g, p) for g, p in with_gold if p is not None]
        gold, predicted = np.array(both, dtype=np.float64).reshape(-1, 2).T
        score = GradeScore(
            grade=name,
            pearson=_correlation(gold, predicted, how),
            error=bootstrap_mean(np.abs(gold - predicted), how=how()),
            constant=float(np.abs(gold - np.median(gold)).mean()) if both else None,
            missing=len(with_gold) - len(both),
            no_gold=len(graded) - len(with_gold),
        )
        scores.append(score)
    return tuple(scores)


def _correlation(first: _Floats, second: _Floats, how: How) -> Interval:
    """Pearson's r with an interval by resampling pairs; None, with a reason, if undefined."""
    n = len(first)
    if n < 3:
        return Interval(None, None, None, None, n, None, "none", f"{n} traces have both")
    if not (np.ptp(first) and np.ptp(second)):
        return Interval(None, None, None, None, n, None, "none", "constant")
    return bootstrap_interval(_pearson, (first, second), how=how())


def _pearson(first: _Floats, second: _Floats) -> float | None:
    a, b = first - first.mean(), second - second.mean()
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / scale if scale > 1e-12 else None


@dataclass(frozen=True)
class LengthBin:
    """Traces of `low` to `high` tokens, both included; `answered` have a readable prediction."""

    low: int
    high: int
    score: Interval
    answered: int

    @property
    def traces(self) -> int:
        """Number of traces in this bin."""
        return self.score.n


@dataclass(frozen=True)
class LengthScore:
    """One score by length; `unknown` counts traces of unknown length."""

    score: str
    pearson: Interval
    spearman: Interval
    bins: tuple[LengthBin, ...]
    unknown: int


def against_length(
    name: str,
    scores: Mapping[str, float],
    tokens: Mapping[str, int],
    answered: Mapping[str, bool],
    how: How,
) -> LengthScore:
    """Compare `scores` by trace with `tokens` by trace.

    Computes Pearson with a bootstrap interval, Spearman with Bonett and Wright's, and the mean in
    bins of about equal numbers of traces (quartiles of length; equal lengths stay together).
    """
    ordered = sorted((tokens[trace], trace) for trace in scores if trace in tokens)
    lengths = np.array([length for length, _ in ordered], dtype=np.float64)
    figures = np.array([scores[trace] for _, trace in ordered], dtype=np.float64)
    bins = []
    for inside in _quarters(lengths):
        low, high = int(lengths[inside[0]]), int(lengths[inside[-1]])
        predicted = sum(answered[ordered[i][1]] for i in inside)
        mean = bootstrap_mean(figures[inside], how=how())
        bins.append(LengthBin(low, high, mean, predicted))
    return LengthScore(
        score=name,
        pearson=_correlation(lengths, figures, how),
        spearman=spearman(lengths, figures),
        bins=tuple(bins),
        unknown=len(scores) - len(ordered),
    )


def _quarters(lengths: _Floats) -> Sequence[NDArray[np.intp]]:
    """Positions in each bin of sorted lengths."""
    if not len(lengths):
        return []
    edges = np.quantile(lengths, np.arange(1, _BINS) / _BINS, method="inverted_cdf")
    places = np.searchsorted(edges, lengths, side="left")
    return [np.flatnonzero(places == place) for place in np.unique(places)]
