"""Standard streams as people leave them: a reader that goes, a full disk, another encoding.

Real processes, since pytest has streams of its own.
"""

from __future__ import annotations

import json
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


def shell(
    folder: Path, line: str, more_streams: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    """A line of bash in the folder; `agenteval` in it is this package's."""
    environment = {k: v for k, v in os.environ.items() if k not in (*ENVIRONMENT, "COLUMNS")}
    return subprocess.run(
        ["bash", "-c", f'agenteval() {{ "{sys.executable}" -m agenteval "$@"; }}; {line}'],
        cwd=folder,
        env={**environment, **more},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.slow
def test_a_reader_that_goes_is_no_error(rated: Path) -> None:
    # `true` may end before or after the first write, `head` after it: the code is the same
    line = (
        "agenteval show | true; echo ${PIPESTATUS[0]} >&3; "
        "agenteval show --json | head -c 1 >&4; echo ${PIPESTATUS[0]} >&3"
    )
    done = shell(rated, f"({line}) 3>&1 4>/dev/null")
    assert done.stdout.split() == ["0", "0"]
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_below_the_output_is_named(rated: Path) -> None:
    done = shell(rated, "agenteval show > /dev/full; echo $?")
    assert done.stdout == "3\n"
    assert done.stderr == "agenteval: standard output: No space left on device\n"


@pytest.mark.slow
@pytest.mark.parametrize("close", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_quiet(rated: Path, close: str) -> None:
    done = shell(rated, f"(agenteval show {close}; echo $? >&3) 3>&1")
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


# All commands in one process, which is quicker: as many as a person would redirect.
COMMANDS = """
import json, sys
from agenteval.app.main import main
for line in json.loads(sys.argv[1]):
    try:
        main(line)
    except SystemExit as end:
        print("exit", end.code, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_output_that_is_not_utf_8(project: Path, encoding: str) -> None:
    run = {"input": "What is 1 + 1?", "task": "sums"}
    runs = [run | {"id": f"{n}", "system": "système → 点", "output": "x" * n} for n in (1, 2)]
    (project / "odd.jsonl").write_text("\n".join(map(json.dumps, runs)))
    (project / "mine.py").write_text("def judge(run, criterion):\n    return len(run.output) / 2\n")
    commands = (
        ["--help"],
        ["verify", "--help"],
        ["quantify", "odd.jsonl", "--judge", "python:mine:judge"],
        ["show"],
        ["verify", "odd.jsonl", "--judge", "python:mine:judge"],
        ["no → command"],
        ["show", "--json", "-q"],
    )
    environment = {k: v for k, v in os.environ.items() if k not in ENVIRONMENT}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)],
        cwd=project,
        timeout=60,
        env=environment | {"PYTHONIOENCODING": encoding, "COLUMNS": "200"},
        capture_output=True,
    )
    shown, errors = done.stdout.decode(encoding), done.stderr.decode(encoding)
    _, _, document = shown.rpartition("exit 2\n")
    codes = [line for line in shown.splitlines() if line.startswith("exit ")]
    assert codes == [*["exit 0"] * 5, "exit 2", "exit 0"]
    assert "système ? ?" in shown
    assert "Traceback" not in errors
    # A JSON document loses nothing.
    rated = json.loads(document.rpartition("exit 0")[0])
    assert {row["system"] for row in rated["tables"]["scores"]["rows"]} >= {"système → 点"}
