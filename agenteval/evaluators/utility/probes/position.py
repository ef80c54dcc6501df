"""Does the score of a criterion follow its place in the prompt?

The quantifier draws the order of the criteria anew for every run and repeat, so places are
randomised like a treatment: no extra call is needed, and the test needs no model of the scores.
"""

from __future__ import annotations

import math

import numpy as np
from pydantic import JsonValue

from agenteval.evaluators.utility.probes.result import Finding, Measured, ProbeOptions
from agenteval.evaluators.utility.probes.shown import Placed
from agenteval.stats.interval import Interval
from agenteval.stats.paired import sign_flip_test
from agenteval.stats.vectors import Floats

NAME = "position"


def position(placed: Placed, options: ProbeOptions) -> Finding:
    """Change of the score from the first place to the last, in shares of the scale.

    Two measures: the slope over places 0..1, and the last place against the first (three criteria
    or more a call). Both by least squares within run and criterion (within the criterion, when
    every run has one repeat), so that no run and no criterion counts as good because of its place.
    The interval is cluster-robust over cases (Liang & Zeger, Biometrika 73, 1986; factor
    C / (C - 1), t with C - 1 degrees of freedom). p is a randomisation test: the reverse of an
    order is as likely as the order, which turns the sign of a case's contribution
    sum of (place - mean place) * score, so signs are flipped (Fisher, The Design of Experiments,
    1935, section 21).
    """
    several = placed.of >= 2
    if not several.any():
        why = "every call shows one criterion, or none in a list: place cannot matter"
        return Finding(NAME, absent=why)
    x = (placed.place / np.maximum(placed.of - 1, 1))[several]
    y, of = placed.value[several], placed.of[several]
    case, criterion = placed.case[several], placed.criterion[several]
    repeated = np.bincount(placed.group[several]).max() > 1
    group = placed.group[several] if repeated else criterion
    rng = np.random.default_rng(options.seed)
    middle = x[:, None] - 0.5  # so that reversing an order turns the sign
    fitted = [("slope", "from the first place to the last scores change by", middle, [1.0])]
    if (of >= 3).any():
        ends = np.column_stack([x == 0, x == 1]).astype(np.float64)
        fitted.append(("last - first", "the last place against the first:", ends, [-1.0, 1.0]))
    measured = []
    for name, says, design, contrast in fitted:
        interval, scores = within_fit(y, design, group, case, np.array(contrast))
        test = sign_flip_test(scores, draws=options.draws, rng=rng)
        measured.append(
            Measured(
                name, "share of the scale", says, options.margin, interval,
                test.p if interval.mean is not None else None, len(scores),
                missing=interval.reason,
            )
        )  # fmt: skip
    return Finding(NAME, tuple(measured), detail=_means(y, x, of, criterion))


def within_fit(
    y: Floats, design: Floats, group: np.ndarray, case: np.ndarray, contrast: Floats
) -> tuple[Interval, Floats]:
    """A contrast of least-squares coefficients within groups, and each case's contribution.

    `y` (n,), `design` (n, k), `group` and `case` (n,) codes. The contributions (cases,) are sums of
    the contrast of the design times the centred y: their signs are flipped in the test, so the
    contrast of a reversed order must be its negative. Without variation of the design inside the
    groups there is no estimate, with the reason.
    """
    x, z = _centred(design, group), _centred(y[:, None], group)[:, 0]
    _, code = np.unique(case, return_inverse=True)
    cases = int(code.max()) + 1
    scores: Floats = np.bincount(code, weights=(design @ contrast) * z, minlength=cases).astype(
        np.float64
    )
    # rounding leaves about 1e-17 where places do not vary, which the default tolerance calls rank
    if np.linalg.matrix_rank(x, tol=1e-9 * math.sqrt(len(x))) < x.shape[1]:
        reason = "no criterion was seen in different places"
        return Interval(None, None, None, None, len(y), cases, "none", reason), scores
    bread = np.linalg.inv(x.T @ x)
    beta = bread @ (x.T @ z)
    estimate = float(contrast @ beta)
    if cases < 2:
        reason = "one case: no interval"
        return Interval(estimate, None, None, None, len(y), cases, "none", reason), scores
    pull = x * (z - x @ beta)[:, None]
    by_case = np.column_stack([np.bincount(code, weights=column) for column in pull.T])
    meat = by_case.T @ by_case * cases / (cases - 1)
    se = math.sqrt(max(float(contrast @ bread @ meat @ bread @ contrast), 0.0))
    half = _quantile(cases - 1) * se
    method = f"least squares within groups, cluster-robust t, {cases - 1} df"
    found = Interval(estimate, estimate - half, estimate + half, se, len(y), cases, method)
    return found, scores


def _centred(columns: Floats, group: np.ndarray) -> Floats:
    _, code = np.unique(group, return_inverse=True)
    size = np.bincount(code)
    means = np.column_stack([np.bincount(code, weights=c) / size for c in columns.T])
    return np.asarray(columns - means[code])


def _quantile(df: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.975))


def _means(y: Floats, x: Floats, of: np.ndarray, criterion: np.ndarray) -> dict[str, JsonValue]:
    """Mean score at the first, a middle and the last place, criteria brought to one mean."""
    level = _centred(y[:, None], criterion)[:, 0] + y.mean()
    parts = {"first": x == 0, "middle": (x > 0) & (x < 1), "last": x == 1}
    means: dict[str, JsonValue] = {
        name: float(level[rows].mean()) for name, rows in parts.items() if rows.any()
    }
    return {"mean_by_place": means, "ratings": len(y), "criteria_a_call": int(of.max())}
