"""`--base-url` more than once: what the commands do and say, and what the store finds again."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from tests.cli.test_workers import RUNS, answer, runs

from agenteval.store import Store
from agenteval.testing import Fault, serve, spawn
from tests.cli.conftest import Cli

__all__ = ["runs"]  # the fixture
DEAD = ("http://127.0.0.1:9/v1", "http://127.0.0.1:11/v1")


def quantify(runs: Path, *urls: str) -> list[object]:
    named = [word for url in urls for word in ("--base-url", url)]
    return ["quantify", runs, "--model", "m", *named]


def failures(folder: Path) -> int:
    with Store(folder / "agenteval.db") as store, store.engine.connect() as connection:
        query = "SELECT count(*) FROM results WHERE status != 'scored'"
        return int(connection.exec_driver_sql(query).scalar_one())


def test_results_are_found_again_when_endpoints_come_and_go(
    cli: Cli, project: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(answer) as a, serve(answer) as b, serve(answer) as c:
        urls = [server.base_url for server in (a, b, c)]
        first = cli(*quantify(runs, *urls[:2]))
        assert first.code == 0
        assert a.count + b.count == RUNS
        assert min(a.count, b.count) >= 10
        told = f"endpoints: {urls[0]} answered {a.count}; {urls[1]} answered {b.count}\n"
        assert first.err.count(told) == 1
        for others in ([], urls[1:], urls[2:]):  # the first one stands for all
            again = cli(*quantify(runs, urls[0], *others))
            assert again.code == 0
            assert "endpoints:" not in again.err
        assert a.count + b.count + c.count == RUNS
        monkeypatch.setenv("AGENTEVAL_BASE_URL", f"{urls[0]}  {urls[2]}\n")
        assert cli(*quantify(runs)).code == 0
        assert a.count + b.count + c.count == RUNS
        monkeypatch.setenv("AGENTEVAL_BASE_URL", f"{urls[2]} {urls[0]}")
        assert cli(*quantify(runs)).code == 0  # another first one, another judge
        assert a.count + b.count + c.count == 2 * RUNS
        assert c.count > 0


def test_a_server_killed_in_the_middle_leaves_no_failure(
    cli: Cli, project: Path, runs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = project / "script.json"
    labels = {"clarity": "clear", "accuracy": "correct"}
    text = json.dumps({k: {"explanation": "e", "label": v} for k, v in labels.items()})
    script.write_text(json.dumps({"answers": [{"match": ".", "replies": [text]}]}))
    with (
        spawn("--latency", "0.1", "--script", str(script)) as dying,
        serve(answer, latency=0.1) as alive,
    ):

        def kill() -> None:
            while alive.count < 10:
                time.sleep(0.01)
            dying.process.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        done = cli(*quantify(runs, dying.base_url, alive.base_url), "--json")
        killer.join()
        assert done.code == 0, done.err
        assert alive.count > RUNS / 2
    assert done.json["ratings"] == 2 * RUNS
    assert failures(project) == 0
    assert caplog.text.count("it is left out for a while, the other endpoints go on") == 1


@pytest.mark.slow
def test_all_dead_is_an_outage(cli: Cli, project: Path, runs: Path) -> None:
    done = cli(*quantify(runs, *DEAD), "-q")
    assert done.code == 3
    (line,) = [x for x in done.err.splitlines() if "in a row failed" in x]
    assert "8 calls in a row failed: http://127.0.0.1:" in line
    assert "cannot connect (Connection refused)" in line


def test_another_model_at_one_ends_it(cli: Cli, project: Path, runs: Path) -> None:
    missing = Fault("status", 404, body='{"error": {"message": "The model `m` does not exist."}}')
    with serve(answer) as a, serve(faults=[missing]) as b:
        done = cli(*quantify(runs, a.base_url, b.base_url), "-q")
    assert done.code == 3
    assert done.err.splitlines()[-1] == (
        f"agenteval: {b.base_url}: HTTP 404 (The model `m` does not exist.); "
        "each of several base URLs must serve the model m"
    )
    assert failures(project) == 0


def test_an_embedder_is_asked_at_the_first(cli: Cli, project: Path) -> None:
    with serve() as a, serve() as b:
        urls = ("--base-url", a.base_url, "--base-url", b.base_url)
        cli("criteria", "--task", "sums", "--model", "m", *urls, "--embedder", "endpoint:e",
            "--seeds", 2, "--bank", "--no-consolidate")  # fmt: skip
        paths = [{r.path.rpartition("/")[2] for r in server.requests} for server in (a, b)]
    assert paths == [{"completions", "embeddings"}, {"completions"}]


def test_doctor_asks_each(cli: Cli) -> None:
    with serve() as a, serve() as b:
        urls = ("--base-url", a.base_url, "--base-url", DEAD[0], "--base-url", b.base_url)
        done = cli("doctor", "--model", "m", *urls, "--json")
    found = [(c["fine"], c["found"]) for c in done.json if c["check"] == "judge"]
    assert [fine for fine, _ in found] == [True, False, True]
    assert found[0][1].endswith(f"({a.base_url})")
    assert found[1][1] == f"{DEAD[0]}: cannot connect (Connection refused)"
    assert found[2][1].endswith(f"({b.base_url})")
    assert done.code == 3


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["quantify", "runs.jsonl", "--base-url", DEAD[0]], "an endpoint is named twice"),
        (["quantify", "runs.jsonl", "--base-url", "nowhere"], "'nowhere' is no URL"),
        (["plan", "test", "2", "--agent", "openai", "--base-url", DEAD[1]],
         "an agent is asked at one endpoint: name one"),
    ],
)  # fmt: skip
def test_what_cannot_be_several(cli: Cli, project: Path, command: list[str], said: str) -> None:
    if command[0] == "plan":
        assert cli("plan", "synth", "--count", 2, "-o", "suite.jsonl").code == 0
        command[2] = "suite.jsonl"
    done = cli(*command, "--model", "m", "--base-url", DEAD[0])
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith(f"agenteval: --base-url: {said}")
    assert not (project / "agenteval.db").exists()
