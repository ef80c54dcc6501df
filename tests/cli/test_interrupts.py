"""Interrupted, every command that asks a model or runs an agent keeps what is paid for.

What is asked once is never asked again: of one request under way at the signal the reply is used
when the same command goes on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval.records.trial import Trial
from agenteval.store import Store, Trials
from agenteval.testing import serve
from tests.cli import test_flow, test_flow_score, test_trace
from tests.cli.conftest import Cli
from tests.cli.test_signals import Gate, started, wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
Reply = Callable[[dict[str, Any], int], Any]
desk, folder = test_flow.desk, test_trace.folder  # fixtures
LEVELS = ["unclear", "partly clear", "clear"]


def critic(body: dict[str, Any], n: int) -> str:
    return json.dumps([{"name": "Clarity", "description": "d", "accepted_values": LEVELS}])


class Interrupting:
    """A model at whose first request this process is interrupted, before it is answered."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.bodies: list[str] = []

    def __call__(self, body: dict[str, Any], n: int) -> Any:
        self.bodies.append(json.dumps(body, sort_keys=True))
        if len(self.bodies) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return self.reply(body, n)


def kept(evaluator: str) -> list[Trial]:
    with Store("agenteval.db") as store:
        return list(Trials(store).trials(evaluator))


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("command", ["criteria", "score"])
def test_replies_of_single_questions_are_kept(cli: Cli, project: Path, command: str) -> None:
    asked: tuple[object, ...]
    if command == "criteria":  # one question for each seed
        model = Interrupting(critic)
        asked = ("criteria", "--task", "sums", "--tau", 1, "--seeds", 3, "-j", 1, "-o", "new.json")
    else:
        rows = [
            test_flow_score.turn(i, "Emma", test_flow_score.acts(said))
            for i, said in enumerate(("Ivanhoe", "Dracula", "Dune"))
        ]
        model = Interrupting(test_flow_score.judge)
        written = test_flow_score.write("rows.json", rows)
        asked = ("flow", command, written, "-j", 1, "--resamples", 100)
    with serve(model) as server:
        where = ("--model", "m", "--base-url", server.base_url)
        stopped = cli(*asked, *where)
        assert stopped.code == 130, stopped.err
        assert "waiting for pending replies" in stopped.err
        assert "run the same command to continue" in words(stopped.err)
        assert len(model.bodies) == 1  # nothing more was asked
        assert not Path("new.json").exists()
        cli(*asked, *where)
    assert len(model.bodies) > 1
    assert len(set(model.bodies)) == len(model.bodies)  # nothing is asked twice
    assert Path("new.json").exists() == (command == "criteria")


@pytest.mark.parametrize("command", ["session", "locate"])
def test_what_is_under_way_is_stored(cli: Cli, desk: Path, folder: Path, command: str) -> None:
    if command == "session":
        model = Interrupting(lambda *_: "Response: Goodbye!")
        asked: tuple[object, ...] = ("flow session desk --user scripted --limit 2 -j 1",)
        evaluator = "workflows.session"
    else:
        model = Interrupting(test_trace.judge)
        asked, evaluator = ("trace", "locate", "traces", "-j", 1), "traces"
    with serve(model) as server:
        where = ("--model", "m", "--base-url", server.base_url, "--max-unscored", 1)
        stopped = cli(*asked, *where)
        assert stopped.code == 130, stopped.err
        assert " in progress" in stopped.err
        assert "run the same command to continue" in words(stopped.out)  # what is done is shown
        assert [t.status for t in kept(evaluator)] == ["done"]
        done = cli(*asked, *where)
        assert done.code == 0, done.err
        assert "1 done before" in done.err
    assert len(set(model.bodies)) == len(model.bodies)
    assert {t.tries for t in kept(evaluator)} == {1}


@pytest.mark.slow
def test_a_second_signal_breaks_trials_off_and_stores_no_failure(cli: Cli, desk: Path) -> None:
    gate = Gate(lambda *_: "Response: Gladly.")
    with serve(gate) as server:
        asked = f"flow turn desk --model m --base-url {server.base_url} --limit 2".split()
        with started(desk.parent, gate, *asked) as process:
            process.send_signal(signal.SIGHUP)
            wait_for(process, "finishing 2 turns in progress")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)  # the model has not answered
            assert not gate.open.is_set()
        assert process.returncode == 129, err
        assert "run the same command to continue" in out + err
        assert "Traceback" not in err
        assert kept("workflows.turn") == []
        assert "2 turns to run" in cli(*asked).err
    assert [(t.status, t.tries) for t in kept("workflows.turn")] == [("done", 1)] * 2
