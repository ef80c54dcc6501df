"""The store: results by key, calls and paid replies, in one SQLite file."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, func, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import SQLAlchemyError

from agenteval.errors import InputError, StoreError
from agenteval.records import (
    CallRecord,
    CellKey,
    Criterion,
    Failure,
    Result,
    Run,
    Score,
    Source,
    Usage,
    View,
    content_hash,
)
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store import schema
from agenteval.store.lock import experiment_lock
from agenteval.store.migrations import prepare
from agenteval.store.writer import GroupWriter, explain

_ADD_RUN = insert(schema.runs)
_ADD_RUN = _ADD_RUN.on_conflict_do_update(
    index_elements=["run_key"],
    # Labels may be mended later without asking a judge again.
    set_={c: _ADD_RUN.excluded[c] for c in ("task", "system", "success")},
)
_ADD_CRITERION = insert(schema.criteria).on_conflict_do_nothing()
_ADD_SOURCE = insert(schema.sources).on_conflict_do_nothing()
_ADD_CALL = insert(schema.calls)
_ADD_CELL = insert(schema.cells)
_ADD_CELL = _ADD_CELL.on_conflict_do_update(
    index_elements=["source_key", "run_key", "variant", "criterion_key", "repeat"],
    set_={
        **{c: _ADD_CELL.excluded[c] for c in ("status", "label", "value", "detail", "call_id")},
        "tries": schema.cells.c.tries + 1,
    },
    where=schema.cells.c.status.contains(":"),  # a Failure may be replaced, a Score never
)
_ADD_REPLY = insert(schema.replies)
_ADD_REPLY = _ADD_REPLY.on_conflict_do_update(
    index_elements=["key"], set_={"reply": _ADD_REPLY.excluded.reply}
)
_GET_REPLY = select(schema.replies.c.reply)


@dataclass(frozen=True, slots=True)
class CellState:
    """What the store knows of a cell: its status and how often it was tried."""

    status: str
    tries: int

    @property
    def open_on_resume(self) -> bool:
        """True when a resumed run should try it again unasked."""
        return self.status in INFRASTRUCTURE

    @property
    def failed(self) -> bool:
        """True for every Failure."""
        return ":" in self.status


class Store:
    """Open with a path (created when absent). Close it, or use it as a context manager.

    Raises StoreError when the file cannot be opened or is not a store.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path).expanduser()
        if not create and not self.path.is_file():
            raise InputError(
                "there is no store here yet; run `agenteval quantify` first", str(path)
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.engine = _engine(self.path)
            self.secret = prepare(self.engine)
        except (SQLAlchemyError, OSError) as error:
            reason = (
                explain(error, self.engine)
                if isinstance(error, SQLAlchemyError)
                else f"{self.path}: {error}"
            )
            raise StoreError(reason) from error
        self._writer: GroupWriter | None = None
        self._reader = self.engine.connect()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Commit what is queued and close; safe to call twice."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._reader.close()
        self.engine.dispose()

    def lock(self, experiment: str) -> AbstractContextManager[None]:
        """Hold an experiment for this process; StoreLocked when another holds it."""
        return experiment_lock(self.path, experiment)

    def _submit(self, writes: Sequence[tuple[Any, Sequence[dict[str, Any]]]]) -> Future[None]:
        if self._writer is None:
            self._writer = GroupWriter(self.engine)
        return self._writer.submit(writes)

    # -- what is judged, on what, by whom -------------------------------------------------------

    def register(
        self, runs: Iterable[tuple[Run, View]], criteria: Iterable[Criterion], source: Source
    ) -> None:
        """Make runs, criteria and source known; waits until it is durable."""
        writes = [
            (_ADD_RUN, [_run_row(run, view) for run, view in runs]),
            (_ADD_CRITERION, [_criterion_row(c) for c in criteria]),
            (_ADD_SOURCE, [_source_row(source)]),
        ]
        self._submit(writes).result()

    def states(self, source: Source) -> dict[tuple[str, str, str, int], CellState]:
        """Status of every cell of a source, by (run, variant, criterion, repeat)."""
        c = schema.cells.c
        query = select(c.run_key, c.variant, c.criterion_key, c.repeat, c.status, c.tries).where(
            c.source_key == source.sha256
        )
        with self.engine.connect() as connection:
            return {
                (run, variant, criterion, repeat): CellState(status, tries)
                for run, variant, criterion, repeat, status, tries in connection.execute(query)
            }

    # -- results ---------------------------------------------------------------------------------

    async def commit(self, results: Sequence[Result], call: CallRecord) -> None:
        """Store the results of one call; returns when they are durable."""
        await asyncio.wrap_future(self.commit_soon(results, call))

    def commit_soon(self, results: Sequence[Result], call: CallRecord) -> Future[None]:
        """Queue the results of one call; the future resolves when they are durable."""
        if not results:
            raise ValueError("a call without results")
        key = results[0].key
        call_id = uuid.uuid4().hex
        return self._submit(
            [
                (_ADD_CALL, [_call_row(call_id, key, call)]),
                (_ADD_CELL, [_cell_row(call_id, r) for r in results]),
            ]
        )

    def results(self, source_key: str, *, variant: str | None = None) -> Iterator[Result]:
        """Stored results of a source, ordered by run, variant, criterion, repeat."""
        c = schema.cells.c
        query = (
            select(schema.cells, schema.criteria.c.criterion_id)
            .join(schema.criteria, schema.criteria.c.criterion_key == c.criterion_key)
            .where(c.source_key == source_key)
            .order_by(c.run_key, c.variant, c.criterion_key, c.repeat)
        )
        if variant is not None:
            query = query.where(c.variant == variant)
        with self.engine.connect() as connection:
            for row in connection.execute(query):
                yield _to_result(row)

    def sources(self) -> list[tuple[str, Source]]:
        """(key, Source) of everything in the store, in the order of first use."""
        query = select(schema.sources.c.source_key, schema.sources.c.record)
        with self.engine.connect() as connection:
            return [(k, Source.model_validate_json(r)) for k, r in connection.execute(query)]

    def criteria_of(self, source_key: str) -> dict[str, Criterion]:
        """Criteria that a source has judged, by content hash, in the order of first use."""
        used = select(schema.cells.c.criterion_key).where(schema.cells.c.source_key == source_key)
        query = select(schema.criteria.c.criterion_key, schema.criteria.c.record).where(
            schema.criteria.c.criterion_key.in_(used)
        )
        with self.engine.connect() as connection:
            return {k: Criterion.model_validate_json(r) for k, r in connection.execute(query)}

    def runs(self) -> dict[str, dict[str, Any]]:
        """Rows of the table runs, without the long texts, by run key."""
        c = schema.runs.c
        query = select(c.run_key, c.run_id, c.task, c.system, c.case_key, c.success)
        with self.engine.connect() as connection:
            return {row.run_key: dict(row._mapping) for row in connection.execute(query)}

    def usage(self, source_key: str) -> Usage:
        """Requests, tokens and money of all calls of a source."""
        c = schema.calls.c
        query = select(
            func.coalesce(func.sum(c.requests), 0),
            func.sum(c.prompt_tokens),
            func.sum(c.completion_tokens),
            func.sum(c.cost),
        ).where(c.source_key == source_key)
        with self.engine.connect() as connection:
            requests, prompt, completion, cost = connection.execute(query).one()
        return Usage(
            requests=requests, prompt_tokens=prompt, completion_tokens=completion, cost=cost
        )

    # -- paid replies (the Client's cache) -------------------------------------------------------

    def get_reply(self, key: str) -> dict[str, Any] | None:
        """A paid reply by its request's hash; a damaged entry counts as none."""
        row = self._reader.execute(_GET_REPLY.where(schema.replies.c.key == key)).first()
        self._reader.rollback()  # do not hold a snapshot: the writer's checkpoint needs to move on
        if row is None:
            return None
        try:
            value = json.loads(row.reply)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def put_reply(self, key: str, reply: dict[str, Any]) -> None:
        """Queue a paid reply for the next commit. A database error shows at the next `commit`."""
        text = json.dumps(reply, ensure_ascii=True, allow_nan=False)
        self._submit([(_ADD_REPLY, [{"key": key, "reply": text}])])


def _engine(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 30})

    @event.listens_for(engine, "connect")
    def _pragmas(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    return engine


def _run_row(run: Run, view: View) -> dict[str, Any]:
    return {
        "run_key": view.sha256,
        "run_id": run.id,
        "task": run.task,
        "system": run.system,
        "case_key": content_hash(run.input) if run.input else content_hash(["run", run.id]),
        "success": None if run.success is None else int(run.success),
        "problem": view.problem,
        "trajectory": view.trajectory,
        "reference_shown": int(view.reference is not None),
    }


def _criterion_row(criterion: Criterion) -> dict[str, Any]:
    return {
        "criterion_key": criterion.sha256,
        "criterion_id": criterion.id,
        "record": criterion.model_dump_json(),
    }


def _source_row(source: Source) -> dict[str, Any]:
    return {
        "source_key": source.sha256,
        "evaluator": source.evaluator,
        "model": source.model,
        "record": source.model_dump_json(),
    }


def _call_row(call_id: str, key: CellKey, call: CallRecord) -> dict[str, Any]:
    return {
        "call_id": call_id,
        "run_key": key.run,
        "variant": key.variant,
        "source_key": key.source,
        "repeat": key.repeat,
        "record": call.model_dump_json(),
        "requests": call.usage.requests,
        "prompt_tokens": call.usage.prompt_tokens,
        "completion_tokens": call.usage.completion_tokens,
        "cost": call.usage.cost,
    }


_COLUMNS = {"key", "criterion_id", "status", "label", "value"}


def _cell_row(call_id: str, result: Result) -> dict[str, Any]:
    score = result if isinstance(result, Score) else None
    detail = result.model_dump(exclude=_COLUMNS, exclude_defaults=True)
    return {
        "run_key": result.key.run,
        "variant": result.key.variant,
        "criterion_key": result.key.criterion,
        "source_key": result.key.source,
        "repeat": result.key.repeat,
        "status": result.status,
        "label": score.label if score else None,
        "value": score.value if score else None,
        "detail": json.dumps(detail, ensure_ascii=True, allow_nan=False),
        "tries": 1,
        "call_id": call_id,
    }


def _to_result(row: Any) -> Result:
    key = CellKey(
        run=row.run_key,
        variant=row.variant,
        criterion=row.criterion_key,
        source=row.source_key,
        repeat=row.repeat,
    )
    detail = json.loads(row.detail)
    if ":" in row.status:
        return Failure(key=key, criterion_id=row.criterion_id, status=row.status, **detail)
    return Score(
        key=key,
        criterion_id=row.criterion_id,
        status=row.status,
        label=row.label,
        value=row.value,
        **detail,
    )


def default_path() -> Path:
    """`AGENTEVAL_STORE`, else `agenteval.db` in the working folder."""
    return Path(os.environ.get("AGENTEVAL_STORE", "agenteval.db"))
