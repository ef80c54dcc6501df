"""Several raters: how far people agree among themselves, and what each judge adds to a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.analysis.agreement import AgreeOptions, mean_over_cases, unless_collapsed
from agenteval.analysis.label_tables import ALL
from agenteval.analysis.ratings import RatedCriterion, RunRatings, clusters_of, rated_criteria
from agenteval.records import Criterion
from agenteval.stats.agreement import krippendorff_alpha, level_counts
from agenteval.stats.alttest import AltTest, alt_test
from agenteval.stats.correlation import spearman
from agenteval.stats.interval import Interval
from agenteval.stats.kappa import equal_pairs
from agenteval.stats.proportion import proportion_interval
from agenteval.stats.scores import ScoreTable


@dataclass(frozen=True)
class RaterAgreement:
    """How far raters agree among themselves on one criterion; a judge can hardly do better.

    `exact` is the share of equal pairs of ratings, mean over the `n` runs with two raters or more.
    """

    criterion_id: str
    raters: tuple[str, ...]
    n: int
    exact: Interval
    alpha: Interval


@dataclass(frozen=True)
class PanelMember:
    """One judge of a panel, all figures on the runs that the whole panel and the labels rate.

    `error` is the mean of |judge - label| as a share of the scale, `spearman` the rank correlation
    with the labels. `without` is the error of the panel's mean without this judge, and `change` is
    that minus the whole panel's, paired by run: above 0 the panel is better with this judge.
    """

    name: str
    error: Interval
    spearman: float | None
    without: Interval
    change: Interval


@dataclass(frozen=True)
class Panel:
    """The mean of several judges against labels on one criterion."""

    criterion_id: str
    n: int
    cases: int
    error: Interval
    spearman: float | None
    members: tuple[PanelMember, ...]


def agreement_among(
    raters: Mapping[str, ScoreTable],
    criteria: Sequence[Criterion] = (),
    options: AgreeOptions | None = None,
) -> list[RaterAgreement]:
    """Agreement of several raters on every criterion that at least two of them rated."""
    return [
        _agreement_among(rated, tuple(raters), options or AgreeOptions())
        for rated in rated_criteria(criteria, list(raters.values()), at_least=2)
    ]


def panel(
    judges: Mapping[str, ScoreTable], labels: ScoreTable, criteria: Sequence[Criterion] = ()
) -> list[Panel]:
    """Return the accuracy of the judges' mean, and its change without each judge.

    One entry per ordinal criterion rated by all judges and the labels. Only runs rated by every
    judge and the labels are used, so that removing a judge changes nothing else. Verga et al.
    (arXiv 2404.18796) found a panel better than its best member on some criteria and worse on
    others; hence the figures per judge. Raises ValueError for fewer than two judges.
    """
    if len(judges) < 2:
        raise ValueError("a panel needs at least two judges")
    return [
        _panel(rated.id, tuple(judges), rated.raters)
        for rated in rated_criteria(criteria, [*judges.values(), labels])
        if rated.levels.values is not None
    ]


def _agreement_among(
    rated: RatedCriterion, names: tuple[str, ...], options: AgreeOptions
) -> RaterAgreement:
    """Alpha and equal pairs over the runs that two raters or more rated."""
    located = [pair for pair in zip(names, rated.raters, strict=True) if pair[1].position]
    raters, measure = [ratings for _, ratings in located], rated.levels.measure
    runs = list(dict.fromkeys(run for ratings in raters for run in ratings.position))
    data = np.full((len(runs), len(raters)), np.nan)
    for j, ratings in enumerate(raters):
        source = ratings.mean if measure == "interval" else ratings.level
        for i, run in enumerate(runs):
            if run in ratings.position:
                data[i, j] = source[ratings.position[run]]
    shared = (~np.isnan(data)).sum(axis=1) >= 2
    clusters = clusters_of([r for r, s in zip(runs, shared, strict=True) if s], raters)
    data = data[shared]
    equal = equal_pairs(level_counts(data, np.unique(data[~np.isnan(data)])))
    if clusters is None and np.isin(equal, (0, 1)).all():
        exact = proportion_interval(int(equal.sum()), len(equal))
    else:
        exact = mean_over_cases(equal, clusters, (0, 1))
    alpha = krippendorff_alpha(data, measure, clusters=clusters, bootstrap=options.bootstrap())
    return RaterAgreement(
        rated.id, tuple(name for name, _ in located), len(data), exact, unless_collapsed(alpha)
    )


def _panel(criterion: str, names: Sequence[str], raters: Sequence[RunRatings]) -> Panel:
    """`raters` are those of the judges in the order of `names`, then the labels."""
    runs = [
        run
        for run in raters[0].position
        if all(run in r.position and not np.isnan(r.mean[r.position[run]]) for r in raters)
    ]
    clusters = clusters_of(runs, raters)
    values = np.array([[r.mean[r.position[run]] for r in raters] for run in runs], dtype=np.float64)
    values = values.reshape(len(runs), len(raters))
    ratings, label = values[:, :-1], values[:, -1]
    panel_error = np.abs(ratings.mean(axis=1) - label)
    members = []
    for j, name in enumerate(names):
        error_without = np.abs(np.delete(ratings, j, axis=1).mean(axis=1) - label)
        members.append(
            PanelMember(
                name,
                mean_over_cases(np.abs(ratings[:, j] - label), clusters, (0, 1)),
                spearman(ratings[:, j], label).mean,
                mean_over_cases(error_without, clusters, (0, 1)),
                mean_over_cases(error_without - panel_error, clusters, (-1, 1)),
            )
        )
    cases = len(runs) if clusters is None else len(set(clusters))
    agreed = spearman(ratings.mean(axis=1), label).mean
    return Panel(
        criterion,
        len(runs),
        cases,
        mean_over_cases(panel_error, clusters, (0, 1)),
        agreed,
        tuple(members),
    )


def replacing(
    judge: ScoreTable,
    people: Mapping[str, ScoreTable],
    criteria: Sequence[Criterion] = (),
    *,
    epsilon: float = 0.2,
) -> dict[str, AltTest]:
    """The alternative annotator test by criterion, and over all criteria under the name ALL: may
    the judge stand in for one of these people? A rating is the most common level over repeats; a
    run without one is left out. Criteria without levels are not tested."""
    tables = [judge, *people.values()]
    tests: dict[str, AltTest] = {}
    every: list[list[tuple[str, float] | None]] = [[] for _ in tables]
    for rated in rated_criteria(criteria, tables, at_least=2):
        runs = rated.raters[0].position
        if not rated.levels.names or not runs:
            continue
        levels = [[rater.level_of(run) for run in runs] for rater in rated.raters]
        labels = [[None if v is None else (rated.id, v) for v in row] for row in levels]
        tests[rated.id] = alt_test(labels[0], labels[1:], epsilon=epsilon)
        every = [[*old, *new] for old, new in zip(every, labels, strict=True)]
    if len(tests) > 1:
        tests[ALL] = alt_test(every[0], every[1:], epsilon=epsilon)
    return tests
