"""The assistant that walks the charts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.agents import Dialogue
from agenteval.agents.protocol import AgentLimits
from agenteval.agents.toolbox import Toolbox
from agenteval.errors import AgentevalError
from agenteval.evaluators.workflows.behaviours import scripted_assistants
from agenteval.evaluators.workflows.run_session import SessionSettings, run_session
from agenteval.evaluators.workflows.scenario import Profile, Role, Scenario, WorkflowTool
from agenteval.evaluators.workflows.session import SessionLog
from agenteval.evaluators.workflows.simulated_tools import ToolSimulator
from agenteval.evaluators.workflows.simulated_user import ScriptedUser
from agenteval.evaluators.workflows.walker import Book, Plan, Walker
from agenteval.records import Message
from tests.evaluators.workflows.desk import BACKEND, PROFILES, ROLE


async def walked(
    role: Role, profile: Profile, backend: Any, settings: SessionSettings | None = None
) -> SessionLog:
    found = await run_session(
        role,
        profile,
        scripted_assistants(role, profile)["perfect"],
        ScriptedUser(),
        ToolSimulator(backend=backend),
        settings or SessionSettings(),
    )
    assert isinstance(found, SessionLog), found
    return found


@pytest.mark.parametrize("name", ["hana", "otto", "ida", "jan"])
@pytest.mark.parametrize("seed", [0, 1])
async def test_the_calls_of_the_perfect_assistant_are_the_gold_ones(name: str, seed: int) -> None:
    profile = PROFILES[name]
    found = await walked(ROLE, profile, BACKEND, SessionSettings(seed=seed))
    assert [(c.tool, c.arguments) for c in found.calls] == [
        (a.tool, a.arguments) for a in profile.actions
    ]
    assert {c.status for c in found.calls} == {"ok"}
    assert found.ended == "user"


async def test_it_is_a_function_of_the_dialogue() -> None:
    found = await walked(ROLE, PROFILES["otto"], BACKEND)
    book = Book.of(ROLE, ("lend_book",))
    for number, message in enumerate(found.messages):
        if message.role != "assistant" or message.tool_calls:
            continue
        before = found.messages[:number]

        def unused(name: str, arguments: Any) -> str:
            raise AssertionError("every call stands in the dialogue")

        tools = Toolbox((), unused, AgentLimits())
        said = await Walker(book, Plan()).run(Dialogue(instructions="", messages=before), tools)
        assert said == message.content


async def test_a_dialogue_that_it_did_not_lead() -> None:
    tool = Message(role="tool", content="{}", tool_call_id="x")
    dialogue = Dialogue(instructions="", messages=(Message(role="user", content="Hi"), tool))
    with pytest.raises(AgentevalError, match="not one that this scripted assistant led"):
        await Walker(Book.of(ROLE, ("lend_book",)), Plan()).run(
            dialogue, Toolbox((), lambda *_: "{}")
        )


CHART = """flowchart TD
PP000(Start)--Order a plant-->PP001>Get the kind, call open_order,
then call price_of]
PP001--Cheap (price < 10)-->PP002[Say the `price` is low; ask
- now or
- later]
PP001--Dear (price >= 10)-->PP003[Tell the price and ask whether it is too much]
PP003--It is fine-->PP002
PP003--Another kind-->PP001
PP002-->PP004>Call send_order]
PP004-->PP005[Say goodbye]
"""


def tool(name: str, parameters: dict[str, Any], returns: dict[str, Any]) -> WorkflowTool:
    return WorkflowTool(
        name=name,
        description="",
        parameters={"type": "object", "properties": parameters, "required": list(parameters)},
        returns={"type": "object", "properties": returns, "required": list(returns)},
        effect="write",
    )


TEXT, NUMBER = {"type": "string"}, {"type": "number"}
PLANTS = Role(
    id="plants",
    domain="Logistics Solutions",
    title="Plants",
    background="",
    now="2031-01-01 10:00",
    scenarios=(
        Scenario(
            id="order",
            title="Order",
            background="",
            text="",
            code="",
            flowchart=CHART,
            tools=(
                tool("open_order", {"kind": TEXT, "count": {"type": "integer"}}, {"order": TEXT}),
                tool("price_of", {"order": TEXT}, {"price": NUMBER}),
                tool("send_order", {"order": TEXT}, {}),
            ),
        ),
    ),
)


class Nursery:
    def __init__(self) -> None:
        self.state: dict[str, Any] = {"sent": []}

    def open_order(self, kind: str, count: int) -> dict[str, Any]:
        if kind == "weed":
            raise ValueError("no weeds here")
        return {"order": f"{kind}-{count}"}

    def price_of(self, order: str) -> dict[str, Any]:
        return {"price": 50 if order.startswith("palm") else 5}

    def send_order(self, order: str) -> dict[str, Any]:
        self.state["sent"].append(order)
        return {}


def buyer(**more: Any) -> Profile:
    whole = {
        "id": "nia",
        "scenarios": ("order",),
        "persona": "",
        "opening": "Plants!",
        "goals": [{"text": "Plants"}],
        "choices": ("Order a plant",),
        **more,
    }
    return Profile.model_validate(whole)


def made(log: SessionLog) -> list[tuple[str, Any]]:
    return [(c.tool, c.arguments) for c in log.calls]


async def test_returned_values_are_arguments_and_typed_facts_are_read() -> None:
    found = await walked(PLANTS, buyer(facts={"kind": "fern", "count": 2}), Nursery)
    assert made(found) == [
        ("open_order", {"kind": "fern", "count": 2}),
        ("price_of", {"order": "fern-2"}),
        ("send_order", {"order": "fern-2"}),
    ]
    assert found.state == {"sent": ["fern-2"]}
    assert found.turns == 3  # what is wanted, the facts, goodbye


async def test_at_a_node_again_it_asks_again_and_takes_the_latest_value() -> None:
    profile = buyer(
        facts={"kind": ["palm", "fern"], "count": 1},
        choices=("Order a plant", "Another kind"),
    )
    found = await walked(PLANTS, profile, Nursery)
    assert [a["order"] for t, a in made(found) if t == "price_of"] == ["palm-1", "fern-1"]
    assert found.state == {"sent": ["fern-1"]}


async def test_a_refused_call_is_tried_once_more_with_what_the_user_says_then() -> None:
    profile = buyer(facts={"kind": ["weed", "fern"], "count": 1})
    found = await walked(PLANTS, profile, Nursery)
    assert [c.status for c in found.calls] == ["bad_arguments", "ok", "ok", "ok"]
    stubborn = await walked(PLANTS, buyer(facts={"kind": "weed", "count": 1}), Nursery)
    assert [c.status for c in stubborn.calls] == ["bad_arguments", "bad_arguments"]
    assert stubborn.ended == "user"
    assert stubborn.messages[-1].content.endswith("Goodbye.")


async def test_without_a_fact_it_cannot_go_on() -> None:
    found = await walked(PLANTS, buyer(facts={"kind": "fern"}), Nursery)
    assert found.calls == ()
    assert "Without that I cannot go on" in found.messages[-1].content


async def test_who_wants_none_of_the_options_is_let_go() -> None:
    profile = buyer(facts={"kind": "palm", "count": 1})
    found = await walked(PLANTS, profile, Nursery)
    assert [c.tool for c in found.calls] == ["open_order", "price_of"]
    assert found.ended == "user"


async def test_texts_of_nodes_ask_for_nothing() -> None:
    found = await walked(PLANTS, buyer(facts={"kind": "fern", "count": 2}), Nursery)
    last = found.messages[-1].content.split("\n")
    assert last[0] == "Say the price is low; ask - now or - later"


async def test_a_chart_that_goes_in_circles_by_itself_is_left() -> None:
    chart = "flowchart TD\nCC000(Start)--Go-->CC001[One]\nCC001-->CC002[Two]\nCC002-->CC001\n"
    scenario = PLANTS.scenarios[0].model_copy(update={"flowchart": chart})
    role = PLANTS.model_copy(update={"scenarios": (scenario,)})
    found = await walked(role, buyer(choices=("Go",)), Nursery)
    assert found.ended == "user"
    assert json.dumps(found.messages[-1].content).count("One") == 100
