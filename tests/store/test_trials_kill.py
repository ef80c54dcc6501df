"""Trials under kill -9, resume, and two processes on one experiment."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from pathlib import Path

import pytest

from agenteval.store import Store, Trials
from tests.store.making import FORK, check_file, received
from tests.store.trial_making import case, rank, try_into
from tests.thorough import often

CASES, TRIALS = 150, often(3, 6)
ROUNDS = often(16, 40)


def round_of(path: Path, wait: float, *, heard: int) -> list[object]:
    """Start a child, kill it `wait` seconds after `heard` messages; returns what it said."""
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=try_into, args=(path, theirs, CASES, TRIALS, True))
    child.start()
    theirs.close()
    said = [ours.recv() for _ in range(heard)]
    time.sleep(wait)
    child.kill()
    child.join(20)
    return said + received(ours)


def finish(path: Path) -> int:
    """Resume with an endpoint that works; returns how many trials that took."""
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=try_into, args=(path, theirs, CASES, TRIALS, False))
    child.start()
    theirs.close()
    said = received(ours)
    child.join(20)
    assert (said[0], said[-1], child.exitcode) == ("ready", "end", 0)
    return len(said) - 2


SPENT = ("tries", "requests", "prompt_tokens", "completion_tokens", "cost")


def content(path: Path, without: tuple[str, ...] = ()) -> bytes:
    """The tables as text, ordered by their keys, every column but those named and times of use."""
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    lines = []
    for table, order in (
        ("items", "item_key"),
        ("sources", "source_key"),
        ("calls", "call_id"),
        ("results", "source_key, item_key, criterion_key, repeat"),
    ):
        for row in db.execute(f"SELECT * FROM {table} ORDER BY {order}"):
            lines.append(json.dumps({k: row[k] for k in row.keys() if k not in (*without, "used")}))  # noqa: SIM118
    db.close()
    return "\n".join(lines).encode()


@pytest.mark.slow
def test_kills_lose_no_trial_and_leave_the_same_bytes(tmp_path: Path) -> None:
    rng = random.Random(20240417)
    path = tmp_path / "killed.db"
    acknowledged: set[tuple[str, int]] = set()
    for i in range(ROUNDS):
        heard = {0: 0, 1: 1}.get(i % 10, rng.randint(2, 20))
        said = round_of(path, rng.uniform(0, 0.08 if heard < 2 else 0.01), heard=heard)
        acknowledged.update(m for m in said if isinstance(m, tuple))
        assert "end" not in said
        if path.exists() and path.stat().st_size:
            check_file(path)
        if acknowledged:
            db = sqlite3.connect(path)
            found = set(db.execute("SELECT item_key, repeat FROM calls").fetchall())
            db.close()
            assert acknowledged <= found, "an acknowledged trial is lost"
    assert 2 * ROUNDS < len(acknowledged) < CASES * TRIALS

    with Store(path) as store:
        before = {(t.case_key, t.trial): t for t in Trials(store).trials("planning")}
    taken = finish(path)
    broken = sum(t.status == "error:infrastructure" for t in before.values())
    assert broken > 0
    assert taken == CASES * TRIALS - len(before) + broken
    whole = tmp_path / "whole.db"
    assert finish(whole) == CASES * TRIALS
    assert content(path, SPENT) == content(whole, SPENT)
    assert content(path).count(b"\n") == content(whole).count(b"\n") == CASES * (TRIALS + 1)
    with Store(path) as store:
        number = {case(i).key: i for i in range(CASES)}
        for t in Trials(store).trials("planning"):
            assert t.usage is not None
            assert t.usage.requests == 2 * t.tries
            # Only what the infrastructure had failed was ever done twice.
            assert t.tries == 1 or rank(number[t.case_key], t.trial) % 8 == 1
    assert finish(path) == 0
