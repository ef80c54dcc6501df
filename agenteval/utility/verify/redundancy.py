"""Redundant criteria, by their ratings and not by their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agenteval.records.verification import Check, Verification
from agenteval.stats.correlation import correlation_matrix
from agenteval.stats.discrimination import discrimination
from agenteval.utility.verify.evidence import Evidence, Floats, means_of, row_means, successes
from agenteval.utility.verify.options import VerifyOptions


def redundancy(
    evidence: Sequence[Evidence], decided: Sequence[Verification], options: VerifyOptions
) -> list[Verification]:
    """Return the verdicts with a check of redundancy: Spearman's rho of the runs' means.

    Criteria that are kept or undecided are taken in order of their strength (keep first, then by
    agreement plus AUC). One whose rho with a retained criterion is at least `redundant`, over
    `min_cases` shared cases, is dropped, if the retained one covers as many ratings.
    """
    rho, n = None, None
    if len(evidence) > 1:
        correlations = correlation_matrix(means_of(evidence)[1])
        rho, n = correlations.rho, correlations.n
    order = [i for i, v in enumerate(decided) if v.verdict in ("keep", "undecided") and v.runs]
    order.sort(
        key=lambda i: (
            decided[i].verdict != "keep",
            -_strength(decided[i]),
            decided[i].criterion_id,
        )
    )
    retained: list[int] = []
    partners: dict[int, str] = {}
    for i in order if rho else ():
        same = [
            (value, decided[k].criterion_id)
            for k in retained
            if rho
            and (value := rho[i][k]) is not None
            and value >= options.redundant
            and _shared_cases(evidence[i], evidence[k]) >= options.min_cases
            and (decided[k].coverage or 0) >= (decided[i].coverage or 0) - 0.01
        ]
        if same:
            partners[i] = max(same)[1]
        else:
            retained.append(i)
    result = []
    for i, verification in enumerate(decided):
        nearest = [
            (value, other.criterion_id, n[i][k])
            for k, other in enumerate(decided)
            if k != i and rho and n and (value := rho[i][k]) is not None
        ]
        if not nearest:
            reason = "no correlation can be computed" if rho else "there is no other criterion"
            check = Check(name="redundancy", outcome="unknown", reason=reason)
            update: dict[str, object] = {}
        else:
            value, other_id, runs = max(nearest)
            partner = partners.get(i)
            where = f"(rho {value:.2f} over {runs} runs)"
            check = Check(
                name="redundancy",
                outcome="fail" if partner else "pass",
                reason=f"says what {partner} says {where}"
                if partner
                else f"nearest to {other_id} {where}",
                unit="rho",
                estimate=value,
                n=runs,
            )
            update = (
                {
                    "verdict": "drop",
                    "partner": partner,
                    "reasons": (check.reason,),
                    "next_step": f"leave it out; {partner} stays",
                }
                if partner
                else {}
            )
        update["checks"] = (*verification.checks, check)
        result.append(verification.model_copy(update=update))
    return result


def _strength(verification: Verification) -> float:
    """Return the AUC (1/2 where unknown) plus the agreement of a criterion."""
    estimates = {check.name: check.estimate for check in verification.checks}
    auc = estimates.get("discrimination")
    return (0.5 if auc is None else auc) + (estimates.get("agreement") or 0.0)


def _shared_cases(first: Evidence, second: Evidence) -> int:
    """Return the number of cases of the runs that both have a value for."""
    both = np.isin(first.originals.run, second.originals.run[second.rated])
    return len(np.unique(first.originals.case[first.rated & both]))


def smallest_subset(
    evidence: Sequence[Evidence], *, least: float, loss: float = 0.01
) -> tuple[str, ...]:
    """Return the fewest criteria whose mean discriminates success nearly as well as that of all.

    Greedy: the criterion that raises the AUC of the mean most is added until it is within `loss`
    of the AUC of all. Empty where success is unknown or one-sided, or where the AUC of all is below
    `least`. Chosen and measured on the same runs, so the AUC is slightly optimistic.
    """
    runs, means = means_of(evidence)
    success = successes(evidence, runs)
    goal = _auc(means, success)
    if goal is None or goal < least:
        return ()
    chosen: list[int] = []
    auc = -1.0
    while auc < goal - loss and len(chosen) < len(evidence):
        candidates = [j for j in range(len(evidence)) if j not in chosen]
        auc, negative = max((_auc(means[:, [*chosen, j]], success) or 0.0, -j) for j in candidates)
        chosen.append(-negative)
    return tuple(evidence[j].criterion.id for j in sorted(chosen))


def _auc(means: Floats, success: NDArray[np.int8]) -> float | None:
    """Return the AUC of the mean over the columns, of runs that have any value."""
    score = row_means(means)
    good, bad = (score[~np.isnan(score) & (success == s)] for s in (1, 0))
    return discrimination(good, bad).auc.mean
