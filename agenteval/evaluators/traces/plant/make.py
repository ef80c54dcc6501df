"""Plant one error: set up a world, change it, run the agent, read the trace back."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenteval.agents.protocol import AgentFailure
from agenteval.errors import InputError
from agenteval.evaluators.traces.annotation_files import write_folder
from agenteval.evaluators.traces.plant.changes import ADAPTERS, Change, changes
from agenteval.evaluators.traces.plant.host import Host
from agenteval.evaluators.traces.plant.orders import ORDERS
from agenteval.evaluators.traces.plant.record import Located, PlantError, Surprise, locate, run_in
from agenteval.evaluators.traces.plant.service import CLIENTS
from agenteval.evaluators.traces.plant.system import CLEAN, SIMPLE, Case, TracedSystem, demand
from agenteval.evaluators.traces.plant.world import KEY, Dice, World
from agenteval.files import write_atomically
from agenteval.readers.tracing import read_traces
from agenteval.records import Run
from agenteval.records.finding import Findings

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
