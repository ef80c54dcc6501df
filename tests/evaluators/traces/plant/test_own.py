"""A team's own agent in a faulty world: a gateway before its tools, a proxy before its model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agenteval.agents.callable import CallableAgent, Tools
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.openai_chat import openai_chat
from agenteval.agents.protocol import Agent, Tool
from agenteval.errors import InputError
from agenteval.evaluators.traces.plant import Host, PlantError
from agenteval.evaluators.traces.plant.own import OwnSystem, own_changes, plant_own
from agenteval.evaluators.traces.plant.policy import Call, Final, Mind, Thinking
from agenteval.evaluators.traces.plant.world import Dice, World

TOOLS = (
    Tool(name="price", description="The price of a fruit.", parameters={
        "type": "object", "properties": {"fruit": {"type": "string"}}, "required": ["fruit"],
    }),
)  # fmt: skip


def backend() -> Any:
    def answer(name: str, arguments: Mapping[str, Any]) -> str:
        return {"apple": "3", "pear": "4"}[arguments["fruit"]]

    return answer


def function(request: str, tools: Tools) -> str:
    """An agent without any model."""
    return f"{tools['price'](fruit='apple')} and {tools['price'](fruit='pear')}"


PLAIN = OwnSystem("plain", lambda url: CallableAgent(function), TOOLS, backend, ["prices?"])


def policy(mind: Mind) -> Thinking:
    one = yield Call("price", {"fruit": "apple"})
    two = yield Call("price", {"fruit": "pear"})
    yield Final(f"{one} and {two}")


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[str]:
    """A healthy model, elsewhere."""
    with Host() as far:
        world = World(tmp_path, Dice("far"))
        far.show(world, lambda *request: (404, None), policy)
        yield f"{far.url}/v1"


def with_model(upstream: str) -> OwnSystem:
    def make(url: str) -> Agent:
        assert url not in ("", upstream)
        endpoint = Endpoint("m", url, "sk-test-000001", max_retries=0)
        return openai_chat(endpoint, connect(endpoint)).make()

    return OwnSystem("modelled", make, TOOLS, backend, ["Which prices?"], upstream)


@pytest.mark.parametrize(
    "kind", ["Rate Limiting", "Authentication Errors", "Service Errors", "Timeout Issues",
             "Environment Setup Errors", "Resource Exhaustion"],
)  # fmt: skip
def test_tools_of_an_agent_without_a_model_fail(kind: str, tmp_path: Path, host: Host) -> None:
    made = plant_own(PLAIN, kind, 0, tmp_path, host=host)
    (error,) = made.errors
    span = next(s for s in made.run.spans if s.id == error.finding.span)
    assert (span.kind, span.tool, error.finding.category) == ("tool", "price", kind)
    calls = [s for s in made.run.spans if s.kind == "tool"]
    assert span.output not in ("3", "4")
    assert all(s.output in ("3", "4") for s in calls if (s.start or 0) < (span.start or 0))


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("Rate Limiting", 2), ("Authentication Errors", 2), ("Formatting Errors", 0),
     ("Context Handling Failures", 0), ("Context Handling Failures", 2)],
)  # fmt: skip
def test_the_proxy_before_a_real_model(
    kind: str, seed: int, upstream: str, tmp_path: Path, host: Host
) -> None:
    made = plant_own(with_model(upstream), kind, seed, tmp_path, host=host)
    (error,) = made.errors
    span = next(s for s in made.run.spans if s.id == error.finding.span)
    assert (span.kind, error.finding.category) == ("llm", kind)
    if kind in ("Rate Limiting", "Authentication Errors"):
        assert span.status == "error"


def test_what_cannot_be_planted_is_said(tmp_path: Path, host: Host) -> None:
    assert "Formatting Errors" not in {c.category for c in own_changes(PLAIN)}
    with pytest.raises(InputError, match=r"known: .*Rate Limiting"):
        plant_own(PLAIN, "Goal Deviation", 0, tmp_path, host=host)


def test_an_agent_that_calls_nothing_shows_nothing(tmp_path: Path, host: Host) -> None:
    lazy = OwnSystem("lazy", lambda url: CallableAgent(lambda request, tools: "no"), TOOLS, backend,
                     ["prices?"])  # fmt: skip
    with pytest.raises((PlantError, InputError)):
        plant_own(lazy, "Rate Limiting", 0, tmp_path, host=host)
