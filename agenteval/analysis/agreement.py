"""Agreement of a judge with human labels of the same runs, per criterion.

Two raters are compared on two scales. Levels (the most common over a judge's repeats) give exact
agreement, kappa and alpha, as between two coders; means over repeats give the rank correlation and
the bias. A run not rated by one of the two is excluded and counted with the reason; missing values
never become numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agenteval.analysis.ratings import (
    Cases,
    Floats,
    Levels,
    Measure,
    RatedCriterion,
    RunRatings,
    clusters_of,
    listed,
    rated_criteria,
)
from agenteval.errors import InputError
from agenteval.records import Criterion
from agenteval.stats.agreement import krippendorff_alpha
from agenteval.stats.bootstrap import Bootstrap, bootstrap_interval
from agenteval.stats.bounded import bounded_interval
from agenteval.stats.correction import Corrected, corrected_rate
from agenteval.stats.correlation import spearman
from agenteval.stats.interval import Interval, mean_interval
from agenteval.stats.kappa import cohen_kappa
from agenteval.stats.proportion import proportion_interval
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.text import plural


@dataclass(frozen=True)
class AgreeOptions:
    """How to compare.

    - `few`: warn below this number of runs. At 30, an exact agreement of .80 has the Wilson
      interval [.63, .90]: a judge that is right in two of three runs and one that is right in nine
      of ten look alike.
    - `cut`: a run counts as good from this value on (0 worst, 1 best), for the corrected rate.
      None: only criteria of two levels get one, and the better level is good.
    - `resamples`, `seed`: of the bootstrap over cases.
    """

    few: int = 30
    cut: float | None = None
    resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises InputError for options that no data could meet."""
        if self.cut is not None and not 0 < self.cut <= 1:
            raise InputError(f"cut {self.cut} must be above 0 (worst) and at most 1 (best)")
        if self.few < 2 or self.resamples < 100:
            raise InputError("few must be at least 2, resamples at least 100")

    def bootstrap(self) -> Bootstrap:
        """Return a resampler that starts from the seed, so that figures do not depend on each
        other."""
        return Bootstrap(np.random.default_rng(self.seed), resamples=self.resamples)


@dataclass(frozen=True)
class Agreement:
    """One judge against one set of labels on one criterion.

    `n` runs of `cases` cases are rated by both. `exact` is the share of runs with equal levels,
    `kappa` and `weighted` (quadratic) Cohen's, `alpha` Krippendorff's at the criterion's level of
    measurement, `spearman` of the means, `bias` the mean of judge minus label as a share of the
    scale (paired). An undefined one has mean None and its reason. `confusion[i][j]` counts runs
    that the labels put at level i and the judge at level j. `tied` counts runs in which several
    levels were equally common. `left_out` counts runs by the reason why they are not compared,
    `failures` the judge's ratings of labelled runs that have no level, by status. `corrected` is
    the share of good runs among those without a label.
    """

    criterion_id: str
    measure: Measure
    n: int
    cases: int
    exact: Interval
    kappa: Interval
    weighted: Interval
    alpha: Interval
    spearman: Interval
    judge_mean: float | None
    label_mean: float | None
    bias: Interval
    levels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    tied: int
    left_out: Mapping[str, int]
    failures: Mapping[str, int]
    corrected: Corrected | None
    warnings: tuple[str, ...]

    @property
    def compared(self) -> int:
        """Runs that equal levels and kappa are over: of `n` those with a level from both.

        Where the criterion has no levels, all of `n`.
        """
        return self.exact.n if self.levels else self.n


def agree(
    judge: ScoreTable,
    labels: ScoreTable,
    criteria: Sequence[Criterion] = (),
    options: AgreeOptions | None = None,
) -> list[Agreement]:
    """The judge against the labels on every criterion that both rated, in the order of `criteria`.

    Only original runs count. Runs of one case are resampled together. A criterion that is not in
    `criteria` is ordered by its values, and its levels are the values that occur (none if there
    are more than 20). Raises InputError when no criterion, or no run, is rated by both.
    """
    options = options or AgreeOptions()
    judge, labels = judge.of(variant=ORIGINAL), labels.of(variant=ORIGINAL)
    if not set(judge.present("criterion")) & set(labels.present("criterion")):
        raise InputError(
            f"no criterion is rated by both: the judge rated {listed(judge, 'criterion')}; "
            f"the labels are for {listed(labels, 'criterion')}"
        )
    if not set(judge.present("run")) & set(labels.present("run")):
        raise InputError(
            f"no run is rated by both: the judge rated {listed(judge, 'run')}; "
            f"the labels are of {listed(labels, 'run')}"
        )
    return [_agreement(rated, options) for rated in rated_criteria(criteria, [judge, labels])]


def _agreement(rated: RatedCriterion, options: AgreeOptions) -> Agreement:
    judge, label = rated.raters
    runs = [r for r in judge.position if r in label.position]
    both = [
        r
        for r in runs
        if not judge.reason[judge.position[r]] and not label.reason[label.position[r]]
    ]
    of_judge, of_label = (
        np.array([rater.position[run] for run in both], dtype=np.intp) for rater in (judge, label)
    )
    clusters = clusters_of(both, rated.raters)
    pair = np.column_stack([label.level[of_label], judge.level[of_judge]])
    means = np.column_stack([label.mean[of_label], judge.mean[of_judge]])
    nominal = judge.levels.measure == "nominal"
    unaveraged = "nominal: counted, not averaged" if nominal else ""
    failures: Counter[str] = Counter()
    for run in runs:
        failures.update(judge.failures.get(run, Counter()))
    result = Agreement(
        criterion_id=rated.id,
        measure=judge.levels.measure,
        n=len(both),
        cases=len(both) if clusters is None else len(set(clusters)),
        **_on_levels(pair, means, clusters, judge.levels, options),
        **_on_means(means, clusters, unaveraged, options),
        levels=judge.levels.names,
        confusion=_confusion(pair, len(judge.levels.names)),
        tied=int(judge.tied[of_judge].sum()),
        left_out=_left_out(judge, label),
        failures=dict(failures),
        corrected=_corrected(judge, label, both, options),
        warnings=(),
    )
    return replace(result, warnings=tuple(_warnings(result, options)))


def _confusion(pair: Floats, size: int) -> tuple[tuple[int, ...], ...]:
    """Runs by the label's level and the judge's."""
    counts = np.zeros((size, size), dtype=np.int64)
    if size:
        complete = pair[~np.isnan(pair).any(axis=1)].astype(np.intp)
        np.add.at(counts, (complete[:, 0], complete[:, 1]), 1)
    return tuple(tuple(int(c) for c in row) for row in counts)


def _on_levels(
    pair: Floats, means: Floats, clusters: Cases | None, levels: Levels, options: AgreeOptions
) -> dict[str, Any]:
    """Exact agreement, kappas and alpha of (runs, 2) levels; alpha of the means without levels."""
    draw = options.bootstrap
    compared = means if levels.measure == "interval" else pair
    alpha = krippendorff_alpha(compared, levels.measure, clusters=clusters, bootstrap=draw())
    if not levels.names:
        nothing = dict.fromkeys(
            ("exact", "kappa", "weighted"), _undefined("a number without levels")
        )
        return {**nothing, "alpha": unless_collapsed(alpha)}
    places = list(range(len(levels.names)))
    plain = cohen_kappa(pair, categories=places, clusters=clusters, bootstrap=draw())
    weighted = _undefined("levels without an order have no weights")
    if levels.measure != "nominal":
        weighted = cohen_kappa(
            pair, weights="quadratic", categories=places, clusters=clusters, bootstrap=draw()
        ).coefficient
    figures = {
        "exact": plain.agreement,
        "kappa": plain.coefficient,
        "weighted": weighted,
        "alpha": alpha,
    }
    return {name: unless_collapsed(figure) for name, figure in figures.items()}


def _on_means(
    means: Floats, clusters: Cases | None, unaveraged: str, options: AgreeOptions
) -> dict[str, Any]:
    """Rank correlation, both means and their paired difference, of (runs, 2) label and judge."""
    complete = ~np.isnan(means).any(axis=1)
    label, judge = means[complete].T
    case = None if clusters is None else clusters[complete]
    rank = spearman(label, judge)
    if rank.mean is not None:  # with an interval over cases; its own takes runs as independent
        drawn = bootstrap_interval(
            lambda a, b: spearman(a, b).mean, [label, judge], case, how=options.bootstrap()
        )
        rank = unless_collapsed(replace(drawn, method=f"Spearman; {drawn.method}"))
    if unaveraged or not complete.any():
        nothing = _undefined(unaveraged or "no values")
        rank = rank if complete.any() else nothing
        return {"spearman": rank, "judge_mean": None, "label_mean": None, "bias": nothing}
    return {
        "spearman": rank,
        "judge_mean": float(judge.mean()),
        "label_mean": float(label.mean()),
        "bias": mean_over_cases(judge - label, case, (-1, 1)),
    }


def _undefined(reason: str) -> Interval:
    return Interval(None, None, None, None, 0, None, "none", reason)


def mean_over_cases(
    values: Floats, clusters: Cases | None, bounds: tuple[float, float]
) -> Interval:
    """Mean of one value per run; without clusters the interval bounds what was never seen."""
    if clusters is None:
        return bounded_interval(values, bounds)
    return unless_collapsed(mean_interval(values.tolist(), clusters.tolist(), bounds=bounds))


def unless_collapsed(interval: Interval) -> Interval:
    """The interval, unless it has no width: that only says that equal cases resample alike."""
    if interval.low is None or interval.high is None or interval.high - interval.low > 1e-9:
        return interval
    reason = "no interval: every resample gives the same value"
    return replace(interval, low=None, high=None, se=None, reason=reason)


def _left_out(judge: RunRatings, label: RunRatings) -> dict[str, int]:
    """Runs that are not compared, by reason."""
    count: Counter[str] = Counter()
    for run in judge.position.keys() | label.position.keys():
        if run not in label.position or run not in judge.position:
            count["not labelled" if run in judge.position else "not judged"] += 1
            continue
        by_judge = judge.reason[judge.position[run]]
        by_person = label.reason[label.position[run]]
        if by_judge == by_person == "not_applicable":
            count["not applicable for both"] += 1
        elif by_judge or by_person:
            who = "judge" if by_judge else "label"
            count[f"{who}: {(by_judge or by_person).replace('_', ' ')}"] += 1
    return dict(sorted(count.items()))


def _corrected(
    judge: RunRatings, label: RunRatings, both: Sequence[str], options: AgreeOptions
) -> Corrected | None:
    """Share of good runs among the unlabelled ones; None without a cut.

    Labelled runs give the judge's errors. Runs count as independent, so that with several runs
    of a case the interval is too narrow.
    """
    cut = options.cut
    if cut is None and len(judge.levels.names) == 2 and judge.levels.values is not None:
        cut = judge.levels.values[1]
    if cut is None or judge.levels.values is None:
        return None
    unlabelled = [judge.good(run, cut) for run in judge.position if run not in label.position]
    judged = [good for good in unlabelled if good is not None]
    pairs = [(label.good(run, cut), judge.good(run, cut)) for run in both]
    bad = [judged for labelled, judged in pairs if labelled is False and judged is not None]
    good = [judged for labelled, judged in pairs if labelled is True and judged is not None]
    return corrected_rate(
        (sum(judged), len(judged)), (bad.count(False), len(bad)), (sum(good), len(good))
    )


def _warnings(agreement: Agreement, options: AgreeOptions) -> list[str]:
    warnings = []
    n = agreement.compared
    if n < agreement.n:
        warnings.append(
            f"{agreement.n - n} of {agreement.n} runs rated by both have no level; equal levels, "
            f"kappa and alpha use {n}"
        )
    if n < options.few:
        text = f"{plural(n, 'run')} rated by both, fewer than {options.few}"
        ends = proportion_interval(round(0.8 * n), n) if n else None
        if ends is not None and ends.low is not None and ends.high is not None:
            text += (
                f": {round(0.8 * n)} of {n} equal would be compatible with "
                f"{ends.low:.0%} to {ends.high:.0%}"
            )
        warnings.append(text)
    if agreement.cases < min(agreement.n, 20):
        warnings.append(
            f"{agreement.cases} cases, fewer than 20: intervals over cases are too narrow"
        )
    rows = [sum(row) > 0 for row in agreement.confusion]
    if agreement.n and sum(rows) == 1:
        warnings.append(
            f"all labels are {agreement.levels[rows.index(True)]!r}: kappa and alpha are not "
            "informative"
        )
    return warnings
