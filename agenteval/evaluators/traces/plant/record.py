"""Run one agent in one world under tracing, and find in its trace where the change showed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agenteval.agents.drive import drive
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.protocol import AgentFailure, AgentLimits, AgentLog, System
from agenteval.agents.toolbox import Toolbox
from agenteval.errors import AgentevalError, ModelError
from agenteval.evaluators.traces.plant.host import Host
from agenteval.evaluators.traces.plant.service import Api
from agenteval.evaluators.traces.plant.system import TracedSystem, WorldTools, offered
from agenteval.evaluators.traces.plant.world import IN_TOOLS, Act, World
from agenteval.models.client import Client
from agenteval.records import Run, Span
from agenteval.records.finding import Finding

SOURCE = "planted"


class PlantError(AgentevalError):
    """A run tells nothing: the change did not show, or something else went wrong."""


class Surprise(PlantError):
    """Something failed that nobody has planted."""


@dataclass(frozen=True, slots=True)
class Located:
    """A planted error. `places` are all spans that count as its place, the gold's own first.

    For an error in a tool call these are the tool's span and the model's span that asked for the
    call; for a mistake of the model its span and those of the calls it asked for; for a failed
    request its span and that of the agent which ended with it.
    """

    finding: Finding
    places: tuple[str, ...]


async def run_in(
    world: World, system: TracedSystem, adapter: str, instructions: str, host: Host, path: Path
) -> AgentLog | AgentFailure:
    """Run the system's agent once, with its trace in `path`; returns what it did.

    Raises InputError when tracing cannot be started.
    """
    from agenteval.agents.traced import traced

    endpoint = Endpoint(
        f"{system.name}-model", f"{host.url}/v1", "sk-loopback-0001",
        timeout=0.5 if world.model.slow else 20.0, max_retries=2,
    )  # fmt: skip
    client = connect(endpoint, sleep=_shortly)
    try:
        agent = _adapted(adapter, endpoint, client, instructions)
        with environment(world.environment), traced(path, service=system.name):
            kit = system.tools(world, Api(world, host.wait))
            box = Toolbox(offered(kit, world), WorldTools(kit, world), AgentLimits(30.0, 22))
            try:
                return await drive(agent.make(), world.request, box)
            except ModelError as error:  # a refused key ends a campaign; here it is the result
                return AgentFailure(status="error:infrastructure", message=str(error))
    finally:
        await client.close()


async def _shortly(seconds: float) -> None:
    """Pauses between retries, a hundredth as long: nobody waits for a loopback service."""
    await asyncio.sleep(min(0.02, seconds / 100))


def _adapted(adapter: str, endpoint: Endpoint, client: Client, instructions: str) -> System:
    if adapter == "react":
        from agenteval.agents.react import react

        return react(endpoint, client)
    if adapter == "autogen":
        from agenteval.agents.autogen import autogen

        return autogen(endpoint, client, instructions=instructions)
    from agenteval.agents.openai_chat import openai_chat

    return openai_chat(endpoint, client, instructions=instructions)


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """The variables of a world in the environment of this process, for the length of the block."""
    before = os.environ.pop("SERVICE_KEY", None)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.pop("SERVICE_KEY", None)
        if before is not None:
            os.environ["SERVICE_KEY"] = before


def locate(world: World, run: Run) -> tuple[Located, ...]:
    """The gold: every act of the world, at its spans.

    The n-th request to the model is the n-th LLM span. A call of a tool is the span that was open
    during the call, else the next tool span of this name that gave out its answer. Raises
    PlantError when trace and world do not tell the same story.
    """
    if world.surprises:
        raise Surprise(f"failures that nobody planted: {world.surprises[:3]}")
    asked = [span.id for span in _by_start(run, "llm")]
    if len(asked) != world.requests:
        raise PlantError(f"{world.requests} requests, but {len(asked)} LLM spans in the trace")
    calls = _calls(world, _by_start(run, "tool"))
    failed = tuple(s.id for s in run.spans if s.kind == "agent" and s.status == "error")
    found = []
    for act in world.acts:
        one = _located(act, world, asked, calls)
        if act.request >= 0 and act.category in (*IN_TOOLS, "Context Handling Failures"):
            one = replace(one, places=(*one.places, *failed))
        found.append(one)
    return tuple(found)


def _by_start(run: Run, kind: str) -> list[Span]:
    return sorted((s for s in run.spans if s.kind == kind), key=lambda s: s.start or 0.0)


def _calls(world: World, spans: Sequence[Span]) -> list[str]:
    known, left, found = {s.id for s in spans}, list(spans), []
    for call in world.calls:
        if call.span:
            if call.span not in known:
                raise PlantError(f"the span {call.span} of a tool call is not in the trace")
            found.append(call.span)
            continue
        same = [s for s in left if s.tool == call.name and call.answer in (s.output, call.answer)]
        if not same:
            raise PlantError(f"no span in the trace for a call of {call.name}")
        left.remove(same[0])
        found.append(same[0].id)
    return found


def _located(act: Act, world: World, asked: Sequence[str], calls: Sequence[str]) -> Located:
    places: tuple[str, ...]
    if act.call >= 0:
        number = world.calls[act.call].asked
        places = (calls[act.call], *asked[number : number + 1])
    else:
        made = [calls[n] for n, call in enumerate(world.calls) if call.asked == act.request]
        places = (asked[act.request], *made)
    finding = Finding(
        span=places[0], category=act.category, evidence=act.evidence,
        description=act.description, impact=act.impact, confidence=1.0, source=SOURCE,
    )  # fmt: skip
    return Located(finding, places)
