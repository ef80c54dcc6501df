"""The group writer: whoever is told `done` is on the disk, and everybody is told something."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from agenteval.errors import StoreError
from agenteval.evaluators.base import Unit
from agenteval.evaluators.utility.plan import make_plan
from agenteval.experiment import Experiment
from agenteval.records import CallRecord, CellKey, Score
from agenteval.store import Store
from agenteval.store.export import export_cells
from agenteval.store.writer import GroupWriter
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
from tests.thorough import often

JUDGE = ScriptedJudge()


def opened(path: Path, runs: int = 20) -> Store:
    store = Store(path)
    store.register(items(runs), criteria(2), JUDGE.source)
    return store


def outcome(run: int, repeat: int = 0):  # type: ignore[no-untyped-def]
    return scores(Unit(*items(run + 1)[run], tuple(criteria(2)), repeat), JUDGE.source)


def count(store: Store) -> int:
    return len(dict(store.states(JUDGE.source)))


def test_units_that_come_together_share_transactions(tmp_path: Path) -> None:
    with opened(tmp_path / "s.db") as store:
        commits: list[object] = []
        event.listen(store.engine, "commit", commits.append)
        made = [outcome(i % 20, i // 20) for i in range(300)]
        for future in [store.commit_soon(o.results, o.call) for o in made]:
            future.result(10)
        assert count(store) == 600
        assert 1 <= len(commits) < 30


def test_a_waiter_that_is_cancelled_harms_nobody(tmp_path: Path) -> None:
    """The results of a cancelled waiter are kept, and the writer goes on for the others."""

    async def main(store: Store) -> None:
        waiting = []
        for i in range(20):
            o = outcome(i)
            waiting.append(asyncio.create_task(store.commit(o.results, o.call)))
        await asyncio.sleep(0)
        for task in waiting[::2]:
            task.cancel()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [isinstance(e, asyncio.CancelledError) for e in ended] == [True, False] * 10
        late = outcome(0, 1)
        await asyncio.wait_for(store.commit(late.results, late.call), 10)

    with opened(tmp_path / "s.db") as store:
        asyncio.run(main(store))
        assert count(store) == 42
        future = store.commit_soon(outcome(1, 1).results, outcome(1, 1).call)
        assert future.cancel() is False
        future.result(10)


def test_futures_are_resolved_whatever_close_races_with(tmp_path: Path) -> None:
    for i in range(10):
        store = opened(tmp_path / f"s{i}.db")
        futures, refused = [], threading.Event()
        made = [outcome(k % 20, k // 20) for k in range(400)]

        def submit(store=store, futures=futures, made=made, refused=refused):  # type: ignore[no-untyped-def]
            try:
                for o in made:
                    futures.append(store.commit_soon(o.results, o.call))
            except StoreError:
                refused.set()

        thread = threading.Thread(target=submit)
        thread.start()
        while not futures:
            time.sleep(0)
        store.close()
        thread.join(10)
        assert refused.is_set() or len(futures) == 400
        assert all(f.done() and f.exception() is None for f in futures)
        with Store(store.path) as again:
            assert count(again) == 2 * len(futures)


def test_a_statement_that_fails_for_one_unit_fails_that_unit(tmp_path: Path) -> None:
    with opened(tmp_path / "s.db") as store:
        made = [outcome(i) for i in range(10)]
        odd = made[4].results[0].model_copy(update={"label": 7})  # text() refuses a number
        with pytest.raises(AttributeError):
            store.commit_soon([odd], made[4].call)
        too_big = made[5].call.model_copy(
            update={"usage": made[5].call.usage.model_copy(update={"requests": 2**70})}
        )
        futures = [
            store.commit_soon(o.results, too_big if i == 5 else o.call) for i, o in enumerate(made)
        ]
        with pytest.raises(StoreError, match="cannot store this"):
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
            store.commit_soon(outcome(0).results, outcome(0).call)


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
    plan = make_plan(JUDGE, items(4), criteria(2), store, repeats=1)
    acknowledged = [] if done is None else done
    asyncio.run(
        Experiment(plan, store, workers=1).run(lambda p: acknowledged.append(p.scored))
    )  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="no RLIMIT_FSIZE")
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
                known = {(run, repeat) for run, _, _, repeat in dict(store.states(JUDGE.source))}
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
        [sys.executable, "-c", code, str(tmp_path / "s.db")], capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
    assert time.monotonic() - started < 30


def _many_cells(path: Path, pipe: Connection, repeats: int) -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    many = [(c.id, c.sha256) for c in criteria(25)]
    keys, source = [view.sha256 for _, view in items(100)], JUDGE.source.sha256
    with Store(path) as store:
        store.register(items(100), criteria(25), JUDGE.source)
        sizes = []
        for repeat in range(repeats):
            waiting = []
            for run in keys:
                made = [
                    Score(
                        key=CellKey(run=run, criterion=key, source=source, repeat=repeat),
                        criterion_id=name, label="fair", value=0.25, explanation="well " * 20,
                    )
                    for name, key in many
                ]  # fmt: skip
                waiting.append(store.commit_soon(made, CallRecord()))
            for future in waiting:
                future.result(60)
            sizes.append(resident())
        pipe.send((count(store), sizes[4], max(sizes[5:])))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_memory_does_not_grow_with_what_is_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repeats = often(20, 40)
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_many_cells, args=(tmp_path / "s.db", theirs, repeats))
    child.start()
    theirs.close()
    cells, early, late = ours.recv()
    child.join(20)
    assert cells == 2500 * repeats
    growth = (late - early) / 1e6
    with capsys.disabled():
        print(f"\n{cells:,} cells: resident memory grew by {growth:.1f} MB after the first 12,500")
    assert growth < 30 * (repeats - 5) / 35  # a third of a kilobyte for each cell


def test_the_writer_alone_refuses_after_close(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        writer = GroupWriter(store.engine)
        writer.close()
        writer.close()
        with pytest.raises(StoreError, match="closed"):
            writer.submit([])
