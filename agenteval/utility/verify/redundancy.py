"""Which criteria say the same, by what they rate and not by their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agenteval.records.verification import Check, Verification
from agenteval.stats.correlation import correlation_matrix
from agenteval.stats.discrimination import discrimination
from agenteval.utility.verify.evidence import Evidence, Floats
from agenteval.utility.verify.options import VerifyOptions


def means_of(evidence: Sequence[Evidence]) -> Floats:
    """(runs, criteria) means over repeats, NaN where a run has none; runs by their code."""
    runs = np.unique([run for e in evidence for run in e.originals.run])
    means = np.full((len(runs), len(evidence)), np.nan)
    for j, one in enumerate(evidence):
        means[np.searchsorted(runs, one.originals.run), j] = one.originals.mean
    return means


def overall_means(evidence: Sequence[Evidence]) -> tuple[NDArray[np.int32], Floats]:
    """Codes of the runs, and the mean of each over the criteria that have a value on it; NaN where
    none has."""
    runs = np.unique(np.concatenate([e.originals.run for e in evidence]))
    return runs, _row_means(means_of(evidence))


def _row_means(means: Floats) -> Floats:
    known = ~np.isnan(means)
    count, total = known.sum(axis=1), np.where(known, means, 0).sum(axis=1)
    mean = np.full(len(total), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def redundancy(
    evidence: Sequence[Evidence], decided: Sequence[Verification], options: VerifyOptions
) -> list[Verification]:
    """The verdicts with redundancy: Spearman's rho of the runs' means between every two criteria.

    From the best told criterion down (keep before undecided, then agreement plus AUC), one that
    says what an already retained one says (`redundant` over the runs that both rate, of at least
    `min_cases` cases) is dropped. Only criteria that are kept or undecided retain or are dropped
    so, and a partner covers as many ratings.
    """
    if len(evidence) < 2:
        reason = "there is no other criterion"
        check = Check(name="redundancy", outcome="unknown", reason=reason)
        return [_with(v, check) for v in decided]
    correlations = correlation_matrix(means_of(evidence))
    candidates = [i for i, v in enumerate(decided) if v.verdict in ("keep", "undecided") and v.runs]
    candidates.sort(
        key=lambda i: (
            decided[i].verdict != "keep",
            -_strength(decided[i]),
            decided[i].criterion_id,
        )
    )
    retained: list[int] = []
    partners: dict[int, str] = {}
    for i in candidates:
        same = [
            (rho, decided[k].criterion_id)
            for k in retained
            if (rho := correlations.rho[i][k]) is not None
            and rho >= options.redundant
            and _shared(evidence[i], evidence[k]) >= options.min_cases
            and (decided[k].coverage or 0) >= (decided[i].coverage or 0) - 0.01
        ]
        if same:
            partners[i] = max(same)[1]
        else:
            retained.append(i)
    result = []
    for i, one in enumerate(decided):
        pairs = [
            (rho, other.criterion_id, correlations.n[i][k])
            for k, other in enumerate(decided)
            if k != i and (rho := correlations.rho[i][k]) is not None
        ]
        if not pairs:
            reason = "no correlation can be computed"
            result.append(_with(one, Check(name="redundancy", outcome="unknown", reason=reason)))
            continue
        rho, other, n = max(pairs)
        where = f"rho {rho:.2f} over {n} runs"
        partner = partners.get(i)
        reason = (
            f"says what {partner} says ({where})" if partner else f"nearest to {other} ({where})"
        )
        check = Check(
            name="redundancy",
            outcome="fail" if partner else "pass",
            reason=reason,
            unit="rho",
            estimate=rho,
            n=n,
        )
        result.append(_with(one, check, partner))
    return result


def _with(verification: Verification, check: Check, partner: str | None = None) -> Verification:
    """The verdict with one check more; dropped where a partner says the same."""
    update: dict[str, object] = {"checks": (*verification.checks, check)}
    if partner:
        update |= {
            "verdict": "drop",
            "partner": partner,
            "reasons": (check.reason,),
            "next_step": f"leave it out; {partner} stays",
        }
    return verification.model_copy(update=update)


def _strength(verification: Verification) -> float:
    """How well a criterion is told: its AUC (1/2 where unknown) plus its agreement."""
    estimates = {check.name: check.estimate for check in verification.checks}
    area = estimates.get("discrimination")
    return (0.5 if area is None else area) + (estimates.get("agreement") or 0.0)


def _shared(first: Evidence, second: Evidence) -> int:
    """Number of cases of the runs that both have a value for."""
    both = np.isin(first.originals.run, second.originals.run[second.rated])
    return len(np.unique(first.originals.case[first.rated & both]))


def smallest_subset(
    evidence: Sequence[Evidence], *, least: float, loss: float = 0.01
) -> tuple[str, ...]:
    """The fewest criteria whose mean tells success from failure nearly as well as that of all.

    Greedy: the criterion that raises the AUC of the mean most is added until it is within `loss`
    of the AUC of all. Empty where success is unknown or one-sided, or where that AUC is below
    `least`: then there is nothing to keep. Chosen and measured on the same runs, so its AUC is a
    little too high.
    """
    means = means_of(evidence)
    outcomes = {
        int(run): int(s)
        for e in evidence
        for run, s in zip(e.originals.run, e.originals.success, strict=True)
    }
    success = np.array([outcomes[run] for run in sorted(outcomes)], dtype=np.int8)
    goal = _area(means, success)
    if goal is None or goal < least:
        return ()
    chosen: list[int] = []
    area = -1.0
    while area < goal - loss and len(chosen) < len(evidence):
        left = [j for j in range(len(evidence)) if j not in chosen]
        area, negative = max((_area(means[:, [*chosen, j]], success) or 0.0, -j) for j in left)
        chosen.append(-negative)
    return tuple(evidence[j].criterion.id for j in sorted(chosen))


def _area(means: Floats, success: NDArray[np.int8]) -> float | None:
    """AUC of the mean over the columns, of runs that have any."""
    score = _row_means(means)
    good, bad = (score[~np.isnan(score) & (success == s)] for s in (1, 0))
    return discrimination(good, bad).auc.mean
