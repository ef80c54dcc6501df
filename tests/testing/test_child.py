"""The server as a process: start, options, script, end."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agenteval.testing import spawn
from agenteval.testing.server import main

COMMAND = [sys.executable, "-m", "agenteval.testing.server"]
QUESTION = {"model": "m", "messages": [{"role": "user", "content": "about run-7 nonce"}]}


def ask(url: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
    reply = http().post(f"{url}/chat/completions", json=body or QUESTION)
    return reply.status_code, reply.json()


@functools.cache
def http() -> httpx2.Client:
    """One for all: each would read the certificates of the machine again."""
    return httpx2.Client(trust_env=False)


def gone(pid: int, within: float = 10.0) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_it_starts_serves_counts_and_stops() -> None:
    with spawn("--latency", "0.05", "--seed", "4") as child:
        assert child.pid == child.process.pid
        status, first = ask(child.base_url)
        assert status == 200
        assert ask(child.base_url)[1] == first
        stats = child.stats()
        assert list(stats["per_request"].values()) == [[2, 2]]
        assert stats["in_flight_seconds"] >= 0.1
        child.reset()
        assert child.stats(keys=False)["requests"] == 0
    assert child.process.returncode == 0
    with spawn("--seed", "4") as again:
        assert ask(again.base_url)[1] == first
    with spawn("--seed", "5") as other:
        assert ask(other.base_url)[1] != first


@pytest.mark.slow
@pytest.mark.parametrize("pipe", ["stdin", "stdout"])
def test_it_dies_with_its_killed_parent(pipe: str) -> None:
    # The dying parent alone holds one pipe; with "stdin" the server's output goes to our own pipe.
    pipes = {
        "stdin": "stdin=subprocess.PIPE, stdout=None",
        "stdout": "stdin=subprocess.DEVNULL, stdout=subprocess.PIPE",
    }
    code = (
        "import subprocess, time\n"
        f"p = subprocess.Popen({COMMAND!r}, {pipes[pipe]})\n"
        "print('pid', p.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert parent.stdout is not None
    try:
        line = parent.stdout.readline()
        while not line.startswith(b"pid"):
            line = parent.stdout.readline()
        pid = int(line.split()[1])
        time.sleep(1.0)  # let it come up
        assert not gone(pid, 0.1)
        parent.kill()
        parent.wait(10)
        assert gone(pid)
    finally:
        parent.kill()
        parent.wait(10)
        parent.stdout.close()


def test_a_script_decides_faults_and_answers(tmp_path: Path) -> None:
    function = {"name": "f", "arguments": "{}"}
    call = {"tool_calls": [{"id": "1", "type": "function", "function": function}]}
    script = {
        "rules": [{"fault": {"kind": "status", "status": 503}, "first": 1, "match": r"run-\d"}],
        "answers": [{"match": "run-7", "replies": ["unused", "second", call]}],
        "seed": 9,
    }
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script))
    with spawn("--script", str(path)) as child:
        assert ask(child.base_url)[0] == 503
        said = [ask(child.base_url)[1]["choices"][0] for _ in range(3)]
        plain = {"model": "m", "messages": [{"role": "user", "content": "else"}]}
        other = ask(child.base_url, plain)[1]["choices"][0]
    assert said[0]["message"]["content"] == "second"
    assert [s["finish_reason"] for s in said] == ["stop", "tool_calls", "tool_calls"]
    assert other["message"]["content"].startswith("This is reply")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--latency", "soon"],
        ["--script", "/nowhere/x.json"],
        ["--key-regex", "("],
        ["--ceiling", "0"],
        ["--fault-rate", "2"],
        ["--port", "1"] if os.getuid() else ["--latency", "1e9"],
    ],
)
def test_bad_options_end_with_2_and_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
