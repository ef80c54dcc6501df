"""agenteval prefer: what it prints and refuses, and what other commands say of its results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli

JUDGE = "def longer(first, second, criterion):\n    a, b = len(first.output), len(second.output)\n"
JUDGE += "    return 'tie' if a == b else 'first' if a > b else 'second'\n"


def runs_of(system: str | None, answers: Sequence[str], name: str) -> str:
    rows: list[dict[str, Any]] = [
        {"id": f"{system or ''}c{i}", "task": "t", "input": f"Question {i}?", "output": answer}
        for i, answer in enumerate(answers)
    ]
    more = {} if system is None else {"system": system}
    Path(name).write_text("".join(json.dumps({**row, **more}) + "\n" for row in rows))
    return name


@pytest.fixture
def files(cli: Cli) -> tuple[str, str]:
    Path("prefer_judge.py").write_text(JUDGE)
    return runs_of(None, ["a", "bb", "c"], "old.jsonl"), runs_of(
        None, ["aa", "b", "d"], "new.jsonl"
    )


def test_two_files_are_two_systems_called_by_their_names(cli: Cli, files: tuple[str, str]) -> None:
    result = cli("prefer", *files, "--model", "python:prefer_judge:longer", "--json")
    (row,) = result.json["tables"]["preferences"]["rows"]
    assert (row["system"], row["against"]) == ("old", "new")
    assert [row[name] for name in ("wins", "losses", "ties", "flips")] == [1, 1, 1, 0]
    assert result.code == 0


@pytest.fixture
def stored(cli: Cli, files: tuple[str, str]) -> None:
    assert cli("prefer", *files, "--model", "python:prefer_judge:longer").code == 0


def test_show_report_and_export_know_comparisons(cli: Cli, stored: None) -> None:
    shown = cli("show", "--json").json["tables"]["preferences"]["rows"]
    assert (shown[0]["wins"], shown[0]["system"]) == (1, "old")
    assert cli("report", "-o", "page.html").code == 0
    page = Path("page.html").read_text()
    assert "preferred position" in page
    assert "the judge was not verified" in page
    assert cli("export", "rows.jsonl").code == 0
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert {row["system"] for row in rows} == {"old | new", "new | old"}
    assert {row["criterion_id"] for row in rows} == {"preference"}
    assert "aa" in cli("show", "--run", "c0", "--system", "old | new").out


def test_compare_and_report_of_runs_say_that_there_are_only_comparisons(
    cli: Cli, stored: None
) -> None:
    result = cli("compare", "old", "new")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "agenteval show" in result.err
    assert cli("report", "old.jsonl").code == 2


ONE_LINE = [
    (["prefer"], "two systems"),
    (["prefer", "old.jsonl"], "two systems"),
    (["prefer", "old.jsonl", "./old.jsonl"], "compared with itself"),
    (["prefer", "first", "--runs", "both.jsonl"], "two systems"),
    (["prefer", "both.jsonl", "old.jsonl"], "several systems"),
    (["prefer", "frst", "second", "--runs", "both.jsonl"], "did you mean first"),
    (["prefer", "first", "first", "--runs", "both.jsonl"], "compared with itself"),
    (["prefer", "old.jsonl", "other.jsonl"], "no case"),
    (["prefer", "old.jsonl", "new.jsonl", "--gate"], "--verify"),
    (["prefer", "old.jsonl", "new.jsonl", "--model", "openai:m"], "a panel"),
    (["prefer", "old.jsonl", "new.jsonl", "--verdicts", "new.jsonl"], "only one"),
    (["prefer", "old.jsonl", "new.jsonl", "--verify", "--perturb", "burn"], "does not exist"),
]


@pytest.mark.parametrize(("arguments", "words"), ONE_LINE)
def test_bad_input_is_one_line(
    cli: Cli, files: tuple[str, str], arguments: list[str], words: str
) -> None:
    runs_of("first", ["a"], "a.jsonl")
    runs_of("second", ["b"], "b.jsonl")
    Path("both.jsonl").write_text(Path("a.jsonl").read_text() + Path("b.jsonl").read_text())
    row = {"id": "z", "task": "t", "input": "Another question?", "output": "z"}
    Path("other.jsonl").write_text(json.dumps(row) + "\n")
    result = cli(*arguments, "--model", "python:prefer_judge:longer", "-q")
    assert result.code == 2
    (line,) = result.err.splitlines()
    assert words in line
    assert not Path("agenteval.db").exists()


@pytest.mark.parametrize("model", ["embedded", "recorded"])
def test_judges_that_cannot_compare_are_refused(
    cli: Cli, files: tuple[str, str], model: str
) -> None:
    result = cli("prefer", *files, "--model", model, "--task", "math", "-q")
    assert (result.code, len(result.err.splitlines())) == (2, 1)
