"""Trials: what agents under test did, and what a checker said of it.

A case, a system, a log and a verdict are JSON objects with a key: these records know no evaluator.
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
# A Failure's status has a colon: no outcome can be taken for one, nor for "done".
Word = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")]
Json = dict[str, JsonValue]


class TrialCase(Record):
    """A test case: `key` is its content hash; `body` is enough to make a report from.

    `unit` is what several cases share that stand on one input, such as the turns of a session: the
    unit of intervals. By default every case is one.
    """

    key: Key
    id: str
    body: Json
    unit: str | None = None


class TrialSystem(Record):
    """An agent under test: `key` is the content hash of name and parameters."""

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
            raise ValueError("outcome and check_key come together")
        if self.verdict is not None and self.outcome is None:
            raise ValueError("a verdict needs its outcome")
        if self.outcome == "done":
            raise ValueError("'done' is a status, not an outcome")
        if self.outcome is not None and self.status != "done":
            raise ValueError(f"a failure ({self.status}) has no outcome")
        return self

    def judged(self, check_key: str, outcome: str, verdict: Json | None = None) -> Trial:
        """The same trial with the verdict of a checker. Raises ValidationError for a failure."""
        changed = {"check_key": check_key, "outcome": outcome, "verdict": verdict}
        return Trial.model_validate({**dict(self), **changed})

    def cell(self, measure: Criterion) -> CellKey:
        """Key of its result on a measure of its evaluator."""
        return CellKey(
            run=self.case_key, criterion=measure.sha256, source=self.source_key, repeat=self.trial
        )

    @property
    def source_key(self) -> str:
        """Key of its source."""
        return source_key(self.evaluator, self.system_key)

    @property
    def call_id(self) -> str:
        """Key of its row in the table calls."""
        return content_hash(["trial", self.source_key, self.case_key, self.trial])[:32]


def source_key(evaluator: str, system_key: str) -> str:
    """Key (hash) of a system under an evaluator, and of the lock that its worker holds."""
    return content_hash(["trials", evaluator, system_key])


def distinct(names: Mapping[str, str]) -> dict[str, str]:
    """Names by key; one that belongs to several keys gets a piece of the key behind it."""
    often = Counter(names.values())
    return {k: n if often[n] == 1 else f"{n} [{k[:6]}]" for k, n in names.items()}
