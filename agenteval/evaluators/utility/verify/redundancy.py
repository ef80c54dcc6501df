"""Which criteria say the same, by what they rate and not by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.evaluators.utility.verify.evidence import Evidence
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records.verification import Check
from agenteval.stats.correlation import CorrelationMatrix, correlation_matrix, first_component
from agenteval.stats.discrimination import discrimination

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Redundancy:
    """Per criterion id its check, and its partner where it says the same and is told worse."""

    checks: Mapping[str, Check]
    partners: Mapping[str, str]
    first_component: float | None


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
    evidence: Sequence[Evidence], strength: Mapping[str, float], options: VerifyOptions
) -> Redundancy:
    """Spearman's rho of the runs' means between every two criteria.

    From `redundant` on, the one of lower `strength` has the other as its partner: what it says is
    said better there. A partner is never itself one that is dropped for a partner.
    """
    ids = [e.criterion.id for e in evidence]
    if len(ids) < 2:
        reason = "there is no other criterion"
        alone = {i: Check(name="redundancy", outcome="unknown", reason=reason) for i in ids}
        return Redundancy(alone, {}, None)
    means = means_of(evidence)
    found = correlation_matrix(means)
    partners: dict[str, str] = {}
    for weak in sorted(ids, key=lambda i: (strength[i], i)):
        own = ids.index(weak)
        others = [
            (rho, other)
            for k, other in enumerate(ids)
            if other != weak and other not in partners
            and (rho := found.rho[own][k]) is not None
            and found.n[own][k] >= options.min_cases
        ]  # fmt: skip
        best = max(others, default=None)
        if best is not None and best[0] >= options.redundant:
            partners[weak] = best[1]
    checks = {i: _check(i, ids, found, partners.get(i)) for i in ids}
    return Redundancy(checks, partners, first_component(means).share)


def _check(own: str, ids: Sequence[str], found: CorrelationMatrix, partner: str | None) -> Check:
    at = ids.index(own)
    pairs = [
        (rho, other, found.n[at][k])
        for k, other in enumerate(ids)
        if other != own and (rho := found.rho[at][k]) is not None
    ]
    if not pairs:
        return Check(name="redundancy", outcome="unknown", reason="no correlation can be computed")
    if partner is not None:
        rho, other, n = next(p for p in pairs if p[1] == partner)
        reason, outcome = f"says what {other} says (rho {rho:.2f} over {n} runs)", "fail"
    else:
        rho, other, n = max(pairs)
        reason, outcome = f"nearest to {other} (rho {rho:.2f} over {n} runs)", "pass"
    return Check(name="redundancy", outcome=outcome, reason=reason, unit="rho", estimate=rho, n=n)


def smallest_subset(evidence: Sequence[Evidence], *, loss: float = 0.01) -> tuple[str, ...]:
    """The fewest criteria whose mean tells success from failure nearly as well as that of all.

    Greedy: the criterion that raises the AUC of the mean most is added until it is within `loss`
    of the AUC of all. Empty where success is unknown or one-sided. Chosen and measured on the same
    runs, so its AUC is a little too high.
    """
    means = means_of(evidence)
    success = _success(evidence)
    goal = _area(means, success)
    if goal is None:
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
