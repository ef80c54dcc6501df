"""A disk without room: one line, exit code 3, and the same table once there is some."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

JUDGE = "def length(run, criterion):\n    return min(1, len(run.output) / 100)\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no RLIMIT_FSIZE")
def test_after_a_fault_the_same_command_ends_with_the_same_table(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "disk_judge.py").write_text(JUDGE)
    monkeypatch.syspath_prepend(project)
    command = ("quantify", "runs.jsonl", "--judge", "python:disk_judge:length", "--json", "-q")
    table = cli(*command, "--store", "sound.db").json["tables"]["scores"]["rows"]
    broken = 0
    for limit in (4096, 80_000):  # bytes that a file may have
        store = project / f"{limit}.db"
        done = subprocess.run(
            [sys.executable, "-m", "agenteval", *command, "--store", str(store)],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda size=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        )
        broken += done.returncode != 0
        if done.returncode:
            assert (done.returncode, len(done.stderr.strip().splitlines())) == (3, 1)
            assert str(store) in done.stderr
        if store.exists():
            with closing(sqlite3.connect(store)) as database:
                assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert cli(*command, "--store", store).json["tables"]["scores"]["rows"] == table
    assert broken
