"""One command in several processes: as one does it, nothing twice, caps kept, kills survived."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli.processes import package_sha256
from agenteval.store import Store
from agenteval.store.copying import counts
from agenteval.store.leases import Job, live_jobs
from agenteval.testing import Server, serve
from tests.cli import test_flow, test_trace
from tests.cli.conftest import ENVIRONMENT, Cli, Result
from tests.cli.test_signals import wait_for
from tests.support.asleep import put_to_sleep
from tests.support.postgres import postgres_server, why_not

RUNS = 40
desk, folder = test_flow.desk, test_trace.folder  # fixtures
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")


def answer(body: dict[str, Any], n: int) -> str:
    labels = {"clarity": "clear", "accuracy": "correct"}
    return json.dumps({k: {"explanation": "e", "label": v} for k, v in labels.items()})


def graded(body: dict[str, Any], n: int) -> str:
    """By the length of what is asked: the same for the same question, whoever asks and when."""
    size = sum(len(m["content"]) for m in body["messages"])
    labels = {"clarity": ["unclear", "partly clear", "clear"][size % 3],
              "accuracy": ["incorrect", "correct"][size % 2]}  # fmt: skip
    return json.dumps({k: {"explanation": "e", "label": v} for k, v in labels.items()})


@pytest.fixture
def runs(project: Path) -> Path:
    lines = [{"id": f"r{i}", "task": "sums", "input": f"{i} + {i}?",
              "output": "So " * (i % 7) + f"It is {2 * i}. That is all. Believe me."}
             for i in range(RUNS)]  # fmt: skip
    path = project / "many.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def quantify(runs: Path, url: str, *more: object) -> tuple[str, ...]:
    given = ("quantify", runs, "--model", "gpt-m", "--base-url", url, *more)
    return tuple(str(word) for word in given)


def bare() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in ENVIRONMENT}


def same(done: Result) -> str:
    """What was printed, as for the store alone.db."""
    text = done.out.replace("agenteval.db", "alone.db")
    text = re.sub(r"[0-9,]+ requests by this command; in all ", "", text)
    return re.sub(r'("(?:total_)?seconds": )[0-9.e-]+', r"\1 some", text)


def cells(place: Path | str) -> list[tuple[Any, ...]]:
    with Store(place) as store:
        return [(key, *row[:7]) for key, _ in store.sources(trials=True)
                for row in store.cells(key)]  # fmt: skip


def test_two_processes_do_it_once(cli: Cli, project: Path, runs: Path) -> None:
    with serve(graded) as server:
        asked = quantify(runs, server.base_url, "--repeats", 2, "--json")
        alone = cli(*asked, "--store", "alone.db")
        done = cli(*asked, "--workers", 2)
        assert (done.code, server.count) == (0, 4 * RUNS), done.err
        again = cli(*asked, "--workers", 2)
        assert (again.code, server.count) == (0, 4 * RUNS), again.err
    assert "judging: 80 of 80 calls" in done.err
    assert same(done) == same(again) == same(alone)
    assert cells(project / "agenteval.db") == cells(project / "alone.db")
    with Store(project / "agenteval.db") as store:
        assert counts(store)["calls"] == 2 * RUNS


@pytest.mark.slow
def test_the_plans_of_verify_come_one_after_the_other(cli: Cli, runs: Path) -> None:
    with serve(graded) as server:
        asked = ("verify", runs, "--model", "gpt-m", "--base-url", server.base_url, "--json",
                 "--probes", "--attacked", 5, "-o", "c.json")  # fmt: skip
        alone = cli(*asked, "--store", "alone.db")
        count = server.count
        done = cli(*asked, "--workers", 2)
        assert server.count == 2 * count
    assert done.code == alone.code, done.err
    assert same(done) == same(alone)
    assert cells("agenteval.db") == cells("alone.db")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["plan", "flow", "trace"])
def test_agents_and_finders(cli: Cli, desk: Path, folder: Path, command: str) -> None:
    if command == "plan":
        assert cli("plan", "synth", "--count", 6, "-o", "suite.jsonl").code == 0
        asked: tuple[object, ...] = ("plan", "test", "suite.jsonl", "--agent", "scripted:perfect",
                                     "--trials", 2)  # fmt: skip
    elif command == "flow":
        asked = ("flow", "session", "desk", "--user", "scripted", "--agent", "recorded:perfect")
    else:
        asked = ("trace", "locate", "traces")
    with serve(test_trace.judge) as server:
        if command == "trace":
            asked = (*asked, "--model", "m", "--base-url", server.base_url)
        alone = cli(*asked, "--store", "alone.db", "--json")
        done = cli(*asked, "--workers", 2, "--json")
    assert done.code == alone.code, done.err
    assert same(done) == same(alone)
    assert cells("agenteval.db") == cells("alone.db")
    assert len(cells("alone.db")) > 3


@pytest.mark.slow
@pytest.mark.parametrize("caps", [("--max-calls", 23), ("--max-cost", 0.012)])
def test_caps_hold_for_all_together(cli: Cli, runs: Path, caps: tuple[object, ...]) -> None:
    with serve(answer) as server:
        asked = quantify(runs, server.base_url, *caps, "--price-in", 1, "--price-out", 1)
        stopped = cli(*asked, "--workers", 3)
        assert stopped.code == 3
        assert "of all workers, is reached" in stopped.err
        cli(*asked, "--workers", 2)
        assert server.count == 23 if caps[0] == "--max-calls" else 10 < server.count < RUNS
    with Store("agenteval.db") as store:
        ((key, _),) = store.sources()
        usage = store.usage(key)
        assert (usage.requests, usage.cost is not None and usage.cost <= 0.012 + 0.1 * (
            caps[0] == "--max-calls")) == (server.count, True)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("command", ["flow", "trace", "nearly all"])
def test_a_cap_ends_it_whatever_others_hold(
    cli: Cli, runs: Path, desk: Path, folder: Path, command: str
) -> None:
    cap = RUNS - 2
    with serve(answer if command == "nearly all" else test_trace.judge) as server:
        model = ("--model", "m", "--base-url", server.base_url)
        if command == "flow":
            asked: tuple[object, ...] = ("flow", "session", "desk", "--user", "scripted", *model)
            cap = 3
        elif command == "trace":
            asked, cap = ("trace", "locate", "traces", *model), 1
        else:
            asked = (*quantify(runs, server.base_url), "-j", 8)
        stopped = cli(*asked, "--workers", 2, "--max-calls", cap, "--max-unscored", 1)
        assert (stopped.code, server.count) == (3, cap), stopped.err
    assert "of all workers, is reached" in stopped.err


@pytest.mark.slow
def test_one_cap_does_not_use_up_the_other(cli: Cli, runs: Path) -> None:
    with serve(answer) as server:
        asked = quantify(runs, server.base_url, "--price-in", 1, "--price-out", 1, "-j", 6)
        stopped = cli(*asked, "--workers", 2, "--max-calls", 30, "--max-cost", 1)
        assert (stopped.code, server.count) == (3, 30), stopped.err


@pytest.fixture
def place(tmp_path: Path) -> Iterator[str]:
    """A database, where there is one."""
    if why_not() is not None:
        pytest.skip(str(why_not()))
    with postgres_server() as database:
        yield database.database()


@pytest.mark.slow
def test_workers_that_others_start(cli: Cli, project: Path, runs: Path, place: str) -> None:
    with serve(answer, latency=0.2) as server:
        asked = quantify(runs, server.base_url, "--store", place, "--workers", 0)
        leader = subprocess.Popen([sys.executable, "-m", "agenteval", *asked], cwd=project,
                                  env=bare(), stderr=subprocess.PIPE, text=True)  # fmt: skip
        said = wait_for(leader, "waiting for workers: agenteval work --store postgresql://")
        assert "not a secret" not in said
        helping = [sys.executable, "-m", "agenteval", "work", "--store", place, "-j", "2",
                   "--wait", "0"]  # fmt: skip
        first = subprocess.Popen(helping, cwd=project, env=bare())
        late = subprocess.Popen(helping, cwd=project, env=bare())
        elsewhere = subprocess.run(helping, cwd=project / "tasks", env=bare(), check=False,
                                   stderr=subprocess.PIPE, text=True)  # fmt: skip
        assert elsewhere.returncode == 2
        assert "many.jsonl" in elsewhere.stderr
        _, err = leader.communicate(timeout=60)
        assert (leader.returncode, first.wait(30), late.wait(30)) == (0, 0, 0), err
    assert server.count == RUNS
    again = cli(*quantify(runs, server.base_url, "--store", place, "--json"))
    assert (again.json["ratings"], again.json["unfinished"]) == (2 * RUNS, [])


@contextmanager
def led(project: Path, server: Server, *asked: str) -> Iterator[subprocess.Popen[str]]:
    """A command with two workers, some of whose requests are under way."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agenteval", *asked], cwd=project, env=bare(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        until = time.monotonic() + 30
        while server.count < 5:
            assert time.monotonic() < until
            time.sleep(0.02)
        yield process
    finally:
        workers = children(process)
        process.kill()
        for pid in workers:  # one that is asleep would keep the pipes open
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


def children(process: subprocess.Popen[str]) -> list[int]:
    listed = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True,
                            check=False)  # fmt: skip
    return [int(pid) for pid in listed.stdout.split()]


@pytest.mark.slow
def test_a_killed_worker_costs_what_is_under_way(project: Path, runs: Path) -> None:
    with serve(answer, latency=0.3) as server:
        asked = quantify(runs, server.base_url, "--workers", 2, "-j", 4, "--repeats", 2)
        with led(project, server, *asked) as leader:
            first, _ = children(leader)
            os.kill(first, signal.SIGKILL)
            out, err = leader.communicate(timeout=60)
            assert leader.returncode == 0, err
        assert 2 * RUNS <= server.count <= 2 * RUNS + 4  # twice what it has in flight
    assert len(cells(project / "agenteval.db")) == 4 * RUNS
    assert "160 of 160 rated" in out


@pytest.mark.slow
def test_a_worker_that_slept_beyond_its_lease_is_not_heard(project: Path, runs: Path) -> None:
    with serve(answer, latency=0.3) as server:
        asked = quantify(runs, server.base_url, "--workers", 2, "-j", 4)
        with led(project, server, *asked) as leader:
            asleep, _ = children(leader)
            with Store(project / "agenteval.db") as store:
                put_to_sleep(asleep, store)
                ((job, *_),) = live_jobs(store.engine)
                (name,) = [w.worker for w in Job(store.engine, job).workers()
                           if w.about.startswith(f"process {asleep} ")]  # fmt: skip
                Job(store.engine, job).release(name)  # as the end of the lease does
            until = time.monotonic() + 30
            while len(cells(project / "agenteval.db")) < 2 * RUNS:
                assert time.monotonic() < until
                time.sleep(0.1)
            os.kill(asleep, signal.SIGCONT)
            _, err = leader.communicate(timeout=60)
            assert leader.returncode == 0, err
        # twice two for its requests in flight were under way, and as many leased ahead
        assert RUNS <= server.count <= RUNS + 2 * 4
    with Store(project / "agenteval.db") as store:
        assert counts(store)["calls"] == RUNS
        assert counts(store)["results"] == 2 * RUNS


@pytest.mark.slow
def test_ctrl_c_ends_them_all_in_order(cli: Cli, project: Path, runs: Path) -> None:
    with serve(answer, latency=0.3) as server:
        asked = quantify(runs, server.base_url, "-j", 4)
        with led(project, server, *asked, "--workers", "2") as leader:
            leader.send_signal(signal.SIGINT)
            _, err = leader.communicate(timeout=60)
            assert leader.returncode == 130
        assert "interrupted: workers finish what is under way; once more ends them" in err
        assert 5 <= server.count < RUNS
        assert len(cells(project / "agenteval.db")) == 2 * server.count
        assert cli(*asked, "--workers", 2).code == 0
        assert server.count == RUNS


@pytest.mark.slow
def test_workers_end_with_a_killed_leader(project: Path, runs: Path) -> None:
    with serve(answer, latency=0.5) as server:
        asked = quantify(runs, server.base_url, "--workers", 2, "-j", 2)
        with led(project, server, *asked) as leader:
            pids = children(leader)
            leader.kill()
            leader.wait()
        until = time.monotonic() + 15
        while any(Path(f"/proc/{pid}/cmdline").exists() for pid in pids):
            assert time.monotonic() < until
            time.sleep(0.1)
        assert server.count < RUNS / 2


@pytest.mark.slow
def test_an_outage_is_told_once_by_the_leader(cli: Cli, runs: Path) -> None:
    done = cli(*quantify(runs, "http://127.0.0.1:9/v1", "--workers", 2, "--timeout", 2))
    assert done.code == 3
    assert "in a row failed" in done.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--record", "r.jsonl"), "--record: goes with one process alone"),
        (("--until", "0.1"), "--until: goes with one process alone"),
        (("--base-url", "http://me:key@127.0.0.1:9/v1"), "--base-url: the command is kept in"),
        (("--workers", "999"), "--workers"),
    ],
)
def test_what_goes_with_one_process(cli: Cli, runs: Path, more: tuple[str, ...], said: str) -> None:
    done = cli(*quantify(runs, "http://127.0.0.1:9/v1", "--workers", 2, *more))
    assert (done.code, said in done.err) == (2, True), done.err
    assert not Path("agenteval.db").exists()


def test_rounds_go_with_one_process(cli: Cli, project: Path) -> None:
    done = cli("verify", "runs.jsonl", "--model", "m", "--rounds", 2, "--workers", 2)
    assert (done.code, "--rounds: goes with one process alone" in done.err) == (2, True)


def test_standard_input_is_not_shared(cli: Cli, project: Path) -> None:
    done = cli("quantify", "-", "--model", "m", "--workers", 2)
    assert (done.code, "cannot read standard input" in done.err) == (2, True)


def test_wrong_input_starts_no_process(cli: Cli, project: Path) -> None:
    done = cli("quantify", "none.jsonl", "--workers", 2)
    assert (done.code, "none.jsonl" in done.err) == (2, True)
    assert not Path("agenteval.db").exists()


def test_a_dry_run_asks_nobody(cli: Cli, runs: Path) -> None:
    done = cli(*quantify(runs, "http://127.0.0.1:9/v1", "--workers", 2, "--dry-run"))
    assert done.code == 0
    assert not Path("agenteval.db").exists()


def job(store: Store, *command: str, package: str | None = None) -> Job:
    begun = Job(store.engine, "j")
    begun.begin(command, package_sha256() if package is None else package)
    return begun


def test_another_version_is_refused(cli: Cli, project: Path) -> None:
    with Store("agenteval.db") as store:
        job(store, "quantify", "--", "runs.jsonl", package="older")
        done = cli("work", "--wait", 0)
        assert (done.code, "another version of agenteval" in done.err) == (2, True)
        assert live_jobs(store.engine)


def test_other_input_is_refused(cli: Cli, project: Path) -> None:
    with Store("agenteval.db") as store:
        begun = job(store, "quantify", "--", "runs.jsonl")
        begun.open_stage(["of-other-runs.1"], ["u"])
        done = cli("work", "--wait", 0)
        assert (done.code, "what is planned is not the same" in done.err) == (2, True), done.err
        (worker,) = begun.workers()
        assert (worker.alive, worker.stopped) == (False, None)  # no reason for any other worker


def test_nothing_to_do(cli: Cli, project: Path) -> None:
    assert cli("work", "--wait", 0).code == 0
    done = cli("work", "--store", "mysql://h/d", "--wait", 0)
    assert (done.code, "SQLite file or postgresql" in done.err) == (2, True)
