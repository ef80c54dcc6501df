"""SIGTERM and SIGHUP end a command as Ctrl-C does: what is paid for is kept, and it says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli.signals import as_interrupts
from agenteval.testing import serve
from tests.cli.conftest import ENVIRONMENT
from tests.cli.test_quantify import answer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")


class Gate:
    """A model that answers nobody until it is opened; then it says what `reply` says."""

    def __init__(self, reply: Callable[[dict[str, Any], int], Any] = answer) -> None:
        self.reply = reply
        self.asked = threading.Semaphore(0)
        self.open = threading.Event()
        self.count = 0

    def __call__(self, body: dict[str, Any], n: int) -> str:
        self.count += 1
        self.asked.release()
        assert self.open.wait(30)
        return self.reply(body, n)


Started = tuple[subprocess.Popen[str], Gate]


@contextmanager
def quantify(project: Path, *more: str, ignoring: str = "") -> Iterator[Started]:
    """`agenteval quantify` with one request under way, of six that are to be made."""
    gate = Gate()
    with serve(gate) as server:
        words = f"quantify runs.jsonl --model m --base-url {server.base_url} -j 1"
        arguments = [*words.split(), *more]
        with started(project, gate, *arguments, ignoring=ignoring) as process:
            yield process, gate


@contextmanager
def started(
    folder: Path, gate: Gate, *arguments: str, ignoring: str = ""
) -> Iterator[subprocess.Popen[str]]:
    """A command in a process of its own, when its first request is under way."""
    trap = f"trap '' {ignoring}; " if ignoring else ""
    process = subprocess.Popen(
        ["bash", "-c", f'{trap}exec "$@"', "-", sys.executable, "-m", "agenteval", *arguments],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k not in ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert gate.asked.acquire(timeout=30)
        yield process
    finally:
        gate.open.set()
        process.kill()
        process.communicate()


def wait_for(process: subprocess.Popen[str], said: str) -> str:
    """What it says on standard error up to the line that holds `said`."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if said in line:
            return "".join(lines)
    raise AssertionError("".join(lines))


@pytest.mark.parametrize(
    ("sent", "ignoring", "code"),
    [(signal.SIGTERM, "INT", 143), (signal.SIGINT, "", 130), (signal.SIGHUP, "", 129)],
)
@pytest.mark.slow
def test_what_is_under_way_is_finished_and_kept(
    project: Path, sent: signal.Signals, ignoring: str, code: int
) -> None:
    with quantify(project, ignoring=ignoring) as (process, gate):
        process.send_signal(sent)
        wait_for(process, "in progress; interrupt again to stop at once")
        gate.open.set()
        out, err = process.communicate(timeout=30)
    assert process.returncode == code, err
    assert gate.count == 1  # nothing more was asked
    assert "not complete: 2 of 12 cells are judged" in out
    assert (
        "not complete: 2 of 12 cells are judged; interrupted; run the same command to continue"
        in err
    )


@pytest.mark.slow
def test_a_second_signal_waits_for_nothing_and_still_says_something(project: Path) -> None:
    with quantify(project, "--json") as (process, gate):
        process.send_signal(signal.SIGTERM)
        wait_for(process, "interrupt again to stop at once")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)  # the model has not answered
        assert not gate.open.is_set()
    assert process.returncode == 143
    assert "; run the same command to continue" in err
    assert "Traceback" not in err


def test_handlers_are_put_back_and_ignored_signals_stay_so() -> None:
    def now() -> list[Any]:
        return [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]

    before = now()
    hup = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    with as_interrupts():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signal.signal(signal.SIGHUP, hup)
    with as_interrupts() as caught:
        assert now() != before
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert (caught.code, caught.told) == (143, "interrupted by SIGTERM")
    assert now() == before


def test_one_line_where_the_command_says_nothing(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agenteval.cli.running.default_path", interrupted)
    done = cli("show")
    assert done.code == 130
    assert done.err == "agenteval: interrupted; what was stored stays\n"
