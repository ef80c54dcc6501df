"""The tables of trials: what agents under test did, and what a checker said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Select, bindparam, func, select, update
from sqlalchemy.dialects.sqlite import insert

from agenteval.errors import StoreError
from agenteval.records import Usage, content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store import schema
from agenteval.store.connect import reading
from agenteval.store.notes import Begun, Grid, Note, begin, finish, short
from agenteval.store.trial import (
    KEY,
    Trial,
    TrialCase,
    TrialSystem,
    bound,
    case_row,
    encode,
    system_row,
    to_case,
    to_system,
    to_trial,
    trial_row,
    verdict_row,
)

if TYPE_CHECKING:
    from agenteval.store.store import Store

_CHUNK = 1000  # rows in one transaction or fetched at a time, so that memory stays bounded

_ADD_CASE = insert(schema.cases)
_ADD_CASE = _ADD_CASE.on_conflict_do_update(
    index_elements=["evaluator", "case_key"],
    # What is outside the hash (its name, where it comes from) follows the last suite used.
    set_={c: _ADD_CASE.excluded[c] for c in ("case_id", "body")},
)
_ADD_SYSTEM = insert(schema.systems).on_conflict_do_nothing(index_elements=["system_key"])
_ADD_TRIAL = insert(schema.trials)
_NEW = _ADD_TRIAL.excluded


def _sum(name: str) -> ColumnElement[Any]:
    """Old plus new, where one that is not known counts as the other (as in Usage)."""
    old, new = schema.trials.c[name], _NEW[name]
    return func.coalesce(old + new, old, new)


_ADD_TRIAL = _ADD_TRIAL.on_conflict_do_update(
    index_elements=list(KEY),
    set_={
        **{
            c: _NEW[c]
            for c in (
                "case_id", "status", "outcome", "check_key", "started", "ended", "verdict", "log",
            )
        },
        **{c: _sum(c)
           for c in ("tries", "requests", "prompt_tokens", "completion_tokens", "cost")},
    },
    where=schema.trials.c.status.contains(":"),  # a failure may be replaced, work done never
)  # fmt: skip

_IS = [schema.trials.c[name] == bindparam(f"its_{name}") for name in KEY]
_STATUS = select(schema.trials.c.status).where(*_IS)
_SET_VERDICT = update(schema.trials).where(*_IS)
_SET_VERDICT = _SET_VERDICT.values(
    {name: bindparam(f"new_{name}") for name in ("outcome", "check_key", "verdict")}
)


class Trials:
    """The trials of an open store. Cases and systems are made known before their trials."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def lock(self, evaluator: str, system_key: str) -> AbstractContextManager[None]:
        """Hold one system under one evaluator for this process.

        Raises StoreLocked, naming process and host, when another holds it.
        """
        return self._store.lock(_experiment(evaluator, system_key))

    def begin(
        self,
        evaluator: str,
        system: TrialSystem,
        work: Iterable[tuple[str, int]],
        *,
        lock: str | None = None,
    ) -> Begun:
        """Note that trials, as (case key, number), are to be run; waits until it is durable.

        `work` is what `missing` gave, or a part of it. `lock` is the evaluator whose lock is held
        meanwhile, where it is another. Raises StoreError.
        """
        pairs = list(work)
        most = max((number for _, number in pairs), default=-1) + 1
        note = Note(
            "trials", system.key, system.name, _experiment(lock or evaluator, system.key),
            (Grid(short(key for key, _ in pairs), most),), evaluator,
        )  # fmt: skip
        begun = begin(self._store, note, idle=not pairs)
        begun.wait()
        return begun

    def finish(self, begun: Begun) -> None:
        """Everything of it is stored; waits until that is noted. Raises StoreError."""
        finish(self._store, begun)

    # -- writing ---------------------------------------------------------------------------------

    def add_cases(self, evaluator: str, cases: Iterable[TrialCase]) -> None:
        """Make cases known; waits until that is durable. Raises StoreError."""
        left = iter(cases)
        while chunk := [case_row(evaluator, case) for case in islice(left, _CHUNK)]:
            self._store.submit([(_ADD_CASE, chunk)]).result()

    def add_system(self, system: TrialSystem) -> None:
        """Make a system known; waits until that is durable. Raises StoreError."""
        self._store.submit([(_ADD_SYSTEM, [system_row(system)])]).result()

    async def write_trial(self, trial: Trial) -> None:
        """Store a trial; returns when it is durable.

        A failure stored before is replaced; what is done stays, whatever is written later. Whoever
        is cancelled while waiting here loses nothing. Raises StoreError, also for a case or system
        that is not known; ValueError for NaN or infinity in the log or verdict.
        """
        await asyncio.wrap_future(self.write_trial_soon(trial))

    def write_trial_soon(self, trial: Trial) -> Future[None]:
        """Queue a trial, as `write_trial`; the future resolves when it is durable."""
        return self._store.submit([(_ADD_TRIAL, [trial_row(trial)])])

    def write_verdicts(self, trials: Iterable[Trial]) -> int:
        """Replace outcome, verdict and check_key of trials that are done; returns their number.

        The log and all else stay as stored. Each thousand is durable together, so that what the
        iterable computes holds up no other writer. Raises StoreError for a trial that is not
        stored as done, ValueError for one without an outcome; thousands before it are kept.
        """
        count = 0
        left = iter(trials)
        while chunk := list(islice(left, _CHUNK)):
            self._check_done(chunk)
            self._store.submit([(_SET_VERDICT, [verdict_row(t) for t in chunk])]).result()
            count += len(chunk)
        return count

    def _check_done(self, trials: Sequence[Trial]) -> None:
        """What is done stays so: asked before the update, the answer holds during it."""
        with reading(self._store.engine) as connection:
            for trial in trials:
                if connection.execute(_STATUS, bound(trial)).scalar() != "done":
                    raise StoreError(
                        f"trial {trial.trial} of case {trial.case_id} by system "
                        f"{trial.system_key[:12]} is not stored as done: it cannot be judged"
                    )

    # -- reading ---------------------------------------------------------------------------------

    def trials(
        self,
        evaluator: str,
        case_keys: Iterable[str] | None = None,
        system_keys: Iterable[str] | None = None,
    ) -> Iterator[Trial]:
        """Stored trials, of all cases and systems unless told, ordered by system key, case key and
        number. Raises StoreError for a damaged row."""
        c = schema.trials.c
        query = _chosen(select(schema.trials), evaluator, case_keys, system_keys)
        query = query.order_by(c.evaluator, c.system_key, c.case_key, c.trial)
        with reading(self._store.engine) as connection:
            for row in connection.execution_options(yield_per=_CHUNK).execute(query):
                yield to_trial(row)

    def missing(
        self,
        evaluator: str,
        case_keys: Sequence[str],
        system_key: str,
        trials: int,
        *,
        retry_failed: bool = False,
    ) -> list[tuple[str, int]]:
        """(case key, number) of what is to be done still, of the numbers 0 to trials - 1.

        That is what was never stored and what the infrastructure has failed, with `retry_failed`
        every failure. Every case comes once, in the order given, before any comes twice: what is
        stopped early has treated all alike.
        """
        c = schema.trials.c
        query = select(c.case_key, c.trial, c.status).where(
            c.evaluator == evaluator, c.system_key == system_key
        )
        with reading(self._store.engine) as connection:
            settled = {
                (case, number)
                for case, number, status in connection.execute(query)
                if not (":" in status if retry_failed else status in INFRASTRUCTURE)
            }
        wanted = dict.fromkeys(case_keys)
        return [(k, n) for n in range(trials) for k in wanted if (k, n) not in settled]

    def counts(
        self,
        evaluator: str,
        case_keys: Iterable[str] | None = None,
        system_keys: Iterable[str] | None = None,
    ) -> dict[str, dict[str, int]]:
        """Number of trials by system key and outcome.

        A failure counts under its status, which has a colon; work that no checker has seen yet
        under "done".
        """
        c = schema.trials.c
        label = func.coalesce(c.outcome, c.status)
        query = _chosen(
            select(c.system_key, label, func.count()), evaluator, case_keys, system_keys
        )
        query = query.group_by(c.system_key, label).order_by(c.system_key, label)
        counts: dict[str, dict[str, int]] = {}
        with reading(self._store.engine) as connection:
            for system, outcome, number in connection.execute(query):
                counts.setdefault(system, {})[outcome] = number
        return counts

    def usage(self, evaluator: str, system_key: str) -> Usage:
        """Requests, tokens and money of all trials of a system, failed attempts included."""
        c = schema.trials.c
        sums = [func.sum(c[name]) for name in ("prompt_tokens", "completion_tokens", "cost")]
        query = select(func.coalesce(func.sum(c.requests), 0), *sums).where(
            c.evaluator == evaluator, c.system_key == system_key
        )
        with reading(self._store.engine) as connection:
            requests, prompt, completion, cost = connection.execute(query).one()
        return Usage(
            requests=requests, prompt_tokens=prompt, completion_tokens=completion, cost=cost
        )

    def evaluators(self) -> list[str]:
        """Names under which trials are stored, sorted."""
        c = schema.trials.c
        query = select(c.evaluator).distinct().order_by(c.evaluator)
        with reading(self._store.engine) as connection:
            return list(connection.execute(query).scalars())

    def cases(self, evaluator: str) -> Iterator[TrialCase]:
        """Cases of an evaluator, ordered by key. Raises StoreError for a damaged row."""
        c = schema.cases.c
        query = select(schema.cases).where(c.evaluator == evaluator).order_by(c.case_key)
        with reading(self._store.engine) as connection:
            for row in connection.execution_options(yield_per=_CHUNK).execute(query):
                yield to_case(row)

    def systems(self, evaluator: str) -> list[TrialSystem]:
        """Systems that have a trial under an evaluator, ordered by name and key."""
        c = schema.systems.c
        tried = select(schema.trials.c.system_key).where(schema.trials.c.evaluator == evaluator)
        query = select(schema.systems).where(c.system_key.in_(tried)).order_by(c.name, c.system_key)
        with reading(self._store.engine) as connection:
            return [to_system(row) for row in connection.execute(query)]


def _experiment(evaluator: str, system_key: str) -> str:
    """Name (hash) of what a second process must not work on meanwhile."""
    return content_hash(["trials", evaluator, system_key])


def _chosen(
    query: Select[Any],
    evaluator: str,
    case_keys: Iterable[str] | None,
    system_keys: Iterable[str] | None,
) -> Select[Any]:
    c = schema.trials.c
    query = query.where(c.evaluator == evaluator)
    for column, keys in ((c.case_key, case_keys), (c.system_key, system_keys)):
        if keys is not None:
            # One parameter however many keys there are; SQLite bounds the number of parameters.
            each = func.json_each(encode(list(keys))).table_valued("value")
            query = query.where(column.in_(select(each.c.value)))
    return query
