"""The total of a rubric: weighted items that are met or not."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Literal

CannotTell = Literal["skip", "zero", "partial", "fail"]


def rubric_total(
    weights: Sequence[float],
    met: Sequence[float | None],
    cannot_tell: CannotTell = "skip",
    *,
    partial_credit: float = 0.5,
) -> float | None:
    """Return the weighted total of a rubric in [0, 1], or None if no item counts.

    `met` says how far each item holds, from 0 to 1, or None if the judge cannot tell. The total is
    the sum of weight × met over the sum of the positive weights, clipped to [0, 1]. Without a
    positive weight it is 1 + sum / (sum of the absolute weights).

    `cannot_tell` says how an item without an answer counts: "skip" leaves it out of both sums,
    "zero" counts it as 0, "partial" gives a positive item `partial_credit` of its weight, and
    "fail" takes the worst outcome.

    The formula and the default are those of Autorubric 1.6 (`autorubric.scoring.score_reports`). A
    rubric with positive weights and only yes/no answers has the score of HealthBench
    (arXiv 2505.08775, section 3).
    """
    contributions, counted = [], []
    for weight, value in zip(weights, met, strict=True):
        if value is None:
            if cannot_tell == "skip":
                continue
            positive = partial_credit if cannot_tell == "partial" else 0.0
            value = positive if weight > 0 else float(cannot_tell == "fail")
        contributions.append(weight * value)
        counted.append(weight)
    if not counted:
        return None
    positive, negative = (fsum(max(0.0, sign * w) for w in counted) for sign in (1, -1))
    total = fsum(contributions)
    if positive > 0:
        total /= positive
    elif negative > 0:
        total = 1 + total / negative
    return max(0.0, min(1.0, total))
