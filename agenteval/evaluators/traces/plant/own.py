"""Errors planted into a team's own agent: its tools and its model are put into a faulty world.

    own = OwnSystem(
        name="ours",
        make=lambda url: CallableAgent(load("ours.agent:run")),   # or any factory of an Agent
        tools=TOOLS, backend=make_backend, requests=["..."],
        model_url="https://models.example/v1",                    # None: no model is proxied
    )
    planted = plant_own(own, "Rate Limiting", seed=0, out_dir="planted")

A gateway stands before the tools: a real HTTP service on loopback, asked before each call is
carried out, and a file to which the call is logged. Where the gateway is sick, the call fails with
what its client raises. The agent is made with the URL of a proxy before its model (`make(url)`),
which refuses, forgets or damages on real traffic. What the agent makes of it is its own
affair; the gold says only what was planted, so other errors of the agent may stand beside it.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenteval.agents.drive import drive
from agenteval.agents.protocol import Agent, AgentFailure, AgentLimits, Tool
from agenteval.agents.toolbox import Backend, Toolbox
from agenteval.errors import InputError, ModelError
from agenteval.evaluators.traces.plant.changes import Change, changes
from agenteval.evaluators.traces.plant.endpoint import Host
from agenteval.evaluators.traces.plant.make import (
    TOOL_WORDS,
    Planted,
    PlantError,
    environment,
    locate,
)
from agenteval.evaluators.traces.plant.service import CLIENTS, Api
from agenteval.evaluators.traces.plant.system import CLEAN, span_id, tell, tool_span
from agenteval.evaluators.traces.plant.world import KEY, Dice, World
from agenteval.readers.traces import read_traces

_OF_TOOLS = ("service quota", "revoked key", "forbidden", "defect", "down", "service hangs",
             "variable")  # fmt: skip
_OF_MODELS = ("model quota, then free", "model quota", "model key", "model down, then up",
              "model defect", "model gone", "broken arguments", "too long",
              "oldest dropped", "middle dropped")  # fmt: skip
_LOG = "calls.log"


def _full_disk(world: World, dice: Dice) -> None:
    """The file to which calls are logged is a device without room."""
    (world.folder / _LOG).symlink_to("/dev/full")


_FULL_DISK = Change("Resource Exhaustion", "device", _full_disk, "there is no space left to write")


@dataclass(frozen=True)
class OwnSystem:
    """A team's agent: how to make one for the URL of its model, its tools, and some requests.

    `limits` bound one run. `model_url` is the OpenAI-compatible endpoint that the proxy forwards
    to; without it only the tools can fail.
    """

    name: str
    make: Callable[[str], Agent]
    tools: Sequence[Tool]
    backend: Callable[[], Backend]
    requests: Sequence[str]
    model_url: str | None = None
    limits: AgentLimits = field(default_factory=AgentLimits)


class FaultyTools:
    """A backend behind the gateway of a world; a refusal of arguments (ValueError) is passed on."""

    def __init__(self, backend: Backend, world: World, api: Api) -> None:
        self._backend = backend
        self._world = world
        self._api = api

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The tool's answer, or what the agent is told of the failed gateway."""
        span = tool_span()
        self._world.entered(name, span_id(span))
        try:
            said = self._gate(name, span)
            answer = said if said is not None else self._backend(name, arguments)
        finally:
            self._world.left()
        self._world.calls[-1].answer = answer
        return answer

    def _gate(self, name: str, span: Any) -> str | None:
        try:
            said = self._api.get(f"/tools/{name}")
            with (self._world.folder / _LOG).open("a") as log:
                log.write(f"{name}\n")
        except Exception as error:  # noqa: BLE001  whatever it is, the agent is told
            return tell(self._world, span, error)
        return said if isinstance(said, str) else None


def own_changes(own: OwnSystem, category: str | None = None) -> list[Change]:
    """The changes that can be made around an agent; its own behaviour is left alone."""
    names = (*_OF_TOOLS, *(_OF_MODELS if own.model_url else ()))
    around = [*(c for c in changes() if c.name in names), _FULL_DISK]
    return [change for change in around if category in (None, change.category)]


def plant_own(
    own: OwnSystem, category: str, seed: int, out_dir: str | Path, *, host: Host | None = None
) -> Planted:
    """One run of a team's agent with a planted error; the trace is in `out_dir`/traces.

    Which change is made and on which request depends on the seed. Raises InputError for a category
    that cannot be planted around an agent, PlantError when the change did not show (a tool was
    never called, say) or when the trace does not tell where. Not to be called from a running loop.
    """
    options = own_changes(own, category)
    if not options:
        known = sorted({c.category for c in own_changes(own)})
        raise InputError(f"{category!r} cannot be planted here; known: {', '.join(known)}")
    if host is None:
        with Host() as made:
            return plant_own(own, category, seed, out_dir, host=made)
    change, dice = options[seed % len(options)], Dice("own", own.name, category, seed)
    folder = Path(tempfile.mkdtemp(prefix="world-"))
    try:
        world = _world(own, change, dice, folder)
        host.show(world, _open, upstream=own.model_url)
        traces = Path(out_dir) / "traces"
        traces.mkdir(parents=True, exist_ok=True)
        path = traces / f"{folder.name}.jsonl"
        asyncio.run(_run(own, world, host, path))
    finally:
        shutil.rmtree(folder)
    return _planted(own, world, change, path)


def _planted(own: OwnSystem, world: World, change: Change, path: Path) -> Planted:
    runs = read_traces(path, task=own.name).runs
    if len(runs) != 1:
        raise PlantError(f"one run of {own.name} made {len(runs)} traces")
    errors = locate(world, runs[0])
    if not errors:
        raise PlantError(f"{change.name} did not show in this run of {own.name}")
    final = path.rename(path.with_name(f"{runs[0].id}.jsonl"))
    return Planted(runs[0], final, errors, own.name, "own", change.name, CLEAN)


def _world(own: OwnSystem, change: Change, dice: Dice, folder: Path) -> World:
    world = World(folder, dice)
    world.request = world.demand = dice.pick(tuple(own.requests))
    world.environment = {"SERVICE_KEY": KEY}
    world.tools.client, world.tools.words = dice.pick(CLIENTS), dice.pick(TOOL_WORDS)
    world.tools.raises, world.tools.recorded = dice.chance(0.6), dice.chance(0.6)
    world.is_wrong(change.category, change.described, change.impact)
    change.apply(world, dice)
    return world


async def _run(own: OwnSystem, world: World, host: Host, path: Path) -> object:
    from agenteval.agents.traced import traced

    agent = own.make(f"{host.url}/v1" if own.model_url else "")
    with environment(world.environment), traced(path, service=own.name), _one_trace():
        backend = FaultyTools(own.backend(), world, Api(world, host.wait))
        try:
            return await drive(agent, world.request, Toolbox(own.tools, backend, own.limits))
        except ModelError as error:
            return AgentFailure(status="error:infrastructure", message=str(error))


@contextmanager
def _one_trace() -> Iterator[None]:
    """All spans of the block belong to one trace, though the agent may not have a span itself."""
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

    context = SpanContext(
        secrets.randbits(127) + 1,
        secrets.randbits(63) + 1,
        is_remote=True,
        trace_flags=TraceFlags(1),
    )
    with use_span(NonRecordingSpan(context)):
        yield


def _open(world: World, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
    """The gateway itself lets every call pass."""
    return 200, {"pass": True}
