"""Trials in the store: what agents under test did, and what a checker said of it.

The store knows no evaluator: a case, a system, a log and a verdict are JSON objects with a key. A
trial is a call, its log, and one result for each measure of its evaluator.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, JsonValue, ValidationError, model_validator
from sqlalchemy import Select, bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from agenteval.errors import StoreError
from agenteval.records import Criterion, FailureStatus, Record, Source, Usage, content_hash
from agenteval.records.score import ScoreStatus
from agenteval.store import rows, schema
from agenteval.store.connect import dialect_of, reading
from agenteval.store.writer import Writes
from agenteval.text import encodable

if TYPE_CHECKING:
    from agenteval.store.store import Store

Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # a sha256
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]*$")]  # of an evaluator
# A Failure's status has a colon: no outcome can be taken for one, nor for "done".
Outcome = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")]
Json = dict[str, JsonValue]
_R = TypeVar("_R", bound=Record)

_CHUNK = 1000  # rows fetched at a time, so that memory stays bounded
_USAGE = ("requests", "prompt_tokens", "completion_tokens", "cost")


# ---- records -------------------------------------------------------------------------------------


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

    @model_validator(mode="after")
    def _no_value_of_a_failure(self) -> Self:
        if ":" in self.status and (self.label is not None or self.value is not None):
            raise ValueError(f"a failure ({self.status}) has no value")
        return self


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


def distinct(names: Mapping[str, str]) -> dict[str, str]:
    """Names by key; one that belongs to several keys gets a piece of the key behind it."""
    often = Counter(names.values())
    return {k: n if often[n] == 1 else f"{n} [{k[:6]}]" for k, n in names.items()}


# ---- what is written, and what happens to a row that is there already ----------------------------

_calls, _results, _sources, _items = (
    table.c for table in (schema.calls, schema.results, schema.sources, schema.items)
)
_IS = _calls.call_id == bindparam("its_call_id")
_STATUS = select(_calls.status).where(_IS)

_ADD_TRIAL = insert(schema.calls)
_NEW = _ADD_TRIAL.excluded
_ADD_TRIAL = _ADD_TRIAL.on_conflict_do_update(
    index_elements=["call_id"],
    set_={
        **{
            name: _NEW[name]
            for name in (
                "status", "outcome", "check_key", "started", "ended", "verdict", "record",
            )
        },
        # Sums over all attempts: what is not known of one counts as the other, as in Usage.
        **{
            name: func.coalesce(_calls[name] + _NEW[name], _calls[name], _NEW[name])
            for name in ("tries", *_USAGE)
        },
    },
    where=_calls.status.contains(":"),  # a failure may be replaced, work done never
)  # fmt: skip
_SET_VERDICT = (
    update(schema.calls)
    .where(_IS)
    .values({name: bindparam(f"new_{name}") for name in ("outcome", "check_key", "verdict")})
)
_DROP_RESULTS = delete(schema.results).where(
    _results.source_key == bindparam("its_source"),
    _results.item_key == bindparam("its_item"),
    _results.variant == "original",
    _results.repeat == bindparam("its_repeat"),
)
_DROP_FAILED = _DROP_RESULTS.where(_STATUS.scalar_subquery().contains(":"))
_ADD_RESULT = insert(schema.results).values(tries=select(_calls.tries).where(_IS).scalar_subquery())
_ADD_RESULT = _ADD_RESULT.on_conflict_do_update(
    index_elements=rows.CELL,
    set_={c: _ADD_RESULT.excluded[c] for c in ("status", "label", "value", "tries", "detail")},
    where=_results.status.contains(":"),
)


class Trials:
    """The trials of an open store. Cases and systems are made known before their trials."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def lock(self, evaluator: str, system_key: str) -> AbstractContextManager[None]:
        """Hold one system under one evaluator for this process.

        Raises StoreLocked, naming process and host, when another holds it.
        """
        return self._store.lock(source_key(evaluator, system_key))

    # -- writing ---------------------------------------------------------------------------------

    def add_cases(self, evaluator: str, cases: Iterable[TrialCase]) -> None:
        """Make cases of an evaluator known; waits until that is durable. Raises StoreError."""
        now = time.time()
        for chunk in rows.batched(cases):
            known = [
                {
                    "item_key": case.key,
                    "kind": "case",
                    "id": encodable(case.id),
                    "task": "",
                    "case_key": case.key if case.unit is None else content_hash(case.unit),
                    "used": now,
                    "body": rows.encode(case.body),
                }
                for case in chunk
            ]
            self._store.submit([(rows.ADD_ITEM, known)]).result()

    def add_system(self, evaluator: str, system: TrialSystem) -> None:
        """Make a system known under an evaluator; waits until it is durable. Raises StoreError."""
        source = Source(
            evaluator=evaluator, version=1, model=system.name, parameters=system.parameters
        )
        row = {
            **rows.source_row(source, time.time()),
            "source_key": source_key(evaluator, system.key),
            "system_key": system.key,
        }
        self._store.submit([(rows.ADD_SOURCE, [row])]).result()

    async def write_trial(self, trial: Trial, beside: Writes = ()) -> None:
        """Store a trial; returns when it is durable.

        A failure stored before is replaced; what is done stays, whatever is written later. Whoever
        is cancelled while waiting here loses nothing. Raises StoreError, also for a case or system
        that is not known; ValueError for NaN or infinity in the log or verdict.
        """
        await asyncio.wrap_future(self.write_trial_soon(trial, beside))

    def write_trial_soon(self, trial: Trial, beside: Writes = ()) -> Future[None]:
        """Queue a trial, and what is `beside` it, as `write_trial`; the future resolves when it is
        durable."""
        row = {
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
        return self._store.submit(
            [*beside, (_DROP_FAILED, [_its(trial)]), (_ADD_TRIAL, [row]), *_measured([trial])]
        )

    def write_verdicts(self, trials: Iterable[Trial]) -> int:
        """Replace outcome, verdict, check_key and results of trials that are done; returns their
        number.

        The log and all else stay as stored. Each thousand is durable together, so that what the
        iterable computes holds up no other writer. Raises StoreError for a trial that is not
        stored as done, ValueError for one without an outcome; thousands before it are kept.
        """
        count = 0
        for chunk in rows.batched(trials):
            with reading(self._store.engine) as connection:  # what is done stays so meanwhile
                for t in chunk:
                    if t.outcome is None:
                        raise ValueError("a trial without an outcome has no verdict to store")
                    if connection.execute(_STATUS, {"its_call_id": t.call_id}).scalar() != "done":
                        raise StoreError(
                            f"trial {t.trial} of case {t.case_id} by system {t.system_key[:12]} "
                            "is not stored as done: it cannot be judged"
                        )
            verdicts = [
                {
                    "its_call_id": t.call_id,
                    "new_outcome": t.outcome,
                    "new_check_key": t.check_key,
                    "new_verdict": None if t.verdict is None else rows.encode(t.verdict),
                }
                for t in chunk
            ]
            its = [_its(t) for t in chunk]
            self._store.submit(
                [(_SET_VERDICT, verdicts), (_DROP_RESULTS, its), *_measured(chunk)]
            ).result()
            count += len(chunk)
        return count

    # -- reading ---------------------------------------------------------------------------------

    def trials(
        self,
        evaluator: str,
        case_keys: Iterable[str] | None = None,
        system_keys: Iterable[str] | None = None,
    ) -> Iterator[Trial]:
        """Stored trials, of all cases and systems unless told, ordered by system key, case key and
        number. Raises StoreError for a damaged row."""
        query = _tried(select(schema.calls, _sources.system_key, _items.id), evaluator)
        query = query.join(schema.items, _items.item_key == _calls.item_key)
        among = dialect_of(self._store.engine).among
        for column, keys in ((_calls.item_key, case_keys), (_sources.system_key, system_keys)):
            if keys is not None:
                query = query.where(among(column, keys))
        query = query.order_by(_sources.system_key, _calls.item_key, _calls.repeat)
        with reading(self._store.engine) as connection:
            for row in connection.execution_options(yield_per=_CHUNK).execute(query):
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
                    "usage": None if row.requests is None else usage,
                    "tries": row.tries,
                }
                yield _valid(Trial, fields, what)

    def usage(self, evaluator: str, system_key: str) -> Usage:
        """Requests, tokens and money of all trials of a system, failed attempts included."""
        return self._store.usage(source_key(evaluator, system_key))

    def evaluators(self) -> list[str]:
        """Names under which trials are stored, sorted."""
        tried = _sources.source_key.in_(_tried(select(_calls.source_key)))
        query = select(_sources.evaluator).where(tried).distinct().order_by(_sources.evaluator)
        with reading(self._store.engine) as connection:
            return list(connection.execute(query).scalars())

    def cases(self, evaluator: str) -> Iterator[TrialCase]:
        """Cases on which there is a trial of an evaluator, ordered by key. Raises StoreError for a
        damaged row."""
        tried = _tried(select(_calls.item_key), evaluator)
        query = select(schema.items).where(_items.item_key.in_(tried)).order_by(_items.item_key)
        with reading(self._store.engine) as connection:
            for row in connection.execution_options(yield_per=_CHUNK).execute(query):
                what = f"the case {row.item_key[:12]}"
                fields = {"key": row.item_key, "id": row.id, "body": rows.decode(row.body, what)}
                yield _valid(TrialCase, fields, what)

    def systems(self, evaluator: str) -> list[TrialSystem]:
        """Systems that have a trial under an evaluator, ordered by name and key."""
        tried = _sources.source_key.in_(_tried(select(_calls.source_key), evaluator))
        query = select(schema.sources).where(tried).order_by(_sources.name, _sources.system_key)
        systems = []
        with reading(self._store.engine) as connection:
            for row in connection.execute(query):
                what = f"the system {row.system_key[:12]}"
                parameters = rows.decode(row.record, what).get("parameters")
                fields = {"key": row.system_key, "name": row.name, "parameters": parameters}
                systems.append(_valid(TrialSystem, fields, what))
        return systems


def _tried(query: Select[Any], evaluator: str | None = None) -> Select[Any]:
    """Of the calls that are trials, of one evaluator where it is named, with their sources."""
    query = query.join_from(
        schema.calls, schema.sources, _sources.source_key == _calls.source_key
    ).where(_sources.system_key.is_not(None), _calls.status.is_not(None))
    return query if evaluator is None else query.where(_sources.evaluator == evaluator)


def _its(trial: Trial) -> dict[str, Any]:
    """What names a trial's call and results, as parameters of a statement."""
    return {
        "its_call_id": trial.call_id, "its_source": trial.source_key,
        "its_item": trial.case_key, "its_repeat": trial.trial,
    }  # fmt: skip


def _measured(trials: Sequence[Trial]) -> Writes:
    """The results of trials, and the measures they are on."""
    now = time.time()
    measures = {m.criterion.sha256: m.criterion for t in trials for m in t.results}
    results = [
        {
            "source_key": t.source_key,
            "item_key": t.case_key,
            "variant": "original",
            "criterion_key": m.criterion.sha256,
            "repeat": t.trial,
            "status": m.status,
            "label": None if m.label is None else encodable(m.label),
            "value": m.value,
            "attempt": 0,
            "call_id": t.call_id,
            "its_call_id": t.call_id,
            "detail": rows.encode(
                {"message" if ":" in m.status else "explanation": m.message} if m.message else {}
            ),
        }
        for t in trials
        for m in t.results
    ]
    known = [rows.criterion_row(measure, now) for measure in measures.values()]
    return [(rows.ADD_ITEM, known), (_ADD_RESULT, results)]


def _valid(kind: type[_R], fields: dict[str, Any], what: str) -> _R:
    """A record of these fields; StoreError, naming `what`, for those of a damaged row."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise StoreError(f"{what} is damaged in the store") from error
