"""Standard streams as people leave them: a reader that goes, a full disk.

Real processes, since pytest has streams of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agenteval.testing import serve
from tests.cli.conftest import ENVIRONMENT, Cli
from tests.cli.test_quantify import answer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")


@pytest.fixture
def rated(cli: Cli, project: Path) -> Path:
    """A folder with a store that `show` has something to say of."""
    with serve(answer) as server:
        assert (
            cli("quantify", "runs.jsonl", "--model", "m", "--base-url", server.base_url).code == 0
        )
    return project


def shell(folder: Path, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A line of bash in the folder; `agenteval` in it is this package's."""
    environment = {k: v for k, v in os.environ.items() if k not in (*ENVIRONMENT, "COLUMNS")}
    return subprocess.run(
        ["bash", "-c", f'agenteval() {{ "{sys.executable}" -m agenteval "$@"; }}; {line}'],
        cwd=folder, env={**environment, **more}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_a_reader_that_goes_is_no_error(rated: Path) -> None:
    # `true` may end before or after the first write, `head` after it: the code is the same
    line = (
        "agenteval show | true; echo ${PIPESTATUS[0]} >&3; "
        "agenteval show --json | head -c 1 >&4; echo ${PIPESTATUS[0]} >&3"
    )
    done = shell(rated, f"({line}) 3>&1 4>/dev/null")
    assert done.stdout.split() == ["0", "0"]
    assert done.stderr == ""


def test_a_reader_that_goes_does_not_hide_a_gate(rated: Path) -> None:
    (rated / "s.csv").write_text("run,criterion,value\na,x,0.5\nb,x,0.7\n")
    done = shell(rated, "agenteval verify --scores s.csv --gate | true; echo ${PIPESTATUS[0]}")
    assert done.stdout == "4\n"  # two runs are not enough data


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_below_the_output_is_named(rated: Path) -> None:
    done = shell(rated, "agenteval show > /dev/full; echo $?")
    assert done.stdout == "3\n"
    assert done.stderr == "agenteval: standard output: No space left on device\n"


@pytest.mark.parametrize(
    ("columns", "width"), [("60", 60), ("", 120), ("19", 120), ("1001", 120), ("x", 120)]
)
def test_columns_say_how_wide_a_pipe_is(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from agenteval.cli.console import width_of

    monkeypatch.setenv("COLUMNS", columns)
    with (tmp_path / "out").open("w") as stream:
        assert width_of(stream) == width
