"""Agreement of a judge with human labels of the same runs, per criterion.

Two raters are compared in two ways. Levels (the most common one over a judge's repeats) give exact
agreement, kappa and alpha, as between two coders; means over repeats give the rank correlation and
the bias. Runs that are not rated by both are excluded and counted by reason; missing values never
become numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agenteval.analysis.ratings import (
    Cases,
    Floats,
    Measure,
    RatedCriterion,
    RunRatings,
    clusters_of,
    rated_criteria,
)
from agenteval.analysis.rubrics import ITEMS
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
    """Options of the comparison.

    - `few`: warn below this number of runs. At 30, an exact agreement of .80 has the Wilson
      interval [.63, .90], so a judge that is right in two of three runs cannot be distinguished
      from one that is right in nine of ten.
    - `cut`: minimum value (0 worst, 1 best) of a good run, for the corrected rate. None: only
      criteria with two levels get a corrected rate, and the better level is good.
    - `resamples`, `seed`: for the bootstrap over cases.
    """

    few: int = 30
    cut: float | None = None
    resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises InputError for invalid options."""
        if self.cut is not None and not 0 < self.cut <= 1:
            raise InputError(f"cut {self.cut} must be above 0 (worst) and at most 1 (best)")
        if self.few < 2 or self.resamples < 100:
            raise InputError("few must be at least 2, resamples at least 100")

    def bootstrap(self) -> Bootstrap:
        """Return a resampler with a fresh seed, so that figures do not depend on each other."""
        return Bootstrap(np.random.default_rng(self.seed), resamples=self.resamples)


@dataclass(frozen=True)
class Agreement:
    """One judge against one set of labels on one criterion.

    `n` runs of `cases` cases are rated by both. `exact` is the share of runs with equal levels,
    `kappa` and `weighted` (quadratic) are Cohen's, `alpha` is Krippendorff's at the criterion's
    level of measurement, `spearman` is over means, and `bias` is the paired mean of judge minus
    label as a share of the scale. An undefined figure has mean None and a reason.
    `confusion[i][j]` counts runs with label level i and judge level j. `tied` counts runs with
    several most common levels. `left_out` counts runs that are not compared, by reason; `failures`
    counts the judge's ratings of labelled runs without a level, by status. `corrected` is the share
    of good runs among the unlabelled ones.
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
        """Number of runs behind `exact` and `kappa`: those with a level from both raters, or all of
        `n` if the criterion has no levels."""
        return self.exact.n if self.levels else self.n


def agree(
    judge: ScoreTable,
    labels: ScoreTable,
    criteria: Sequence[Criterion] = (),
    options: AgreeOptions | None = None,
) -> list[Agreement]:
    """Compare the judge with the labels on each criterion that both rated, in that order.

    Only original runs count. Runs of one case are resampled together. A criterion that is not in
    `criteria` is ordered by value, and its levels are the values that occur (none if there are more
    than 20). Raises InputError if no criterion or no run is rated by both.
    """
    options = options or AgreeOptions()
    judge, labels = judge.of(variant=ORIGINAL), labels.of(variant=ORIGINAL)
    for column, verb in (("criterion", "for"), ("run", "of")):
        judged, labelled = judge.present(column), labels.present(column)
        if not set(judged) & set(labelled):
            of_judge, of_labels = (
                ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
                for names in (judged, labelled)
            )
            raise InputError(
                f"no {column} is rated by both: the judge rated {of_judge}; "
                f"the labels are {verb} {of_labels}"
            )
    return [_agreement(rated, options) for rated in rated_criteria(criteria, [judge, labels])]


def _agreement(rated: RatedCriterion, options: AgreeOptions) -> Agreement:
    judge, label = rated.raters
    levels = judge.levels
    runs = [r for r in judge.position if r in label.position]
    both = [r for r in runs if not judge.reason_of(r) and not label.reason_of(r)]
    of_judge, of_label = (
        np.array([rater.position[run] for run in both], dtype=np.intp) for rater in (judge, label)
    )
    clusters = clusters_of(both, rated.raters)
    pair = np.column_stack([label.level[of_label], judge.level[of_judge]])
    means = np.column_stack([label.mean[of_label], judge.mean[of_judge]])

    confusion = np.zeros((len(levels.names),) * 2, dtype=np.int64)
    exact = kappa = weighted = Interval.missing("a number without levels")
    if levels.names:
        placed = pair[~np.isnan(pair).any(axis=1)].astype(np.intp)
        np.add.at(confusion, (placed[:, 0], placed[:, 1]), 1)
        places = range(len(levels.names))
        plain = cohen_kappa(
            pair, categories=places, clusters=clusters, bootstrap=options.bootstrap()
        )
        exact, kappa = plain.agreement, plain.coefficient
        weighted = Interval.missing("levels without an order have no weights")
        if levels.measure != "nominal":
            weighted = cohen_kappa(
                pair,
                weights="quadratic",
                categories=places,
                clusters=clusters,
                bootstrap=options.bootstrap(),
            ).coefficient
    alpha = krippendorff_alpha(
        means if levels.measure == "interval" else pair,
        levels.measure,
        clusters=clusters,
        bootstrap=options.bootstrap(),
    )

    valued = ~np.isnan(means).any(axis=1)
    label_means, judge_means = means[valued].T
    case = None if clusters is None else clusters[valued]
    nominal = levels.measure == "nominal"
    averaged = not nominal and bool(valued.any())
    bias = rank = Interval.missing("nominal: counted, not averaged" if nominal else "no values")
    if averaged:
        bias = mean_over_cases(judge_means - label_means, case, (-1, 1))
    if valued.any():
        rank = _rank_correlation(label_means, judge_means, case, options)
    result = Agreement(
        criterion_id=rated.id,
        measure=levels.measure,
        n=len(both),
        cases=len(both) if clusters is None else len(set(clusters)),
        exact=unless_collapsed(exact),
        kappa=unless_collapsed(kappa),
        weighted=unless_collapsed(weighted),
        alpha=unless_collapsed(alpha),
        spearman=rank,
        judge_mean=float(judge_means.mean()) if averaged else None,
        label_mean=float(label_means.mean()) if averaged else None,
        bias=bias,
        levels=levels.names,
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        tied=int(judge.tied[of_judge].sum()),
        left_out=_left_out(judge, label),
        failures=dict(sum((judge.failures.get(run, Counter()) for run in runs), Counter[str]())),
        corrected=_corrected(judge, label, both, options),
        warnings=(),
    )
    return replace(result, warnings=tuple(_warnings(result, options)))


def _rank_correlation(
    label: Floats, judge: Floats, case: Cases | None, options: AgreeOptions
) -> Interval:
    """Return Spearman's rho with a bootstrap interval over cases instead of runs."""
    rank = spearman(label, judge)
    if rank.mean is None:
        return rank
    drawn = bootstrap_interval(
        lambda a, b: spearman(a, b).mean, [label, judge], case, how=options.bootstrap()
    )
    return unless_collapsed(replace(drawn, method=f"Spearman; {drawn.method}"))


def mean_over_cases(
    values: Floats, clusters: Cases | None, bounds: tuple[float, float]
) -> Interval:
    """Return the mean of one value per run; without clusters, with a bounded interval."""
    if clusters is None:
        return bounded_interval(values, bounds)
    return unless_collapsed(mean_interval(values.tolist(), clusters.tolist(), bounds=bounds))


def unless_collapsed(interval: Interval) -> Interval:
    """Drop an interval without width, which only means that all resamples are equal."""
    if interval.low is None or interval.high is None or interval.high - interval.low > 1e-9:
        return interval
    reason = "no interval: every resample gives the same value"
    return replace(interval, low=None, high=None, se=None, reason=reason)


def _left_out(judge: RunRatings, label: RunRatings) -> dict[str, int]:
    """Count the runs that are not compared, by reason."""
    count: Counter[str] = Counter()
    for run in judge.position.keys() | label.position.keys():
        by_judge, by_person = judge.reason_of(run), label.reason_of(run)
        if by_judge is None or by_person is None:
            count["not judged" if by_judge is None else "not labelled"] += 1
        elif by_judge == by_person == "not_applicable":
            count["not applicable for both"] += 1
        elif by_judge or by_person:
            who = "judge" if by_judge else "label"
            count[f"{who}: {(by_judge or by_person).replace('_', ' ')}"] += 1
    return dict(sorted(count.items()))


def _corrected(
    judge: RunRatings, label: RunRatings, both: Sequence[str], options: AgreeOptions
) -> Corrected | None:
    """Return the share of good runs among the unlabelled ones; None without a cut.

    The judge's errors are estimated from labelled runs. Runs are treated as independent, so the
    interval is too narrow if cases have several runs.
    """
    cut, values = options.cut, judge.levels.values
    if cut is None and values is not None and len(judge.levels.names) == 2:
        cut = values[1]
    if cut is None or values is None:
        return None
    unlabelled = [judge.good(run, cut) for run in judge.position if run not in label.position]
    judged = [good for good in unlabelled if good is not None]
    pairs = [(label.good(run, cut), judge.good(run, cut)) for run in both]
    bad, good = (
        [of_judge for of_label, of_judge in pairs if of_label is side and of_judge is not None]
        for side in (False, True)
    )
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
        ends = proportion_interval(round(0.8 * n), n)
        if ends.low is not None and ends.high is not None:
            text += (
                f": {round(0.8 * n)} of {n} equal would be compatible with "
                f"{ends.low:.0%} to {ends.high:.0%}"
            )
        warnings.append(text)
    unsure = agreement.left_out.get("judge: not applicable", 0)
    if unsure and agreement.criterion_id == ITEMS:
        warnings.append(f"{plural(unsure, 'label')} not compared: the judge could not tell")
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
