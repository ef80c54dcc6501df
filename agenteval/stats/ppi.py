"""Estimate a mean from few human labels and many ratings by a judge, without the judge's bias."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.stats.bootstrap import cluster_codes
from agenteval.stats.interval import Interval, mean_interval
from agenteval.stats.vectors import Floats, finite_vector, t_quantile

FEWEST_LABELS = 20  # minimum labelled clusters for adequate coverage


@dataclass(frozen=True)
class PPIMean:
    """Three estimates of one mean, in the unit of the values.

    `judge` uses all ratings, `people` only the labels, `corrected` both. `power` in [0, 1] is the
    weight of the ratings. `worth` is the number of labels that would give an equally narrow
    interval without ratings, None if undefined.
    """

    judge: Interval
    people: Interval
    corrected: Interval
    power: float
    worth: float | None


def ppi_mean(
    ratings: Sequence[float] | Floats,
    labels: Sequence[float] | Floats,
    clusters: Sequence[Hashable] | None = None,
    *,
    weights: Sequence[float] | Floats | None = None,
) -> PPIMean:
    """Return the prediction-powered mean of runs with `ratings` (N,) in [0, 1]; `labels` (N,) are
    NaN if missing.

    With f the ratings and y the labels the estimate is power * mean(f) + mean over the labelled of
    (y - power * f): unbiased for any judge if labels were drawn at random (PPI++: Angelopoulos,
    Duchi & Zrnic, arXiv 2311.01453; a difference estimator, Cochran, Sampling Techniques, 1977,
    section 7.2). `weights` (N,) are inverse probabilities of being drawn for a label; means over
    the labelled are weighted by them and divided by their sum (Hajek).

    The variance is that of the estimate's linear part, a[c] + power * b[c], summed over the runs of
    each cluster c, with the factor C / (C - 1) for C labelled clusters, and t intervals of C - 1
    degrees of freedom. `power` minimizes the variance, -(a b) / (b b), within [0, 1]; if it is
    above 0, it costs one more degree of freedom, like the mean. Runs of a stratified sample are
    treated as drawn independently, so the interval may be too wide but not too narrow.

    Fewer than 20 labelled clusters give no interval for people and the corrected mean, with the
    reason; labels of every run need no correction (`power` is 0). Raises ValueError for values
    that are not finite, outside [0, 1] or of different lengths, and for nonpositive weights.
    """
    rated = finite_vector(ratings, "ratings")
    observed = np.asarray(labels, dtype=np.float64)
    n = len(rated)
    weight = np.ones(n) if weights is None else finite_vector(weights, "weights")
    if not len(observed) == len(weight) == n or not (weight > 0).all():
        raise ValueError("one label (or NaN) and a positive weight for each rating are needed")
    codes = cluster_codes(clusters, n)
    has_label = ~np.isnan(observed)
    if not all(0 <= v <= 1 for v in (*rated, *observed[has_label])):
        raise ValueError("a value lies outside [0, 1]")
    judge = mean_interval(rated.tolist(), codes.tolist(), bounds=(0.0, 1.0))
    if not has_label.any():
        nothing = Interval.missing("no labels", 0, 0)
        return PPIMean(judge, nothing, nothing, 0.0, None)
    share = np.where(has_label, weight, 0.0) / weight[has_label].sum()
    label = np.where(has_label, observed, 0.0)
    of_people, of_judge = float(share @ label), float(share @ rated)  # both on the labelled runs
    mean_rating = float(rated.mean())
    # linear parts by cluster: of the labels' mean, and of the ratings' contribution
    a = np.bincount(codes, share * (label - of_people)).astype(np.float64)
    b = np.bincount(codes, (rated - mean_rating) / n - share * (rated - of_judge)).astype(
        np.float64
    )
    useful = float(b @ b) > 1e-18
    power = float(np.clip(-(a @ b) / (b @ b), 0.0, 1.0)) if useful else 0.0
    labelled, units = int(has_label.sum()), len(np.unique(codes[has_label]))

    def interval(mean: float, influence: Floats, fitted: int) -> Interval:
        """Return a t interval; `fitted` parameters were estimated from the same clusters."""
        if units < FEWEST_LABELS:
            reason = f"{units} labelled cases; {FEWEST_LABELS} are needed"
            return Interval.missing(reason, labelled, units, mean=mean)
        freedom = units - fitted
        se = float(np.sqrt(units / freedom * (influence @ influence)))
        if se <= 1e-12:
            reason = "no variation: no interval"
            return Interval(mean, None, None, 0.0, labelled, units, "none", reason)
        half = t_quantile(0.975, freedom) * se
        low, high = max(0.0, mean - half), min(1.0, mean + half)
        return Interval(mean, low, high, se, labelled, units, f"cluster-robust t, {freedom} df")

    people = interval(of_people, a, 1)
    both = of_people + power * (mean_rating - of_judge)
    corrected = interval(both, a + power * b, 2 if power else 1)
    worth = None
    if people.se and corrected.se:
        worth = labelled * (people.se / corrected.se) ** 2
    return PPIMean(judge, people, corrected, power, worth)
