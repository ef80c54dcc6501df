"""Several raters: how far people agree among themselves, and what each judge adds to a jury."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.records import Criterion
from agenteval.stats.agreement import krippendorff_alpha, level_counts
from agenteval.stats.correlation import spearman
from agenteval.stats.interval import Interval
from agenteval.stats.proportion import proportion_interval
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.trust.agreement import AgreeOptions, honest, mean_over_cases
from agenteval.trust.ratings import Cases, Measure, Word, in_order, levels_of


@dataclass(frozen=True)
class Ceiling:
    """How far raters agree among themselves on one criterion; a judge can hardly do better.

    `exact` is the share of equal pairs of ratings, mean over the `n` runs with two raters or more.
    """

    criterion_id: str
    raters: tuple[str, ...]
    n: int
    exact: Interval
    alpha: Interval


@dataclass(frozen=True)
class Juror:
    """One judge of a jury, all figures on the runs that the whole jury and the labels rate.

    `error` is the mean of |judge - label| as a share of the scale, `spearman` the rank correlation
    with the labels. `without` is the error of the jury's mean without this judge, and `change` is
    that minus the whole jury's, paired by run: above 0 the jury is better with this judge.
    """

    name: str
    error: Interval
    spearman: float | None
    without: Interval
    change: Interval


@dataclass(frozen=True)
class Jury:
    """The mean of several judges against labels on one criterion."""

    criterion_id: str
    n: int
    cases: int
    error: Interval
    spearman: float | None
    jurors: tuple[Juror, ...]


def among(
    raters: Mapping[str, ScoreTable],
    criteria: Sequence[Criterion] = (),
    options: AgreeOptions | None = None,
) -> list[Ceiling]:
    """Agreement of several raters on every criterion that at least two of them rated."""
    options = options or AgreeOptions()
    tables = {name: table.of(variant=ORIGINAL) for name, table in raters.items()}
    ceilings = []
    for criterion in in_order(criteria, list(tables.values()), at_least=2):
        own = {name: table.of(criterion=criterion) for name, table in tables.items()}
        levels = levels_of(criterion, criteria, list(own.values()))
        words = {name: Word.of(table, levels) for name, table in own.items() if len(table)}
        ceilings.append(_ceiling(criterion, words, levels.measure, options))
    return ceilings


def jury(
    judges: Mapping[str, ScoreTable], labels: ScoreTable, criteria: Sequence[Criterion] = ()
) -> list[Jury]:
    """What the mean of the judges is worth, and what changes without each.

    Per criterion that all judges and the labels rated on a scale (no nominal levels);
    only runs that every judge and the labels rated, so that leaving one out changes nothing else.
    Verga et al. (arXiv 2404.18796) found a panel better than its best member on some criteria and
    worse on others; hence the figures per judge. Raises ValueError for fewer than two judges.
    """
    if len(judges) < 2:
        raise ValueError("a jury needs two judges or more")
    tables = [t.of(variant=ORIGINAL) for t in (*judges.values(), labels)]
    found = []
    for criterion in in_order(criteria, tables):
        own = [table.of(criterion=criterion) for table in tables]
        levels = levels_of(criterion, criteria, own)
        if levels.values is not None:
            words = [Word.of(table, levels) for table in own]
            found.append(_jury(criterion, tuple(judges), words))
    return found


def _ceiling(
    name: str, words: Mapping[str, Word], measure: Measure, options: AgreeOptions
) -> Ceiling:
    """Alpha and equal pairs over the runs that two raters or more rated."""
    runs = list(dict.fromkeys(run for word in words.values() for run in word.row))
    data = np.full((len(runs), len(words)), np.nan)
    for j, word in enumerate(words.values()):
        source = word.mean if measure == "interval" else word.level
        for i, run in enumerate(runs):
            if run in word.row:
                data[i, j] = source[word.row[run]]
    shared = (~np.isnan(data)).sum(axis=1) >= 2
    clusters = _clusters([r for r, s in zip(runs, shared, strict=True) if s], [*words.values()])
    data = data[shared]
    counts = level_counts(data, np.unique(data[~np.isnan(data)]))
    number = counts.sum(axis=1)
    equal = (counts * (counts - 1)).sum(axis=1) / (number * (number - 1))
    if clusters is None and np.isin(equal, (0, 1)).all():
        exact = proportion_interval(int(equal.sum()), len(equal))
    else:
        exact = mean_over_cases(equal, clusters, (0, 1))
    alpha = krippendorff_alpha(data, measure, clusters=clusters, bootstrap=options.bootstrap())
    return Ceiling(name, tuple(words), len(data), exact, honest(alpha))


def _jury(criterion: str, names: Sequence[str], words: Sequence[Word]) -> Jury:
    """`words` are those of the judges in the order of `names`, then the labels."""
    runs = [
        r for r in words[0].row if all(r in w.row and not np.isnan(w.mean[w.row[r]]) for w in words)
    ]
    clusters = _clusters(runs, words)
    values = np.array([[w.mean[w.row[r]] for w in words] for r in runs], dtype=np.float64)
    values = values.reshape(len(runs), len(words))
    ratings, label = values[:, :-1], values[:, -1]
    whole = np.abs(ratings.mean(axis=1) - label)
    jurors = []
    for j, name in enumerate(names):
        rest = np.abs(np.delete(ratings, j, axis=1).mean(axis=1) - label)
        jurors.append(
            Juror(
                name,
                mean_over_cases(np.abs(ratings[:, j] - label), clusters, (0, 1)),
                spearman(ratings[:, j], label).mean,
                mean_over_cases(rest, clusters, (0, 1)),
                mean_over_cases(rest - whole, clusters, (-1, 1)),
            )
        )
    cases = len(runs) if clusters is None else len(set(clusters))
    agreed = spearman(ratings.mean(axis=1), label).mean
    return Jury(
        criterion, len(runs), cases, mean_over_cases(whole, clusters, (0, 1)), agreed, tuple(jurors)
    )


def _clusters(runs: Sequence[str], words: Sequence[Word]) -> Cases | None:
    """Case of each run; None when every run is a case of its own."""
    case = [next((c for w in words if (c := w.case_of(r))), r) for r in runs]
    return np.array(case, dtype=object) if len(set(case)) < len(case) else None
