"""Verification: what the verifier says of a criterion and of the judge, with the reasons."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from pydantic import Field

from agenteval.records.base import Record

Outcome = Literal["pass", "fail", "unknown"]
Verdict = Literal["keep", "repair", "drop", "undecided"]
Standing = Literal["shown", "refuted", "not shown", "not checked"]


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


class SystemFigure(Record):
    """A figure of one system, with its 95% interval over cases.

    `figure` is "change" (original minus copy, over the copies whose original left room to move) or
    "AUC" (success against failure). `n` counts copies or runs.
    """

    system: str
    figure: Literal["change", "AUC"]
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0


class Effect(Record):
    """Effect of one perturbation on one criterion.

    `estimate` is the mean over cases of original minus copy, in [-1, 1]: positive if the copy
    scores lower. `expected` was fixed before scoring. `fell`, `rose` and `tied` count cases;
    `shorter` is the share of copies with a shorter text, which length alone would predict.
    `systems` has the change of each system if there are several and a direction was expected.
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
    systems: tuple[SystemFigure, ...] = ()


class Verification(Record):
    """The verdict on one criterion, its reasons in words, and everything it rests on.

    `next_step` is one clause: what to do now. `refuted` says what the data contradict: no verdict
    on a judge passes over such a criterion.
    """

    criterion_id: str
    verdict: Verdict
    reasons: tuple[str, ...]
    next_step: str = ""
    runs: int
    cases: int
    repeats: int
    coverage: float | None = None
    mean: float | None = None
    low: float | None = None  # of the mean, 95% over cases; None with fewer than two
    high: float | None = None
    checks: tuple[Check, ...] = ()
    effects: tuple[Effect, ...] = ()
    refuted: tuple[str, ...] = ()
    partner: str | None = None  # the criterion that says the same

    def check(self, name: str) -> Check | None:
        """The check of this name, or None when it was not made."""
        return next((c for c in self.checks if c.name == name), None)


class JudgeEvidence(Record):
    """One kind of evidence on a judge: a claim, and whether the data support it.

    `name` is the claim in words. "not checked" means that there were no data to check it.
    `estimate`, `low` and `high` are in the unit `unit`, if one figure is sufficient.
    """

    name: str
    standing: Standing
    reason: str
    next_step: str = ""
    unit: str = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    systems: tuple[SystemFigure, ...] = ()


class JudgeVerdict(Record):
    """The verdict on the judge as a whole for these criteria and runs, with the next step.

    `verdict` is "trustworthy", "not trustworthy" or "not enough data", or "trustworthy" with its
    limits: "trustworthy except accuracy", "trustworthy for differences within a case", "trustworthy
    as one score". `refuted` has the excepted criteria, `one_score` those that cannot be
    distinguished, and `within_case` is whether success is unknown.
    """

    verdict: str
    reasons: tuple[str, ...]
    next_step: str = ""
    warnings: tuple[str, ...] = ()
    evidence: tuple[JudgeEvidence, ...] = ()
    refuted: tuple[str, ...] = ()
    one_score: tuple[str, ...] = ()
    within_case: bool = False

    @property
    def trusted(self) -> bool:
        """Whether the verdict is "trustworthy", with limits or without."""
        return self.verdict.startswith("trustworthy")

    def of(self, name: str) -> JudgeEvidence | None:
        """Return the evidence with this name, or None."""
        return next((e for e in self.evidence if e.name == name), None)

    def exit_code(self, allowed: Collection[str] = ()) -> int:
        """Return what a gate exits with: 5 where the judge is not trustworthy or a criterion is
        refuted that is not in `allowed`, 4 where data are missing (success unknown), else 0."""
        if self.verdict == "not trustworthy" or set(self.refuted) - set(allowed):
            return 5
        return 0 if self.trusted and not self.within_case else 4


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
