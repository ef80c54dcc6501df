"""Runs whose system failed: nobody is asked about them, and every command counts them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.testing import serve
from tests.cli.conftest import Cli

LABELS = {"clarity": "clear", "accuracy": "correct"}
LINE = "3 runs have no answer: 2 errors, 1 timeout; they are not judged"


def best(body: dict[str, Any], n: int) -> str:
    return json.dumps({k: {"explanation": "r", "label": v} for k, v in LABELS.items()})


def write(path: Path, failing: dict[str, dict[str, Any]], systems: str = "ab") -> None:
    rows = [
        {
            "id": f"{system}{i}",
            "task": "sums",
            "system": system,
            "input": f"What is {i} and {i}, then?",
            "output": f"{system} says it is {2 * i}, by adding.",
            **failing.get(f"{system}{i}", {}),
        }
        for system in systems
        for i in range(6)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


FAILING: dict[str, dict[str, Any]] = {
    "b1": {"output": None, "error": "RateLimitError: 429"},
    "b2": {"output": None, "status": "error"},
    "b3": {"output": None, "status": "timeout"},
}


def means(value: Any, system: str) -> list[tuple[float | None, int]]:
    rows = value["tables"]["scores"]["rows"]
    return [(r["mean"]["value"], r["ratings"]) for r in rows if r["system"] == system]


@pytest.fixture
def judged(cli: Cli, project: Path) -> Any:
    """`quantify` of 12 runs, of which 3 failed; the number of requests that were sent."""
    write(project / "runs.jsonl", FAILING)
    with serve(best) as server:
        arguments = ("runs.jsonl", "--model", "m", "--base-url", server.base_url)
        yield arguments, server


def test_they_are_counted_and_never_sent(cli: Cli, judged: Any) -> None:
    arguments, server = judged
    dry = cli("quantify", *arguments, "--dry-run")
    result = cli("quantify", *arguments)
    assert (result.code, server.count) == (0, 9)
    assert "requests: at least 9, at most 18" in dry.out
    assert LINE in " ".join(result.out.split())
    value = cli("quantify", *arguments, "--json").json
    assert server.count == 9  # a second time nothing is asked
    assert value["no_answer"] == {"error": ["b1", "b2"], "timeout": ["b3"]}
    assert value["failures"] == {"no_answer:error": 4, "no_answer:timeout": 2}
    assert LINE in value["notes"]
    assert means(value, "b") == [(1.0, 3), (1.0, 3)]
    assert LINE in " ".join(cli("show").out.split())


def test_a_comparison_names_the_cases_that_are_missing(cli: Cli, judged: Any) -> None:
    cli("quantify", *judged[0])
    result = cli("compare", "a", "b")
    text = " ".join(result.out.split())
    assert "B: 3 runs have no answer: 2 errors, 1 timeout" in text
    assert "B: missing because the run failed: b1, b2, b3" in text
    value = cli("compare", "a", "b", "--json").json
    assert value["no_answer"] == {"a": {}, "b": {"error": ["b1", "b2"], "timeout": ["b3"]}}
    rows = {row["criterion_id"]: row for row in value["tables"]["rows"]["rows"]}
    assert rows["clarity"]["n"] == 3


def test_as_the_worst_level_only_on_purpose(cli: Cli, judged: Any) -> None:
    arguments, server = judged
    cli("quantify", *arguments)
    value = cli("quantify", *arguments, "--score-failed-runs", "worst", "--json").json
    assert server.count == 9  # what was judged stays
    assert means(value, "a") == [(1.0, 6), (1.0, 6)]
    assert means(value, "b") == [(0.5, 6), (0.5, 6)]
    assert value["no_answer"] == {}
    table = cli("show", "--all")
    assert "3 failed runs counted as the worst level" in " ".join(table.out.split())
    assert "failed_run" in table.out
    assert "no answer" not in cli("compare", "a", "b").out
    again = cli("quantify", *arguments, "--json").json  # and back, without asking
    assert (means(again, "b"), server.count) == ([(1.0, 3), (1.0, 3)], 9)


def test_a_system_of_which_every_run_failed_has_no_mean_or_the_worst(
    cli: Cli, project: Path
) -> None:
    failed = {f"b{i}": {"output": None, "error": "boom"} for i in range(6)}
    write(project / "runs.jsonl", failed, systems="b")
    with serve(best) as server:
        arguments = ("runs.jsonl", "--model", "m", "--base-url", server.base_url)
        result = cli("quantify", *arguments, "--json")
        worst = cli("quantify", *arguments, "--score-failed-runs", "worst", "--json")
        assert server.count == 0
    assert result.code == 3
    assert len(result.json["tables"]["unrated"]["rows"]) == 2
    assert (worst.code, means(worst.json, "b")) == (0, [(0.0, 6), (0.0, 6)])


def test_verify_leaves_them_out_and_says_so(cli: Cli, judged: Any) -> None:
    arguments, server = judged
    value = cli("verify", *arguments, "--perturb", "pad", "-o", "v.json", "--json").json
    assert server.count == 9 * 2 * 2  # originals and copies, twice
    assert value["no_answer"] == {"error": ["b1", "b2"], "timeout": ["b3"]}
    assert LINE in value["notes"]


def test_what_is_no_way_to_count_them(cli: Cli, judged: Any) -> None:
    result = cli("quantify", *judged[0], "--score-failed-runs", "zero")
    assert result.code == 2
    assert "--score-failed-runs" in result.err
    assert "not 'zero'" in result.err
