"""The verdict of the final state on the library, whose gold states are written down by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.records import Message, ToolCall
from agenteval.workflows.backend import load_backend
from agenteval.workflows.final_state import StateVerdict, gold_state, judged
from agenteval.workflows.folder import read_role
from agenteval.workflows.scenario import Action, Goal, Profile, Role, Scenario, WorkflowTool
from agenteval.workflows.session import SessionCall, SessionLog

DESK = Path(__file__).parent / "library_desk"
ROLE = read_role(DESK)
BACKEND: Any = load_backend(DESK)
HANA, OTTO = ROLE.scenario("lend_book").profiles
(JAN,) = ROLE.cross_profiles


def session(*calls: tuple[str, dict[str, Any]]) -> SessionLog:
    """Calls carried out on the real backend."""
    backend, made = BACKEND(), []
    for tool, arguments in calls:
        try:
            result, status = json.dumps(getattr(backend, tool)(**arguments)), "ok"
        except ValueError as refused:
            result, status = str(refused), "bad_arguments"
        made.append(
            SessionCall(tool=tool, arguments=arguments, status=status, result=result, turn=0)
        )
    return SessionLog(calls=tuple(made), ended="user", state=backend.state)


def judge(profile: Profile, *calls: tuple[str, dict[str, Any]]) -> StateVerdict:
    found = judged(gold_state(ROLE, profile, BACKEND), session(*calls), ROLE.success)
    assert found is not None
    return found


def find(title: str) -> tuple[str, dict[str, Any]]:
    return "find_book", {"title": title}


def lend(title: str, reader: str) -> tuple[str, dict[str, Any]]:
    return "lend_book", {"title": title, "reader_id": reader}


def bring(title: str) -> tuple[str, dict[str, Any]]:
    return "return_book", {"title": title}


def wanting(*goals: Goal) -> Profile:
    return Profile(id="p", scenarios=("lend_book",), persona="x", opening="x", goals=goals)


def test_gold_is_executed() -> None:
    gold = gold_state(ROLE, JAN, BACKEND)
    assert gold.state == {
        "books": {
            "Dune": {"holder": "R-17", "shelf": "S4"},
            "Emma": {"holder": None, "shelf": "A1"},
            "Ulysses": {"holder": None, "shelf": "J2"},
        },
        "fees": {"R-17": 0, "R-20": 0, "R-31": 4},
    }
    back, borrow = gold.goals
    assert back.changes == (("books", "Emma", "holder"),)
    assert back.told == ()
    assert borrow.changes == (("books", "Dune", "holder"),)
    assert [d.action.tool for d in borrow.told] == ["find_book"]
    assert borrow.told[0].result == {"is_in": True, "shelf": "S4"}


CHAT = wanting(Goal(text="Chat."), *HANA.goals)


@pytest.mark.parametrize(
    ("profile", "calls", "success", "goals", "difference"),
    [
        (JAN, [bring("Emma"), find("Dune"), lend("Dune", "R-17")], True, "++", ""),
        (JAN, [find("Dune"), lend("Dune", "R-17"), bring("Emma")], True, "++", ""),
        (JAN, [bring("Emma"), find("Dune")], False, "+-", '/books/Dune/holder: null, gold "R-17"'),
        (JAN, [bring("Dune"), find("Dune"), lend("Dune", "R-17")], False, "-+", None),  # refused
        # a side effect is no goal's matter
        (
            HANA,
            [find("Dune"), lend("Dune", "R-20"), lend("Ulysses", "R-20")],
            False,
            "+",
            '/books/Ulysses/holder: "R-20", gold null',
        ),
        (
            HANA,
            [find("Dune"), lend("Dune", "R-17")],
            False,
            "-",
            '/books/Dune/holder: "R-17", gold "R-20"',
        ),
        (HANA, [lend("Dune", "R-20")], False, "-", ""),  # never looked up
        (HANA, [find("Emma"), lend("Dune", "R-20")], False, "-", ""),  # another book's answer
        (HANA, [find("Emma"), find("Dune"), lend("Dune", "R-20")], True, "+", ""),
        (CHAT, [], False, "+-", None),  # a goal without calls is achieved
        (CHAT, [find("Dune"), lend("Dune", "R-20")], True, "++", ""),
    ],
)
def test_sessions(
    profile: Profile, calls: list[Any], success: bool, goals: str, difference: str | None
) -> None:
    found = judge(profile, *calls)
    assert (found.success, "".join("-+"[goal] for goal in found.goals)) == (success, goals)
    assert found.progress == goals.count("+") / len(goals)
    assert difference is None or difference == "".join(found.differences)


def test_a_user_for_whom_no_call_is_right() -> None:
    """Nothing may be changed, and the words must stand in a reply: not in a message with a call,
    and "4" is not 14 nor 4.5."""
    refused = wanting(
        Goal(text="Lend without a card."), Goal(text="Know the fee.", told=("4 EUR",))
    )
    gold = gold_state(ROLE, refused, BACKEND)
    call = ToolCall(name="find_book", arguments={})

    def verdict(*messages: Message, calls: tuple[Any, ...] = ()) -> StateVerdict:
        log = session(*calls).model_copy(update={"messages": messages})
        found = judged(gold, log)
        assert found is not None
        return found

    told = Message(role="assistant", content="The fee is **4 eur**.".replace("*", ""))
    assert verdict(told) == StateVerdict(success=True, goals=(True, True), progress=1)
    for wrong in (
        Message(role="user", content="4 EUR?"),
        Message(role="assistant", content="4 EUR", tool_calls=(call,)),
        Message(role="assistant", content="14 EUR, or 4.5 EUR"),
    ):
        found = verdict(wrong)
        assert (found.success, found.goals, found.untold) == (False, (True, False), ("4 EUR",))
    changed = verdict(told, calls=(lend("Dune", "R-20"),))
    assert (changed.success, changed.goals, changed.progress) == (False, (False, False), 0)
    assert not gold.satisfied_by_inaction("state")
    nothing = gold_state(ROLE, wanting(Goal(text="Chat.")), BACKEND)
    assert nothing.satisfied_by_inaction("state+reads")


def test_reads_are_progress_unless_they_are_asked_for() -> None:
    gold = gold_state(ROLE, HANA, BACKEND)
    log = session(lend("Dune", "R-20"))
    by_state, with_reads = judged(gold, log), judged(gold, log, "state+reads")
    assert by_state is not None
    assert with_reads is not None
    assert (by_state.success, by_state.goals, by_state.progress) == (True, (False,), 0)
    assert [a.tool for a in by_state.unobtained] == ["find_book"]
    assert with_reads == by_state.model_copy(update={"success": False})


def test_without_a_state_nothing_is_decided() -> None:
    assert judged(gold_state(ROLE, HANA, BACKEND), SessionLog(ended="user")) is None


class Loud(BACKEND):  # type: ignore[misc]
    def find_book(self, title: str) -> Any:
        if title == "Dune":
            raise KeyError(title)
        return [title]


@pytest.mark.parametrize(
    ("action", "told"),
    [
        (Action(tool="lend_book", arguments=lend("Dune", "R-99")[1]), "refused .*R-99"),
        (Action(tool="lend_book", arguments={"title": "Dune"}), "'reader_id' is a required"),
        (Action(tool="return_book", arguments={"title": "Emma"}), "no scenario of the profile"),
        (Action(tool="find_book", arguments={"title": "Dune"}), "KeyError"),
        (Action(tool="find_book", arguments={"title": "Emma"}), "not a JSON object"),
    ],
)
def test_gold_that_cannot_be_executed(action: Action, told: str) -> None:
    profile = wanting(Goal(text="x", actions=(action,)))
    with pytest.raises(InputError, match=told) as raised:
        gold_state(ROLE, profile, Loud)
    assert f"profile p: gold call {action.tool}" in str(raised.value)


def test_a_state_that_is_no_json() -> None:
    class Odd(BACKEND):  # type: ignore[misc]
        def __init__(self) -> None:
            self.state = {"when": {1, 2}}

    with pytest.raises(InputError, match="the state: is not JSON"):
        gold_state(ROLE, HANA, Odd)


class Counter:
    """A number that is set, and rooms that are free or full on a day."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"number": 0, "seen": {}}

    def put(self, number: int) -> dict[str, Any]:
        self.state["number"] = number
        return {"number": number}

    def look(self, day: str) -> dict[str, Any]:
        return {"free": day == "Sunday"}


def counting(*goals: Goal) -> tuple[Any, Profile]:
    """A role with the counter, and a user of it."""
    empty: dict[str, Any] = {"type": "object"}
    tools = tuple(
        WorkflowTool(name=name, description="", parameters=empty, returns=empty, effect=effect)
        for name, effect in (("put", "write"), ("look", "read"))
    )
    chart = "flowchart TD\nAA000(Start)-->AA001>call put]"
    scenario = Scenario(
        id="s", title="s", background="b", text="t", code="c", flowchart=chart, tools=tools
    )
    role = Role(id="r", domain="d", title="t", background="b", now="now", scenarios=(scenario,))
    return role, Profile(id="p", scenarios=("s",), persona="x", opening="x", goals=goals)


def judge_count(goals: tuple[Goal, ...], *calls: tuple[str, dict[str, Any]]) -> StateVerdict:
    role, profile = counting(*goals)
    backend = Counter()
    made = tuple(
        SessionCall(tool=t, arguments=a, result=json.dumps(getattr(backend, t)(**a)), turn=0)
        for t, a in calls
    )
    log = SessionLog(calls=made, ended="user", state=backend.state)
    found = judged(gold_state(role, profile, Counter), log, "state+reads")
    assert found is not None
    return found


def put(number: int) -> Goal:
    return Goal(text="Set it.", actions=(Action(tool="put", arguments={"number": number}),))


def test_goals_that_undo_each_other_are_not_achieved_by_doing_nothing() -> None:
    goals = (put(1), put(0))
    nothing = judge_count(goals)
    assert (nothing.success, nothing.goals, nothing.progress) == (False, (False, False), 0)
    assert len(nothing.unobtained) == 2
    both = judge_count(goals, ("put", {"number": 1}), ("put", {"number": 0}))
    assert (both.success, both.goals) == (True, (True, True))
    one = judge_count(goals, ("put", {"number": 1}))
    assert (one.success, one.goals) == (False, (False, False))  # 1 is not what is to stand there
    within = Goal(text="Set and take back.", actions=(*put(1).actions, *put(0).actions))
    assert judge_count((within,)).goals == (False,)
    # overwritten, and seen in the end: the last word counts
    assert judge_count((put(1), put(2)), ("put", {"number": 2})).success
    # by the state alone, what was undone need not be done
    role, profile = counting(*goals)
    undone = judged(
        gold_state(role, profile, Counter), SessionLog(ended="user", state=Counter().state)
    )
    assert undone is not None
    assert (undone.success, undone.progress) == (True, 0)


def test_one_question_with_two_answers_needs_both() -> None:
    role, profile = counting(
        Goal(
            text="Set it, and see it before and after.",
            actions=(Action(tool="show"), *put(1).actions, Action(tool="show")),
        )
    )

    class Shown(Counter):
        def show(self) -> dict[str, Any]:
            return {"number": self.state["number"]}

    show = role.scenarios[0].tools[1].model_copy(update={"name": "show"})
    tools = (*role.scenarios[0].tools, show)
    scenario = role.scenarios[0].model_copy(update={"tools": tools})
    role = role.model_copy(update={"scenarios": (scenario,)})

    def made(*numbers: int) -> StateVerdict:
        calls = tuple(
            SessionCall(tool="show", arguments={}, result=json.dumps({"number": n}), turn=0)
            for n in numbers
        )
        log = SessionLog(calls=calls, ended="user", state={"number": 1, "seen": {}})
        found = judged(gold_state(role, profile, Shown), log, "state+reads")
        assert found is not None
        return found

    assert made(0, 1).success
    assert not made(1).success
    assert not made(0, 0).success
