"""Workflows from Python: functions as agents, paths or objects in, a report out."""

from __future__ import annotations

import asyncio
import csv
import json
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval.app.stored import export_replies
from agenteval.errors import InputError
from agenteval.records import Run
from agenteval.records.run import Span
from agenteval.testing import serve
from agenteval.workflows.api import flow_results
from agenteval.workflows.folder import read_role
from agenteval.workflows.procedure import Call

DESK = Path(__file__).parent / "library_desk"
LEND = {"reader_id": "R-17", "title": "Dune"}


def goodbye(messages: Any, tools: Any) -> str:
    return "Goodbye!"


def breaks(messages: Any, tools: Any) -> str:
    raise RuntimeError("out of order")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


def test_a_function_is_an_agent_and_its_fault_is_a_failure(store: Path) -> None:
    report = agenteval.flow_sessions(
        DESK, agent=breaks, user="scripted", store=store, limit=1, max_unscored=1
    )
    (failed,) = report.failures
    assert failed.log.status == "error:infrastructure"  # type: ignore[union-attr]
    assert "out of order" in failed.log.message  # type: ignore[union-attr]
    assert failed.agent == f"python:{__name__}:breaks"
    assert report.exit_code == 3
    assert "out of order" in str(report["lost"].rows[0]["example"])
    assert "every session failed" in report.unfinished[0]


@pytest.mark.slow
def test_turns_and_an_export_of_both(store: Path, tmp_path: Path) -> None:
    turns = agenteval.flow_turns(DESK, agent=goodbye, store=store, max_unscored=1)
    assert len(turns.turns) == 6
    assert turns["turns"].rows[0]["turns"] == 6
    agenteval.flow_sessions(DESK, agent=goodbye, user="scripted", store=store)
    stored = flow_results(store)
    assert stored.title == f"python:{__name__}:goodbye: 4 sessions and 6 turns"
    assert len(stored.trials) == 10
    with stored.save(tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    assert {row["level"] for row in rows} == {"session", "turn"}
    saved = json.loads(stored.save(tmp_path / "t.json").read_text(encoding="utf-8"))
    assert len(saved["trials"]) == 10
    assert "<h1>" in stored.page()


def test_replies_of_judges_are_recorded_and_replayed(store: Path, tmp_path: Path) -> None:
    def grants(body: dict[str, Any], number: int) -> str:
        goal = {"number": 1, "evidence": "Goodbye!", "reason": "r", "achieved": True}
        return json.dumps({"goals": [goal], "success": True})

    recording = tmp_path / "judge.jsonl"
    some: dict[str, Any] = {"agent": goodbye, "user": "scripted", "kind": "single"}
    with serve(grants) as server:
        judged = agenteval.flow_sessions(
            DESK, **some, judge="m", judge_url=server.base_url, store=store
        )
    export_replies(recording, store)
    again = agenteval.flow_sessions(
        DESK, **some, judge=f"replay:{recording}", store=tmp_path / "other.db"
    )
    achieved = [
        [s.verdict.judge for s in report.sessions if s.verdict] for report in (judged, again)
    ]
    assert [[j.achieved for j in own if j] for own in achieved] == [[1, 1, 1]] * 2  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agent": "recorded:perfekt"}, "no recorded session 'perfekt'"),
        ({"formats": ["prose"]}, "'prose' is not one of text, code"),
        ({"user": "human"}, "'human' is not one of model, scripted"),
        ({"user": "model"}, "--simulator"),
        ({"kind": "both"}, "'both' is not one of"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_run(
    store: Path, arguments: dict[str, Any], message: str
) -> None:
    given = {"agent": goodbye, "user": "scripted", "store": store} | arguments
    with pytest.raises(InputError, match=message):
        agenteval.flow_sessions(DESK, **given)
    assert not store.exists()


def test_an_interrupted_experiment_keeps_what_is_done(store: Path) -> None:
    async def cancelled() -> Any:
        served = asyncio.Event()

        def serves(messages: Any, tools: Any) -> str:
            served.set()
            return "Goodbye!"

        task = asyncio.create_task(
            agenteval.aflow_sessions(
                DESK,
                agent=serves,
                user="scripted",
                store=store,
                progress=lambda counts: task.cancel() if counts.done == 1 else None,
                limits=agenteval.workflows.api.Limits(concurrency=1),
            )
        )
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return caught.value

    from agenteval.cli.running import Stopped

    stopped = asyncio.run(cancelled())
    assert isinstance(stopped, Stopped)
    assert stopped.report.exit_code == 130
    assert 1 <= len(stopped.report.sessions) < 4  # type: ignore[attr-defined]
    assert "run the same command to continue" in stopped.report.unfinished[0]


def test_calls_that_follow_a_chart_and_calls_that_do_not() -> None:
    found = {"is_in": True, "title": "Dune"}
    calls: list[Any] = [
        {"tool": "find_book", "arguments": {"title": "Dune"}, "returned": found},
        Call(tool="lend_book", arguments=LEND, returned={"due": "2031-04-02"}),
    ]
    good = agenteval.conform(calls, DESK, scenarios=["lend_book"])
    assert good.conforms
    assert good.reasons == ()
    bad = agenteval.conform(calls[1:], read_role(DESK), scenarios=["lend_book"])
    assert not bad.conforms
    assert "missing step" in bad.reasons[0]
    assert "find_book" in bad.reasons[0]
    assert bad["deviations"].rows[0]["tool"] == "find_book"
    assert (bad.verdict.fitness or 0) < 1


def test_tool_spans_of_a_run_against_a_chart_file(tmp_path: Path) -> None:
    spans = (
        Span(id="0", kind="llm"),
        Span(
            id="1",
            kind="tool",
            tool="find_book",
            input='{"title": "Dune"}',
            output='{"is_in": true}',
        ),
        Span(id="2", kind="tool", tool="lend_book", input=json.dumps(LEND), output="Done."),
    )
    run = Run(id="r", task="t", system="s", input="", output="", spans=spans)
    lend = DESK / "lend_book"
    report = agenteval.conform(run, lend / "workflow.mmd", tools=lend / "tools.json")
    assert report.conforms, report.reasons
    listed = tmp_path / "calls.json"
    listed.write_text(json.dumps([{"tool": "lend_book", "arguments": LEND}]))
    assert not agenteval.conform(listed, lend / "workflow.mmd", tools=lend / "tools.json").conforms
    listed.write_text(json.dumps([{"name": "lend_book"}]))
    with pytest.raises(InputError, match="not a list of calls"):
        agenteval.conform(listed, DESK)
