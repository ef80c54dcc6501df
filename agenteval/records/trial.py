"""Trials: the work of agents under test, with the verdict of a checker.

Cases, systems, logs and verdicts are JSON objects, so these records do not depend on an evaluator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from agenteval.records.base import Record, content_hash
from agenteval.records.criteria import Criterion
from agenteval.records.run import Usage
from agenteval.records.score import CellKey, FailureStatus

Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # a sha256
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]*$")]  # of an evaluator
# The status of a Failure has a colon, so it cannot be confused with an outcome or "done".
Word = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")]
Json = dict[str, JsonValue]


class TrialCase(Record):
    """A test case: `key` is its content hash; `body` has all that a report needs.

    `unit` is shared by cases with a common input, such as the turns of a session, and is the unit
    of resampling for intervals. By default, each case is its own unit.
    """

    key: Key
    id: str
    body: Json
    unit: str | None = None


class TrialSystem(Record):
    """An agent under test; `key` is the content hash of name and parameters."""

    key: Key
    name: str
    parameters: Json


class Trial(Record):
    """One attempt of one system at one case.

    `status` is "done" when the agent's work ended in a state that can be judged, good or bad;
    otherwise it is the reason for a missing result. `outcome` (a word such as "pass") and `verdict`
    are those of the checker `check_key`; a failure has neither. `started` and `ended` are seconds
    since 1970, or None if unknown, as is `usage`. When read, `usage` and `tries` include earlier
    failed attempts.
    """

    evaluator: Name
    system_key: Key
    case_key: Key
    trial: int = Field(ge=0)
    case_id: str
    status: Literal["done"] | FailureStatus
    log: Json
    outcome: Word | None = None
    check_key: Key | None = None
    verdict: Json | None = None
    started: float | None = None
    ended: float | None = None
    usage: Usage | None = None
    tries: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _judged_or_not(self) -> Self:
        if (self.outcome is None) != (self.check_key is None):
            raise ValueError("outcome and check_key must be set together")
        if self.verdict is not None and self.outcome is None:
            raise ValueError("a verdict needs its outcome")
        if self.outcome == "done":
            raise ValueError("'done' is a status, not an outcome")
        if self.outcome is not None and self.status != "done":
            raise ValueError(f"a failure ({self.status}) has no outcome")
        return self

    def judged(self, check_key: str, outcome: str, verdict: Json | None = None) -> Trial:
        """Return the trial with a checker's verdict. Raises ValidationError for a failure."""
        changed = {"check_key": check_key, "outcome": outcome, "verdict": verdict}
        return Trial.model_validate({**dict(self), **changed})

    def cell(self, measure: Criterion) -> CellKey:
        """Return the key of its result on a measure of its evaluator."""
        return CellKey(
            run=self.case_key, criterion=measure.sha256, source=self.source_key, repeat=self.trial
        )

    @property
    def source_key(self) -> str:
        """Key of its source."""
        return source_key(self.evaluator, self.system_key)

    @property
    def call_id(self) -> str:
        """Key of its row in the table `calls`."""
        return content_hash(["trial", self.source_key, self.case_key, self.trial])[:32]


def source_key(evaluator: str, system_key: str) -> str:
    """Return the key (hash) of a system under an evaluator, and of its worker's lock."""
    return content_hash(["trials", evaluator, system_key])


def distinct(names: Mapping[str, str]) -> dict[str, str]:
    """Return names by key; a name shared by several keys gets part of the key as a suffix."""
    often = Counter(names.values())
    return {k: n if often[n] == 1 else f"{n} [{k[:6]}]" for k, n in names.items()}
