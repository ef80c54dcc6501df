"""Did the judge's input really change? A published run left 53 of 120 "disturbed" cases as is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from agenteval.errors import InputError
from agenteval.evaluators.utility.perturb.result import Perturbed
from agenteval.records import View


@dataclass(frozen=True, slots=True)
class Spread:
    """Least, quartiles (numpy's linear interpolation) and greatest of a list of numbers."""

    least: float
    q25: float
    median: float
    q75: float
    greatest: float


@dataclass(frozen=True, slots=True)
class ChangeCount:
    """Of `n` pairs of one operator: how many differ in what the judge sees, and by how much.

    `unchanged` are equal; `blank_only` differ in white space alone (right for the control
    `whitespace`, suspicious elsewhere); both and `changed` sum to `n`. `reasons` counts what was
    said of the unchanged. The spreads are over the changed pairs, None without any: new length
    over old, share of sentences touched, share applied.
    """

    n: int
    changed: int
    unchanged: int
    blank_only: int
    reasons: dict[str, int]
    length_ratio: Spread | None
    sentences_touched: Spread | None
    share_applied: Spread | None


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """Counts by operator, and one line of warning, None where every pair changed."""

    by_operator: dict[str, ChangeCount]
    warning: str | None


def check_changed(pairs: Iterable[tuple[View, Perturbed]]) -> ChangeReport:
    """Compares the texts themselves, not what the operators say of them.

    Raises InputError when a pair mixes two runs.
    """
    groups: dict[str, list[tuple[View, Perturbed]]] = {}
    for view, perturbed in pairs:
        if view.run_id != perturbed.view.run_id:
            raise InputError(f"a pair of two runs: {view.run_id!r} and {perturbed.view.run_id!r}")
        groups.setdefault(perturbed.operator, []).append((view, perturbed))
    counts = {operator: _count(group) for operator, group in groups.items()}
    return ChangeReport(counts, _warning(counts))


def _count(group: list[tuple[View, Perturbed]]) -> ChangeCount:
    seen = [(_difference(view, p.view), p) for view, p in group]
    changed = [p for what, p in seen if what == "changed" or (what == "blank" and _may_blank(p))]
    unchanged = [p for what, p in seen if what == "same"]
    return ChangeCount(
        n=len(group),
        changed=len(changed),
        unchanged=len(unchanged),
        blank_only=len(group) - len(changed) - len(unchanged),
        reasons=dict(Counter(p.reason or "no reason given" for p in unchanged)),
        length_ratio=_spread([p.amount.length_ratio for p in changed]),
        sentences_touched=_spread([p.amount.sentences_touched for p in changed]),
        share_applied=_spread([p.share_applied for p in changed]),
    )


def _may_blank(perturbed: Perturbed) -> bool:
    return perturbed.operator == "whitespace"


def _difference(before: View, after: View) -> str:
    old = (before.problem, before.trajectory, before.reference or "")
    new = (after.problem, after.trajectory, after.reference or "")
    if old == new:
        return "same"
    return "blank" if [t.split() for t in old] == [t.split() for t in new] else "changed"


def _spread(values: list[float | None]) -> Spread | None:
    known = [v for v in values if v is not None]
    if not known:
        return None
    least, q25, median, q75, greatest = np.quantile(known, [0, 0.25, 0.5, 0.75, 1]).tolist()
    return Spread(least, q25, median, q75, greatest)


def _warning(counts: dict[str, ChangeCount]) -> str | None:
    said = []
    for operator, count in counts.items():
        still = count.unchanged + count.blank_only
        if still:
            why = max(
                count.reasons, key=lambda r: (count.reasons[r], r), default="white space only"
            )
            said.append(f"{operator} {still} of {count.n} (mostly: {why})")
    return "not changed by the perturbation: " + ", ".join(said) if said else None
