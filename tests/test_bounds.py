"""What a whole run may send at most, against a real server: dead, closed, capped, dripping."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agenteval.engine import Experiment, ExperimentResult
from agenteval.engine.experiment import FIRST_FAILURES
from agenteval.errors import Unauthorized
from agenteval.models.client import RetryPolicy
from agenteval.models.factory import ModelChoice, make_client
from agenteval.models.limits import Limits
from agenteval.readers import make_view, read_runs
from agenteval.readers.tasks import find_task
from agenteval.store import Store
from agenteval.testing import Fault, Rule, Server, serve
from agenteval.utility.criteria_file import load_criteria
from agenteval.utility.evaluator import JudgeEvaluator
from agenteval.utility.quantifier import QuantifierOptions, chat_judge

ROOT = Path(__file__).parents[1]
WORKERS = 8
QUICK = RetryPolicy(attempts=3, first=0.001, longest=0.01)


def quantify(
    server: Server, path: Path, **limits: Any
) -> tuple[ExperimentResult, Counter[str], int]:
    """How the run ended, the results by status, and how many calls a resume would make."""

    async def run() -> tuple[ExperimentResult, Counter[str], int]:
        runs = read_runs(ROOT / "tasks" / "math" / "runs.jsonl").runs[:30]
        items = [(one, make_view(one)) for one in runs]
        criteria = load_criteria(ROOT / "criteria" / "math.reviewed.json").criteria.criteria[:2]
        choice = ModelChoice("chat", "test-model", "openai", server.base_url, "none")
        with Store(path) as store:
            client = make_client(choice, Limits(**{"concurrency": 4} | limits), store)
            client.retry = QUICK
            task = find_task(str(ROOT / "tasks" / "math")).task
            judge = chat_judge(client, task, QuantifierOptions())
            work = Experiment(JudgeEvaluator.of(judge, items, criteria), store, concurrency=WORKERS)
            try:
                ended = await work.run()
            finally:
                await client.close()
            states = dict(store.states(judge.source.sha256)).values()
            return ended, Counter(s.status for s in states), len(work.pending().units)

    return asyncio.run(run())


@pytest.mark.parametrize("fault", [Fault("status", 503), Fault("reset")])
def test_a_dead_server_is_left_after_few_calls(fault: Fault, tmp_path: Path) -> None:
    with serve(faults=[fault]) as server:
        ended, found, _ = quantify(server, tmp_path / "a.db")
        # the calls that open the breaker, those under way then, each with all its attempts
        assert server.count <= (FIRST_FAILURES + WORKERS) * QUICK.attempts
    assert ended.stopped is not None
    assert ended.left_out == 30 - sum(found.values()) // 2 > 0
    assert set(found) == {"error:infrastructure"}


def test_a_refused_key_stops_at_once(tmp_path: Path) -> None:
    with serve(faults=[Fault("status", 401)]) as server:
        with pytest.raises(Unauthorized):
            quantify(server, tmp_path / "a.db")
        assert server.count <= 4  # those in flight


def test_a_key_refused_midway_stops_at_once_and_keeps_what_was_paid(tmp_path: Path) -> None:
    revoked = Rule(Fault("status", 401), at=tuple(range(12, 1000)))
    with serve(faults=[revoked]) as server:
        with pytest.raises(Unauthorized):
            quantify(server, tmp_path / "a.db")
        assert server.count <= 12 + 4
        answered = sum(r.outcome == "ok" for r in server.requests)
        server.engine.settings = type(server.engine.settings)()  # the key is mended
        before = server.count
        ended, _, again = quantify(server, tmp_path / "a.db")
        assert server.count - before <= 30 - answered + 4  # cancelled ones may be asked again
    assert (ended.stopped, again) == (None, 0)


def test_a_cap_of_ten_calls_lets_ten_through(tmp_path: Path) -> None:
    broken = Rule((Fault("status", 500), Fault("half_body")), probability=0.3)
    with serve(faults=[broken], latency=0.005, seed=4) as server:
        ended, found, again = quantify(server, tmp_path / "a.db", concurrency=8, max_calls=10)
        assert server.count == 10
    assert ended.stopped is not None
    assert "cap of 10 calls" in ended.stopped
    assert again >= 20
    assert found["error:budget"] == 0 or again == 30 - found["scored"] // 2


def test_a_dripping_reply_is_a_timeout_and_is_asked_again_on_resume(tmp_path: Path) -> None:
    name = read_runs(ROOT / "tasks" / "math" / "runs.jsonl").runs[3].input
    drip = Rule(Fault("slow_drip", seconds=60), match=re.escape(name[:60]))
    with serve(faults=[drip]) as server:
        _, found, again = quantify(server, tmp_path / "a.db", timeout=1.0, concurrency=8)
        slow = {r.key for r in server.requests if r.outcome != "ok"}
        assert found["error:timeout"] == 2 * len(slow) > 0
        assert again == len(slow)
        before = server.count
        server.engine.settings = type(server.engine.settings)()
        _, found, again = quantify(server, tmp_path / "a.db", timeout=1.0)
        assert server.count - before == len(slow)
    assert (again, found["error:timeout"]) == (0, 0)


WRITER = """
import sys
from agenteval.store import Store
with Store(sys.argv[1]) as store:
    for n in range(60):
        store.put_reply(f"key {n % 10}", {"text": sys.argv[2] * 2000, "n": n})
"""


def test_two_processes_that_keep_the_same_reply_leave_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Store(path).close()
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), letter]) for letter in "ab"
    ]
    assert [w.wait(60) for w in writers] == [0, 0]
    with Store(path) as store:
        for n in range(10):
            reply = store.get_reply(f"key {n}")
            assert reply is not None
            assert reply["text"] in ("a" * 2000, "b" * 2000)
            assert reply["n"] == 50 + n  # the last of either
