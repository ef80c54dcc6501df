"""Means of a judge, of people, and of both: what labels of some runs say about all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.records import Criterion
from agenteval.stats.calibration import calibration_error
from agenteval.stats.interval import Interval
from agenteval.stats.ppi import PoweredMean, powered_mean
from agenteval.stats.scores import ORIGINAL, Mask, ScoreTable
from agenteval.trust.agreement import mean_over_cases
from agenteval.trust.ratings import Floats, RunRatings, levels_of, shared_criteria
from agenteval.trust.sampling import Sample

_BINS = 10  # of a measured number


@dataclass(frozen=True)
class LabelledMean:
    """One criterion: the mean of the `n` runs that the judge rated, `labelled` of them by people.

    Of the sample `unlabelled` runs have no label yet, and `unrated` labels are of runs that the
    judge has no value for. `mean` is None, with the `reason`, where labels were not drawn.
    """

    criterion_id: str
    n: int
    labelled: int
    unlabelled: int
    unrated: int
    mean: PoweredMean | None
    reason: str


@dataclass(frozen=True)
class Bin:
    """Runs to which the judge gave about the same value: its mean, and the mean of their labels."""

    judge: float
    label: Interval


@dataclass(frozen=True)
class Calibration:
    """How far a judge's values can be read as what people would say, on one criterion.

    `error` is the expected calibration error, the mean over runs of |label mean - judge mean| of
    their bin (see `calibration_error`); a bin is a level, or a tenth of the scale for measured
    numbers. `squared` is the mean squared difference of value and label: the Brier score where
    labels are yes or no. `systems` holds judge minus label by system.

    Of a judge that gives probabilities of the levels (mean distribution of the repeats): `brier`,
    from 0 to 2, is the mean over runs of the squared distance of the distribution from the label
    (Brier, Monthly Weather Review 78, 1950); `level_error` the expected calibration error of the
    most probable level, by tenths of its probability; `level_bins` that probability, and how often
    the level is the label.
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
    """The corrected mean of every criterion that both rated and that has means, cases as clusters.

    Labels are taken as drawn where `sample` says so, of all runs, or where `random` declares it;
    else nothing is corrected: labels that somebody picked say nothing about the other runs.
    """
    means = []
    for name, by_judge, by_people in _raters(judge, labels, criteria):
        told = {
            run: value
            for run, value in _values(by_people).items()
            if sample is None or run in sample.weights
        }
        rated = _values(by_judge)
        runs = list(rated)
        both = [run for run in told if run in rated]
        reason = ""
        if sample is None and not random and len(both) < len(rated):
            reason = f"{len(both)} of {len(rated)} runs, not drawn by `agree sample`"
        elif not both:
            reason = "no run is rated by both"
        weights = [1.0 if sample is None else sample.weights.get(run, 1.0) for run in runs]
        mean = None if reason else powered_mean(
            [rated[run] for run in runs], [told.get(run, np.nan) for run in runs],
            [by_judge.case_of(run) or by_people.case_of(run) or run for run in runs],
            weights=weights,
        )  # fmt: skip
        missing = 0 if sample is None else len(sample.weights.keys() - told.keys())
        means.append(
            LabelledMean(name, len(runs), len(both), missing, len(told) - len(both), mean, reason)
        )
    return means


def calibrations(
    judge: ScoreTable, labels: ScoreTable, criteria: Sequence[Criterion] = ()
) -> list[Calibration]:
    """Calibration on every criterion that both rated and that has means."""
    systems = dict(zip(judge.run.codes.tolist(), judge.system.codes.tolist(), strict=True))
    system = {judge.run.names[r]: judge.system.names[s] for r, s in systems.items() if s >= 0}
    found = []
    for name, by_judge, by_people in _raters(judge, labels, criteria):
        rated, told = _values(by_judge), _values(by_people)
        runs = [run for run in rated if run in told]
        if not runs:
            continue
        value = np.array([rated[run] for run in runs])
        label = np.array([told[run] for run in runs])
        mean = _Cases(runs, by_judge, by_people)
        levels = by_judge.levels.values
        centres = np.array(levels) if levels else (np.arange(_BINS) + 0.5) / _BINS
        nearest = np.abs(value[:, None] - centres).argmin(axis=1)
        error, bins = mean.calibration(value, label, nearest)
        of_system = np.array([system.get(run, "") for run in runs])
        by_system = tuple(
            (name, mean(value - label, of_system == name, (-1.0, 1.0)))
            for name in sorted(set(of_system.tolist())) if name
        )  # fmt: skip
        everything = np.ones(len(runs), dtype=np.bool_)
        squared = mean((value - label) ** 2, everything, (0.0, 1.0))
        told_by = judge.of(variant=ORIGINAL, criterion=name), by_judge, by_people
        brier, level_error, level_bins = _levels_foretold(*told_by)
        found.append(Calibration(
            name, len(runs), error, squared, bins, by_system, brier, level_error, level_bins
        ))  # fmt: skip
    return found


class _Cases:
    """Means over the cases of some runs."""

    def __init__(self, runs: Sequence[str], judge: RunRatings, people: RunRatings) -> None:
        case = [judge.case_of(run) or people.case_of(run) or run for run in runs]
        self.clusters = np.array(case, dtype=object) if len(set(case)) < len(case) else None

    def __call__(self, values: Floats, mask: Mask, bounds: tuple[float, float]) -> Interval:
        part = None if self.clusters is None else self.clusters[mask]
        return mean_over_cases(values[mask], part, bounds)

    def calibration(
        self, forecast: Floats, outcome: Floats, bins: NDArray[np.intp]
    ) -> tuple[Interval, tuple[Bin, ...]]:
        """Expected calibration error, and the bins that have runs."""
        rng = np.random.default_rng(0)
        error = calibration_error(forecast - outcome, bins, self.clusters, rng=rng)
        masks = [bins == at for at in np.unique(bins)]
        return error, tuple(
            Bin(float(forecast[m].mean()), self(outcome, m, (0.0, 1.0))) for m in masks
        )


def _levels_foretold(
    judge: ScoreTable, by_judge: RunRatings, by_people: RunRatings
) -> tuple[Interval | None, Interval | None, tuple[Bin, ...]]:
    """Brier score, calibration error and bins of the levels' probabilities; nothing without any."""
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
        return None, None, ()
    given = np.array([np.mean(repeats, axis=0) for repeats in by_run.values()])
    label = by_people.level[[position[run] for run in by_run]].astype(np.intp)
    mean, likely = _Cases(list(by_run), by_judge, by_people), given.max(axis=1)
    squared = ((given - np.eye(len(names))[label]) ** 2).sum(axis=1)
    tenth = np.minimum((likely * _BINS).astype(np.intp), _BINS - 1)
    right = (given.argmax(axis=1) == label).astype(np.float64)
    return mean(squared, likely >= 0, (0.0, 2.0)), *mean.calibration(likely, right, tenth)


def _raters(
    judge: ScoreTable, labels: ScoreTable, criteria: Sequence[Criterion]
) -> list[tuple[str, RunRatings, RunRatings]]:
    """Both on every criterion that they share and that has an order."""
    tables = [judge.of(variant=ORIGINAL), labels.of(variant=ORIGINAL)]
    pairs = []
    for name in shared_criteria(criteria, tables):
        own = [table.of(criterion=name) for table in tables]
        levels = levels_of(name, criteria, own)
        if levels.measure != "nominal":
            by_judge, by_people = (RunRatings.of(table, levels) for table in own)
            pairs.append((name, by_judge, by_people))
    return pairs


def _values(rater: RunRatings) -> dict[str, float]:
    """Mean over the repeats of every run that has a value."""
    return {
        run: float(rater.mean[at]) for run, at in rater.position.items()
        if not np.isnan(rater.mean[at])
    }  # fmt: skip
