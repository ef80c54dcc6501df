"""One experiment in several processes: nothing left out, nothing asked twice, caps kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval.api.parts import Part, held
from agenteval.errors import InputError, StoreLocked
from agenteval.models.limits import Limits
from agenteval.records import Usage, content_hash
from agenteval.store import Store
from agenteval.store.copying import counts
from agenteval.testing import serve
from tests.cli.conftest import Cli
from tests.store.making import criteria, items
from tests.support.postgres import postgres_server, why_not

RUNS = 40


def answer(body: dict[str, Any], n: int) -> str:
    labels = {"clarity": "clear", "accuracy": "correct"}
    return json.dumps({k: {"explanation": "e", "label": v} for k, v in labels.items()})


@pytest.fixture
def runs(project: Path) -> Path:
    lines = [{"id": f"r{i}", "task": "sums", "input": f"{i} + {i}?", "output": f"It is {2 * i}."}
             for i in range(RUNS)]  # fmt: skip
    path = project / "many.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def quantify(runs: Path, url: str, *more: object) -> tuple[object, ...]:
    return ("quantify", runs, "--model", "gpt-m", "--base-url", url, *more)


@pytest.mark.parametrize("of", [1, 2, 7])
def test_every_run_is_in_one_part(of: int) -> None:
    keys = [view.sha256 for _, view in items(200)]
    parts = [[key for key in keys if Part(n, of).holds(key)] for n in range(1, of + 1)]
    assert sorted(key for part in parts for key in part) == sorted(keys)
    assert min(map(len, parts)) > 200 / of / 2


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "1/2/3", "a/b", "1/1001", ""])
def test_what_is_no_part(text: str) -> None:
    with pytest.raises(InputError, match="is no part such as 2/8"):
        Part.read(text)


def test_a_share_of_what_is_left_of_the_caps() -> None:
    limits = Limits(max_calls=100, max_cost=6.0)
    spent = Usage(requests=40, cost=2.0)
    shares = [Part(n, 4).limits(limits, spent) for n in (1, 2, 3, 4)]
    assert [share.max_calls for share in shares] == [55] * 4  # 40 + 60 / 4
    assert [share.max_cost for share in shares] == [3.0] * 4
    assert Part(1, 4).limits(Limits(), spent) == Limits()


def test_parts_one_after_the_other_are_the_whole(cli: Cli, project: Path, runs: Path) -> None:
    with serve(answer) as server:
        asked = quantify(runs, server.base_url)
        parts = [cli(*asked, "--part", f"{n}/3", "--json") for n in (1, 2, 3)]
        assert server.count == RUNS
        whole = cli(*asked, "--json")
        assert server.count == RUNS
    assert [part.code for part in parts] == [0, 0, 0]
    assert sum(part.json["ratings"] for part in parts) == whole.json["ratings"] == 2 * RUNS
    assert whole.json["unfinished"] == []


def test_parts_and_the_whole_do_not_work_at_once(tmp_path: Path) -> None:
    runs, some = items(12), criteria(1)

    def judge(run: agenteval.Run, criterion: agenteval.Criterion) -> str:
        return "good"

    def one(part: Part | None) -> None:
        agenteval.quantify([run for run, _ in runs], some, judge=judge, version="1", part=part,
                           task="sums", store=tmp_path / "s.db")  # fmt: skip

    one(Part(1, 2))
    with Store(tmp_path / "s.db") as store:
        ((key, _),) = store.sources()
        whole = content_hash([key, "sums"])
        with store.engine.begin() as connection:  # as if that part had more to do
            connection.exec_driver_sql("UPDATE experiments SET finished = NULL")
        with held(store, key, whole, Part(1, 2)):
            with pytest.raises(StoreLocked):
                one(Part(1, 2))
            with pytest.raises(StoreLocked, match="the same experiment or a part of it"):
                one(None)
            with pytest.raises(StoreLocked, match="the same experiment or a part of it"):
                one(Part(1, 3))
            one(Part(2, 2))
    one(None)


@pytest.mark.slow
def test_workers_judge_all_of_it_once(cli: Cli, project: Path, runs: Path) -> None:
    with serve(answer) as server:
        asked = quantify(runs, server.base_url, "--repeats", 2)
        done = cli(*asked, "--workers", 3, "--json")
        assert done.code == 0, done.err
        assert server.count == 2 * RUNS
        assert done.json["ratings"] == 4 * RUNS
    assert "3 processes judge a part each" in done.err
    with Store(project / "agenteval.db") as store:
        assert counts(store)["results"] == 4 * RUNS


@pytest.mark.slow
def test_workers_keep_the_caps_together(cli: Cli, project: Path, runs: Path) -> None:
    with serve(answer) as server:
        asked = quantify(runs, server.base_url, "--max-calls", 20)
        stopped = cli(*asked, "--workers", 4)
        assert (stopped.code, server.count) == (3, 20)
        assert "part 4 of 4: ended with 3" in stopped.err


@pytest.mark.slow
@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_workers_on_a_database(cli: Cli, project: Path, runs: Path) -> None:
    with postgres_server() as database, serve(answer) as server:
        url = database.database()
        asked = quantify(runs, server.base_url, "--store", url)
        done = cli(*asked, "--workers", 2, "--json")
        assert done.code == 0, done.err
        assert server.count == RUNS
        assert done.json["ratings"] == 2 * RUNS


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--workers", 2, "--part", "1/2"), "--part: goes with one process alone"),
        (("--workers", 2, "--until", "0.1"), "--until: goes with one process alone"),
        (("--workers", 2, "--record", "r.jsonl"), "--record: goes with one process alone"),
        (("--part", "1/2", "--until", "0.1"), "--until: looks at all cases; a part cannot"),
        (("--part", "5/2"), "'5/2' is no part such as 2/8"),
    ],
)
def test_what_does_not_go_together(
    cli: Cli, project: Path, runs: Path, more: tuple[object, ...], said: str
) -> None:
    result = cli(*quantify(runs, "http://127.0.0.1:9/v1", *more))
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert said in result.err
    assert not (project / "agenteval.db").exists()
