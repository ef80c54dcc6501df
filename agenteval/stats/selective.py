"""Selective judging: the lowest confidence at which labels prove agreement with people.

Trust or Escalate (Jung et al., arXiv 2407.18370, section 2): a judge decides if its confidence
reaches a threshold, and fixed-sequence testing of thresholds proves its agreement.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.stats.mean_limit import mean_limit
from agenteval.stats.proportion import proportion_interval
from agenteval.stats.vectors import Floats, finite_vector

_MOST_THRESHOLDS = 10


@dataclass(frozen=True)
class ProvenThreshold:
    """The lowest proven threshold, or None with the `reason`.

    `agreement` is the lower confidence limit of the agreement from the threshold on, `cases` the
    number of labelled cases there, `errors` the number of answers that differ from the label.
    """

    threshold: float | None
    agreement: float | None = None
    cases: int = 0
    errors: int = 0
    reason: str = ""


def cases_to_prove(agreement: float, confidence: float) -> int:
    """Return the number of labelled cases needed if no answer is wrong: the smallest n with
    agreement^n <= 1 - confidence."""
    return math.ceil(math.log(1 - confidence) / math.log(agreement) - 1e-9)


def prove_threshold(
    confidences: Sequence[float] | Floats,
    wrong: Sequence[bool],
    cases: Sequence[Hashable],
    *,
    agreement: float,
    confidence: float,
) -> ProvenThreshold:
    """Return the lowest threshold from which a judge agrees with people in at least `agreement`.

    The arguments have one entry per labelled answer: the judge's confidence, whether the answer
    differs from the label, and the case. Thresholds are the distinct confidences, or, if there are
    more than 10, their deciles. They are tested from the highest downward until the first that is
    not proven; thresholds with fewer than `cases_to_prove` cases cannot be proven and are skipped.
    Which ones are tested depends on the confidences only, so that all tests together are wrong with
    probability at most 1 - `confidence` (fixed-sequence testing).

    A threshold is proven if the upper limit of the error rate is at most 1 - `agreement`. The case
    is the unit: the error rate of a case is the share of its answers that are wrong, and the limit
    is that of the mean over cases. It is Clopper and Pearson's if each case is entirely right or
    wrong, otherwise Gaffke's generalization (`mean_limit`).

    Raises ValueError unless 0 < `agreement` < 1 and .5 <= `confidence` <= .99.
    """
    if not 0 < agreement < 1:
        raise ValueError(f"the agreement {agreement:g} is not between 0 and 1")
    if not 0.5 <= confidence <= 0.99:
        raise ValueError(f"the confidence {confidence:g} is not between .5 and .99")
    values = finite_vector(confidences, "confidences")
    thresholds = np.unique(values)
    if len(thresholds) > _MOST_THRESHOLDS:
        shares = np.arange(_MOST_THRESHOLDS) / _MOST_THRESHOLDS
        thresholds = np.unique(np.quantile(values, shares, method="lower"))
    least = cases_to_prove(agreement, confidence)
    best = ProvenThreshold(None, reason="no labels")
    for threshold in thresholds[::-1].tolist():
        by_case: dict[Hashable, list[bool]] = {}
        for value, error, case in zip(values, wrong, cases, strict=True):
            if value >= threshold:
                by_case.setdefault(case, []).append(bool(error))
        n, errors = len(by_case), sum(map(sum, by_case.values()))
        if n < least:
            reason = f"{n} labelled cases; at least {least} are needed"
            best = ProvenThreshold(None, cases=n, errors=errors, reason=reason)
            continue
        limit = _upper_limit([sum(e) / len(e) for e in by_case.values()], confidence)
        if limit > 1 - agreement + 1e-12:
            if best.threshold is None:
                reason = f"from {threshold:g} on, agreement is only proven to be {1 - limit:.2f}"
                best = ProvenThreshold(None, 1 - limit, n, errors, reason)
            break
        best = ProvenThreshold(threshold, 1 - limit, n, errors)
    return best


def _upper_limit(rates: Sequence[float], confidence: float) -> float:
    if any(rate not in (0, 1) for rate in rates):
        return mean_limit(rates, 1.0, level=confidence)
    # the upper end of this two-sided interval is the one-sided limit
    level = max(2 * confidence - 1, 1e-9)
    errors, n = round(sum(rates)), len(rates)
    interval = proportion_interval(errors, n, method="clopper-pearson", level=level)
    return 1.0 if interval.high is None else interval.high
