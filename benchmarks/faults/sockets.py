"""Socket calls of the model client that fail, for `faults.py`: real sockets on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from agenteval.engine import Experiment
from agenteval.errors import AgentevalError
from agenteval.evaluators.utility.criteria_file import load_criteria
from agenteval.evaluators.utility.plan import JudgeEvaluator
from agenteval.evaluators.utility.quantifier import QuantifierOptions, chat_judge
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.limits import Limiter
from agenteval.models.openai import OpenAITransport
from agenteval.readers import make_view, read_runs
from agenteval.readers.tasks import find_task
from agenteval.store.store import Store
from benchmarks.faults.operations import STORE, exported, noting
from benchmarks.faults.tries import Tally, damage, lost, store_halves
from tests.support import faulty_socket
from tests.support.faulty import NthCall

Calls = Sequence[tuple[str, int, str]]

# what fails, with which error of the system, once or lasting
CALLS: Calls = (
    ("socket", errno.EMFILE, "once"), ("socket", errno.EMFILE, "lasting"),
    ("connect", errno.ECONNREFUSED, "once"), ("connect", errno.ENETUNREACH, "lasting"),
    ("send", errno.EPIPE, "once"), ("send", errno.ECONNRESET, "half"),
    ("send", errno.EPIPE, "lasting"),
    ("recv", errno.ECONNRESET, "once"), ("recv", errno.ECONNRESET, "lasting"), ("recv", 0, "cut"),
)  # fmt: skip
_RETRY = RetryPolicy(attempts=3, first=0.001, longest=0.002)


def judged(template: Path, folder: Path, base_url: str) -> str | None:
    """`quantify` as a library, with short pauses; the reason when it stopped, or None."""
    with contextlib.chdir(template):
        task = find_task("sums").task
    runs = read_runs(str(template / "runs.jsonl"), task="sums").runs
    criteria = load_criteria(template / "criteria" / "sums.json").criteria.criteria
    import agenteval.store

    async def work(store: Store) -> str | None:
        client = Client(
            OpenAITransport("judge", base_url=base_url, api_key=None),
            cache=store, limiter=Limiter(2), retry=_RETRY, timeout=20, secret=store.secret,
        )  # fmt: skip
        judge = chat_judge(client, task, QuantifierOptions())
        items = [(run, make_view(run)) for run in runs]
        rated = JudgeEvaluator.of(judge, items, criteria)
        try:
            return (await Experiment(rated, store, concurrency=2).run()).stopped
        finally:
            await client.close()

    with agenteval.store.Store(folder / STORE) as store:
        return asyncio.run(work(store))


def tries(
    template: Path, work: Path, base_url: str, stride: int, calls: Calls = CALLS
) -> dict[str, Tally]:
    """Every kind of `calls` with n = 1, 1 + stride, … until a run meets no fault; tallies by kind.

    A try is clean when what failed stands in the store as an infrastructure failure, or nothing
    failed in the end; the way back asks for what is missing and must give the undisturbed table.
    """
    expected = _undisturbed(template, work / "whole", base_url)
    found = {}
    for kind, error, how in calls:
        name = errno.errorcode.get(error, "end of stream")
        tally = found[f"socket {kind} {name} {how}"] = Tally()
        n = 1
        while _attempt(template, work / "try", base_url, (kind, error, how, n), expected, tally):
            n += stride
    return found


def _undisturbed(template: Path, folder: Path, base_url: str) -> list[str]:
    folder.mkdir(parents=True)
    if stopped := judged(template, folder, base_url):
        raise RuntimeError(f"quantify fails by itself: {stopped}")
    table = _table(folder)
    if not table or any(":" in json.loads(line)["status"] for line in table):
        raise RuntimeError("the undisturbed table has failures")
    shutil.rmtree(folder)
    return table


def _attempt(
    template: Path, folder: Path, base_url: str, what: tuple[str, int, str, int],
    expected: list[str], tally: Tally,
) -> bool:  # fmt: skip
    kind, error, how, n = what
    folder.mkdir(parents=True)
    fault = NthCall(n, error, lasting=how == "lasting", half=how == "half")
    wrong = []
    try:
        with noting() as said, faulty_socket.failing({kind: fault}, cut=how == "cut"):
            stopped = judged(template, folder, base_url)
        failed = [json.loads(line) for line in _table(folder)]
        failed = [line for line in failed if line["status"] != "scored"]
        if not fault.fired:
            return False
        tally.tried += 1
        tally.survived += not failed and not stopped
        tally.clean += bool(failed or stopped)
        wrong += [
            ("unclear", f"{line['status']}: {line['message']}")
            for line in failed
            if line["status"] != "error:infrastructure" or "conn" not in line["message"]
        ]
        wrong += [("corrupt", w) for w in damage(folder / STORE)]
        wrong += [("lost", w) for w in lost(folder / STORE, said)]
        wrong += [("half", w) for w in store_halves(folder / STORE, 2)]
        if stopped := judged(template, folder, base_url):
            wrong.append(("stuck", stopped))
        if _table(folder) != expected:
            wrong.append(("differing", "table"))
    except (AgentevalError, OSError, RuntimeError) as ended:
        tally.tried += 1
        wrong.append(("unclear", f"{type(ended).__name__}: {ended}"))
    finally:
        tally.wrong += [f"{word}: n = {n}: {text}" for word, text in wrong]
        shutil.rmtree(folder)
    return n < 200


def _table(folder: Path) -> list[str]:
    """The exported results without the number of tries, which a failure raises."""
    rows = [json.loads(line) for line in exported(folder).splitlines()]
    return [json.dumps({k: v for k, v in row.items() if k != "tries"}) for row in rows]
