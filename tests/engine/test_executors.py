"""What every executor promises, checked against outcomes of this process; and what Ray adds.

The tests share one local Ray, as a notebook would that has called `ray.init`. One of them leaves
starting and ending it to the command.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

import agenteval
from agenteval.engine import ray_executor
from agenteval.errors import InputError
from agenteval.models.factory import choose_model, make_client
from agenteval.models.limits import Limits
from agenteval.models.wire import Request
from agenteval.records import Criterion, Run, Task
from agenteval.store import Store
from agenteval.testing import DEFAULT, Server, serve
from benchmarks.crash import agents
from tests.cli.conftest import Cli

TASK = Task(name="sums", description="Add the numbers.")
CRITERIA = [
    Criterion(name=name, description=name, accepted_values=("bad", "fair", "good"))
    for name in ("right", "clear")
]
NONCE = ("[0-9a-f]{24}",)  # differs from store to store
_RAY = pytest.param("ray", marks=[pytest.mark.slow, pytest.mark.xdist_group("ray")])
on_ray = pytest.mark.parametrize("place", [_RAY], indirect=True)
everywhere = pytest.mark.parametrize("place", ["local", _RAY], indirect=True)
Place = dict[str, Any]


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Place:
    """Options of the executor under test."""
    if request.param == "local":
        return {}
    request.getfixturevalue("ray")
    return {"workers": 2}


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A local Ray for all tests, started as the executor starts it."""
    module = pytest.importorskip("ray", reason="the extra `ray` is not installed")
    before, handler = set(os.environ), signal.getsignal(signal.SIGTERM)
    with ray_executor.RayExecutor(2, "local") as executor:
        started = executor._start()  # its processes end with the thread that starts them
        signal.signal(signal.SIGTERM, handler)  # Ray sets its own in the main thread
        for actor in started:
            module.kill(actor)
        yield module
    for name in set(os.environ) - before:
        del os.environ[name]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-leader")


def runs(count: int) -> list[Run]:
    return [
        Run(id=f"r{i}", task="sums", system="s", input=f"what is {i} + 1?", output=f"it is {i + 1}")
        for i in range(count)
    ]


def quantify(place: Place, store: Path, judge: Any, count: int = 12, **options: Any) -> Any:
    concurrency, calls = options.pop("concurrency", 4), options.pop("max_calls", None)
    return agenteval.quantify(
        runs(count),
        CRITERIA,
        judge=judge,
        task=TASK,
        store=store,
        limits=Limits(concurrency, max_calls=calls),
        **options,
        **place,
    )


def asked(place: Place, store: Path, server: Server, **options: Any) -> Any:
    return quantify(place, store, "openai:m", base_url=server.base_url, **options)


def stored(path: Path) -> list[tuple[Any, ...]]:
    """All results of the store, without what differs from run to run."""
    query = """SELECT r.item_key, r.variant, r.criterion_key, r.repeat, r.status, r.label, r.value,
        r.detail, c.requests, c.prompt_tokens FROM results r JOIN calls c USING (call_id)
        ORDER BY 1, 2, 3, 4"""
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def uneven(body: Any, n: int) -> Any:
    """Malformed at r3 and its repair, cut off at r5; else the default of the server."""
    text = str(body["messages"])
    if "what is 3 +" in text:
        return "no JSON at all"
    return DEFAULT


@on_ray
def test_outcomes_and_failures_are_those_of_this_process(place: Place, tmp_path: Path) -> None:
    with serve(answer=uneven, ignore=NONCE) as server:
        for name, options in (("local", {}), ("ray", place)):
            asked(options, tmp_path / f"{name}.db", server, repeats=2)
            counts = server.count
        here, there = stored(tmp_path / "local.db"), stored(tmp_path / "ray.db")
    assert here == there
    assert {row[4] for row in here} == {"scored", "unscored:parse"}
    assert counts == 2 * (12 * 2 + 2)  # each repeat of r3 has a repair


@on_ray
@pytest.mark.parametrize("mode", ["plain", "async", "embedded", "probabilities"])
def test_other_judges_say_the_same(place: Place, mode: str, tmp_path: Path) -> None:
    def plain(run: Run, criterion: Criterion) -> Any:
        if run.id == "r2":
            raise ValueError("no idea")
        return len(run.output) / 100

    async def waiting(run: Run, criterion: Criterion) -> Any:
        await asyncio.sleep(0.001)
        return criterion.accepted_values[len(run.id) % 3], "counted"

    with serve(ignore=NONCE) as server:
        for name, options in (("local", {}), ("ray", place)):
            judges: dict[str, Any] = {"plain": plain, "async": waiting, "embedded": "embedded"}
            if mode == "probabilities":
                asked(options, tmp_path / f"{name}.db", server, probabilities=True)
            else:
                quantify(options, tmp_path / f"{name}.db", judges[mode])
    assert stored(tmp_path / "local.db") == stored(tmp_path / "ray.db")


@everywhere
def test_a_cap_is_exact(place: Place, tmp_path: Path) -> None:
    with serve(answer=uneven, ignore=NONCE) as server:
        report = asked(place, tmp_path / "s.db", server, count=30, max_calls=11)
        assert server.count == 11
        assert report.exit_code == 3
        rest = asked(place, tmp_path / "s.db", server, count=30)
        assert (server.count, rest.exit_code) == (31, 0)  # one repair; nothing is asked twice


@everywhere
def test_a_cap_holds_for_a_function(place: Place, tmp_path: Path) -> None:
    called = tmp_path / "called"

    async def judge(run: Run, criterion: Criterion) -> float:
        if criterion.name == "right":
            with called.open("a") as file:
                file.write(".")
        await asyncio.sleep(0.01)
        return 0.5

    assert quantify(place, tmp_path / "s.db", judge, max_calls=5).exit_code == 3
    assert called.read_text() == "....."


@everywhere
async def test_an_interrupt_lets_requests_finish(place: Place, tmp_path: Path) -> None:
    notes: list[str] = []
    with serve(latency=0.3) as server:
        task = asyncio.ensure_future(
            agenteval.aquantify(
                runs(40),
                CRITERIA,
                judge="openai:m",
                base_url=server.base_url,
                task=TASK,
                store=tmp_path / "s.db",
                limits=Limits(4),
                notify=notes.append,
                **place,
            )
        )
        while server.count < 6:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        done = server.count
        assert len(stored(tmp_path / "s.db")) == 2 * done  # two criteria a request
        assert any(note.startswith("interrupted: finishing") for note in notes)
        assert done < 40


@everywhere
def test_a_reply_is_durable_before_it_is_used(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    if not place:
        pytest.skip("a judge of this process shares the command's memory: nothing to promise")
    with serve(answer=lambda body, n: "yes") as server, Store(tmp_path / "s.db") as store:
        choice = choose_model("openai:m", server.base_url)
        client = make_client(choice, Limits(4), store)
        where = str(path)

        async def judge(run: Run, criterion: Criterion) -> float:
            asks = Request(({"role": "user", "content": f"{run.id} {criterion.name}"},))
            reply = await client.complete(asks)
            with closing(sqlite3.connect(where)) as database:
                query = "SELECT count(*) FROM replies WHERE key = ?"
                return float(database.execute(query, (reply.key,)).fetchone()[0])

        report = quantify(place, store, judge)
    assert [r.value for r in report.ratings] == [1.0] * 24


# -- Ray alone -------------------------------------------------------------------------------------


@on_ray
def test_a_unit_that_kills_actors_fails_and_the_others_go_on(place: Place, tmp_path: Path) -> None:
    def judge(run: Run, criterion: Criterion) -> float:
        if run.id == "r7":
            os._exit(5)
        return 0.5

    report = quantify(place, tmp_path / "s.db", judge)
    failed = [r for r in report.ratings if r.value is None]
    assert {r.run_id for r in failed} == {"r7"}
    assert {r.status for r in failed} == {"error:infrastructure"}
    assert failed[0].message.startswith("run r7: 3 actors died while they evaluated it")
    assert len(report.ratings) - len(failed) == 22


@on_ray
def test_an_agent_that_kills_actors_is_a_failed_trial(place: Place, tmp_path: Path) -> None:
    cases = agenteval.plan_suite(n="3", limits=None).cases[:3]
    deadly = cases[1].request

    def agent(request: str, tools: Any) -> str:
        if request == deadly:
            os._exit(5)
        return "done"

    report = agenteval.plan_test(cases, agent, store=tmp_path / "s.db", **place)
    outcomes = {attempt.case.id: attempt.outcome for attempt in report.attempts}
    assert outcomes.pop(cases[1].id) == "error:infrastructure"
    assert not any(":" in outcome for outcome in outcomes.values())
    assert "3 actors died" in report.failures[0].log.message


def actors() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [p for p in children if p.name().startswith("ray::RayActor")]


@on_ray
def test_a_killed_actor_costs_no_request(place: Place, tmp_path: Path) -> None:
    killed = []

    def kill() -> None:
        while server.count < 60:
            time.sleep(0.01)
        for actor in actors():
            actor.kill()
            killed.append(actor.pid)

    with serve(latency=0.05) as server:
        thread = threading.Thread(target=kill)
        thread.start()
        report = asked(place, tmp_path / "s.db", server, count=150, concurrency=8)
        thread.join()
        assert killed
        assert server.count == 150
    assert [r.status for r in report.ratings] == ["scored"] * 300


@on_ray
@pytest.mark.parametrize("command", ["flow session model", "flow turn", "trace locate", "plan"])
def test_agents_and_finders_do_the_same(
    place: Place, command: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-leader")
    agents.make_traces(tmp_path / "traces", 2)
    commands = agents.commands(users=4, turns=6, traces=2, trials=1)
    if command == "plan":
        assert cli("plan", "synth", "--count", 6, "-o", "suite.jsonl", "-q").code == 0
        agent = ("--agent", "openai", "--model", "openai:m", "--base-url")
        commands["plan"] = (
            lambda url: ("plan", "test", "suite.jsonl", *agent, url, "--store", "s.db", "--json"),
            (),
        )
    trials = []

    def answer(body: Any, n: int) -> Any:
        form = (body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
        return agents.reply(body, form.get("properties", {}))

    with serve(answer=answer) as server:
        for extra in ((), ("--workers", "2")):
            ended = cli(*commands[command][0](server.base_url), *extra)
            assert ended.code in (0, 1), ended.err
            with closing(sqlite3.connect("s.db")) as database:
                query = "SELECT item_key, repeat, status, outcome FROM calls ORDER BY 1, 2"
                trials.append(database.execute(query).fetchall())
            os.remove("s.db")
    assert trials[0] == trials[1] != []


@on_ray
def test_keys_stay_in_this_process(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    dumps = ray_executor.RayExecutor._dumps

    def seen(self: Any, value: object, name: str) -> bytes:
        sent.append(dumps(self, value, name))
        return sent[-1]

    monkeypatch.setattr(ray_executor.RayExecutor, "_dumps", seen)
    with serve() as server:
        asked(place, tmp_path / "s.db", server, count=2)
    assert len(sent) == 3  # the evaluator and two units
    assert not any(b"sk-secret" in data for data in sent)


@on_ray
@pytest.mark.parametrize(
    ("held", "message"),
    [
        (threading.Lock, "the evaluator .*judge cannot be pickled for Ray: .*lock"),
        (lambda: Store("held.db"), "a judge that runs in Ray cannot hold an open store"),
    ],
)
def test_what_cannot_be_sent_is_refused(
    place: Place,
    held: Callable[[], Any],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    value = held()

    def judge(run: Run, criterion: Criterion) -> float:
        return 0.5 if value else 0.0

    with pytest.raises(InputError, match=message):
        quantify(place, tmp_path / "s.db", judge)


@on_ray
def test_a_cluster_of_another_version_is_refused(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_executor, "versions", lambda: "agenteval 9 on Python 3.11.0")
    with pytest.raises(InputError, match=r"the cluster has agenteval .*, this is agenteval 9"):
        quantify(place, tmp_path / "s.db", lambda run, criterion: 0.5)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--workers 0", "'--workers'"),
        ("--ray ray://host:10001", "--ray: run the command on a node of the cluster"),
        ("--ray 127.0.0.1:9", "--ray: no actors can be started on 127.0.0.1:9: "),
    ],
)
def test_other_places_are_refused_in_one_line(cli: Cli, arguments: str, line: str) -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    Path("runs.jsonl").write_text('{"input": "a", "output": "b", "task": "math"}\n')
    refused = cli(
        "quantify", "runs.jsonl", "--task", "math", "--judge", "embedded", *arguments.split()
    )
    assert refused.code == 2
    assert line in refused.err


def test_without_ray_the_command_says_how_to_install_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_executor, "find_spec", lambda name: None)
    Path("runs.jsonl").write_text('{"input": "a", "output": "b", "task": "math"}\n')
    refused = cli("quantify", "runs.jsonl", "--task", "math", "--workers", "2")
    assert refused.code == 2
    assert "--workers: Ray is not installed; pip install 'agenteval[ray]'" in refused.err


_ALONE = """
import os, sys, time, agenteval
from agenteval.records import Criterion, Run, Task

def judge(run, criterion):
    time.sleep(0.3)
    return 0.5

agenteval.quantify(
    [Run(id=str(i), task="t", system="s", input=str(i), output="b") for i in range(200)],
    [Criterion(name="right", accepted_values=("bad", "good"))],
    judge=judge, task=Task(name="t", description="d"), store="s.db", workers=1,
    progress=lambda counts: print(counts.done, flush=True),
)
"""


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_a_ray_of_its_own_listens_on_loopback_and_ends_with_the_command(tmp_path: Path) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("the extra `ray` is not installed")
    (tmp_path / "alone.py").write_text(_ALONE)
    with subprocess.Popen(
        [sys.executable, "alone.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 20:  # some seconds after the start: all have opened their sockets
                break
        family = [
            psutil.Process(process.pid),
            *psutil.Process(process.pid).children(recursive=True),
        ]
        addresses = {
            c.laddr.ip
            for p in family
            for c in p.net_connections(kind="inet")
            if c.status == psutil.CONN_LISTEN
        }
        # Two helpers of Ray first look for the rest of it, for some minutes.
        slow = "ray::DashboardAgent", "ray::RuntimeEnvAgent"
        ours = [p for p in family[1:] if not p.name().startswith(slow)]
        process.send_signal(signal.SIGKILL)
        process.wait()
        _, alive = psutil.wait_procs(ours, timeout=30)
    assert addresses == {"::ffff:127.0.0.1", "127.0.0.1"}
    assert alive == []
