"""Damage done to a sound role is noticed by the check that should notice it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agenteval.evaluators.workflows.scenario import Action, Goal, RecordedSession, Scenario, Turn
from tests.tasks.flows.anything import Call, any_calls, check_any_calls, faults_of
from tests.tasks.flows.calls import check_orders, check_refusals, check_whole_numbers
from tests.tasks.flows.checks import (
    Check,
    Flow,
    check_arguments,
    check_calls,
    check_form,
    check_gold,
    check_results,
    check_size,
    check_tools,
    check_writing,
)
from tests.tasks.flows.flow import FLOWS
from tests.tasks.flows.formats import check_charts, check_conformance, check_formats
from tests.tasks.flows.hand import State
from tests.tasks.flows.test_hotel_reception import FLOW
from tests.tasks.flows.walked import check_mistakes, check_walker
from tests.tasks.flows.walks import check_coverage, check_walks
from tests.tasks.flows.words import check_readme, check_told, check_weekdays

pytestmark = pytest.mark.xdist_group("hotel_reception")  # the role that is damaged


def check_all_calls(flow: Flow) -> list[str]:
    """`check_any_calls` without the search: all calls that it picks from, each once."""
    return faults_of(flow, small_calls())


Damage = Callable[[Flow], Flow]
DESK = "room_service_complaint"


def with_role(flow: Flow, **changed: Any) -> Flow:
    role = flow.role.model_copy(update=changed)
    return replace(flow, read=lambda: role)


def with_hand(flow: Flow, **changed: Any) -> Flow:
    return replace(flow, hand=replace(flow.hand, **changed))


@cache
def small() -> Flow:
    """One scenario of the hotel, with all of its backend."""
    one = tuple(s for s in FLOW.role.scenarios if s.id == DESK)
    hand = replace(FLOW.hand, weekdays=0, told=replace(FLOW.hand.told, least=1))
    flow = replace(FLOW, hand=hand)
    return with_role(flow, scenarios=one, cross_profiles=(), cross_sessions=())


@cache
def small_calls() -> list[Call]:
    return any_calls(small())


@cache
def faults_before(check: Check) -> list[str]:
    return check(small())


def with_scenario(flow: Flow, change: Callable[[Scenario], dict[str, Any]]) -> Flow:
    """The role with one scenario changed."""
    scenarios = tuple(
        s.model_copy(update=change(s)) if s.id == DESK else s for s in flow.role.scenarios
    )
    return with_role(flow, scenarios=scenarios)


def with_turn(flow: Flow, id: str, pick: Callable[[Turn], bool], **changed: Any) -> Flow:
    """The first turn of a session that is picked, changed."""

    def one(session: RecordedSession) -> RecordedSession:
        if session.id != id:
            return session
        turns = list(session.turns)
        at = next(i for i, t in enumerate(turns) if pick(t))
        turns[at] = turns[at].model_copy(update=changed)
        return session.model_copy(update={"turns": tuple(turns)})

    return with_scenario(flow, lambda s: {"sessions": tuple(map(one, s.sessions))})


def is_call(turn: Turn) -> bool:
    return turn.kind == "call"


def other_result(flow: Flow) -> Flow:
    result = {"found": True, "dish": "tea", "price": 1, "delivered": "", "minutes_late": 0}
    return with_turn(flow, "agnes_omelette", is_call, result=result)


def other_node(flow: Flow) -> Flow:
    return with_turn(flow, "agnes_omelette", is_call, node="RS003")


def other_intent(flow: Flow) -> Flow:
    return with_turn(flow, "kofi_soup", lambda t: t.node == "RS006", intent="Credited")


def false_condition(flow: Flow) -> Flow:
    return with_turn(flow, "nils_no_slip", is_call, result={"found": True})


def unsaid(flow: Flow) -> Flow:
    return with_turn(flow, "agnes_omelette", lambda t: "RS-311" in t.text, text="Here it is")


def other_opening(flow: Flow) -> Flow:
    return with_turn(flow, "agnes_omelette", lambda t: True, text="Hello?")


def one_session_less(flow: Flow) -> Flow:
    lost = "bruno_pancakes"  # the only one who tries another number
    return with_scenario(flow, lambda s: {"sessions": tuple(x for x in s.sessions if x.id != lost)})


def one_gold_call_less(flow: Flow) -> Flow:
    def change(s: Scenario) -> dict[str, Any]:
        first = s.profiles[0]
        goal = first.goals[0].model_copy(update={"actions": first.goals[0].actions[:-1]})
        return {"profiles": (first.model_copy(update={"goals": (goal,)}), *s.profiles[1:])}

    return with_scenario(flow, change)


def other_facts(flow: Flow) -> Flow:
    def change(s: Scenario) -> dict[str, Any]:
        facts = {**s.profiles[0].facts, "room_number": "117"}
        return {"profiles": (s.profiles[0].model_copy(update={"facts": facts}), *s.profiles[1:])}

    return with_scenario(flow, change)


def other_code(flow: Flow) -> Flow:
    other = (".credited", ".credit")
    return with_scenario(flow, lambda s: {"code": s.code.replace(*other)})


def other_text(flow: Flow) -> Flow:
    return with_scenario(flow, lambda s: {"text": s.text.replace("check_kitchen", "the cook")})


def no_join(flow: Flow) -> Flow:
    return with_scenario(
        flow, lambda s: {"flowchart": s.flowchart.replace("RS005 & RS008-->", "RS005-->")}
    )


def calls_swapped(flow: Flow) -> Flow:
    def swapped(session: RecordedSession) -> RecordedSession:
        turns = list(session.turns)
        first, second = [i for i, t in enumerate(turns) if is_call(t)][:2]
        turns[first], turns[second] = turns[second], turns[first]
        return session.model_copy(update={"turns": tuple(turns)})

    return with_scenario(flow, lambda s: {"sessions": (swapped(s.sessions[0]), *s.sessions[1:])})


def forgetful(flow: Flow) -> Flow:
    class Forgetful(flow.backend):  # type: ignore[misc, name-defined]
        def call_manager(self, room_number: str, callback_time: str) -> dict[str, Any]:
            return {"manager": "Ms Ferrante", "calls_at": callback_time}

    return replace(flow, backend=Forgetful)


def writing_reader(flow: Flow) -> Flow:
    class Writing(flow.backend):  # type: ignore[misc, name-defined]
        def check_kitchen(self, order_number: str) -> dict[str, Any]:
            self.state["asked"] = order_number
            found: dict[str, Any] = super().check_kitchen(order_number)
            return found

    return replace(flow, backend=Writing)


def one_method_more(flow: Flow) -> Flow:
    class More(flow.backend):  # type: ignore[misc, name-defined]
        def burn_soup(self) -> dict[str, Any]:
            return {}

    return replace(flow, backend=More)


def wrong_sum(flow: Flow) -> Flow:
    return with_turn(flow, "agnes_omelette", lambda t: t.kind == "reply", text="That is €77.")


def wrong_weekday(flow: Flow) -> Flow:
    text = "It came on Saturday, 6 June."  # which is a Friday
    return with_turn(flow, "agnes_omelette", lambda t: t.kind == "reply", text=text)


def other_refusal(flow: Flow) -> Flow:
    return with_hand(flow, refused=[("too late", "check_kitchen", ("RS-999",))])


def no_refusal(flow: Flow) -> Flow:
    return with_hand(flow, refused=[("", "check_kitchen", ("RS-311",))])


def counting(flow: Flow) -> Flow:
    class Counting(flow.backend):  # type: ignore[misc, name-defined]
        def call_manager(self, room_number: str, callback_time: str) -> dict[str, Any]:
            place = len(self.state["manager_calls"])
            self.state["manager_calls"][room_number] = f"{callback_time} {place}"
            return {"manager": "Ms Ferrante", "calls_at": callback_time}

    steps = [("call_manager", (room, "11:00")) for room in ("101", "102", "103", "104")]
    return with_hand(replace(flow, backend=Counting), steps=steps)


def one_step(flow: Flow) -> Flow:
    return with_hand(flow, steps=flow.hand.steps[:1])


def literal(flow: Flow) -> Flow:
    class Literal(flow.backend):  # type: ignore[misc, name-defined]
        def count(self, number: float) -> dict[str, Any]:
            return {"number": number}

    goal = Goal(text="Count.", actions=(Action(tool="count", arguments={"number": 2}),))
    changed = with_scenario(
        flow, lambda s: {"profiles": (s.profiles[0].model_copy(update={"goals": (goal,)}),)}
    )
    return with_hand(replace(changed, backend=Literal), numbers="same")


def other_answer(flow: Flow) -> Flow:
    class Other(flow.backend):  # type: ignore[misc, name-defined]
        def call_manager(self, room_number: str, callback_time: str) -> dict[str, Any]:
            return {"manager": 1, "calls_at": callback_time}

    return replace(flow, backend=Other)


def short_refusal(flow: Flow) -> Flow:
    class Short(flow.backend):  # type: ignore[misc, name-defined]
        def call_manager(self, room_number: str, callback_time: str) -> dict[str, Any]:
            raise ValueError("no")

    return replace(flow, backend=Short)


def not_kept(flow: Flow) -> Flow:
    def keeps(before: State, after: State) -> None:
        assert before["orders"] == after["orders"], "orders are settled"

    return with_hand(flow, keeps=keeps)


def fewer_days(flow: Flow) -> Flow:
    return with_hand(flow, weekdays=50)


def nobody(flow: Flow) -> Flow:
    return with_scenario(flow, lambda s: {"profiles": (), "sessions": ()})


DAMAGES: tuple[tuple[Damage, Check], ...] = (
    (other_result, check_results),
    (other_node, check_walks),
    (other_intent, check_walks),
    (false_condition, check_walks),
    (unsaid, check_arguments),
    (other_opening, check_form),
    (one_session_less, check_size),
    (one_session_less, check_coverage),
    (one_gold_call_less, check_calls),
    (one_gold_call_less, check_walker),
    (other_facts, check_walker),
    (other_code, check_formats),
    (other_text, check_formats),
    (no_join, check_charts),
    (calls_swapped, check_conformance),
    (forgetful, check_writing),
    (writing_reader, check_gold),
    (one_method_more, check_tools),
    (wrong_sum, check_told),
    (nobody, check_told),
    (wrong_weekday, check_weekdays),
    (fewer_days, check_weekdays),
    (one_session_less, check_readme),
    (other_refusal, check_refusals),
    (no_refusal, check_refusals),
    (writing_reader, check_refusals),
    (counting, check_orders),
    (one_step, check_orders),
    (literal, check_whole_numbers),
    (other_answer, check_any_calls),
    (writing_reader, check_all_calls),
    (other_answer, check_all_calls),
    (short_refusal, check_all_calls),
    (not_kept, check_all_calls),
    (nobody, check_mistakes),
)


def test_every_role_has_its_test() -> None:
    roles = {path.parent.name for path in FLOWS.glob("*/role.yaml")}
    tests = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert roles == tests - {"checks", "spoken"}


@pytest.mark.parametrize(
    ("damage", "check"), DAMAGES, ids=[f"{d.__name__}-{c.__name__}" for d, c in DAMAGES]
)
def test_damage_is_noticed(damage: Damage, check: Check) -> None:
    assert set(check(damage(small()))) - set(faults_before(check))
