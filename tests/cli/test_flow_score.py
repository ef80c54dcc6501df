"""flow score from end to end: tables, JSON, judges over loopback, exit codes, one-line errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from agenteval.cli import console
from agenteval.cli.console import Verbosity
from agenteval.errors import AgentevalError
from agenteval.testing import serve
from agenteval.workflows import commands as flow
from tests.cli.conftest import ENVIRONMENT, Result

PROMPT = "API: lend\nAPI Desciption: d\nInput parameters: {}\n\nPlease note the time."


@pytest.fixture
def score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call `score("rows.json", ...)` in tmp_path, without any AGENTEVAL variable set."""
    monkeypatch.chdir(tmp_path)
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    app = typer.Typer()
    app.command("score")(flow.score)

    def run(*arguments: object) -> Result:
        Verbosity.level = 0
        console.out.cache_clear()
        console.err.cache_clear()
        done = CliRunner().invoke(app, [str(a) for a in arguments])
        console.out.cache_clear()
        console.err.cache_clear()
        if isinstance(done.exception, AgentevalError):
            return Result(done.exception.exit_code, done.stdout, str(done.exception))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Result(done.exit_code, done.stdout, done.stderr)

    return run


def turn(number: int, title: str | None, said: str, **more: Any) -> dict[str, Any]:
    thought: dict[str, Any] = {"current_node": f"LB00{number}"}
    if title is not None:
        thought |= {"Action": "lend", "Action Input": json.dumps({"title": title})}
    row = {
        "id": f"s{number // 2}_agent_turn-{number}",
        "gt_thought": thought,
        "messages": [{"role": "system", "content": PROMPT}],
        "gt_response": "" if title else "Which?",
        "predict": said,
    }
    return row | more


def acts(title: str) -> str:
    return f'Thought: current_node=LB001\nAction: lend\nAction Input: {{"title": "{title}"}}'


ROWS = [
    turn(1, "Dune", acts("Dune")),
    turn(2, "Emma", acts("Ivanhoe")),
    turn(3, None, "Thought: t\nResponse: Which book?"),
    turn(4, "Emma", "I will do it."),
    turn(5, None, "Thought: t\nResponse: Which one?"),
]


def write(name: str, rows: list[Any]) -> str:
    Path(name).write_text(json.dumps(rows), encoding="utf-8")
    return name


def judge(body: dict[str, Any], n: int) -> str:
    text = body["messages"][0]["content"]
    if "two values" in text:
        return json.dumps({"reason": "two books", "equal": False})
    if "grade the reply" in text:
        parts = dict.fromkeys(("correctness", "helpfulness", "humanness"), "fine")
        return json.dumps({**parts, "score": 6})
    row = {"goal": "Dune", "evidence": "lend", "reason": "r", "achieved": True}
    return json.dumps({"goals": [row], "success": True})


def test_with_a_judge_over_loopback(score: Any) -> None:
    Path("flow.txt").write_text("Lend books.", encoding="utf-8")
    with serve(judge) as server:
        options = ("--model", "m", "--base-url", server.base_url, "--workflow", "flow.txt")
        done = score(write("rows.json", ROWS), *options, "--resamples", 100)
        assert done.code == 0, done.err
        assert "6.00" in done.out
        assert "spent: 3 requests" in " ".join(done.out.split())
        again = score("rows.json", *options, "--json", "-q", "--resamples", 100).json
    assert again["usage"]["requests"] == 0  # answered by the store
    assert again["judgements"][1]["verdict"] == "different"
    assert again["table"]["tool"]["undecided"] == 0


def test_sessions_strict_and_published(score: Any) -> None:
    act = 'Action: lend\nAction Input: {"title": "Dune"}'
    row = {
        "id": "s",
        "gt_actions_string": f"{act}\n\n{act}",
        "gen_dialog_str": act,
        "user_target": "Dune",
        "success_gpt": "1",
        "progress_gpt": 0.5,
    }
    write("rows.json", [row])
    strict = score("rows.json", "--json", "-q").json["table"]["tool"]
    assert (strict["right"], strict["predicted"], strict["gold"]) == (1, 1, 2)
    as_published = score("rows.json", "--reference", "--json", "-q").json["figures"]
    assert as_published["session_call_pre"] == {"low": 2.0, "high": 2.0}
    assert as_published["success_rate (as the rows keep it), n = 1"]["low"] == 1.0
    Path("flow.txt").write_text("Lend books.", encoding="utf-8")
    with serve(judge) as server:
        judged = score(
            "rows.json", "--model", "m", "--base-url", server.base_url, "--workflow", "flow.txt"
        )
    assert judged.code == 0, judged.err
    assert "success" in judged.out
    assert "success 1.00 – 1" in " ".join(judged.out.split())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["missing.json"], "missing.json: cannot read"),
        (["bad.json"], "bad.json, row 1: predict is missing"),
        (["rows.json", "sessions.json"], "some files contain turns"),
        (["rows.json", "--model", "embedded"], "needs a chat model"),
        (["rows.json", "--workflow", "none.txt"], "none.txt: cannot read"),
        (["rows.json", "--model", "openai:m"], "needs a key"),
    ],
)
def test_one_clear_line(score: Any, arguments: list[str], told: str) -> None:
    write("rows.json", ROWS)
    write("bad.json", [{"gt_thought": {}}])
    write("sessions.json", [{"gt_actions_string": "", "gen_dialog_str": ""}])
    done = score(*arguments)
    assert done.code == 2
    assert told in done.err
    assert "\n" not in done.err.strip()
