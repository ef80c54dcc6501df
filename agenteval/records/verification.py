"""Verification: the verdicts on a criterion and on the judge, with reasons."""

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

    `reason` is one readable line. `estimate`, `low` and `high` (95%) are in the unit `unit`; `p` is
    raw, `p_adjusted` corrected over all criteria of the family. Values that could not be computed
    are None, and the reason says why.
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
    """A statistic of one system, with its 95% interval over cases.

    `figure` is "change" (original minus copy, over copies with room for a change) or "AUC" (success
    against failure). `n` counts copies or runs.
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
    pairs: int = 0  # runs with a value for both original and copy
    fell: int = 0
    rose: int = 0
    tied: int = 0
    missing: int = 0  # judged copies without a value
    unchanged: int = 0  # copies equal to their original, which are excluded
    shorter: float | None = None
    systems: tuple[SystemFigure, ...] = ()


class Verification(Record):
    """The verdict on one criterion, its reasons in words, and its evidence.

    `next_step` is one clause that says what to do. `refuted` says what the data contradict; a
    verdict on the judge always takes it into account.
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
    low: float | None = None  # 95% interval of the mean over cases; None with fewer than two
    high: float | None = None
    checks: tuple[Check, ...] = ()
    effects: tuple[Effect, ...] = ()
    refuted: tuple[str, ...] = ()
    partner: str | None = None  # the criterion that it duplicates

    def check(self, name: str) -> Check | None:
        """Return the check with this name, or None if it was not made."""
        return next((c for c in self.checks if c.name == name), None)


class JudgeEvidence(Record):
    """One kind of evidence on a judge: a claim, and whether the data support it.

    `name` is the claim in words. "not checked" means that there were no data for it. `estimate`,
    `low` and `high` are in the unit `unit`, if a single number is sufficient.
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

    `verdict` is "trustworthy", "not trustworthy", "not enough data", or "trustworthy" with limits:
    "trustworthy except accuracy", "trustworthy for differences within a case", "trustworthy as one
    score". `refuted` has the excepted criteria and `one_score` the indistinguishable ones.
    `within_case` is true if success is unknown.
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
        """Return the exit code of a gate: 5 if the judge is not trustworthy or a criterion outside
        `allowed` is refuted, 4 if data are missing (success unknown), else 0."""
        if self.verdict == "not trustworthy" or set(self.refuted) - set(allowed):
            return 5
        return 0 if self.trusted and not self.within_case else 4


class VerifiedSet(Record):
    """The result of one verification.

    `subset` is the smallest set of criteria that discriminates as well as all; empty if success is
    unknown.
    """

    judge: JudgeVerdict
    criteria: tuple[Verification, ...]
    subset: tuple[str, ...] = ()
    first_component: float | None = None  # share of variance of the criteria's first component
    options: dict[str, bool | int | float] = Field(default_factory=dict)
