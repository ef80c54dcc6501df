"""A judge's rate corrected by its errors on labelled cases."""

from __future__ import annotations

import math
from dataclasses import dataclass

from agenteval.stats.interval import Interval
from agenteval.stats.vectors import normal_quantile


@dataclass(frozen=True)
class Corrected:
    """The share of truly good cases, estimated with an imperfect judge.

    `rate` is the corrected share in [0, 1] with its interval, and `apparent` the judge's share.
    `specificity` (q0) and `sensitivity` (q1) are those of the judge on labelled cases, or None
    without any. `rate.reason` explains a missing or clipped estimate.
    """

    rate: Interval
    apparent: float | None
    specificity: float | None
    sensitivity: float | None
    n_bad: int
    n_good: int


def corrected_rate(
    judged: tuple[int, int], bad: tuple[int, int], good: tuple[int, int]
) -> Corrected:
    """Return the corrected rate from three counts of the judge's verdicts, each (count, total).

    `judged`: cases called good among the unlabelled ones. `bad`: called bad among those labelled
    bad (specificity q0). `good`: called good among those labelled good (sensitivity q1). The
    labelled cases must be independent of the judged ones. The interval is at 95%.

    theta = (p + q0 - 1) / (q0 + q1 - 1) (Rogan & Gladen, American Journal of Epidemiology 107,
    1978). `rate.se` is the delta method over both sets: se^2 = (p (1-p) / n + (1-theta)^2
    q0 (1-q0) / m0 + theta^2 q1 (1-q1) / m1) / (q0 + q1 - 1)^2. The interval is the adjusted Wald
    interval of Lang & Reiczigel (Preventive Veterinary Medicine 113, 2014), as in Lee et al.
    (arXiv 2511.21140, section 3): z^2 and 2 pseudo-cases, recentred, so that a judge without an
    observed error does not count as perfect. Both are clipped to [0, 1].

    There is no estimate if a set is empty or if q0 + q1 <= 1 (no better than chance), and no
    interval if that holds after adding the pseudo-cases. Raises ValueError for impossible counts.
    """
    for hits, total in (judged, bad, good):
        if not 0 <= hits <= total:
            raise ValueError(f"{hits} of {total} is impossible")
    (k, n), (k0, m0), (k1, m1) = judged, bad, good
    p, q0, q1 = (hits / total if total else None for hits, total in (judged, bad, good))
    if p is None or q0 is None or q1 is None:
        empty = "judged" if p is None else "labelled bad" if q0 is None else "labelled good"
        return Corrected(Interval.missing(f"no {empty} cases", n), p, q0, q1, m0, m1)
    if k0 * m1 + k1 * m0 <= m0 * m1:  # q0 + q1 <= 1, in integers
        reason = (
            f"specificity {q0:.3g} + sensitivity {q1:.3g} is not above 1: no better than chance"
        )
        return Corrected(Interval.missing(reason, n), p, q0, q1, m0, m1)
    theta, se = _estimate((p, n), (q0, m0), (q1, m1))
    mean = min(max(theta, 0.0), 1.0)
    z = normal_quantile(0.975)
    a, b = n + z * z, (k + z * z / 2) / (n + z * z)
    r0, r1 = (k0 + 1) / (m0 + 2), (k1 + 1) / (m1 + 2)
    if r0 + r1 <= 1:
        reason = "with pseudo-cases the judge is no better than chance: no interval"
        rate = Interval(mean, None, None, se, n, None, "Rogan-Gladen", reason)
        return Corrected(rate, p, q0, q1, m0, m1)
    centre, width = _estimate((b, a), (r0, m0 + 2), (r1, m1 + 2))
    shift = (
        2 * z * z * (centre * r1 * (1 - r1) / (m1 + 2) - (1 - centre) * r0 * (1 - r0) / (m0 + 2))
    )
    low = min(max(centre + shift - z * width, 0.0), mean)
    high = max(min(centre + shift + z * width, 1.0), mean)
    clipped = None if mean == theta else f"estimate {theta:.4g} clipped to [0, 1]"
    method = "Rogan-Gladen, adjusted Wald (Lang & Reiczigel)"
    return Corrected(Interval(mean, low, high, se, n, None, method, clipped), p, q0, q1, m0, m1)


def _estimate(
    p: tuple[float, float], q0: tuple[float, float], q1: tuple[float, float]
) -> tuple[float, float]:
    """Return theta and its standard error from three shares and their numbers of cases."""
    theta = (p[0] + q0[0] - 1) / (q0[0] + q1[0] - 1)
    spread = (
        p[0] * (1 - p[0]) / p[1]
        + (1 - theta) ** 2 * q0[0] * (1 - q0[0]) / q0[1]
        + theta**2 * q1[0] * (1 - q1[0]) / q1[1]
    )
    return theta, math.sqrt(spread) / (q0[0] + q1[0] - 1)
