"""Several raters: agreement among people, and the contribution of each judge to a panel."""

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
    """Agreement of raters among themselves on one criterion; a reference for the judge.

    `exact` is the share of equal pairs of ratings, averaged over the `n` runs with two or more
    raters.
    """

    criterion_id: str
    raters: tuple[str, ...]
    n: int
    exact: Interval
    alpha: Interval


@dataclass(frozen=True)
class PanelMember:
    """One judge of a panel. All figures are for runs rated by the whole panel and the labels.

    `error` is the mean of |judge - label| as a share of the scale, `spearman` the rank correlation
    with the labels. `without` is the error of the panel's mean without this judge. `change` is
    `without` minus the panel's error, paired by run: above 0, the judge improves the panel.
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
    """Return the agreement of raters on each criterion rated by at least two of them, over the runs
    with two or more raters."""
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
    """Return the accuracy of the mean of two or more judges, and its change without each judge.

    One entry per ordinal criterion rated by all judges and the labels. Only runs rated by every
    judge and the labels are used, so that removing a judge does not change the runs. There are
    figures per judge because a panel may be better or worse than its best member, depending on the
    criterion (Verga et al., arXiv 2404.18796).
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
    """Test whether the judge can replace one of the people (alternative annotator test), by
    criterion and over all criteria (key ALL). A rating is the most common level over repeats; runs
    without one are left out. Criteria without levels are not tested."""
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
