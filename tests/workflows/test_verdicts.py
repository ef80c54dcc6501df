"""Verdicts on sessions and turns of the library desk: who decides, and what judges are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.errors import BadRequest, InputError, Transient, Unauthorized
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.wire import Reply, Request
from agenteval.records import Message, Usage
from agenteval.testing.scripted import ScriptedTransport
from agenteval.workflows.cases import SessionCase, open_role, session_cases, turn_cases
from agenteval.workflows.judges import JudgeFailure
from agenteval.workflows.results import SessionResult
from agenteval.workflows.session import Prediction, SessionCall, SessionLog, SimulatorMistake
from agenteval.workflows.tallies import session_tally
from agenteval.workflows.verdicts import Judges, Verdicts, longest_common, order_f1

OF = open_role(Path(__file__).parent / "library_desk")
CASES = {c.profile.id: c for c in session_cases([OF])}
BARE = {
    name: replace(c, of=replace(OF, backend=None, backend_sha256=None)) for name, c in CASES.items()
}
TURNS = {c.gold.turn: c for c in turn_cases([OF])}
Calls = list[tuple[str, dict[str, Any]]]


def log(calls: Calls, ended: Any = "user") -> SessionLog:
    """A session with these calls, carried out by the backend, which refuses what it does not do."""
    assert OF.backend is not None
    machine = OF.backend()
    made: list[SessionCall] = []
    for tool, arguments in calls:
        result = json.dumps(getattr(machine, tool)(**arguments))
        made.append(
            SessionCall(tool=tool, arguments=arguments, result=result, turn=0, step=len(made))
        )
    words = (Message(role="user", content="Hello"), Message(role="assistant", content="Goodbye!"))
    return SessionLog(messages=words, calls=tuple(made), ended=ended, turns=1, state=machine.state)


def gold(case: SessionCase) -> Calls:
    return [(a.tool, dict(a.arguments)) for a in case.profile.actions]


def say(case: SessionCase, found: SessionLog, judges: Judges | None = None) -> Any:
    return asyncio.run(Verdicts(judges or Judges()).session(case, found))


def judges(answer: Callable[[Request], str | Reply | Exception]) -> tuple[Judges, list[Request]]:
    """All three on one scripted model."""
    transport = ScriptedTransport(answer)
    client = Client(transport, retry=RetryPolicy(attempts=1))
    return Judges.on(client), transport.requests


def text_of(request: Request) -> str:
    return "\n".join(str(message["content"]) for message in request.messages)


def answers(
    goal: str | Exception = "", values: str | Exception = "", grade: str | Exception = ""
) -> Callable[[Request], str | Exception]:
    """By what is asked."""

    def answer(request: Request) -> str | Exception:
        told = {"flow:session_judge": goal, "flow:equal": values, "flow:response": grade}
        return next(text for role, text in told.items() if request.role.startswith(role))

    return answer


def goals(*achieved: bool) -> str:
    rows = [
        {"number": i, "evidence": "Goodbye!", "reason": "r", "achieved": a}
        for i, a in enumerate(achieved, 1)
    ]
    return json.dumps({"goals": rows, "success": all(achieved)})


EQUAL = json.dumps({"reason": "the same book", "equal": True})
GRADE = json.dumps({"correctness": "c", "helpfulness": "h", "humanness": "u", "score": 7})


@pytest.mark.parametrize("name", list(CASES))
def test_gold_calls_succeed_by_the_state(name: str) -> None:
    found = say(CASES[name], log(gold(CASES[name])))
    assert (found.success, found.decided_by, found.state_success) == (True, "state", True)
    assert (found.progress, found.sequence, found.fitness) == (1.0, 1.0, 1.0)
    assert found.right == found.gold == found.generated == len(CASES[name].profile.actions)
    assert (found.conforms, found.deviations, found.cause) == (True, (), None)
    assert (found.failures, found.usage) == ((), Usage())


def spoiled(calls: Calls, who: Any, *, repaired: bool = False) -> SessionLog:
    mistake = SimulatorMistake(who=who, kind="wrong", turn=0, repaired=repaired)
    return log(calls).model_copy(update={"mistakes": (mistake,)})


@pytest.mark.parametrize("who", ["tools", "user"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_session_that_a_simulator_spoiled_has_no_verdict_whichever_way_it_ended(
    who: str, whole: bool
) -> None:
    calls = gold(CASES["hana"])[: None if whole else 1]
    found = say(CASES["hana"], spoiled(calls, who))
    assert (found.success, found.decided_by, found.cause) == (None, "simulator", None)
    assert (found.progress, found.deviations, found.state_success) == (None, (), whole)
    assert say(CASES["hana"], spoiled(calls, who, repaired=True)).success is whole


@pytest.mark.slow
def test_a_true_rate_is_in_its_interval_whatever_simulators_spoil() -> None:
    """Half of the agents are able; mistakes befall every second session, and make half of these
    fail."""
    case, results = CASES["hana"], {}
    for whole, bad in product((True, False), repeat=2):
        calls = gold(case)[: None if whole else 1]
        held = spoiled(calls, "tools") if bad else log(calls)
        verdict = say(case, held)
        results[whole, bad] = SessionResult(case.info, "s", "s", "text", {}, 0, held, verdict)
    rng, inside = np.random.default_rng(0), 0
    for draw in range(400):
        able, bad = rng.random(60) < 0.5, rng.random(60) < 0.5
        whole = able & ~(bad & (rng.random(60) < 0.5))
        drawn = [results[bool(w), bool(b)] for w, b in zip(whole, bad, strict=True)]
        tasks = [r.case.model_copy(update={"task": f"t{i}"}) for i, r in enumerate(drawn)]
        tally = session_tally([replace(r, case=c) for r, c in zip(drawn, tasks, strict=True)])
        assert tally.success.n == 60 - bad.sum()
        inside += (tally.success.low or 0) <= 0.5 <= (tally.success.high or 1)
        if draw < 10:
            assert (tally.success_low or 0) <= able.mean() <= (tally.success_high or 1)
    assert 0.92 <= inside / 400 <= 0.99  # of 95 %; three standard deviations are 3 points


def test_without_a_backend_a_judge_decides_and_without_one_nobody() -> None:
    did = log(gold(CASES["jan"])).model_copy(update={"state": None})
    alone = say(BARE["jan"], did)
    assert (alone.success, alone.decided_by, alone.progress) == (None, None, None)
    assert alone.cause is None
    said, asked = judges(answers(goal=goals(True, False)))
    found = say(BARE["jan"], did, said)
    assert (found.success, found.decided_by, found.progress) == (False, "judge", 0.5)
    assert found.usage.requests == len(asked) == 1
    for part in ("call find_book", "assistant: Goodbye!"):
        assert part in text_of(asked[0])
    assert "flowchart TD" not in text_of(asked[0])  # one judge for all formats
    both = say(CASES["hana"], log(gold(CASES["hana"])), judges(answers(goal=goals(False)))[0])
    assert (both.success, both.decided_by, both.judge.success) == (True, "state", False)
    refused, _ = judges(answers(goal=Unauthorized("refused")))
    with pytest.raises(Unauthorized):
        say(CASES["hana"], log(gold(CASES["hana"])), refused)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Transient("down"), "error:infrastructure"),
        (BadRequest("no"), "error:infrastructure"),
        ("Nice weather.", "unscored:parse"),
    ],
)
def test_a_judge_that_fails_is_told_with_its_status(error: Any, status: str) -> None:
    said, asked = judges(answers(goal=error))
    found = say(BARE["hana"], log(gold(BARE["hana"])).model_copy(update={"state": None}), said)
    assert isinstance(found.judge, JudgeFailure)
    assert (found.success, found.failures) == (None, (status,))
    assert found.usage.requests == len(asked)  # also what brought nothing
    same = said.key(BARE["hana"], found.failures) == said.key(BARE["hana"])
    assert same == status.startswith("unscored")  # only what may heal is judged anew


WORDY: Calls = [("find_book", {"title": "The novel Dune"})]


def test_a_judge_of_values_that_fails_leaves_them_open_and_is_told() -> None:
    said, _ = judges(answers(goal=goals(False), values=Transient("down")))
    verdicts = Verdicts(said)

    async def both() -> list[Any]:
        first = await verdicts.session(CASES["hana"], log(WORDY))
        other = await verdicts.session(CASES["ida"], log(gold(CASES["ida"])))
        again = await verdicts.session(CASES["hana"], log(WORDY))
        return [first, other, again]

    first, other, again = asyncio.run(both())
    assert (first.right, first.unjudged, first.failures) == (0, 1, ("error:infrastructure",))
    assert other.failures == ()  # it had no share in it
    assert again.failures == first.failures


async def test_the_judge_of_values_is_charged_to_the_verdict_that_asks_first() -> None:
    """Three sessions at once, of which the third asks what the first has asked already."""
    client, asked = judges(answers(goal=goals(False), values=EQUAL))
    verdicts = Verdicts(client)
    titles = ["The novel Dune", "Dune (novel)", "The novel Dune"]
    logs = [log([("find_book", {"title": title})]) for title in titles]
    found = await asyncio.gather(*(verdicts.session(CASES["hana"], each) for each in logs))
    assert len(asked) == 5  # three sessions, two pairs of values
    assert [verdict.usage.requests for verdict in found] == [2, 2, 1]
    assert {(j.given, j.verdict, j.by) for j in verdicts.log} == {
        ("The novel Dune", "equal", "judge"),
        ("Dune (novel)", "equal", "judge"),
    }
    prediction = Prediction(form="call", tool="find_book", arguments={"title": "Dune by Herbert"})
    turn = Verdicts(client).turn(TURNS[3], prediction)
    assert (await turn).usage.requests == 1


def predicted(index: int, prediction: Prediction, said: Judges | None = None) -> Any:
    return asyncio.run(Verdicts(said or Judges()).turn(TURNS[index], prediction))


def test_a_reply_is_graded_with_all_that_was_seen_before_it() -> None:
    said, asked = judges(answers(grade=GRADE))
    found = predicted(4, Prediction(form="reply", response="Your number, please?"), said)
    assert (found.grade.score, found.usage.requests) == (7, 1)
    text = text_of(asked[0])
    for part in (
        "Your number, please?",
        "Dune is in, on shelf S4. What is your reader's number?",
        "user: Dune, please.",
        'assistant calls find_book: {"title":"Dune"}',
        '"shelf": "S4"',
        "get its title and call find_book",
    ):
        assert part in text, part


def test_every_judge_and_demand_has_its_own_key() -> None:
    one, _ = judges(answers())
    others = [
        *(Judges(), Judges(demand="state"), one, replace(one, name="other")),
        *(replace(one, **{kind: None}) for kind in ("equality", "session", "response")),
    ]
    case = BARE["hana"]
    assert len({judges.key(case) for judges in others}) == len(others)
    assert Judges().key(case) == Judges(demand="state+reads").key(case)  # as the role says
    assert judges(answers())[0].key(case) == one.key(case)
    failed = [one.key(case, ["error:timeout"]), Judges().key(case, ["error:budget"])]
    assert len({*failed, one.key(case), Judges().key(case)}) == 4


def test_bad_gold_and_bad_charts_are_found_before_any_session() -> None:
    Verdicts().prepare(CASES.values())
    hana = CASES["hana"]
    goal = hana.profile.goals[0]
    arguments = {"title": "Dune", "reader_id": "twenty"}
    wrong = goal.actions[-1].model_copy(update={"arguments": arguments})
    changed = goal.model_copy(update={"actions": (*goal.actions, wrong)})
    profile = hana.profile.model_copy(update={"goals": (changed,)})
    with pytest.raises(InputError, match="profile hana: gold call lend_book"):
        Verdicts().prepare([replace(hana, profile=profile)])
    scenarios = tuple(s.model_copy(update={"flowchart": "?"}) for s in OF.role.scenarios)
    role = OF.role.model_copy(update={"scenarios": scenarios})
    with pytest.raises(InputError):
        Verdicts().prepare(session_cases([replace(OF, role=role)]))


def test_order_by_hand() -> None:
    made = ["check", "search", "reserve"]
    assert order_f1(made, ["search", "check", "reserve", "pay"]) == pytest.approx(4 / 7)
    assert order_f1(made, made) == 1
    assert order_f1(made[::-1], made) == pytest.approx(1 / 3)
    assert order_f1([], []) is None
    assert order_f1([], ["a"]) == order_f1(["a"], []) == 0


NAMES = st.lists(st.sampled_from("abc"), max_size=6)


@given(left=NAMES, right=NAMES)
def test_common_is_the_longest_of_all_subsequences(left: list[str], right: list[str]) -> None:
    def subsequences(names: list[str]) -> set[tuple[str, ...]]:
        return {c for size in range(len(names) + 1) for c in combinations(names, size)}

    expected = max(map(len, subsequences(left) & subsequences(right)))
    assert longest_common(left, right) == expected
