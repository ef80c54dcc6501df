"""The store in PostgreSQL: what the file does, the database does; locks, copies, and one line for
what cannot be opened."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, insert, select
from sqlalchemy.exc import DBAPIError

import agenteval
from agenteval.errors import StoreError, StoreLocked, StoreRefused
from agenteval.records import Failure, Score, Source
from agenteval.store import Store, postgres, schema
from agenteval.store.connect import reading, writing
from agenteval.store.export import counts
from tests.golden.cases import CASES, Case
from tests.golden.freeze import call, differences, frozen, run
from tests.store.trial_making import CHECK, SYSTEM, case, failed, known, trial
from tests.support.postgres import Server, postgres_server, why_not

pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason=why_not() or ""),
    pytest.mark.xdist_group("postgres"),
]
MATH = Path(__file__).parents[2] / "tasks/math/runs.jsonl"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server() as running:
        yield running


@pytest.fixture
def url(server: Server) -> str:
    return server.database()


OPENED = {"flow", "trace"}  # their figures are read from the file


def on(case: Case, database: str) -> tuple[Case, dict[str, str]]:
    """The case with a database instead of the file s.db, and its lines by the new ones."""
    steps = tuple(
        replace(step, line=step.line.replace(" s.db", f" {database}")) for step in case.steps
    )
    lines = {new.line: old.line for new, old in zip(steps, case.steps, strict=True)}
    return replace(case, steps=steps), lines


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(c, id=c.name)
        for c in CASES
        if not c.local
        and c.name not in OPENED
        and any("--store s.db" in step.line for step in c.steps)
    ],
)
def test_the_golden_cases_are_the_same(case: Case, server: Server, tmp_path: Path) -> None:
    moved, lines = on(case, server.database())
    steps = run(moved, tmp_path)
    told = {
        next(
            (name.replace(new, old) for new, old in lines.items() if name.startswith(new)), name
        ): figures
        for name, figures in steps.items()
    }
    changed = [line for line in differences(told, frozen(case)) if "> written: [" not in line]
    assert not changed, "\n".join(changed[:20])


def judge(run: agenteval.Run, criterion: agenteval.Criterion) -> float:
    time.sleep(0.01)
    return len(run.output) % 7 / 7


CHILD = """
import sys
from tests.store import test_postgres as own
import agenteval
agenteval.quantify(own.MATH, criteria="criteria/math.reviewed.json", judge=own.judge, version="1",
                   task="math", repeats=3, store=sys.argv[1])
"""


def child(url: str) -> subprocess.Popen[bytes]:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, url],
        cwd=root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def rated(store: Store) -> dict[Any, Any]:
    """Status and value of every cell, by run, criterion and repeat."""
    r, items, criteria = schema.results.c, schema.items.alias(), schema.items.alias()
    query = (
        select(items.c.id, criteria.c.id, r.repeat, r.status, r.value)
        .join(items, items.c.item_key == r.item_key)
        .join(criteria, criteria.c.item_key == r.criterion_key)
    )
    with reading(store.engine) as connection:
        return {tuple(row[:3]): tuple(row[3:]) for row in connection.execute(query)}


def wait_for(store: Store, cells: int) -> None:
    until = time.monotonic() + 60
    while counts(store)["results"] < cells:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.slow
def test_killed_and_restarted_nothing_is_lost_or_doubled(server: Server, tmp_path: Path) -> None:
    url = server.database()
    Store(url).close()
    with Store(url) as store:
        for cells in (100, 400, 700):
            process = child(url)
            wait_for(store, cells)
            process.send_signal(signal.SIGKILL)
            process.wait()
    interrupted = child(url)  # its server goes away under it
    with Store(url) as store:
        wait_for(store, 1000)
    server.restart()
    interrupted.wait(60)
    last = child(url)
    assert last.wait(120) == 0, last.stderr and last.stderr.read()
    agenteval.quantify(
        MATH,
        criteria=Path(__file__).parents[2] / "criteria/math.reviewed.json",
        judge=judge,
        version="1",
        task="math",
        repeats=3,
        store=tmp_path / "file.db",
    )
    with Store(url) as store, Store(tmp_path / "file.db") as file:
        assert rated(store) == rated(file)
        assert counts(store)["results"] == 60 * 9 * 3
        assert not agenteval.scores(store).unfinished


def test_one_worker_for_each_experiment(url: str) -> None:
    with Store(url) as first, Store(url) as second, first.lock("ab" * 32):
        with pytest.raises(StoreLocked, match=f"process {os.getpid()} on .* works on the same"):
            second.lock("ab" * 32).__enter__()
        with second.lock("cd" * 32):
            pass
    with Store(url) as third, third.lock("ab" * 32):
        pass


def test_a_snapshot_sees_one_state_while_another_writes(url: str) -> None:
    with Store(url) as reader, Store(url) as writer:
        with reader.snapshot():
            before = counts(reader)
            agenteval.quantify(MATH, judge=judge, version="1", task="math", limit=2, store=writer)
            assert counts(reader) == before
        assert counts(reader)["items"] > before["items"]


def test_who_falls_asleep_while_writing_loses_the_turn(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_IDLE_SECONDS", 1)

    def write(engine: Engine) -> None:
        with writing(engine) as asleep:
            asleep.execute(insert(schema.meta), {"key": "k", "value": b"not kept"})
            with writing(engine) as other:  # as soon as the server has ended the first
                other.execute(insert(schema.meta), {"key": "k", "value": b"kept"})
            asleep.execute(insert(schema.meta), {"key": "late", "value": b"refused"})

    with Store(url) as store, pytest.raises(DBAPIError):
        write(store.engine)
    with Store(url) as store, reading(store.engine) as connection:
        found = dict(connection.execute(select(schema.meta.c.key, schema.meta.c.value)).all())
    assert (bytes(found["k"]), "late" in found) == (b"kept", False)


def test_who_waits_too_long_for_a_turn_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_WAIT_SECONDS", 1)
    source = Source(evaluator="test", version=1, model="m", prompt_sha256="p", seed=0)
    refused = pytest.raises(StoreError, match="another process has been writing")
    with Store(url) as store, Store(url) as waiting, writing(store.engine), refused:
        waiting.register([], [], source)


def test_paid_replies_are_found_again(url: str) -> None:
    async def put() -> None:
        with Store(url) as store:
            store.put_reply("key", {"text": "a reply with \x00 and 日本"})
            await asyncio.sleep(0)

    asyncio.run(put())
    with Store(url) as store:
        assert store.get_reply("key") == {"text": "a reply with \x00 and 日本"}
        assert store.get_reply("other") is None


def rows(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, sorted."""
    with reading(store.engine) as connection:
        return {
            table.name: sorted((tuple(r) for r in connection.execute(select(table))), key=repr)
            for table in schema.metadata.sorted_tables
            if table is not schema.meta
        }


def test_copies_there_and_back_are_equal(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agenteval.quantify(MATH, judge=judge, version="1", task="math", limit=9, store="one.db")
    for source, target in (("one.db", url), (url, "two.db")):
        done = call(["store", "copy", source, target], tmp_path)
        assert done.code == 0, done.err
        assert "not a secret" not in done.err
    with Store("one.db") as one, Store(url) as database, Store("two.db") as two:
        assert rows(one) == rows(database) == rows(two)
        assert one.secret == database.secret == two.secret
        assert [c.id for c in one.criteria_of(one.sources()[0][0]).values()] == [
            c.id for c in database.criteria_of(one.sources()[0][0]).values()
        ]
    again = call(["store", "copy", "one.db", url], tmp_path)
    assert again.code == 2
    assert "is not empty" in again.err
    told = json.loads(call(["store", "info", "--store", url, "--json"], tmp_path).out)
    shown = {row["table"]: row["rows"] for row in told["tables"]["tables"]["rows"]}
    assert shown["results"] == 9 * 9
    assert "not a secret" not in json.dumps(told)


def test_one_line_for_what_cannot_be_opened(server: Server, url: str) -> None:
    with pytest.raises(StoreRefused, match="password authentication failed") as wrong:
        Store(server.url("postgres", password="guessed"))
    assert "guessed" not in str(wrong.value)
    with pytest.raises(StoreRefused, match='database "nowhere" does not exist'):
        Store(server.url("nowhere"))
    with pytest.raises(StoreRefused, match="Connection refused"):
        Store("postgresql://127.0.0.1:9/nothing")
    with Store(url) as store, store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE meta SET value = '99' WHERE key = 'version'")
    with pytest.raises(StoreRefused, match="its tables are of version 99"):
        Store(url)
    other = server.database()
    with Store(other) as store, store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE replies")
    with pytest.raises(StoreRefused, match="has tables of others"):
        Store(other)


def test_texts_hold_what_the_file_holds(url: str) -> None:
    text = "zero \x00, half \ud83d, 日本"
    run = agenteval.Run(id="a", task="t", input=text, output=text)
    criterion = agenteval.Criterion(name="C", accepted_values=("a", "b"))
    agenteval.quantify([run], [criterion], judge=judge, version="1", task="t", store=url)
    with Store(url) as store:
        ((_, body),) = store.bodies(store.runs())
        assert "zero" in body["problem"]
        assert "日本" in body["problem"]


def test_a_trial_replaces_its_failure_and_gets_a_verdict_later(url: str) -> None:
    right = agenteval.Criterion(name="Right", accepted_values=("no", "yes"))
    with Store(url) as store:
        trials = known(store, 1)
        trials.add_system("planning", SYSTEM, (right,))
        lost = failed(0)
        key = lost.cell(right)
        timeout = Failure(key=key, criterion_id=right.id, status="error:timeout")
        store.save_soon((timeout,), lost).result(20)
        store.save_soon((), trial(0)).result(20)
        judged = trial(0).judged(CHECK, "pass")
        score = Score(key=key, criterion_id=right.id, label="yes", value=1.0)
        store.save_soon((score,), judged, verdict_only=True).result(20)
        (stored,) = trials.trials("planning", [case(0).key])
        assert (stored.outcome, stored.verdict, stored.tries) == ("pass", None, 2)
        assert list(store.results(key.source)) == [score]
        assert [state.tries for _, state in store.states(key.source)] == [2]
