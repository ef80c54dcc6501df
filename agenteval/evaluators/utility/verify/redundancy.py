"""Which criteria say the same, by what they rate and not by their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records.verification import Check, Verification
from agenteval.stats.correlation import CorrelationMatrix, correlation_matrix
from agenteval.stats.discrimination import discrimination

Floats = NDArray[np.float64]


def means_of(evidence: Sequence[Evidence]) -> Floats:
    """(runs, criteria) means over repeats, NaN where a run has none; runs by their code."""
    runs = sorted({int(r) for e in evidence for r in e.originals.run})
    row = {run: i for i, run in enumerate(runs)}
    means = np.full((len(runs), len(evidence)), np.nan)
    for j, one in enumerate(evidence):
        for run, value in zip(one.originals.run.tolist(), one.originals.mean, strict=True):
            means[row[run], j] = value
    return means


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
        check = Check(name="redundancy", outcome="unknown", reason="there is no other criterion")
        return [_with(v, check) for v in decided]
    means = means_of(evidence)
    found = correlation_matrix(means)
    place = {v.criterion_id: i for i, v in enumerate(decided)}
    candidates = [v for v in decided if v.verdict in ("keep", "undecided") and v.runs]
    candidates.sort(key=lambda v: (v.verdict != "keep", -_strength(v), v.criterion_id))
    retained: list[Verification] = []
    partners: dict[str, str] = {}
    for one in candidates:
        own = place[one.criterion_id]
        same = [
            (rho, other.criterion_id)
            for other in retained
            if (rho := found.rho[own][k := place[other.criterion_id]]) is not None
            and rho >= options.redundant
            and _shared(evidence[own], evidence[k]) >= options.min_cases
            and (other.coverage or 0) >= (one.coverage or 0) - 0.01
        ]
        if same:
            partners[one.criterion_id] = max(same)[1]
        else:
            retained.append(one)
    return [
        _dropped(v, partners.get(v.criterion_id), _nearest(i, decided, found))
        for i, v in enumerate(decided)
    ]


def _strength(one: Verification) -> float:
    """How well a criterion is told: its AUC (1/2 where unknown) plus its agreement."""
    area, alpha = (
        None if (check := one.check(name)) is None else check.estimate
        for name in ("discrimination", "agreement")
    )
    return (0.5 if area is None else area) + (alpha or 0.0)


def _shared(first: Evidence, second: Evidence) -> int:
    """Number of cases of the runs that both have a value for."""
    both = np.isin(first.originals.run, second.originals.run[second.rated])
    return len(np.unique(first.originals.case[first.rated & both]))


def _nearest(at: int, decided: Sequence[Verification], found: CorrelationMatrix) -> Check:
    pairs = [
        (rho, other.criterion_id, found.n[at][k])
        for k, other in enumerate(decided)
        if k != at and (rho := found.rho[at][k]) is not None
    ]
    if not pairs:
        return Check(name="redundancy", outcome="unknown", reason="no correlation can be computed")
    rho, other, n = max(pairs)
    reason = f"nearest to {other} (rho {rho:.2f} over {n} runs)"
    return Check(name="redundancy", outcome="pass", reason=reason, unit="rho", estimate=rho, n=n)


def _dropped(one: Verification, partner: str | None, check: Check) -> Verification:
    if partner is None:
        return _with(one, check)
    reason = f"says what {partner} says ({check.reason.partition('(')[2]}"
    failed = check.model_copy(update={"outcome": "fail", "reason": reason})
    update = {
        "verdict": "drop", "partner": partner, "reasons": (reason,),
        "next_step": f"leave it out; {partner} stays",
    }  # fmt: skip
    return _with(one, failed).model_copy(update=update)


def _with(one: Verification, check: Check) -> Verification:
    return one.model_copy(update={"checks": (*one.checks, check)})


def smallest_subset(
    evidence: Sequence[Evidence], *, least: float, loss: float = 0.01
) -> tuple[str, ...]:
    """The fewest criteria whose mean tells success from failure nearly as well as that of all.

    Greedy: the criterion that raises the AUC of the mean most is added until it is within `loss`
    of the AUC of all. Empty where success is unknown or one-sided, or where that AUC is below
    `least`: then there is nothing to keep. Chosen and measured on the same
    runs, so its AUC is a little too high.
    """
    means = means_of(evidence)
    success = _success(evidence)
    goal = _area(means, success)
    if goal is None or goal < least:
        return ()
    chosen: list[int] = []
    while len(chosen) < len(evidence):
        left = [j for j in range(len(evidence)) if j not in chosen]
        areas = [(_area(means[:, [*chosen, j]], success) or 0.0, -j) for j in left]
        area, negative = max(areas)
        chosen.append(-negative)
        if area >= goal - loss:
            break
    return tuple(evidence[j].criterion.id for j in sorted(chosen))


def _success(evidence: Sequence[Evidence]) -> NDArray[np.int8]:
    known = {
        int(run): int(s)
        for e in evidence
        for run, s in zip(e.originals.run, e.originals.success, strict=True)
    }
    return np.array([known[run] for run in sorted(known)], dtype=np.int8)


def _area(means: Floats, success: NDArray[np.int8]) -> float | None:
    """AUC of the mean over the columns, of runs that have any."""
    known = ~np.isnan(means)
    count = known.sum(axis=1)
    total = np.where(known, means, 0).sum(axis=1)
    score = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    rated = count > 0
    return discrimination(score[rated & (success == 1)], score[rated & (success == 0)]).auc.mean
