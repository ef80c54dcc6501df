"""Plant one error: set up a world, change it, run the agent under tracing, read the trace back, and
find in it where the change showed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agenteval.agents.drive import drive
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.protocol import AgentFailure, AgentLimits, AgentLog, System
from agenteval.agents.toolbox import Toolbox
from agenteval.errors import AgentevalError, InputError, ModelError
from agenteval.evaluators.traces.annotation_files import write_folder
from agenteval.evaluators.traces.plant.changes import ADAPTERS, Change, changes
from agenteval.evaluators.traces.plant.endpoint import Host
from agenteval.evaluators.traces.plant.orders import ORDERS
from agenteval.evaluators.traces.plant.service import CLIENTS, Api
from agenteval.evaluators.traces.plant.system import (
    CLEAN,
    SIMPLE,
    Case,
    TracedSystem,
    WorldTools,
    demand,
    offered,
)
from agenteval.evaluators.traces.plant.world import IN_TOOLS, KEY, Act, Dice, World
from agenteval.files import write_atomically
from agenteval.models.client import Client
from agenteval.readers.traces import read_traces
from agenteval.records import Run, Span
from agenteval.records.finding import Finding, Findings

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


TOOL_WORDS = (
    "Error: {error}",
    "{kind}: {error}",
    "Tool execution failed with {kind}: {error}",
    "The tool raised an exception.\n{trace}",
    "json",
)
_TRIES = 12  # inputs looked through for one in which the change shows


@dataclass(frozen=True)
class Planted:
    """One run: its trace, in a file and as a Run, and what is wrong in it (nothing: a negative).

    `change` names the change, `scene` the world; `adapter` is how the agent was run.
    """

    run: Run
    path: Path
    errors: tuple[Located, ...]
    system: str
    adapter: str
    change: str
    scene: str

    @property
    def gold(self) -> Findings:
        """The errors as Findings."""
        return Findings(trace=self.run.id, findings=tuple(e.finding for e in self.errors))


def plant(
    category: str | None,
    seed: int,
    out_dir: str | Path,
    *,
    scene: str = CLEAN,
    host: Host | None = None,
    system: TracedSystem = ORDERS,
) -> Planted:
    """One run of the sample system with a planted error of the category, or without any (None).

    The trace goes to `out_dir`/traces as OTLP/JSON lines. The same arguments give the same run,
    but for ids, times, ports and temporary folders. `scene` is a world that looks like an error
    and is none; only for category None. `host` may be shared by many calls. Not to be called from
    a running event loop.

    Raises InputError for a category or scene that the system does not know, PlantError when no
    input could be found in which the change shows.
    """
    options = _options(system, category, scene, seed)
    if host is None:
        with Host() as own:
            return plant(category, seed, out_dir, scene=scene, host=own, system=system)
    told = "nothing was tried"
    for change in options:
        name = change.name if change else ""
        for attempt in range(_TRIES if change else 1):
            dice = Dice(system.name, category, scene, seed, attempt, name)
            where = SIMPLE if attempt % 2 else scene
            try:
                return _try(system, change, where, dice, Path(out_dir), host)
            except _NotShown as missing:
                told = str(missing)
    raise PlantError(f"{system.name}: {category} did not show in {_TRIES} inputs ({told})")


class _NotShown(PlantError):
    """This input gave the change no occasion."""


def _options(
    system: TracedSystem, category: str | None, scene: str, seed: int
) -> list[Change | None]:
    if category is None:
        if scene not in system.scenes:
            raise InputError(f"{system.name} has the scenes {', '.join(system.scenes)}", scene)
        return [None]
    if scene != CLEAN:
        raise InputError("a scene without errors and a category exclude each other", scene)
    found = changes(category)
    if not found:
        raise InputError(f"no change of {system.name} makes errors of this kind", category)
    first = seed % len(found)
    return [*found[first:], *found[:first]]


def _try(
    system: TracedSystem, change: Change | None, scene: str, dice: Dice, out: Path, host: Host
) -> Planted:
    adapter = dice.pick(change.adapters if change else ADAPTERS)
    folder = Path(tempfile.mkdtemp(prefix="world-"))
    try:
        case = system.case(dice, scene)
        world, instructions = _world(system, case, change, dice, folder)
        host.show(world, system.service, system.policy)
        (out / "traces").mkdir(parents=True, exist_ok=True)
        path = out / "traces" / f"{folder.name}.jsonl"
        ended = asyncio.run(run_in(world, system, adapter, instructions, host, path))
    finally:
        shutil.rmtree(folder)
    found = read_traces(path, task=system.name).runs
    if len(found) != 1:
        path.unlink()
        raise PlantError(f"{len(found)} traces of one run of {system.name}")
    errors = _errors(world, found[0], change, ended, path)
    final = path.with_name(f"{found[0].id}.jsonl")
    path.rename(final)
    name = change.name if change else "nothing"
    return Planted(found[0], final, errors, system.name, adapter, name, scene)


def _errors(
    world: World, run: Run, change: Change | None, ended: object, path: Path
) -> tuple[Located, ...]:
    try:
        errors = locate(world, run)
        if change is None and (errors or isinstance(ended, AgentFailure)):
            raise PlantError(f"a run without errors has some: {errors}, {ended}")
        if change is not None and not errors:
            raise _NotShown(f"{change.name} had no occasion")
    except Surprise as more:
        path.unlink()
        if change is None:
            raise
        raise _NotShown(f"{change.name} had other failures in its train ({more})") from more
    except PlantError:
        path.unlink()
        raise
    return errors


def _world(
    system: TracedSystem, case: Case, change: Change | None, dice: Dice, folder: Path
) -> tuple[World, str]:
    world = World(folder, dice)
    world.data = dict(case.data)
    world.excused = case.excused
    world.environment = {"SERVICE_KEY": KEY}
    rules = world.tools
    rules.client, rules.words = dice.pick(CLIENTS), dice.pick(TOOL_WORDS)
    rules.raises, rules.recorded = dice.chance(0.6), dice.chance(0.6)
    if case.excused:
        rules.raises = True  # what is caught has to be raised
    instructions = _demands(world, system, case, change, dice)
    if case.prepare:
        case.prepare(world)
    if change:
        if "the model errs" not in change.name:
            world.is_wrong(change.category, change.described, change.impact)
        change.apply(world, dice)
    return world, instructions


def _demands(
    world: World, system: TracedSystem, case: Case, change: Change | None, dice: Dice
) -> str:
    """Put the demand on the form where it belongs; returns the instructions."""
    form = change.form if change else None
    kinds = {
        None: ("none", "mark", "json", "short"), "none": ("none",), "json": ("json",),
        "plain": ("none", "mark"), "end": ("mark", "short"), "told": ("mark", "short"),
    }[form]  # fmt: skip
    asked = demand(dice.pick(kinds), dice, case.keys)
    world.request, instructions = case.request, system.instructions
    if form == "told":
        instructions = f"{instructions} {asked}"
    elif asked:
        world.request = f"{case.request} {asked}"
    world.data["demand_at"] = len(case.request)
    world.demand = f"{world.request}\n{instructions}"
    return instructions


@dataclass
class Harvest:
    """What was made: `planted` with errors, `negatives` without, and what could not be made."""

    planted: list[Planted] = field(default_factory=list)
    negatives: list[Planted] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def write(harvest: Harvest, out: Path) -> None:
    """Write the gold and the index; the traces are there already."""
    made = (*harvest.planted, *harvest.negatives)
    (out / "gold").mkdir(parents=True, exist_ok=True)
    write_folder(out / "gold", [one.gold for one in made])
    lines = [json.dumps(_line(one), ensure_ascii=False) + "\n" for one in made]
    write_atomically(out / "index.jsonl", "".join(lines))


def _line(made: Planted) -> dict[str, Any]:
    return {
        "trace_id": made.run.id,
        "system": made.system,
        "adapter": made.adapter,
        "change": made.change,
        "scene": made.scene,
        "errors": [
            {"category": error.finding.category, "places": list(error.places)}
            for error in made.errors
        ],
    }
