"""Trials, their cases and systems as records, and as rows of the store.

The store knows no evaluator: a case, a system, a log and a verdict are JSON objects with a key. A
trial is a call, its log, and one result for each measure of its evaluator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, JsonValue, ValidationError, model_validator

from agenteval.errors import StoreError
from agenteval.records import (
    CellKey,
    Criterion,
    Failure,
    FailureStatus,
    Record,
    Result,
    Score,
    Usage,
    content_hash,
)
from agenteval.records.score import ScoreStatus
from agenteval.store import rows

Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # a sha256
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]*$")]  # of an evaluator
# A Failure's status has a colon: no outcome can be taken for one, nor for "done".
Outcome = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")]
Json = dict[str, JsonValue]
_R = TypeVar("_R", bound=Record)

_USAGE = ("requests", "prompt_tokens", "completion_tokens", "cost")


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


class Measured(Record):
    """What a trial came to on one measure: a rating, or the status that says why there is none.

    A measure is a criterion that its evaluator defines. `message` explains it.
    """

    criterion: Criterion
    status: ScoreStatus | FailureStatus = "scored"
    label: str | None = None
    value: float | None = Field(default=None, ge=0, le=1)
    message: str = ""

    def result(self, key: CellKey) -> Result:
        """As any other result. Raises ValidationError for a failure with a label or value."""
        known: dict[str, Any] = {"key": key, "criterion_id": self.criterion.id}
        known["status"] = self.status
        if ":" in self.status:
            if self.label is not None or self.value is not None:
                raise ValueError(f"a failure ({self.status}) has no value")
            return Failure.model_validate({**known, "message": self.message})
        known |= {"label": self.label, "value": self.value}
        return Score.model_validate({**known, "explanation": self.message or None})


class Trial(Record):
    """One attempt of one system at one case.

    `status` is "done" when the agent's work came to an end that can be judged (also a bad one), or
    says why there is none. `outcome`, a word such as "pass", and `verdict` are those of the checker
    `check_key`; a failure has none. `results` holds one entry for each measure of the evaluator.
    `started` and `ended` are seconds since 1970, None when unknown, as is `usage`. As read, `usage`
    and `tries` cover failed attempts before as well, and `results` are left to `Store.results`.
    """

    evaluator: Name
    system_key: Key
    case_key: Key
    trial: int = Field(ge=0)
    case_id: str
    status: Literal["done"] | FailureStatus
    log: Json
    outcome: Outcome | None = None
    check_key: Key | None = None
    verdict: Json | None = None
    results: tuple[Measured, ...] = ()
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

    def judged(
        self,
        check_key: str,
        outcome: str,
        verdict: Json | None = None,
        results: Iterable[Measured] = (),
    ) -> Trial:
        """The same trial with the verdict of a checker. Raises ValidationError for a failure."""
        changed = {"check_key": check_key, "outcome": outcome, "verdict": verdict}
        return Trial.model_validate({**dict(self), **changed, "results": tuple(results)})

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


def trial_row(trial: Trial) -> dict[str, Any]:
    """Its row of the table calls."""
    return {
        "call_id": trial.call_id,
        "source_key": trial.source_key,
        "item_key": trial.case_key,
        "variant": "original",
        "repeat": trial.trial,
        "status": trial.status,
        "outcome": trial.outcome,
        "tries": trial.tries,
        "started": trial.started,
        "ended": trial.ended,
        **{name: getattr(trial.usage, name, None) for name in _USAGE},
        "check_key": trial.check_key,
        "verdict": None if trial.verdict is None else rows.encode(trial.verdict),
        "record": rows.encode(trial.log),
    }


def result_rows(trial: Trial) -> list[dict[str, Any]]:
    """Its rows of the table results."""
    call_id, source = trial.call_id, trial.source_key
    found = []
    for measured in trial.results:
        key = CellKey(run=trial.case_key, criterion=measured.criterion.sha256, source=source,
                      repeat=trial.trial)  # fmt: skip
        found.append(rows.result_row(call_id, measured.result(key), 0))
    return found


def to_trial(row: Any, evaluator: str) -> Trial:
    """Trial of a row of calls with its system_key and the id of its case. Raises StoreError for a
    damaged row."""
    what = f"trial {row.repeat} of case {row.item_key[:12]}"
    usage = {name: getattr(row, name) for name in _USAGE}
    fields = {
        "evaluator": evaluator,
        "system_key": row.system_key,
        "case_key": row.item_key,
        "trial": row.repeat,
        "case_id": row.id,
        "status": row.status,
        "log": rows.decode(row.record, what),
        "outcome": row.outcome,
        "check_key": row.check_key,
        "verdict": None if row.verdict is None else rows.decode(row.verdict, what),
        "started": row.started,
        "ended": row.ended,
        "usage": None if usage["requests"] is None else usage,
        "tries": row.tries,
    }
    return valid(Trial, fields, what)


def valid(kind: type[_R], fields: dict[str, Any], what: str) -> _R:
    """A record of these fields; StoreError, naming `what`, for those of a damaged row."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise StoreError(f"{what} is damaged in the store") from error
