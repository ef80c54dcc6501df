"""Several raters: how far people agree among themselves, and what each judge adds to a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.analysis.agreement import AgreeOptions, mean_over_cases, unless_collapsed
from agenteval.analysis.ratings import clusters_of, rated_criteria
from agenteval.records import Criterion
from agenteval.stats.agreement import krippendorff_alpha, level_counts
from agenteval.stats.alttest import AltTest, alt_test
from agenteval.stats.correlation import spearman
from agenteval.stats.interval import Interval
from agenteval.stats.kappa import equal_pairs
from agenteval.stats.proportion import proportion_interval
from agenteval.stats.scores import ScoreTable

ALL = "all criteria"


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
    error: Interval
    spearman: float | None
    members: tuple[PanelMember, ...]


def agreement_among(
    raters: Mapping[str, ScoreTable],
    criteria: Sequence[Criterion] = (),
    options: AgreeOptions | None = None,
) -> list[RaterAgreement]:
    """Agreement of several raters on every criterion that at least two of them rated: alpha and
    equal pairs over the runs that two raters or more rated."""
    options, results = options or AgreeOptions(), []
    for rated in rated_criteria(criteria, list(raters.values()), at_least=2):
        by_name = {n: r for n, r in zip(raters, rated.raters, strict=True) if r.position}
        runs = list(dict.fromkeys(run for ratings in by_name.values() for run in ratings.position))
        data = np.full((len(runs), len(by_name)), np.nan)
        for j, ratings in enumerate(by_name.values()):
            values = ratings.mean if rated.levels.measure == "interval" else ratings.level
            for i, run in enumerate(runs):
                if run in ratings.position:
                    data[i, j] = values[ratings.position[run]]
        shared = (~np.isnan(data)).sum(axis=1) >= 2
        shared_runs = [run for run, both in zip(runs, shared, strict=True) if both]
        clusters = clusters_of(shared_runs, list(by_name.values()))
        data = data[shared]
        equal = equal_pairs(level_counts(data, np.unique(data[~np.isnan(data)])))
        if clusters is None and np.isin(equal, (0, 1)).all():
            exact = proportion_interval(int(equal.sum()), len(equal))
        else:
            exact = mean_over_cases(equal, clusters, (0, 1))
        alpha = krippendorff_alpha(
            data, rated.levels.measure, clusters=clusters, bootstrap=options.bootstrap()
        )
        results.append(
            RaterAgreement(rated.id, tuple(by_name), len(data), exact, unless_collapsed(alpha))
        )
    return results


def panel(
    judges: Mapping[str, ScoreTable], labels: ScoreTable, criteria: Sequence[Criterion] = ()
) -> list[Panel]:
    """Return the accuracy of the mean of two judges or more, and its change without each judge.

    One entry per ordinal criterion rated by all judges and the labels. Only runs rated by every
    judge and the labels are used, so that removing a judge changes nothing else. Verga et al.
    (arXiv 2404.18796) found a panel better than its best member on some criteria and worse on
    others; hence the figures per judge.
    """
    results = []
    for rated in rated_criteria(criteria, [*judges.values(), labels]):
        if rated.levels.values is None:
            continue
        means = [rater.means() for rater in rated.raters]
        runs = [run for run in means[0] if all(run in of_rater for of_rater in means)]
        clusters = clusters_of(runs, rated.raters)
        values = np.array([[of_rater[run] for of_rater in means] for run in runs])
        values = values.reshape(len(runs), len(means))
        ratings, label = values[:, :-1], values[:, -1]
        error = np.abs(ratings.mean(axis=1) - label)
        members = []
        for j, name in enumerate(judges):
            alone = np.abs(ratings[:, j] - label)
            without = np.abs(np.delete(ratings, j, axis=1).mean(axis=1) - label)
            members.append(
                PanelMember(
                    name,
                    mean_over_cases(alone, clusters, (0, 1)),
                    spearman(ratings[:, j], label).mean,
                    mean_over_cases(without, clusters, (0, 1)),
                    mean_over_cases(without - error, clusters, (-1, 1)),
                )
            )
        results.append(
            Panel(
                rated.id,
                len(runs),
                mean_over_cases(error, clusters, (0, 1)),
                spearman(ratings.mean(axis=1), label).mean,
                tuple(members),
            )
        )
    return results


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
