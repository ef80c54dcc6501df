"""agenteval init with a file of runs: from a table to the first page."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from agenteval.app.evaluation_file import read_evaluation
from agenteval.readers.tasks import load_task
from agenteval.testing import serve
from tests.cli.conftest import Cli

TABLE = "Nr;Anfrage;Antwort;Erfolg\n" + "".join(
    f"{n};Wo ist meine Lampe Nummer {n}?;Sie kommt am Montag, Nummer {n}. Tut uns leid!;"
    f"{'ja' if n % 2 else 'nein'}\n"
    for n in range(12)
)
WHAT = ("--description", "It answers mails to a shop for lamps.")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTEVAL_HEADERS", "")  # --header adds to it
    (tmp_path / "mails.csv").write_text(TABLE)
    return Path("mails.csv")


def test_a_task_with_its_mapping_and_nobody_asked(cli: Cli, table: Path) -> None:
    done = cli("init", "shop", table, *WHAT, "--no-run")
    assert done.code == 0, done.err
    assert "output    = Antwort   Sie kommt am Montag" in done.out
    assert "6 succeeded, 6 failed, 0 without" in done.out
    task = load_task(Path("tasks/shop/task.yaml"))
    assert task.map == {"input": "Anfrage", "output": "Antwort", "success": "Erfolg", "id": "Nr"}
    assert [len(kind) for kind in (task.examples.success, task.examples.failed)] == [1, 1]
    assert not Path("agenteval.db").exists()
    evaluation = read_evaluation("shop.eval.yaml")
    assert (evaluation.task, evaluation.runs) == ("tasks/shop", {"": "mails.csv"})
    assert evaluation.criteria == {"file": "criteria/shop.json"}
    criteria = Path(__file__).parents[2] / "criteria/support.reviewed.json"
    dry = ("--task", "shop", "--dry-run", "--model", "embedded")
    read = cli("quantify", table, "--criteria", criteria, *dry)
    assert "runs: 12 of task shop" in read.out
    more = cli("quantify", table, "--criteria", criteria, *dry, "--map", "reference=Nr")
    assert "runs: 12 of task shop" in more.out  # --map adds to the map of the task


def test_to_the_first_page(cli: Cli, table: Path) -> None:
    def reply(body: dict, number: int) -> str:
        if "criteria" in body["response_format"]["json_schema"]["schema"]["properties"]:
            return (
                '{"criteria": [{"name": "Politeness", "description": "Is it polite?", "scale": '
                '"ordinal", "accepted_values": ["rude", "curt", "polite"], "order": '
                '"worst_to_best", "allow_na": false, "expect": {}}]}'
            )
        return '{"politeness": {"explanation": "Tut uns leid", "label": "polite"}}'

    with serve(reply) as server:
        done = cli(
            f"init shop {table}",
            *WHAT,
            "--model",
            "m",
            "--base-url",
            server.base_url,
            "--header",
            "X-Team=lamps",
        )
        assert done.code == 0, done.err
        assert {request.headers["x-team"] for request in server.requests} == {"lamps"}
        judge = read_evaluation("shop.eval.yaml").judge
        assert judge == {"judge": "m", "base_url": server.base_url}
        assert cli("run", "shop.eval.yaml", "--only", "quantify").code == 0
    assert cli("agree", "sample", "--n", 3, "-o", "sheet.csv").code == 0
    with Path("sheet.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert all(row["problem"].startswith("Wo ist meine Lampe") and row["text"] for row in rows)
    unknown = cli("show", "--run", "13")
    assert (unknown.code, "did you mean" in unknown.err) == (2, True)
    for words in ("$ agenteval criteria", "--dry-run", "--limit 10", "report.html", "verify"):
        assert words in done.out
    assert Path("criteria/shop.json").is_file()
    assert "10 runs of 10 cases" in done.out
    assert "Wo ist meine Lampe Nummer 0?" in cli("show", "--run", "0").out


@pytest.mark.slow
def test_an_endpoint_that_is_gone(cli: Cli, table: Path) -> None:
    url = "http://127.0.0.1:9/v1"
    done = cli("init", table, *WHAT, "--model", "m", "--base-url", url)  # the file names the task
    assert done.code == 3
    assert f"seeds 0, 1, 2, 3, 4: error:infrastructure: {url}: cannot connect" in done.err
    assert "tasks/mails is written" in done.err
    assert f"$ agenteval criteria --task tasks/mails --model m --base-url {url}\n" in done.out
    checked = cli("doctor", "--model", "m", "--base-url", url)
    assert "agenteval criteria --task tasks/mails" in checked.out
    assert (checked.code, "no criteria yet" in checked.out) == (3, True)
