"""The group writer: whoever is told `done` is on the disk, and everybody is told something."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import OperationalError

from agenteval.engine import Experiment
from agenteval.engine.judging import JudgeUnit
from agenteval.errors import StoreError
from agenteval.store import Store, rows, schema
from agenteval.store.export import export_cells
from agenteval.store.writer import Waiter
from agenteval.utility.evaluator import JudgeEvaluator
from tests.store.making import (
    FORK,
    ScriptedJudge,
    check_file,
    criteria,
    items,
    judge_into,
    received,
    scores,
)

JUDGE = ScriptedJudge()


def opened(path: Path, runs: int = 20) -> Store:
    store = Store(path)
    store.register(items(runs), criteria(2), JUDGE.source)
    return store


def outcome(run: int, repeat: int = 0):  # type: ignore[no-untyped-def]
    return scores(JudgeUnit(*items(run + 1)[run], tuple(criteria(2)), repeat), JUDGE.source)


def count(store: Store) -> int:
    return len(dict(store.states(JUDGE.source.sha256)))


def test_units_that_come_together_share_transactions(tmp_path: Path) -> None:
    with opened(tmp_path / "s.db") as store:
        commits: list[object] = []
        event.listen(store.engine, "commit", commits.append)
        made = [outcome(i % 20, i // 20) for i in range(300)]
        for future in [store.save_soon(o.results, o.call) for o in made]:
            future.result(10)
        assert count(store) == 600
        assert 1 <= len(commits) < 30


def test_a_waiter_that_is_cancelled_harms_nobody(tmp_path: Path) -> None:
    """The results of a cancelled waiter are kept, and the writer goes on for the others."""

    async def main(store: Store) -> None:
        waiting = []
        for i in range(20):
            o = outcome(i)
            waiting.append(asyncio.create_task(store.save(o.results, o.call)))
        await asyncio.sleep(0)
        for task in waiting[::2]:
            task.cancel()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [isinstance(e, asyncio.CancelledError) for e in ended] == [True, False] * 10
        late = outcome(0, 1)
        await asyncio.wait_for(store.save(late.results, late.call), 10)

    with opened(tmp_path / "s.db") as store:
        asyncio.run(main(store))
        assert count(store) == 42
        future = store.save_soon(outcome(1, 1).results, outcome(1, 1).call)
        assert future.cancel() is False
        future.result(10)


def test_a_statement_that_fails_for_one_unit_fails_that_unit(tmp_path: Path) -> None:
    with opened(tmp_path / "s.db") as store:
        made = [outcome(i) for i in range(10)]
        odd = made[4].results[0].model_copy(update={"label": 7})  # text() refuses a number
        with pytest.raises(AttributeError):
            store.save_soon([odd], made[4].call)
        too_big = made[5].call.model_copy(
            update={"usage": made[5].call.usage.model_copy(update={"requests": 2**70})}
        )
        futures = [
            store.save_soon(o.results, too_big if i == 5 else o.call) for i, o in enumerate(made)
        ]
        with pytest.raises(StoreError, match="cannot store the data"):
            futures[5].result(10)
        for i, future in enumerate(futures):
            assert i == 5 or future.result(10) is None
        assert count(store) == 18


def test_a_reply_that_cannot_be_kept_shows_at_the_next_commit(tmp_path: Path) -> None:
    with opened(tmp_path / "s.db") as store:
        broken = [True]

        def refuse(*_: object) -> None:
            if broken[0]:
                raise OperationalError("INSERT", {}, Exception("database or disk is full"))

        event.listen(store.engine, "before_cursor_execute", refuse)
        store.put_reply("paid", {"text": "dear"})
        deadline = time.monotonic() + 60
        while store._replies.lost is None and time.monotonic() < deadline:
            time.sleep(0.01)
        broken[0] = False
        with pytest.raises(StoreError, match="free some space"):
            store.save_soon(outcome(0).results, outcome(0).call)


@pytest.mark.slow
def test_the_nth_statement_fails_for_every_n(tmp_path: Path) -> None:
    """Fail the n-th statement for n = 1, 2, 3 … until the run succeeds; resume each time."""
    whole = tmp_path / "whole.db"
    with Store(whole) as store:
        _run(store)
        export_cells(store, tmp_path / "whole.jsonl")
    n = 0
    while (said := _run_failing_at(n + 1, tmp_path / f"f{n + 1}.db")) is not None:
        n += 1
        path = tmp_path / f"f{n}.db"
        assert "\n" not in said[0]
        assert "disk I/O error" in said[0]
        check_file(path)
        with Store(path) as store:
            assert count(store) >= said[1]
            _run(store)
            export_cells(store, tmp_path / "again.jsonl")
        assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert n >= 10


def _run_failing_at(n: int, path: Path) -> tuple[str, int] | None:
    """The error and the number of cells acknowledged before it; None when nothing failed."""
    done = [0]
    try:
        with Store(path) as store:
            _fail_at(store, n)
            _run(store, done)
    except StoreError as error:
        return str(error), done[-1]
    return None


def _fail_at(store: Store, n: int) -> None:
    seen = [0]

    def fail(*_: object) -> None:
        seen[0] += 1
        if seen[0] == n:
            raise OperationalError("statement", {}, Exception("disk I/O error"))

    event.listen(store.engine, "before_cursor_execute", fail)


def _run(store: Store, done: list[int] | None = None) -> None:
    acknowledged = [] if done is None else done
    work = Experiment(JudgeEvaluator.of(JUDGE, items(4), criteria(2)), store, concurrency=1)
    asyncio.run(work.run(lambda p: acknowledged.append(p.scored)))


@pytest.mark.skipif(sys.platform == "win32", reason="no RLIMIT_FSIZE")
@pytest.mark.slow
def test_a_full_disk_is_one_line_and_nothing_is_acknowledged_in_vain(tmp_path: Path) -> None:
    refused = 0
    for kilobytes in (60, 110, 150, 200, 300, 450):
        path = tmp_path / f"{kilobytes}.db"
        said = _judged(path, kilobytes * 1024)
        acknowledged = {m for m in said if isinstance(m, tuple) and m[0] != "error"}
        last = said[-1]
        assert last[0] == "error", last  # the whole table needs more than any of these
        assert "\n" not in last[1]
        assert str(path) in last[1]
        refused += "free some space" in last[1]
        if path.exists() and path.stat().st_size:
            check_file(path)
        if acknowledged:
            with Store(path) as store:
                known = {
                    (run, repeat) for run, _, _, repeat in dict(store.states(JUDGE.source.sha256))
                }
            assert acknowledged <= known
        assert _judged(path, None)[-1] == "end"
        with Store(path) as store:
            assert count(store) == 120 * 2 * 6
    assert refused == 6


def _judged(path: Path, limit: int | None) -> list:  # type: ignore[type-arg]
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=judge_into, args=(path, theirs, 120, 2, limit))
    child.start()
    theirs.close()
    said = received(ours)
    child.join(20)
    assert child.exitcode == 0
    return said


@pytest.mark.slow
def test_a_process_that_forgets_to_close_ends_at_once(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from agenteval.store import Store\n"
        "store = Store(sys.argv[1])\n"
        "store.register([], [], __import__('agenteval.records').records.Source("
        "evaluator='e', version=1, model='m'))\n"
        "store.put_reply('k', {'text': 'x'})\n"
        "print('ran')\n"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "s.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
    assert time.monotonic() - started < 30


def replies(store: Store) -> dict[str, str]:
    with store.engine.connect() as connection:
        return {row.key: row.reply for row in connection.execute(select(schema.replies))}


async def test_every_waiter_of_a_group_is_told_its_own_outcome(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    loop = asyncio.get_running_loop()
    waiters: list[Waiter] = [loop.create_future() for _ in range(4)]
    some: list[dict[str, str | None]] = [
        {"key": "a", "reply": "1"},
        {"key": "b", "reply": None},
        {"key": "c", "reply": "3"},
    ]
    for waiter, row in zip(waiters, some, strict=False):
        store.submit([(rows.ADD_REPLY, [row])], waiter)
    waiters[3].cancel()
    store.submit([(rows.ADD_REPLY, [{"key": "d", "reply": "4"}])], waiters[3])
    done = await asyncio.gather(*waiters, return_exceptions=True)
    assert (done[0], done[2]) == (None, None)
    assert isinstance(done[1], StoreError)  # NOT NULL; it takes no other with it
    assert isinstance(done[3], asyncio.CancelledError)
    assert replies(store) == {"a": "1", "c": "3", "d": "4"}  # cancelled, and written
