"""Trials of workflows: kept, resumed, judged anew from their logs, read back as results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from agenteval.agents import AgentFailure, System
from agenteval.engine import Experiment, ExperimentResult
from agenteval.errors import BudgetExceeded, Transient
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.wire import Reply, Request
from agenteval.records import Message, Usage
from agenteval.store import Store, Trials
from agenteval.store.connect import writing
from agenteval.testing.scripted import ScriptedTransport
from agenteval.workflows.cases import open_role, session_cases, turn_cases
from agenteval.workflows.evaluator import Attempt, WorkflowEvaluator, spent
from agenteval.workflows.results import Level, SessionVerdict, load_sessions, load_turns
from agenteval.workflows.scenario import Format
from agenteval.workflows.session import Prediction, SessionCall, SessionLog
from agenteval.workflows.variants import AgentVariant, Case
from agenteval.workflows.verdicts import Judges, Verdicts

DESK = Path(__file__).parent / "library_desk"
OF = open_role(DESK)
CASES = session_cases([OF])  # ida, hana, otto, jan
TURNS = turn_cases([OF])
BARE = [replace(c, of=replace(OF, backend=None, backend_sha256=None)) for c in CASES]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "s.db") as opened:
        yield opened


def gold_log(case: Any) -> SessionLog:
    """A session in which all gold calls were made; the state is that of the real backend."""
    assert OF.backend is not None
    machine = OF.backend()
    calls: list[SessionCall] = []
    for action in case.profile.actions:
        result = json.dumps(getattr(machine, action.tool)(**action.arguments))
        calls.append(
            SessionCall(
                tool=action.tool,
                arguments=action.arguments,
                result=result,
                answered="backend",
                turn=0,
                step=len(calls),
            )
        )
    said = (Message(role="user", content="Hello"), Message(role="assistant", content="Done. Bye"))
    return SessionLog(
        messages=said,
        calls=tuple(calls),
        ended="user",
        turns=1,
        state=machine.state,
        usage=Usage(requests=2),
        simulator_usage=Usage(requests=1),
    )


@dataclass
class Acts:
    """Does what `make` says, and keeps what it was asked for."""

    make: Callable[[Any], Any] = gold_log
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def __call__(self, case: Any, variant: AgentVariant, number: int) -> Any:
        self.asked.append((case.info.id, number))
        found = self.make(case)
        if isinstance(found, BaseException):
            raise found
        return found


def nobody() -> Any:
    raise AssertionError("the act answers for the assistant")


def variant(format: Format = "flowchart", name: str = "agent", **conditions: Any) -> AgentVariant:
    return AgentVariant(System(name, nobody, {"v": 1}), format, conditions)


def run(
    store: Store,
    act: Attempt,
    *,
    who: AgentVariant | None = None,
    judges: Judges | None = None,
    trials: int = 1,
    cases: Sequence[Case] = CASES,
    level: Level = "session",
) -> ExperimentResult:
    who, verdicts = who or variant(), Verdicts(judges or Judges())
    evaluator = WorkflowEvaluator.of(
        level, who, cases, trials, tables=Trials(store), attempt=act, verdicts=verdicts
    )
    return asyncio.run(Experiment(evaluator, store, concurrency=1).run())


def goals(achieved: bool = True) -> Callable[[Request], str]:
    """A judge's reply on as many goals as it is told of."""

    def answer(request: Request) -> str:
        text = json.dumps(request.messages, default=str)
        rows = [
            {"number": i, "evidence": "Done. Bye", "reason": "seen", "achieved": achieved}
            for i in range(1, 3 if "2. Borrow Dune." in text else 2)
        ]
        return json.dumps({"goals": rows, "success": achieved})

    return answer


def judge(
    answer: Callable[[Request], str | Reply | Exception], store: Store | None = None, **more: Any
) -> tuple[Judges, list[Request]]:
    transport = ScriptedTransport(answer)
    client = Client(transport, cache=store, retry=RetryPolicy(attempts=1), **more)
    return replace(Judges.on(client), equality=None, response=None), transport.requests


def verdicts_of(store: Store) -> list[SessionVerdict]:
    found = [r.verdict for r in load_sessions(store)]
    assert None not in found
    return [v for v in found if v is not None]


def test_everything_is_run_once_and_read_back(store: Store) -> None:
    act = Acts()
    ended = run(store, act, trials=2)
    assert ended.progress.outcomes == {"success": 8}
    assert act.asked == [(c.info.id, n) for n in range(2) for c in CASES]
    again = Acts()
    assert run(store, again, trials=2).progress.total == 0
    assert run(store, again, trials=3).progress.total == 4
    assert {number for _, number in again.asked} == {2}
    found = load_sessions(store)
    assert len(found) == 12
    assert {(r.agent, r.format, r.system) for r in found} == {
        ("agent", "flowchart", "agent · flowchart")
    }
    assert {r.case.id for r in found} == {
        "library_desk/return_book/ida",
        "library_desk/lend_book/hana",
        "library_desk/lend_book/otto",
        "library_desk/cross/jan",
    }
    assert all(r.verdict is not None and r.verdict.decided_by == "state" for r in found)


def test_the_budget_stops_it_and_the_next_run_goes_on(store: Store) -> None:
    left = [gold_log, gold_log]

    def make(case: Any) -> Any:
        if left:
            return left.pop()(case)
        error = BudgetExceeded("the cap of 4 calls is reached")
        error.spent = Usage(requests=1)
        return error

    ended = run(store, Acts(make))
    assert ended.stopped == "the cap of 4 calls is reached"
    assert ended.left_out == 2
    act = Acts()
    assert run(store, act).progress.outcomes == {"success": 2}
    assert [c for c, _ in act.asked] == [c.info.id for c in CASES[2:]]
    # Four sessions of 2 + 1 requests, and the one that the attempt broken off had taken.
    assert spent(store, "session", [variant().sha256]).requests == 13


def test_a_session_interrupted_before_its_verdict_is_judged_and_not_held_again(
    store: Store,
) -> None:
    run(store, Acts())
    judged = verdicts_of(store)
    with writing(store.engine) as connection:
        connection.execute(
            text("UPDATE calls SET outcome = NULL, check_key = NULL, verdict = NULL")
        )
    act = Acts()
    assert run(store, act).progress.outcomes == {"success": 4}
    assert act.asked == []
    assert verdicts_of(store) == judged


def test_another_judge_judges_the_stored_logs_without_the_agent(store: Store) -> None:
    run(store, Acts(), cases=BARE)
    assert {v.success for v in verdicts_of(store)} == {None}  # no backend, no judge
    before = spent(store, "session", [variant().sha256])
    act = Acts()
    judges, asked = judge(goals(), store)
    ended = run(store, act, cases=BARE, judges=judges)
    assert act.asked == []
    assert len(asked) == 4
    assert ended.progress.outcomes == {"success": 4}
    assert ended.progress.usage.requests == 0
    found = verdicts_of(store)
    assert {v.decided_by for v in found} == {"judge"}
    assert len(load_sessions(store)) == 4
    after = spent(store, "session", [variant().sha256])
    assert after.requests == before.requests + 4  # the judge's; the sessions' are not doubled
    assert run(store, act, cases=BARE, judges=judges).progress.total == 0
    # Without the judge it is open again; with it, the cache has its words: nothing is asked.
    run(store, act, cases=BARE)
    assert {v.success for v in verdicts_of(store)} == {None}
    run(store, act, cases=BARE, judges=judges)
    assert {v.success for v in verdicts_of(store)} == {True}
    assert len(asked) == 4
    assert spent(store, "session", [variant().sha256]) == after


def test_a_judge_that_is_down_leaves_the_state_its_word_and_is_asked_again(store: Store) -> None:
    down, asked = judge(lambda _: Transient("no judge there"))
    act = Acts()
    ended = run(store, act, trials=3, judges=down)
    assert ended.stopped == "8 sessions in a row failed: a judge failed: no judge there"
    assert {(v.success, v.decided_by) for v in verdicts_of(store)} == {(True, "state")}
    assert {v.failures for v in verdicts_of(store)} == {("error:infrastructure",)}
    up, asked = judge(goals(achieved=False))
    run(store, act, trials=3, judges=up)
    assert len(act.asked) == 12
    assert len(asked) == 12
    found = verdicts_of(store)
    assert {v.failures for v in found} == {()}
    assert {(v.success, v.judge and v.judge.success) for v in found} == {(True, False)}  # type: ignore[union-attr]


def test_turns_have_their_verdicts_and_outcomes(store: Store) -> None:
    gold = {c.info.id: c.gold for c in TURNS}
    calls = [c.info.id for c in TURNS if c.gold.action]

    def predicted(case: Any) -> Prediction | AgentFailure:
        turn = gold[case.info.id]
        if case.info.id == calls[1]:
            return Prediction(form="reply", response="Which one?")
        if turn.action is not None:
            return Prediction(form="call", tool=turn.action.tool, arguments=turn.action.arguments)
        if turn.turn == 1:
            return AgentFailure(status="error:timeout", message="slow")
        if turn.turn == 4:
            return Prediction(form="call", tool="find_book", arguments={})
        return Prediction(form="unreadable" if turn.turn == 7 else "reply", response="Yes.")

    ended = run(store, Acts(predicted), level="turn", cases=TURNS)
    assert ended.progress.outcomes == {
        "right": 1,
        "missed": 1,
        "replied": 1,
        "spurious": 1,
        "unreadable": 1,
        "error:timeout": 1,
    }
    found = load_turns(store)
    assert [r.case.id for r in found] == sorted(gold)
    assert {r.case.task for r in found} == {"library_desk/lend_book/hana_dune"}
    lost = [r for r in found if isinstance(r.prediction, AgentFailure)]
    assert [r.verdict for r in lost] == [None]
    again = Acts(predicted)
    run(store, again, level="turn", cases=TURNS)
    assert [c for c, _ in again.asked] == ["library_desk/lend_book/hana_dune:1"]


def test_one_agent_under_two_conditions_is_two_each_with_its_formats(store: Store) -> None:
    for turns in (3, 15):
        for format in ("text", "flowchart"):
            run(store, Acts(), who=variant(format, turns=turns))
    found = load_sessions(store)
    names = {(str(r.settings["turns"]), r.agent) for r in found}
    assert [turns for turns, _ in sorted(names)] == ["15", "3"]
    assert len({agent for _, agent in names}) == 2
    assert len({r.system for r in found}) == 4
