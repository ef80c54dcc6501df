"""The total score of a rubric of weighted items."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum


def rubric_total(weights: Sequence[float], met: Sequence[float | None]) -> float | None:
    """Return the weighted total of a rubric in [0, 1], or None if no item counts.

    `met` is how far each item holds, from 0 to 1, or None (excluded) if the judge cannot tell. The
    total is the sum of weight × met over the sum of the positive weights, clipped to [0, 1].
    Without a positive weight it is 1 + sum / (sum of the absolute weights).

    This is the default of Autorubric 1.6 (`autorubric.scoring.score_reports`). With yes/no answers
    and a positive weight, it equals the score of HealthBench (arXiv 2505.08775, section 3).
    """
    counted = [(w, value) for w, value in zip(weights, met, strict=True) if value is not None]
    if not counted:
        return None
    positive, negative = (fsum(max(0.0, sign * w) for w, _ in counted) for sign in (1, -1))
    total = fsum(w * value for w, value in counted)
    if positive > 0:
        total /= positive
    elif negative > 0:
        total = 1 + total / negative
    return max(0.0, min(1.0, total))
