"""kill -9 at random moments: what was acknowledged is there, nothing is half there."""

from __future__ import annotations

import random
import sqlite3
import time
from pathlib import Path

import pytest

from agenteval.store import Store
from agenteval.store.export import export_cells
from tests.store.making import FORK, check_file, items, judge_into, received
from tests.thorough import often

RUNS, REPEATS, CRITERIA = 150, often(5, 14), 6
ROUNDS = often(20, 60)


def round_of(path: Path, wait: float, *, heard: int) -> list[object]:
    """Start a child, kill it `wait` seconds after `heard` messages; returns what it said.

    The first message says that the store is open, every other one is a durable unit.
    """
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=judge_into, args=(path, theirs, RUNS, REPEATS))
    child.start()
    theirs.close()
    said = [ours.recv() for _ in range(heard)]
    time.sleep(wait)
    child.kill()
    child.join(20)
    assert child.exitcode is not None
    return said + received(ours)


def cells_by_unit(path: Path) -> dict[tuple[str, int], int]:
    db = sqlite3.connect(path)
    rows = db.execute("SELECT item_key, repeat, count(*) FROM results GROUP BY item_key, repeat")
    found = {(run, repeat): n for run, repeat, n in rows}
    db.close()
    return found


def finish(path: Path) -> None:
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=judge_into, args=(path, theirs, RUNS, REPEATS))
    child.start()
    theirs.close()
    assert received(ours)[-1] == "end"
    child.join(20)
    assert child.exitcode == 0


@pytest.mark.slow
def test_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    rng = random.Random(20240406)
    path = tmp_path / "killed.db"
    acknowledged: set[tuple[str, int]] = set()
    least = 0
    for i in range(ROUNDS):
        # One in ten dies while it opens, one while it registers and plans, the others at work.
        heard = {0: 0, 1: 1}.get(i % 10, rng.randint(2, 30))
        said = round_of(path, rng.uniform(0, 0.06 if heard < 2 else 0.01), heard=heard)
        acknowledged.update(m for m in said if isinstance(m, tuple))
        least += max(0, heard - 1)
        assert "end" not in said
        assert len(acknowledged) >= least  # no unit is judged again
        if path.exists() and path.stat().st_size:
            check_file(path)
        if not acknowledged:
            continue
        found = cells_by_unit(path)
        assert set(found.values()) <= {CRITERIA}, "half a unit"
        assert acknowledged <= set(found), "an acknowledged unit is lost"
    assert len(acknowledged) < RUNS * REPEATS

    finish(path)
    whole = tmp_path / "whole.db"
    finish(whole)
    for file in (path, whole):
        with Store(file, create=False) as store:
            assert export_cells(store, file.with_suffix(".jsonl")) == RUNS * REPEATS * CRITERIA
    assert path.with_suffix(".jsonl").read_bytes() == whole.with_suffix(".jsonl").read_bytes()
    with Store(path) as store:
        assert len(store.runs()) == len(items(RUNS))
