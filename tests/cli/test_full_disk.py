"""A disk that fails: one line, exit code 3, and the same table once it works again."""

from __future__ import annotations

import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support import faulty_sqlite
from tests.support.faulty import NthCall

JUDGE = "def length(run, criterion):\n    return min(1, len(run.output) / 100)\n"
FAULTS = [("write", errno.ENOSPC, True), ("write", errno.EIO, False), ("fsync", errno.EIO, True)]


@pytest.mark.skipif(
    faulty_sqlite.unavailable() is not None, reason=str(faulty_sqlite.unavailable())
)
@pytest.mark.parametrize(("kind", "error", "lasting"), FAULTS)
def test_after_a_fault_the_same_command_ends_with_the_same_table(
    cli: Cli,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    error: int,
    lasting: bool,
) -> None:
    (project / "disk_judge.py").write_text(JUDGE)
    monkeypatch.syspath_prepend(project)
    command = ("quantify", "runs.jsonl", "--judge", "python:disk_judge:length", "--json", "-q")
    table = cli(*command, "--store", "sound.db").json["tables"]["scores"]["rows"]
    fired = 0
    for n in (1, 7, 23, 40):
        store, fault = project / f"{n}.db", NthCall(n, error, lasting=lasting)
        with faulty_sqlite.failing({kind: fault}):
            broken = cli(*command, "--store", store)
        fired += bool(fault.fired)
        if broken.code:
            assert (broken.code, len(broken.err.strip().splitlines())) == (3, 1)
            assert str(store) in broken.err
        if store.exists():
            with closing(sqlite3.connect(store)) as database:
                assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert cli(*command, "--store", store).json["tables"]["scores"]["rows"] == table
    assert fired >= 2
