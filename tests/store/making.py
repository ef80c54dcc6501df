"""Things to store, made by a fixed rule, and child processes that store them."""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import resource
import sqlite3
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from agenteval.engine import Experiment, Outcome, Pending
from agenteval.engine.judging import JudgeUnit, cell_key
from agenteval.errors import AgentevalError
from agenteval.records import (
    CallRecord,
    Criterion,
    Failure,
    FailureStatus,
    Run,
    Score,
    Source,
    Usage,
    View,
)
from agenteval.store import Store
from agenteval.utility.evaluator import Item, JudgeEvaluator

LEVELS = ("poor", "fair", "good", "very good", "perfect")


def items(n: int, text: str = "because 2 + 2 = 4") -> list[tuple[Run, View]]:
    runs = [
        Run(
            id=f"run-{i}",
            task="sums",
            system=f"style-{i % 3}",
            input=f"problem {i // 3}",
            output=f"{text} ({i})",
            success=i % 2 == 0,
        )
        for i in range(n)
    ]
    return [(r, View(run_id=r.id, problem=r.input, trajectory=r.output)) for r in runs]


def criteria(n: int) -> list[Criterion]:
    return [Criterion(name=f"quality {i}", accepted_values=LEVELS) for i in range(n)]


def rank_of(unit: JudgeUnit, criterion: Criterion) -> int:
    """The level that the scripted judge gives: a function of the cell alone."""
    words = f"{unit.run.id} {criterion.id} {unit.repeat} {unit.variant}"
    return hashlib.sha256(words.encode()).digest()[0] % len(LEVELS)


class ScriptedJudge:
    """Scores by `rank_of`; `script` may answer with an outcome, or raise, instead."""

    def __init__(
        self,
        *,
        seed: int = 0,
        model: str = "scripted",
        prompt: str = "v1",
        delay: float = 0.0,
        script: Callable[[JudgeUnit], Outcome | None] = lambda _: None,
        one_per_call: bool = False,
    ) -> None:
        self._source = Source(
            evaluator="test", version=1, model=model, prompt_sha256=prompt, seed=seed
        )
        self._delay = delay
        self._script = script
        self._one_per_call = one_per_call
        self.seen: list[JudgeUnit] = []

    @property
    def source(self) -> Source:
        return self._source

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        if self._one_per_call:
            return [(c,) for c in criteria]
        return [tuple(criteria)] if criteria else []

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        self.seen.append(unit)
        await asyncio.sleep(self._delay)
        return self._script(unit) or scores(unit, self._source)


def experiment(
    judge: ScriptedJudge,
    some: Sequence[Item],
    wanted: Sequence[Criterion],
    store: Store,
    *,
    repeats: int = 1,
    variant: str = "original",
    **options: Any,
) -> Experiment[Item]:
    """An experiment of a judge on some runs; `options` are those of Experiment."""
    return Experiment(JudgeEvaluator(judge, ((variant, some),), wanted, repeats), store, **options)


def left(*args: Any, **options: Any) -> Pending[Item]:
    """What the store lacks of an experiment."""
    return experiment(*args, **options).pending()


def scores(unit: JudgeUnit, source: Source) -> Outcome:
    key = source.sha256
    results = tuple(
        Score(
            key=cell_key(unit, c, key),
            criterion_id=c.id,
            label=LEVELS[rank_of(unit, c)],
            value=rank_of(unit, c) / 4,
            explanation=f"{unit.run.id} says so",
        )
        for c in unit.criteria
    )
    call = CallRecord(
        shown=tuple(c.id for c in unit.criteria),
        usage=Usage(requests=1, prompt_tokens=100, completion_tokens=10),
    )
    return Outcome(results, call)


def failures(
    unit: JudgeUnit, source: Source, status: FailureStatus, message: str = "no"
) -> Outcome:
    key = source.sha256
    results = tuple(
        Failure(key=cell_key(unit, c, key), criterion_id=c.id, status=status, message=message)
        for c in unit.criteria
    )
    return Outcome(results, CallRecord(usage=Usage(requests=1)))


TABLES = {
    "meta",
    "experiments",
    "sources",
    "items",
    "calls",
    "results",
    "replies",
    "verdicts",
    "labels",
    "queues",
    "claims",
}


def check_file(path: Path) -> None:
    """The database is sound, has all its tables or none yet, and holds whole calls only."""
    db = sqlite3.connect(path)
    try:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        names = {n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert names in (set(), TABLES)
        if names:
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []
            empty = """SELECT count(*) FROM calls WHERE status IS NULL
                AND call_id NOT IN (SELECT call_id FROM results)"""
            assert db.execute(empty).fetchone() == (0,)
    finally:
        db.close()


# ---- child processes -----------------------------------------------------------------------------

# A server that has imported this module and holds no thread forks children in milliseconds.
FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(["pytest", "tests.store.making"])


class Telling(Store):
    """A store that says over a pipe which units are durable."""

    pipe: Connection

    async def save(self, results: Any, call: Any, **more: Any) -> None:
        await super().save(results, call, **more)
        self.pipe.send((results[0].key.run, results[0].key.repeat))


def judge_into(
    path: Path, pipe: Connection, n_runs: int, repeats: int, file_limit: int | None = None
) -> None:
    """Judge what is missing; tells ("ready"), each durable unit, and ("error", text) or "end"."""
    if file_limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    judge = ScriptedJudge(delay=0.002)
    try:
        with Telling(path) as store:
            store.pipe = pipe
            pipe.send("ready")
            work = experiment(
                judge, items(n_runs), criteria(6), store, repeats=repeats, concurrency=12
            )
            asyncio.run(work.run())
        pipe.send("end")
    except AgentevalError as error:
        pipe.send(("error", str(error)))


def received(pipe: Connection) -> list[Any]:
    """Everything that came through a pipe whose other end is closed."""
    messages = []
    while True:
        try:
            messages.append(pipe.recv())
        except (EOFError, OSError):
            return messages
