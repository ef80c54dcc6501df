"""flow session, turn and report from end to end: resumed, judged, capped; bad input in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agenteval.readers import read_runs
from agenteval.store import Store, Trials
from agenteval.testing import serve
from agenteval.workflows.results import EVALUATORS, SessionVerdict
from agenteval.workflows.simulated_user import ScriptedUser
from tests.cli.conftest import Cli, Result

DESK = Path(__file__).parents[1] / "workflows" / "library_desk"
AGENTS = '''
"""Agents of the test. Each call of `served` writes a line to a file, so that it can be counted."""
from pathlib import Path


def served(messages, tools):
    with Path("served.txt").open("a", encoding="utf-8") as file:
        file.write("x")
    return "Goodbye!"


def stops_at_third(messages, tools):
    path = Path("stops.txt")
    times = len(path.read_text()) if path.exists() else 0
    if times == 2:
        raise KeyboardInterrupt
    path.write_text("x" * (times + 1))
    return served(messages, tools)


def breaks(messages, tools):
    raise RuntimeError("[red]broken\\x1b[31m")


def wordy(messages, tools):
    if "find_book" in tools:
        tools["find_book"](title="[bold]The novel Dune\\x1b[31m")
    return "[red]\\x1b[31m Goodbye!"
'''


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The role in the folder of the test, and agents that `python:` finds."""
    (tmp_path / "desk_agents.py").write_text(AGENTS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return Path(shutil.copytree(DESK, tmp_path / "desk"))


def session(cli: Cli, agent: str, *more: object) -> Result:
    return cli("flow", "session", "desk", "--agent", agent, "--user", "scripted", *more)


def last(done: Result) -> str:
    (line,) = [text for text in done.err.splitlines() if text.startswith("agenteval: ")]
    assert "Traceback" not in done.err
    return line


def rows_of(done: Result) -> list[dict[str, Any]]:
    """The trials in the JSON of a command."""
    rows: list[dict[str, Any]] = done.json["trials"]
    return rows


def flat(text: str) -> str:
    """The lines of a terminal as one."""
    return " ".join(text.split())


def trials(level: Any = "session") -> list[Any]:
    with Store("agenteval.db", create=False) as store:
        return list(Trials(store).trials(EVALUATORS[level]))


def test_the_perfect_assistant_serves_everybody_and_is_not_run_twice(cli: Cli, desk: Path) -> None:
    first = session(cli, "recorded:perfect", "--gate", 1)
    assert first.code == 0, first.err
    assert "gate success at least 1: met: 1.000 of 4 sessions, 0 without verdict" in flat(first.out)
    assert "4 sessions to run" in first.err
    second = session(cli, "recorded:perfect", "--json", "--gate", 1, "--runs", "runs.jsonl")
    assert "4 runs written to runs.jsonl" in second.err
    runs = read_runs("runs.jsonl").runs
    assert [(run.success, run.task) for run in runs] == [(True, "desk")] * 4
    assert {run.messages[0].role for run in runs} == {"user"}
    assert all(run.input and run.system.startswith("recorded:perfect") for run in runs)
    assert "0 sessions to run, 4 done before" in second.err
    assert [gate["outcome"] for gate in second.json["gates"]] == ["met", "met"]
    rows = rows_of(second)
    assert [row["verdict"]["success"] for row in rows] == [True] * 4
    assert {row["status"] for row in rows} == {"done"}
    assert sorted(row["case"] for row in rows) == [
        "desk/cross/jan",
        "desk/lend_book/hana",
        "desk/lend_book/otto",
        "desk/return_book/ida",
    ]
    for row in rows:
        assert row["role"] == "desk"
        assert row["domain"] == "Customer Service"
        assert row["log"]["ended"] == "user"
        assert row["settings"]["user"] == ScriptedUser().parameters
        SessionVerdict.model_validate(row["verdict"])


def test_a_dry_run_bounds_what_agent_and_simulators_take(cli: Cli, desk: Path) -> None:
    (desk / "backend.py").unlink()
    url = "http://127.0.0.1:9/v1"
    done = cli(
        "flow",
        "session",
        "desk",
        "--dry-run",
        "--limit",
        1,
        "--turns",
        4,
        "--calls",
        5,
        "--model",
        "m",
        "--base-url",
        url,
        "--max-tokens",
        50,
        "--simulator",
        "m",
        "--simulator-url",
        url,
        "--price-in",
        1,
        "--price-out",
        2,
        "--max-cost",
        1,
        "--json",
    )
    assert done.code == 0, done.err
    parts = {p["who"]: p["most"] for p in done.json["parts"]}
    # four replies to the user and five calls; four requests for each text of the user, of which
    # the last follows the last reply; a repair for each reply of a tool
    assert parts["agent"]["requests"] == 4 + 5
    assert parts["simulated user"]["requests"] == 4 * (4 + 1)
    assert parts["simulated tools"]["requests"] == 2 * 5
    assert done.json["cost"]["most"] == 1  # how long the agent's prompts grow is not known


def goals(body: dict[str, Any], n: int) -> str:
    """A judge that grants every goal it is asked about, and takes no two titles for one."""
    text = json.dumps(body["messages"])
    if "two values" in text:
        return json.dumps({"reason": "other books", "equal": False})
    if "grade the reply" in text:
        return json.dumps({"correctness": "c", "helpfulness": "h", "humanness": "u", "score": 6})
    numbers = range(1, 3 if "2. Borrow Dune." in text else 2)
    rows = [{"number": i, "evidence": "Goodbye!", "reason": "r", "achieved": True} for i in numbers]
    return json.dumps({"goals": rows, "success": True})


def test_calls_to_agent_simulator_and_judge_are_under_one_cap(cli: Cli, desk: Path) -> None:
    with serve(lambda *_: "Response: Goodbye!") as agent, serve(goals) as judge:
        common = (
            "flow",
            "session",
            "desk",
            "--user",
            "scripted",
            "--base-url",
            agent.base_url,
            "--model",
            "m",
            "--judge",
            "j",
            "--judge-url",
            judge.base_url,
            "-j",
            1,
        )
        done = cli(*common, "--max-calls", 5)
        assert done.code == 3
        assert "the cap of 5 calls is reached" in flat(done.out)
        assert agent.count + judge.count == 5
        assert agent.count == 3  # the third session waits for its judge
        assert len(trials()) == 3
        again = cli(*common, "--max-calls", 5, "--json")
        assert again.code == 3
        assert agent.count + judge.count == 5
        rest = cli(*common, "--max-calls", 8, "--json")
        assert rest.code == 0, rest.err
        assert agent.count == judge.count == 4
    assert all(row["verdict"]["judge"]["achieved"] for row in rows_of(rest))


def test_turns_are_judged_resumed_and_gated(cli: Cli, desk: Path) -> None:
    def act(body: dict[str, Any], n: int) -> str:
        text = json.dumps(body["messages"][-1])
        if "Dune, please" in text:
            return 'Thought: look\nAction: find_book\nAction Input: {"title": "Dune"}'
        if "R-20" in text:
            call = '{"title": "The novel Dune", "reader_id": "R-20"}'
            return f"Thought: lend\nAction: lend_book\nAction Input: {call}"
        return "Thought: hm\nResponse: Gladly."

    with serve(act) as agent, serve(goals) as judge:
        common = ("flow", "turn", "desk", "--base-url", agent.base_url, "--model", "m")
        done = cli(*common, "--max-unscored", 0.5)
        assert done.code == 0, done.err
        assert "the F1 of decided calls is optimistic" in flat(done.out)
        (row,) = cli(*common, "--json").json["tables"]["turns"]["rows"]
        assert (row["f1"]["value"], row["f1_low"], row["f1_high"]) == (1, 0.5, 1)
        assert cli(*common, "--json").code == 3  # one of two due calls is undecided
        asked = agent.count
        words = ("--judge", "m", "--judge-url", judge.base_url, "--judgements", "values.jsonl")
        judged = cli(*common, *words, "--json", "--gate", 0.6)
        assert judged.code == 1
        assert "missed: 0.500 of 2 due calls" in flat(judged.err)
        assert agent.count == asked == 6
    verdicts = {r["case"].rpartition(":")[2]: r for r in rows_of(judged)}
    assert verdicts["3"]["verdict"]["call"] == "right"
    assert verdicts["6"]["verdict"]["call"] == "wrong"
    assert [r["grade"]["score"] for r in rows_of(judged) if r["grade"]] == [6.0] * 4
    decided = [json.loads(x) for x in Path("values.jsonl").read_text().splitlines()]
    assert {(d["gold"], d["given"], d["verdict"], d["by"]) for d in decided} == {
        ("Dune", "The novel Dune", "different", "judge"),
        ("Dune", "Dune", "equal", "exact"),
        ("R-20", "R-20", "equal", "exact"),
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["session", "desks"], "ROLE: no role 'desks' and no folder with a role.yaml"),
        (["session", "desk", "--scenario", "lend"], "no scenario 'lend'; known: cross, lend_book"),
        (["session", "desk", "--format", "prose"], "--format: 'prose' is not one of text, code"),
        (["session", "desk", "--kind", "both"], "--kind: 'both' is not one of all, single, cross"),
        (["session", "desk", "--user", "human"], "--user: 'human' is not one of model, scripted"),
        (["session", "desk", "--tools", "model"], "--simulator PROVIDER:MODEL"),
        (["session", "desk", "--simulator", "embedded"], "--simulator: this needs a chat model"),
        (["session", "desk", "--max-cost", "1"], "a cap on cost needs prices"),
        (["session", "desk", "--flowbench", "--turns", "3"], "--flowbench"),
        (["session", "desk", "--agent", "recorded:perfekt"], "it has perfect, skips_step"),
        (["session", "desk", "--agent", "scripted:skips_step"], "--agent: removed: use recorded:"),
        (["session", "bare", "--tools", "backend"], "needs a backend.py for --tools backend"),
        (["turn", "desk"], "agenteval flow session"),
        (
            ["turn", "desk", "--agent", "python:desk_agents:served", "--kind", "cross"],
            "no recorded turn matches",
        ),
        (["report"], "no store here yet"),
    ],
)
def test_bad_input_is_one_line_and_exit_2_and_leaves_no_file(
    cli: Cli, desk: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (shutil.copytree(desk, tmp_path / "bare") / "backend.py").unlink()
    before = {p.name for p in tmp_path.iterdir()}
    if arguments[0] != "report" and "--agent" not in arguments:
        arguments = [*arguments, "--agent", "recorded:perfect"]
    if arguments[0] == "session" and "--user" not in arguments and "--simulator" not in arguments:
        arguments = [*arguments, "--user", "scripted"]
    done = cli("flow", *arguments)
    assert done.code == 2, done
    assert message in last(done)
    assert {p.name for p in tmp_path.iterdir()} - {"__pycache__"} == before
