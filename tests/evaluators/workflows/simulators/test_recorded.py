"""Results from recorded sessions."""

from __future__ import annotations

from typing import Any

from agenteval.evaluators.workflows.scenario import RecordedSession, Role, Turn
from agenteval.evaluators.workflows.simulators.recorded import Recorded
from tests.evaluators.workflows.simulators.desk import PROFILES, ROLE

FOUND = {"is_in": True, "shelf": "S4"}


def call(result: Any, **arguments: Any) -> Turn:
    return Turn(kind="call", tool="find_book", arguments=arguments, result=result,
                scenario="lend_book", node="LB001")  # fmt: skip


def role(*sessions: RecordedSession) -> Role:
    lend = ROLE.scenario("lend_book").model_copy(update={"sessions": sessions})
    return ROLE.model_copy(update={"scenarios": (lend, ROLE.scenario("return_book"))})


def session(id: str, profile: str, *turns: Turn) -> RecordedSession:
    return RecordedSession(id=id, profile=profile, turns=(Turn(kind="user", text="Hi"), *turns))


def test_the_exact_value_for_the_same_call() -> None:
    recorded = Recorded(ROLE, PROFILES["hana"], lambda *_: True)
    assert recorded.answer("find_book", {"title": " dune "}) == FOUND
    assert recorded.answer("find_book", {"title": "Dune", "note": ""}) == FOUND
    assert recorded.answer("find_book", {"title": "Emma"}) is None
    assert recorded.answer("return_book", {"title": "Dune"}) is None


def test_the_answer_is_a_copy() -> None:
    recorded = Recorded(ROLE, PROFILES["hana"], lambda *_: True)
    answer = recorded.answer("find_book", {"title": "Dune"})
    assert isinstance(answer, dict)
    answer["shelf"] = "changed"
    assert recorded.answer("find_book", {"title": "Dune"}) == FOUND


def test_repeated_calls_have_the_results_in_their_order() -> None:
    made = role(session("s", "hana", call(1, title="Dune"), call(2, title="Dune")))
    recorded = Recorded(made, PROFILES["hana"], lambda *_: True)
    assert [recorded.answer("find_book", {"title": "Dune"}) for _ in range(3)] == [1, 2, 2]


def test_the_profiles_own_session_comes_first() -> None:
    made = role(
        session("a", "otto", call("otto's", title="Dune"), call("only his", title="Emma")),
        session("b", "hana", call("hana's", title="Dune")),
    )
    recorded = Recorded(made, PROFILES["hana"], lambda *_: True)
    assert recorded.answer("find_book", {"title": "Dune"}) == "hana's"
    assert recorded.answer("find_book", {"title": "Emma"}) == "only his"


def test_results_that_the_tool_may_not_return_are_left_out() -> None:
    made = role(session("s", "hana", call("no", title="Dune"), call(FOUND, title="Dune")))
    recorded = Recorded(made, PROFILES["hana"], lambda _, value: isinstance(value, dict))
    assert recorded.answer("find_book", {"title": "Dune"}) == FOUND
