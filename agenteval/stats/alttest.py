"""The alternative annotator test: can the judge replace one of the people?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.stats.multiple import adjust
from agenteval.stats.vectors import Floats

SMALLEST = 30  # minimum items per annotator for the t test
Label = Hashable | None


@dataclass(frozen=True)
class AltTest:
    """Result by annotator, in order; None for annotators that could not be compared.

    `advantages[j]`: share of items on which the judge agrees with the others at least as well as
    annotator j. `p[j]` is one-sided, `adjusted` by Benjamini-Yekutieli. `winning_rate` is
    the share of annotators with adjusted p <= .05; `passes` means that it is >= .5.
    """

    winning_rate: float | None
    mean_advantage: float | None
    passes: bool | None
    advantages: tuple[float | None, ...]
    p: tuple[float | None, ...]
    adjusted: tuple[float | None, ...]
    items: tuple[int, ...]
    reason: str | None = None


def alt_test(
    judge: Sequence[Label],
    annotators: Sequence[Sequence[Label]],
    *,
    epsilon: float = 0.2,
) -> AltTest:
    """Alternative annotator test on nominal labels (Calderon, Reichart & Dror, ACL 2025).

    Annotator j is left out. On each item labelled by j, the judge and at least one other annotator,
    j and the judge are scored by the share of the others with the same label. The judge wins an
    item if its score is >= j's, and j wins if j's is >= the judge's (both win on equality). The t
    test is one-sided on (j wins - judge wins) < epsilon; `epsilon` (.1 to .3) accounts for the
    higher cost of people. None is a missing label. Encode a judge's unreadable reply as a separate
    label to count it against the judge, or as None to leave it out.

    Needs at least three annotators, else the result is None with the reason. Annotators with fewer
    than 30 comparable items are not tested (None). If all differences are equal, p is 0 or 1.
    Raises ValueError for different lengths or epsilon outside [0, 1).
    """
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon {epsilon} is not in [0, 1)")
    if any(len(labels) != len(judge) for labels in annotators):
        raise ValueError("judge and annotators must have one label (or None) per item")
    k = len(annotators)
    advantages: list[float | None] = [None] * k
    p_values: list[float | None] = [None] * k
    items = [0] * k
    for j in range(k) if k >= 3 else ():
        ours, theirs = _scores(judge, annotators, j)
        items[j] = len(ours)
        if len(ours) >= SMALLEST:
            advantages[j] = float((ours >= theirs).mean())
            p_values[j] = _p(ours, theirs, epsilon)
    adjusted = adjust(p_values, "by")
    valid = [p for p in adjusted if p is not None]
    reason = f"{k - len(valid)} of {k} annotators share fewer than {SMALLEST} items"
    if k < 3:
        reason = f"{k} annotators: the test needs at least three"
    winning = sum(p <= 0.05 for p in valid) / len(valid) if valid else None
    defined = [value for value in advantages if value is not None]
    return AltTest(
        winning_rate=winning,
        mean_advantage=sum(defined) / len(defined) if defined else None,
        passes=None if winning is None else winning >= 0.5,
        advantages=tuple(advantages),
        p=tuple(p_values),
        adjusted=adjusted,
        items=tuple(items),
        reason=None if valid and len(valid) == k else reason,
    )


def _scores(
    judge: Sequence[Label], annotators: Sequence[Sequence[Label]], left_out: int
) -> tuple[Floats, Floats]:
    """Return the agreement of the judge and the excluded annotator with the others, by item."""
    ours, theirs = [], []
    for item, (verdict, annotation) in enumerate(zip(judge, annotators[left_out], strict=True)):
        remaining = [a[item] for j, a in enumerate(annotators) if j != left_out]
        labels = [label for label in remaining if label is not None]
        if verdict is None or annotation is None or not labels:
            continue
        ours.append(sum(label == verdict for label in labels) / len(labels))
        theirs.append(sum(label == annotation for label in labels) / len(labels))
    return np.array(ours), np.array(theirs)


def _p(ours: Floats, theirs: Floats, epsilon: float) -> float:
    from scipy.special import stdtr

    difference = (theirs >= ours).astype(np.float64) - (ours >= theirs)
    n, mean = len(difference), float(difference.mean())
    if difference.min() == difference.max():
        return 0.0 if mean < epsilon else 1.0
    t = (mean - epsilon) / (float(difference.std(ddof=1)) / n**0.5)
    return float(stdtr(n - 1, t))
