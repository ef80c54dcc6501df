"""Records to rows and back, and how rows are written.

Texts that SQLite cannot hold are escaped, never refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar, get_args

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Table, bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import Insert, insert

from agenteval.errors import StoreError
from agenteval.records import (
    CallRecord,
    CellKey,
    Criterion,
    Failure,
    Record,
    Result,
    Run,
    Score,
    Source,
    View,
    content_hash,
)
from agenteval.records.score import FailureStatus, ScoreStatus
from agenteval.records.trial import Trial
from agenteval.store import schema
from agenteval.text import encodable

_T = TypeVar("_T")
_R = TypeVar("_R", bound=Record)

CELL = ("source_key", "item_key", "variant", "criterion_key", "repeat")  # identifies a result

# ASCII: a lone surrogate in a reply would otherwise stop the driver.
encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


def batched(values: Iterable[_T], size: int = 1000) -> Iterator[list[_T]]:
    """Yield lists of `size` values, so that transactions stay bounded."""
    remaining = iter(values)
    while chunk := list(islice(remaining, size)):
        yield chunk


def case_key(run: Run) -> str:
    """sha256 that runs of several systems on one input share."""
    return content_hash(run.input) if run.input else content_hash(["run", run.id])


def run_row(run: Run, view: View, used: float) -> dict[str, Any]:
    """Item of a run as a judge sees it. `used`: time of registering, seconds since the epoch."""
    body = {
        "problem": encodable(view.problem),
        "trajectory": encodable(view.trajectory),
        "reference_shown": view.reference is not None,
    }
    return {
        "item_key": view.sha256,
        "kind": "run",
        "id": encodable(run.id),
        "task": encodable(run.task),
        "system": encodable(run.system),
        "case_key": case_key(run),
        "success": None if run.success is None else int(run.success),
        "origin": view.origin,
        "used": used,
        "body": encode(body),
    }


def criterion_row(criterion: Criterion, used: float) -> dict[str, Any]:
    """Item of a criterion, or of a measure."""
    return {
        "item_key": criterion.sha256,
        "kind": "criterion",
        "id": encodable(criterion.id),
        "used": used,
        "body": encode(criterion.model_dump(mode="json")),
    }


def members_of(source: Source) -> list[str]:
    """Return the keys of the judges that judge together under a source; none for other sources."""
    members = source.parameters.get("members")
    return [str(key) for key in members] if isinstance(members, list) else []


def source_row(source: Source, used: float) -> dict[str, Any]:
    """Source that is a judge."""
    return {
        "source_key": source.sha256,
        "evaluator": encodable(source.evaluator),
        "name": encodable(source.model),
        "record": encode(source.model_dump(mode="json")),
        "used": used,
    }


USAGE = ("requests", "prompt_tokens", "completion_tokens", "cost")


def call_row(call_id: str, key: CellKey, call: CallRecord) -> dict[str, Any]:
    """Call of a judge; item, variant, source and repeat are those of `key`."""
    return {
        "call_id": call_id,
        "source_key": key.source,
        "item_key": key.run,
        "variant": key.variant,
        "repeat": key.repeat,
        **{name: getattr(call.usage, name) for name in USAGE},
        "record": encode(call.model_dump(mode="json")),
    }


def trial_row(trial: Trial) -> dict[str, Any]:
    """Call of an agent."""
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
        **{name: getattr(trial.usage, name, None) for name in USAGE},
        "check_key": trial.check_key,
        "verdict": None if trial.verdict is None else encode(trial.verdict),
        "record": encode(trial.log),
    }


def verdict_row(trial: Trial) -> dict[str, Any]:
    """Parameters of SET_VERDICT."""
    row = trial_row(trial)
    changed = {f"new_{name}": row[name] for name in ("outcome", "check_key", "verdict")}
    return {"its_call_id": trial.call_id, **changed}


def place_of(trial: Trial) -> dict[str, Any]:
    """Parameters of DROP_RESULTS and DROP_FAILED."""
    return {
        "its_call_id": trial.call_id,
        "its_source": trial.source_key,
        "its_item": trial.case_key,
        "its_repeat": trial.trial,
    }


# Fields kept in `detail`, with the default that is left out.
_DETAIL: dict[str, Any] = {
    "probabilities": None,
    "explanation": None,
    "evidence": {},
    "rung": None,
    "match": None,
    "message": "",
}


def result_row(call_id: str, result: Result, attempt: int) -> dict[str, Any]:
    """Row of the table results."""
    key = result.key
    label, value = (result.label, result.value) if isinstance(result, Score) else (None, None)
    fields = vars(result)
    return {
        "source_key": key.source,
        "item_key": key.run,
        "variant": key.variant,
        "criterion_key": key.criterion,
        "repeat": key.repeat,
        "status": result.status,
        "label": None if label is None else encodable(label),
        "value": value,
        "attempt": attempt,
        "call_id": call_id,
        "its_call_id": call_id,
        "detail": encode(
            {n: fields[n] for n, default in _DETAIL.items() if fields.get(n, default) != default}
        ),
    }


def to_result(row: Any) -> Result:
    """Score or Failure of a row of results with its criterion_id; StoreError for a damaged row."""
    fields = {
        "key": {
            "run": row.item_key,
            "variant": row.variant,
            "criterion": row.criterion_key,
            "source": row.source_key,
            "repeat": row.repeat,
        },
        "criterion_id": row.criterion_id,
        "status": row.status,
        **decode(row.detail, what := f"the result of run {row.item_key[:12]}"),
    }
    if ":" in row.status:
        return valid(Failure, fields, what)
    return valid(Score, {**fields, "label": row.label, "value": row.value}, what)


_SCORES, _FAILURES = frozenset(get_args(ScoreStatus)), frozenset(get_args(FailureStatus))


def cell_detail(cell: Sequence[Any]) -> tuple[Mapping[str, Any], str]:
    """Evidence and message of a row of `Store.cells`, after the checks that a Result makes.

    Takes a tenth of the time and memory of `to_result`. Raises StoreError for a damaged row.
    """
    run_key, _, _, _, status, label, value, detail = cell
    read = decode(detail, what := f"the result of run {run_key[:12]}")
    evidence, message = read.get("evidence", {}), read.get("message", "")
    if status in _SCORES:
        valid = value is None or (isinstance(value, float) and 0 <= value <= 1)
        valid = valid and (label is None or isinstance(label, str))
    else:
        valid = status in _FAILURES and value is None and label is None
    if not (valid and isinstance(evidence, dict) and isinstance(message, str)):
        raise StoreError(f"{what} is damaged in the store")
    return evidence, message


def decode(record: str, what: str) -> dict[str, Any]:
    """The JSON object in a column. Raises StoreError naming `what` when it is damaged."""
    try:
        value = json.loads(record)
        if not isinstance(value, dict):
            raise TypeError("not an object")
    except (ValueError, TypeError) as error:
        raise StoreError(f"{what} is damaged in the store") from error
    return value


def valid(kind: type[_R], fields: Any, what: str) -> _R:
    """A record of these fields, or of the JSON object in a column. Raises StoreError naming `what`
    when it is damaged."""
    try:
        return kind.model_validate(decode(fields, what) if isinstance(fields, str) else fields)
    except ValidationError as error:
        raise StoreError(f"{what} is damaged in the store") from error


# ---- writing rows, and replacing existing ones ---------------------------------------------------

_calls, _results = schema.calls.c, schema.results.c


def _upsert(
    table: Table,
    keys: Sequence[str],
    columns: Sequence[str],
    *,
    only: ColumnElement[bool] | None = None,
    **more: Any,
) -> Insert:
    """Return an insert that updates these columns of an existing row if `only` holds."""
    add = insert(table)
    new = {name: add.excluded[name] for name in columns} | more
    return add.on_conflict_do_update(index_elements=keys, set_=new, where=only)


# Labels may be corrected later without new requests.
ADD_RUN = _upsert(schema.items, ["item_key"], ["task", "system", "success", "used"])
# What is outside the hash (names, provenance, expected directions) follows the last file used.
ADD_ITEM = _upsert(schema.items, ["item_key"], ["id", "used", "body"])
ADD_SOURCE = _upsert(schema.sources, ["source_key"], ["used"])
ADD_CALL = insert(schema.calls)
ADD_TRIAL = _upsert(
    schema.calls,
    ["call_id"],
    ["status", "outcome", "check_key", "started", "ended", "verdict", "record"],
    only=_calls.status.contains(":"),  # a failure may be replaced, completed work never
    # Sums over all attempts; an unknown value does not change the sum, as in Usage.
    **{
        name: func.coalesce(
            _calls[name] + ADD_CALL.excluded[name], _calls[name], ADD_CALL.excluded[name]
        )
        for name in ("tries", *USAGE)
    },
)
_ITS_CALL = _calls.call_id == bindparam("its_call_id")
STATUS = select(_calls.status).where(_ITS_CALL)
SET_VERDICT = (
    update(schema.calls)
    .where(_ITS_CALL)
    .values({name: bindparam(f"new_{name}") for name in ("outcome", "check_key", "verdict")})
)
DROP_RESULTS = delete(schema.results).where(
    _results.source_key == bindparam("its_source"),
    _results.item_key == bindparam("its_item"),
    _results.variant == "original",
    _results.repeat == bindparam("its_repeat"),
)
DROP_FAILED = DROP_RESULTS.where(STATUS.scalar_subquery().contains(":"))
# A trial counts its tries itself, a call of a judge is one.
_TRIES = select(_calls.tries).where(_ITS_CALL).scalar_subquery()
ADD_RESULT = _upsert(
    schema.results,
    CELL,
    ["status", "label", "value", "attempt", "call_id", "detail"],
    only=_results.status.contains(":"),  # a Failure may be replaced, a Score never
    tries=_results.tries + 1,
).values(tries=func.coalesce(_TRIES, 1))
ADD_VERDICT = _upsert(schema.verdicts, ["source_key", "task"], ["made", "verdict", "record"])
ADD_REPLY = _upsert(schema.replies, ["key"], ["reply"])
