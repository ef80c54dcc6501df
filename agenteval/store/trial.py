"""Trials, their cases and systems as records, and as rows of the store.

The store knows no evaluator: a case, a system, a log and a verdict are JSON objects with a key.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, JsonValue, ValidationError, model_validator

from agenteval.errors import StoreError
from agenteval.records import FailureStatus, Record, Usage
from agenteval.store import rows

Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # a sha256
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]*$")]  # of an evaluator
# A Failure's status has a colon: no outcome can be taken for one, nor for "done".
Outcome = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")]
Json = dict[str, JsonValue]
_R = TypeVar("_R", bound=Record)

KEY = ("evaluator", "system_key", "case_key", "trial")  # of a trial
_USAGE = ("requests", "prompt_tokens", "completion_tokens", "cost")
# ASCII, as everywhere in the store: half a character in a log would stop the driver.
encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


class TrialCase(Record):
    """A test case: `key` is its content hash; `body` is enough to make a report from."""

    key: Key
    id: str
    body: Json


class TrialSystem(Record):
    """An agent under test: `key` is the content hash of name and parameters."""

    key: Key
    name: str
    parameters: Json


class Trial(Record):
    """One attempt of one system at one case.

    `status` is "done" when the agent's work came to an end that can be judged (also a bad one), or
    says why there is none. `outcome`, a word such as "pass", and `verdict` are those of the checker
    `check_key`; a failure has none. `started` and `ended` are seconds since 1970, None when
    unknown, as is `usage`. As read, `usage` and `tries` cover failed attempts before as well.
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


def case_row(evaluator: str, case: TrialCase) -> dict[str, Any]:
    """Row of the table cases. Raises ValueError for NaN or infinity, as all rows do."""
    return {
        "evaluator": evaluator,
        "case_key": case.key,
        "case_id": rows.text(case.id),
        "body": encode(case.body),
    }


def system_row(system: TrialSystem) -> dict[str, Any]:
    """Row of the table systems."""
    return {
        "system_key": system.key,
        "name": rows.text(system.name),
        "parameters": encode(system.parameters),
    }


def trial_row(trial: Trial) -> dict[str, Any]:
    """Row of the table trials."""
    row = dict(trial)
    usage = row.pop("usage")
    row.update({name: getattr(usage, name, None) for name in _USAGE})
    row["case_id"] = rows.text(trial.case_id)
    row["log"] = encode(trial.log)
    row["verdict"] = None if trial.verdict is None else encode(trial.verdict)
    return row


def bound(trial: Trial) -> dict[str, Any]:
    """The trial's key, as the parameters `its_…` of a statement."""
    return {f"its_{name}": getattr(trial, name) for name in KEY}


def verdict_row(trial: Trial) -> dict[str, Any]:
    """Key and verdict as parameters `its_…` and `new_…`; ValueError when there is no outcome."""
    if trial.outcome is None:
        raise ValueError("a trial without an outcome has no verdict to store")
    return {
        **bound(trial),
        "new_outcome": trial.outcome,
        "new_check_key": trial.check_key,
        "new_verdict": None if trial.verdict is None else encode(trial.verdict),
    }


def to_trial(row: Any) -> Trial:
    """Trial of a row of trials. Raises StoreError for a damaged row."""
    what = f"trial {row.trial} of case {row.case_key[:12]}"
    fields = dict(row._mapping)
    usage = {name: fields.pop(name) for name in _USAGE}
    fields["usage"] = None if usage["requests"] is None else usage
    fields["log"] = rows.decode(row.log, what)
    fields["verdict"] = None if row.verdict is None else rows.decode(row.verdict, what)
    return _valid(Trial, fields, what)


def to_case(row: Any) -> TrialCase:
    """TrialCase of a row of cases. Raises StoreError for a damaged row."""
    what = f"the case {row.case_key[:12]}"
    fields = {"key": row.case_key, "id": row.case_id, "body": rows.decode(row.body, what)}
    return _valid(TrialCase, fields, what)


def to_system(row: Any) -> TrialSystem:
    """TrialSystem of a row of systems. Raises StoreError for a damaged row."""
    what = f"the system {row.system_key[:12]}"
    parameters = rows.decode(row.parameters, what)
    return _valid(
        TrialSystem, {"key": row.system_key, "name": row.name, "parameters": parameters}, what
    )


def _valid(kind: type[_R], fields: dict[str, Any], what: str) -> _R:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise StoreError(f"{what} is damaged in the store") from error
