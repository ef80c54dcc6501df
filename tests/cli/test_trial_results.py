"""Trials of agents in the commands that show ratings."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.testing import serve
from tests.cli.conftest import Cli
from tests.cli.test_quantify import answer
from tests.cli.traces import weather, write


@pytest.fixture
def tried(cli: Cli, tmp_path: Path) -> Cli:
    """A store with two agents on the same three planning cases."""
    assert cli("plan", "synth", "--count", 3, "--seed", 1, "-o", "suite.jsonl").code == 0
    for agent in ("perfect", "random"):
        assert cli("plan", "test", "suite.jsonl", "--agent", f"scripted:{agent}", "-q").code == 0
    return cli


def test_two_agents_are_compared_on_their_common_cases(tried: Cli) -> None:
    for how in (
        ("scripted:random", "scripted:perfect"),
        ("--source", "scripted:random", "--source", "scripted:perfect"),
    ):
        done = tried("compare", *how, "--json").json
        rows = {row["criterion"]: row for row in done["tables"]["rows"]["rows"]}
        assert (rows["plan"]["b"], rows["plan"]["n"], done["pair_by"]) == (1.0, 3, "case")
    refused = tried("compare", "scripted:perfect", "nobody")
    assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_the_page_of_a_store_of_trials(tried: Cli, tmp_path: Path) -> None:
    written = tried("report", "-o", "page.html")
    assert written.code == 0
    assert written.err.splitlines()[-1].endswith("agenteval view agenteval.db")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    tried("plan", "report", "-o", "own.html", "-q")
    assert page == (tmp_path / "own.html").read_text(encoding="utf-8")
    for option in (("--task", "x"), ("--most-runs", 3), ("--criteria", "none.yaml")):
        refused = tried("report", *option)
        assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_the_page_of_several_experiments(tried: Cli, project: Path) -> None:
    with serve(answer) as server:
        rated = tried("quantify", "runs.jsonl", "--model", "m", "--base-url", server.base_url, "-q")
    assert rated.code == 0, rated.err
    write(project / "traces", weather())
    assert tried("trace", "locate", "traces", "--detectors-only", "-q").code == 0
    listed = tried("show", "--sources", "--json").json["tables"]["sources"]["rows"]
    keys = {row["model"]: row["key"] for row in listed}
    planner = keys["scripted:random"]

    def page(*options: object) -> tuple[str, str]:
        done = tried("report", *options)
        assert done.code == 0, done.err
        title = (project / "report.html").read_text(encoding="utf-8").partition("</title>")[0]
        return title.rpartition(" \u2013 agenteval ")[2], done.out

    kind, told = page()  # the latest, as `show` does
    assert kind == "trace report"
    assert f"choose others with --source: {planner} (planning, scripted:random)" in told
    kind, told = page("--source", planner)
    assert (kind, "--source" in told) == ("planning report", False)
    assert page("--task", "sums")[0] == page("--source", keys["m"])[0] == "report"
    refused = tried("report", "--source", planner, "--task", "sums")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
