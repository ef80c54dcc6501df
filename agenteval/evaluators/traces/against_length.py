"""Scores of traces against their length: do long traces make a finder fail?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from agenteval.evaluators.traces.grades import correlation
from agenteval.evaluators.traces.scorer import Scores, Scoring
from agenteval.evaluators.traces.tallies import LEVELS
from agenteval.stats.bootstrap import bootstrap_mean
from agenteval.stats.correlation import spearman
from agenteval.stats.interval import Interval

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
