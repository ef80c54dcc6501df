"""Means of a judge and of people, combined to estimate the mean over all runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agenteval.analysis.agreement import mean_over_cases
from agenteval.analysis.ratings import (
    Cases,
    Floats,
    RatedCriterion,
    RunRatings,
    clusters_of,
    rated_criteria,
)
from agenteval.analysis.sampling import Sample
from agenteval.records import Criterion
from agenteval.stats.calibration import calibration_error
from agenteval.stats.interval import Interval
from agenteval.stats.ppi import PPIMean, ppi_mean
from agenteval.stats.scores import ORIGINAL, Mask, ScoreTable

_BINS = 10  # for measured numbers


@dataclass(frozen=True)
class LabelledMean:
    """The mean of one criterion over the `n` runs rated by the judge, of which people labelled
    `labelled`.

    `unlabelled` runs of the sample have no label yet; `unrated` labelled runs have no value from
    the judge. `mean` is None with a `reason` if the labels are not a random sample.
    """

    criterion_id: str
    n: int
    labelled: int
    unlabelled: int
    unrated: int
    mean: PPIMean | None
    reason: str


@dataclass(frozen=True)
class Bin:
    """Runs with similar values from the judge: their mean value and mean label."""

    judge: float
    label: Interval


@dataclass(frozen=True)
class Calibration:
    """How well a judge's values predict people's labels on one criterion.

    `error` is the expected calibration error, the mean over runs of |label mean - judge mean| of
    their bin (see `calibration_error`); a bin is a level, or a tenth of the scale for measured
    numbers. `squared` is the mean squared difference of value and label: the Brier score if labels
    are yes or no. `systems` has judge minus label by system.

    If the judge gives probabilities of levels (averaged over repeats): `brier`, from 0 to 2, is the
    mean over runs of the squared distance of the distribution from the label (Brier, Monthly
    Weather Review 78, 1950); `level_error` is the expected calibration error of the most probable
    level, by tenths of its probability; `level_bins` has that probability and how often the level
    equals the label.
    """

    criterion_id: str
    n: int
    error: Interval
    squared: Interval
    bins: tuple[Bin, ...]
    systems: tuple[tuple[str, Interval], ...]
    brier: Interval | None = None
    level_error: Interval | None = None
    level_bins: tuple[Bin, ...] = ()


def labelled_means(
    judge: ScoreTable,
    labels: ScoreTable,
    criteria: Sequence[Criterion] = (),
    sample: Sample | None = None,
    *,
    random: bool = False,
) -> list[LabelledMean]:
    """Return the corrected mean of each ordered criterion rated by both, with cases as clusters.

    Labels count as a random sample if there is a `sample`, if they cover all runs, or if `random`
    is set. Otherwise nothing is corrected, because hand-picked runs do not represent the others.
    """
    means = []
    for criterion in _ordered(judge, labels, criteria):
        ratings, labelled = (rater.means() for rater in criterion.raters)
        if sample is not None:
            labelled = {run: v for run, v in labelled.items() if run in sample.weights}
        runs = list(ratings)
        both = [run for run in labelled if run in ratings]
        reason = ""
        if sample is None and not random and len(both) < len(runs):
            reason = f"{len(both)} of {len(runs)} runs, not drawn by `agree sample`"
        elif not both:
            reason = "no run is rated by both"
        weights = [1.0 if sample is None else sample.weights.get(run, 1.0) for run in runs]
        mean = None
        if not reason:
            cases = clusters_of(runs, criterion.raters)
            mean = ppi_mean(
                [ratings[run] for run in runs],
                [labelled.get(run, np.nan) for run in runs],
                None if cases is None else cases.tolist(),
                weights=weights,
            )
        unlabelled = 0 if sample is None else len(sample.weights.keys() - labelled.keys())
        unrated = len(labelled) - len(both)
        means.append(
            LabelledMean(criterion.id, len(runs), len(both), unlabelled, unrated, mean, reason)
        )
    return means


def calibrations(
    judge: ScoreTable, labels: ScoreTable, criteria: Sequence[Criterion] = ()
) -> list[Calibration]:
    """Return the calibration on each ordered criterion rated by both."""
    system = {entry.run: entry.system or "" for entry in judge.entries()}
    results = []
    for criterion in _ordered(judge, labels, criteria):
        ratings, labelled = (rater.means() for rater in criterion.raters)
        runs = [run for run in ratings if run in labelled]
        if not runs:
            continue
        value = np.array([ratings[run] for run in runs])
        label = np.array([labelled[run] for run in runs])
        clusters = clusters_of(runs, criterion.raters)
        levels = criterion.levels.values
        centres = np.array(levels) if levels else (np.arange(_BINS) + 0.5) / _BINS
        nearest = np.abs(value[:, None] - centres).argmin(axis=1)
        error, bins = _calibrated(value, label, nearest, clusters)
        of_system = np.array([system[run] for run in runs])
        by_system = tuple(
            (name, _mean(value - label, of_system == name, clusters, (-1.0, 1.0)))
            for name in sorted(set(of_system.tolist()) - {""})
        )
        squared = mean_over_cases((value - label) ** 2, clusters, (0.0, 1.0))
        plain = Calibration(criterion.id, len(runs), error, squared, bins, by_system)
        judge_ratings = judge.of(variant=ORIGINAL, criterion=criterion.id)
        results.append(_with_probabilities(plain, judge_ratings, criterion.raters))
    return results


def _calibrated(
    forecast: Floats, outcome: Floats, bins: NDArray[np.intp], clusters: Cases | None
) -> tuple[Interval, tuple[Bin, ...]]:
    """Return the expected calibration error and the non-empty bins."""
    error = calibration_error(forecast - outcome, bins, clusters, rng=np.random.default_rng(0))
    masks = [bins == at for at in np.unique(bins)]
    return error, tuple(
        Bin(float(forecast[m].mean()), _mean(outcome, m, clusters, (0.0, 1.0))) for m in masks
    )


def _mean(
    values: Floats, mask: Mask, clusters: Cases | None, bounds: tuple[float, float]
) -> Interval:
    return mean_over_cases(values[mask], None if clusters is None else clusters[mask], bounds)


def _with_probabilities(
    calibration: Calibration, judge: ScoreTable, raters: Sequence[RunRatings]
) -> Calibration:
    """Add the figures for level probabilities, if the judge gives any."""
    by_people = raters[1]
    names, position = by_people.levels.names, by_people.position
    read = [json.loads(text) for text in judge.probabilities.names]
    by_run: dict[str, list[list[float]]] = {}
    for run, code in zip(judge.run.codes, judge.probabilities.codes, strict=True):
        at = position.get(judge.run.names[run])
        labelled = at is not None and not np.isnan(by_people.level[at])
        if code >= 0 and labelled and read[code].keys() == set(names):
            masses = [float(read[code][level]) for level in names]
            by_run.setdefault(judge.run.names[run], []).append(masses)
    if not by_run:
        return calibration
    probabilities = np.array([np.mean(repeats, axis=0) for repeats in by_run.values()])
    label = by_people.level[[position[run] for run in by_run]].astype(np.intp)
    clusters, likely = clusters_of(list(by_run), raters), probabilities.max(axis=1)
    squared = ((probabilities - np.eye(len(names))[label]) ** 2).sum(axis=1)
    tenth = np.minimum((likely * _BINS).astype(np.intp), _BINS - 1)
    right = (probabilities.argmax(axis=1) == label).astype(np.float64)
    error, bins = _calibrated(likely, right, tenth, clusters)
    brier = mean_over_cases(squared, clusters, (0.0, 2.0))
    return replace(calibration, brier=brier, level_error=error, level_bins=bins)


def _ordered(
    judge: ScoreTable, labels: ScoreTable, criteria: Sequence[Criterion]
) -> list[RatedCriterion]:
    """Return the ordered criteria rated by both."""
    rated = rated_criteria(criteria, [judge, labels])
    return [criterion for criterion in rated if criterion.levels.measure != "nominal"]
