"""Simulated tools: who answers, and what is whose fault."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from agenteval.agents.protocol import Tool
from agenteval.agents.toolbox import Toolbox
from agenteval.errors import AgentevalError, InputError
from agenteval.workflows.scenario import RecordedSession, Role, Turn
from agenteval.workflows.session import SimulatorMistake
from agenteval.workflows.simulated_tools import RecordedResults, ToolSession, ToolSimulator
from tests.workflows.desk import BACKEND, PROFILES, ROLE, TOOLS, client, replies

BARE = tuple(Tool(name=name, parameters={"type": "object"}) for name in TOOLS)
OTTO, HANA = PROFILES["otto"], PROFILES["hana"]


def box(session: ToolSession) -> Toolbox:
    """With tools of which the agent is told nothing but the names."""
    return Toolbox(BARE, session.backend)


async def test_the_backend_answers_and_keeps_its_state() -> None:
    session = ToolSimulator(backend=BACKEND).open(ROLE, HANA)
    tools = box(session)
    assert tools.attempt("find_book", {"title": "Dune"}) == ("ok", '{"is_in": true, "shelf": "S4"}')
    before = session.state()
    assert tools.attempt("lend_book", {"title": "Dune", "reader_id": "R-20"})[0] == "ok"
    after = session.state()
    assert before["books"]["Dune"]["holder"] is None  # type: ignore[index,call-overload]
    assert after["books"]["Dune"]["holder"] == "R-20"  # type: ignore[index,call-overload]
    assert session.answered("find_book", {"title": "Dune"}) == "backend"
    assert session.answered("find_book", {"title": "Dune"}) == "refused"  # there was one only


def test_arguments_are_checked_by_the_true_schema() -> None:
    session = ToolSimulator(backend=BACKEND).open(ROLE, HANA)
    status, told = box(session).attempt("lend_book", {"title": "Dune", "reader_id": "20"})
    assert status == "bad_arguments"
    assert "does not match" in told
    assert box(session).attempt("find_book", {})[0] == "bad_arguments"
    assert session.answered("find_book", {}) == "refused"


class Broken:
    """A backend with a defect in each method."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"at": object()}

    def find_book(self, title: str) -> Any:
        return {"is_in": "yes", "shelf": "S4"} if title == "Dune" else {"is_in": math.nan}

    def lend_book(self, title: str, reader_id: str) -> Any:
        return json.loads(title)  # a subclass of ValueError

    def return_book(self) -> Any:
        return {}


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("find_book", {"title": "Dune"}, "find_book returned what its schema forbids: is_in"),
        ("find_book", {"title": "Emma"}, "no JSON value"),
        ("lend_book", {"title": "{", "reader_id": "R-1"}, "lend_book raised JSONDecodeError"),
        ("return_book", {"title": "Dune"}, "return_book raised TypeError"),
    ],
)
def test_a_broken_backend_is_a_defect(name: str, arguments: dict[str, Any], told: str) -> None:
    tools = box(ToolSimulator(backend=Broken).open(ROLE, PROFILES["jan"]))
    with pytest.raises(AgentevalError, match=told):
        tools.call(name, arguments)
    assert tools.defect is not None


class Half:
    def __init__(self) -> None:
        self.state: dict[str, Any] = {}


class Refusing(Half):
    def __init__(self) -> None:
        raise RuntimeError("no database")


def test_a_backend_that_does_not_fit_the_role() -> None:
    with pytest.raises(InputError, match="no method find_book"):
        ToolSimulator(backend=Half).open(ROLE, HANA)
    with pytest.raises(InputError, match="no database"):
        ToolSimulator(backend=Refusing).open(ROLE, HANA)


def test_recorded_results_answer_and_nothing_is_made_up() -> None:
    session = ToolSimulator("recorded", backend=BACKEND).open(ROLE, OTTO)
    tools = box(session)
    assert json.loads(tools.call("find_book", {"title": "dune"})) == {"is_in": True, "shelf": "S4"}
    assert session.answered("find_book", {"title": "dune"}) == "recorded"
    assert session.state() is None
    with pytest.raises(AgentevalError, match="find_book cannot be answered: no recorded session"):
        tools.call("find_book", {"title": "Walden"})
    assert tools.defect is not None


async def test_a_model_answers_what_is_not_recorded() -> None:
    model, asked = client(replies('{"is_in": false, "shelf": "X1"}'))
    session = ToolSimulator(client=model).open(ROLE, HANA)
    tools = box(session)
    assert (
        await tools.call_async("find_book", {"title": "Dune"}) == '{"is_in": true, "shelf": "S4"}'
    )
    assert asked == []
    told = await tools.call_async("find_book", {"title": "Walden"})
    assert told == '{"is_in": false, "shelf": "X1"}'
    assert session.answered("find_book", {"title": "Walden"}) == "model"
    assert session.usage.requests == 1


async def test_a_models_answer_off_the_schema_is_repaired_and_recorded() -> None:
    model, asked = client(replies('{"is_in": "no"}', '{"is_in": false, "shelf": "X1"}'))
    session = ToolSimulator("model", client=model).open(ROLE, HANA)
    session.turn = 3
    assert "X1" in await box(session).call_async("find_book", {"title": "Dune"})
    assert session.mistakes == [
        SimulatorMistake(
            who="tools", kind="off_schema", turn=3, text='{"is_in": "no"}', repaired=True
        )
    ]
    assert len(asked) == 2
    assert session.usage.requests == 2


async def test_equal_requests_have_equal_answers_until_something_changes() -> None:
    model, asked = client(
        lambda r: (
            '{"lent": true, "due": "2031-04-01"}'
            if "lend_book(" in r.messages[-1]["content"].rsplit("now:")[-1]
            else json.dumps({"is_in": True, "shelf": f"S{len(asked)}"})
        )
    )
    tools = box(ToolSimulator("model", client=model).open(ROLE, HANA))
    first = await tools.call_async("find_book", {"title": "Emma"})
    assert await tools.call_async("find_book", {"title": "Emma"}) == first
    assert len(asked) == 1
    await tools.call_async("lend_book", {"title": "Emma", "reader_id": "R-1"})
    assert await tools.call_async("find_book", {"title": "Emma"}) != first
    assert "Emma" in asked[-1].messages[-1]["content"]  # it is told what was asked before
    assert "S1" in asked[-1].messages[-1]["content"]


FOUND = {"is_in": True, "shelf": "S4"}


def call(result: Any, **arguments: Any) -> Turn:
    return Turn(
        kind="call",
        tool="find_book",
        arguments=arguments,
        result=result,
        scenario="lend_book",
        node="LB001",
    )


def role(*sessions: RecordedSession) -> Role:
    lend = ROLE.scenario("lend_book").model_copy(update={"sessions": sessions})
    return ROLE.model_copy(update={"scenarios": (lend, ROLE.scenario("return_book"))})


def session(id: str, profile: str, *turns: Turn) -> RecordedSession:
    return RecordedSession(id=id, profile=profile, turns=(Turn(kind="user", text="Hi"), *turns))


def test_the_profiles_own_session_comes_first() -> None:
    other = {**FOUND, "shelf": "S1"}
    made = role(
        session("a", "otto", call(other, title="Dune"), call(other, title="Emma")),
        session("b", "hana", call(FOUND, title="Dune")),
    )
    recorded = RecordedResults(made, PROFILES["hana"], TOOLS)
    assert recorded.answer("find_book", {"title": "Dune"}) == FOUND
    assert recorded.answer("find_book", {"title": "Emma"}) == other
