"""Verification: what the verifier says of a criterion and of the judge, with the reasons."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agenteval.records.base import Record

Outcome = Literal["pass", "fail", "unknown"]
Verdict = Literal["keep", "repair", "drop", "undecided"]
Trust = Literal["trustworthy", "not trustworthy", "not enough data"]


class Check(Record):
    """One property that was examined.

    `reason` is one line for a person. `estimate` with `low` and `high` (95%) is in the unit that
    `unit` names; `p` is raw, `p_adjusted` corrected over all criteria of the same family. What
    could not be computed is None, and the reason says why.
    """

    name: str
    outcome: Outcome
    reason: str
    unit: str = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    n: int = 0


class Effect(Record):
    """What one perturbation did to one criterion.

    `estimate` is the mean over cases of original minus copy, in [-1, 1]: positive where the copy
    scores lower. `expected` was fixed before scoring. `fell`, `rose` and `tied` count cases;
    `shorter` is the share of copies with a shorter text, which is what length alone would say.
    """

    variant: str
    operator: str
    share: float | None = None
    expected: Literal["lower", "none", "higher", "unknown"]
    outcome: Outcome
    reason: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    n: int = 0  # cases
    pairs: int = 0  # runs whose original and copy both have a value
    fell: int = 0
    rose: int = 0
    tied: int = 0
    missing: int = 0  # copies that were judged and have no value
    unchanged: int = 0  # copies that equal their original: they are left out
    shorter: float | None = None


class Verification(Record):
    """The verdict on one criterion, its reasons in words, and everything it rests on.

    `next_step` is one clause: what to do now.
    """

    criterion_id: str
    verdict: Verdict
    reasons: tuple[str, ...]
    next_step: str = ""
    runs: int
    cases: int
    repeats: int
    coverage: float | None
    mean: float | None
    low: float | None = None  # of the mean, 95% over cases; None with fewer than two
    high: float | None = None
    checks: tuple[Check, ...] = ()
    effects: tuple[Effect, ...] = ()
    partner: str | None = None  # the criterion that says the same

    def check(self, name: str) -> Check | None:
        """The check of this name, or None when it was not made."""
        return next((c for c in self.checks if c.name == name), None)


class JudgeVerdict(Record):
    """What holds of the judge as a whole, on these criteria and runs, and what to do now."""

    verdict: Trust
    reasons: tuple[str, ...]
    next_step: str = ""
    warnings: tuple[str, ...] = ()


class VerifiedSet(Record):
    """The result of one verification.

    `subset` is the smallest choice of criteria that keeps the discrimination of all, empty where
    success is unknown.
    """

    judge: JudgeVerdict
    criteria: tuple[Verification, ...]
    subset: tuple[str, ...] = ()
    first_component: float | None = None  # share of variance of the criteria's first component
    options: dict[str, bool | int | float] = Field(default_factory=dict)
