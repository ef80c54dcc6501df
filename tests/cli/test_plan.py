"""plan from end to end: synthesize, run, dissect, raise, report; bad input in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Result


@pytest.fixture
def suite(cli: Cli, tmp_path: Path) -> Path:
    done = cli("plan", "synth", "--count", 30, "--seed", 1, "-o", "suite.jsonl")
    assert done.code == 0, done.err
    return tmp_path / "suite.jsonl"


def run(cli: Cli, agent: str, *more: object) -> Result:
    return cli("plan", "test", "suite.jsonl", "--agent", agent, *more)


def test_the_perfect_planner_passes_and_is_not_run_twice(cli: Cli, suite: Path) -> None:
    first = run(cli, "scripted:perfect", "--gate", "1")
    assert first.code == 0, first.err
    assert "gate success at least 1: met: 1.000 of 30 trials" in first.out
    assert "30 trials to run" in first.err
    second = run(cli, "scripted:perfect", "--json")
    assert "0 trials to run, 30 done before" in second.err
    assert {row["outcome"] for row in second.json["trials"]} == {"pass"}
    assert len(second.json["trials"]) == 30


def test_cases_that_are_the_same_are_run_once_and_said_so(
    cli: Cli, suite: Path, tmp_path: Path
) -> None:
    lines = suite.read_text(encoding="utf-8").splitlines()[:3]
    again = json.loads(lines[1]) | {"id": "again"}
    (tmp_path / "suite.jsonl").write_text("\n".join([*lines, json.dumps(again)]) + "\n")
    done = run(cli, "scripted:perfect", "--json")
    assert [row["case"] for row in done.json["trials"]].count("again") == 0
    assert len(done.json["trials"]) == 3
    assert "1 of 4 cases duplicate another case" in done.json["notes"][0]


def test_a_case_without_a_text_does_not_hold_up_the_dissection_of_others(
    cli: Cli, suite: Path, tmp_path: Path
) -> None:
    own = {
        "id": "mine",
        "actions": ["tea brewing", "nap"],
        "request": "Tea is brewed after a nap.",
        "constraints": [{"first": "nap", "second": "tea_brewing"}],
    }
    text = suite.read_text(encoding="utf-8").splitlines()[:2]
    (tmp_path / "suite.jsonl").write_text("\n".join([json.dumps(own), *text]) + "\n")
    (tmp_path / "backwards.py").write_text(
        "def agent(request, tools):\n    for name in list(tools)[::-1]:\n        tools[name]()\n"
        "    for name in tools:\n        tools[name]()\n"
    )  # every order is violated, since every tool is called twice
    agent = "python:backwards:agent"
    assert run(cli, agent, "-q").code == 0
    done = cli("plan", "dissect", "suite.jsonl", "--agent", agent, "--json")
    assert done.code == 0, done.err
    assert "mine: it cannot be dissected: it has no synthesized text" in done.err
    assert len(done.json["dissections"]) == 2


CONTRADICTION = {
    "id": "mine",
    "actions": ["tea brewing", "cake baking", "table laying"],
    "request": "do it",
    "constraints": [
        {"first": "tea_brewing", "second": "cake_baking"},
        {"first": "tea_brewing", "second": "table_laying"},
        {"first": "cake_baking", "second": "tea_brewing"},
    ],
}
LATE = {
    "id": "mine",
    "actions": ["tea brewing", "cake baking"],
    "request": "do it",
    "durations": {"tea_brewing": 3, "cake_baking": 2},
    "constraints": [
        {"first": "tea_brewing", "second": "cake_baking"},
        {"tool": "cake_baking", "side": "before", "hour": 4},
    ],
}


@pytest.mark.parametrize(
    ("line", "arguments", "message"),
    [
        ("", ["synth", "--n", "3-25"], "--n: 25 actions are more than the 20 activities"),
        ("", ["synth", "--topic", "Wizard"], "--topic: no topic 'Wizard'"),
        ("", ["synth", "--constraints", "50-60"], "--constraints: 3 actions have 2 to 3"),
        ("", ["test", "bad.jsonl", "--agent", "scripted:perfect"], "bad.jsonl: contains no cases"),
        ("{", ["test", "bad.jsonl", "--agent", "scripted:perfect"], "bad.jsonl:1:3: broken JSON"),
        (
            json.dumps(CONTRADICTION),
            ["test", "bad.jsonl", "--agent", "scripted:perfect"],
            "contradict each other: tea_brewing before cake_baking; cake_baking before tea_brewing",
        ),
        (
            json.dumps(LATE),
            ["test", "bad.jsonl", "--agent", "scripted:perfect"],
            "contradict each other: tea_brewing before cake_baking; cake_baking before 4:00",
        ),
        (
            '{"id": "a", "actions": ["x", "y"]}',
            ["test", "bad.jsonl", "--agent", "openai"],
            "bad.jsonl:1: a case needs a text or a request",
        ),
        (
            '{"id": "a", "actions": ["tea brewing", "nap"], "text": "Tea brewing eats nap."}',
            ["test", "bad.jsonl", "--agent", "scripted:perfect"],
            "bad.jsonl:1: constraints: list what the text demands",
        ),
        ("", ["test", "suite.jsonl", "--agent", "scripted:text-order"], "known: chance=P, crash"),
        ("", ["test", "suite.jsonl", "--agent", "scripted:perfekt"], "did you mean perfect?"),
        ("", ["report"], "no store here yet"),
        ("", ["capability", "--agent", "scripted:perfect", "--n", "5-3"], "--n: must be a range"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    cli: Cli, suite: Path, tmp_path: Path, line: str, arguments: list[str], message: str
) -> None:
    (tmp_path / "bad.jsonl").write_text(line + "\n" if line else "")
    before = {p.name for p in tmp_path.iterdir()}
    done = cli("plan", *arguments)
    assert done.code == 2, done
    (last,) = [text for text in done.err.splitlines() if text.startswith("agenteval: ")]
    assert message in last
    assert "Traceback" not in done.err
    assert {p.name for p in tmp_path.iterdir()} == before
