"""Damage done to a sound role is noticed by the check that should notice it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from agenteval.evaluators.workflows.scenario import RecordedSession, Scenario, Turn
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
from tests.tasks.flows.formats import check_charts, check_conformance, check_formats
from tests.tasks.flows.spoken import Spoken
from tests.tasks.flows.test_hotel_reception import FLOW
from tests.tasks.flows.walked import check_walker
from tests.tasks.flows.walks import check_coverage, check_walks

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
    return with_role(FLOW, scenarios=one, cross_profiles=(), cross_sessions=())


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
    other = ("credited == True", "credited == False")
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
)


@pytest.mark.parametrize(
    ("damage", "check"), DAMAGES, ids=[f"{d.__name__}-{c.__name__}" for d, c in DAMAGES]
)
def test_damage_is_noticed(damage: Damage, check: Check) -> None:
    assert set(check(damage(small()))) - set(faults_before(check))


@pytest.mark.parametrize(
    ("value", "said", "told"),
    [
        ("2031-06-06", ["on Friday, the 6th of June"], True),
        ("2031-06-06", ["june 6"], True),
        ("2031-06-06", ["the 6.6. please"], True),
        ("2031-06-06", ["in June"], False),
        ("2031-06-06", ["6 July"], False),
        ("2031-06-14", ["from 6 June", "no, the 14th"], True),
        ("2031-06-14", ["no, the 14th"], False),
        ("2032-02-03", ["3 February"], True),  # the next one
        ("2031-05-15", ["tomorrow"], True),
        ("2031-05-16", ["this friday"], True),
        ("2031-05-20", ["may I have 20 of them"], False),  # no month
        ("2031-05-20", ["May 20"], True),
        (2, ["two nights"], True),
        (2, ["room 204"], False),
        (1.5, ["1.5 km"], True),
        ("18:30", ["6:30 pm"], True),
        ("18:30", ["6:30"], False),
        ("12:00", ["at noon"], True),
        ("KW-MH 418", ["kw mh418"], True),
        ("RS-314", ["RS-341"], False),
        ("wrong_dish", ["it was the wrong dish"], True),
        (True, ["true"], False),  # only by an alias
        (False, ["rather not"], True),
        (["Emma", "Dune"], ["Emma", "and dune"], True),
        (["Emma", "Dune"], ["Emma"], False),
        ({"title": "Emma"}, ["Emma"], True),
    ],
)
def test_spoken(value: Any, said: list[str], told: bool) -> None:
    spoken = Spoken("2031-05-14 09:30", {"False": ("rather not",)})
    assert spoken.told(value, said) is told
