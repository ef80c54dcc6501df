"""Plant one error: run an agent in a faulty world under tracing, read the trace back, and find in
it where the fault showed."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from agenteval.agents.drive import drive
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.openai_chat import OpenAIChatAgent
from agenteval.agents.protocol import Agent, AgentFailure, AgentLimits, AgentLog, Dialogue, Tool
from agenteval.agents.toolbox import Backend, Toolbox
from agenteval.errors import AgentevalError, InputError, ModelError
from agenteval.evaluators.traces.annotation_files import write_folder
from agenteval.evaluators.traces.plant.sample import CLEAN, NAME, SCENES, Shop, faults
from agenteval.evaluators.traces.plant.world import AROUND, Fault, Host, Model, World
from agenteval.files import write_atomically
from agenteval.readers.traces import read_traces
from agenteval.records import Run, Span
from agenteval.records.finding import Finding, Findings

_TRIES = 12  # inputs looked through for one in which the fault shows


class PlantError(AgentevalError):
    """A run tells nothing: the fault did not show, or something else went wrong."""


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


@dataclass(frozen=True, slots=True)
class Located:
    """A planted error. `places` are all spans that count as its place, the gold's own first.

    For an error in a tool call these are the tool's span and the model's span that asked for the
    call; for a mistake of the model its span and those of the calls it asked for; for a failed
    request its span and that of the agent which ended with it.
    """

    finding: Finding
    places: tuple[str, ...]


@dataclass(frozen=True)
class Planted:
    """One run: its trace, in a file and as a Run, and what is wrong in it (nothing: a negative).

    `fault` names what was done, `scene` the kind of a negative.
    """

    run: Run
    path: Path
    errors: tuple[Located, ...]
    system: str
    fault: str
    scene: str = CLEAN

    @property
    def gold(self) -> Findings:
        """The errors as Findings."""
        return Findings(trace=self.run.id, findings=tuple(e.finding for e in self.errors))


@dataclass
class Harvest:
    """What was made: `planted` with errors, `negatives` without, and what could not be made."""

    planted: list[Planted] = field(default_factory=list)
    negatives: list[Planted] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def plant(
    category: str | None, seed: int, out_dir: str | Path, *, scene: str = CLEAN, host: Host
) -> Planted:
    """One run of the sample system with a planted error of the category, or without any (None).

    The trace goes to `out_dir`/traces as OTLP/JSON lines. The same arguments give the same run,
    but for ids, times, ports and temporary folders. `scene` is a world that looks like an error
    and is none; only for category None. Not to be called from a running event loop.

    Raises InputError for a category or scene that is not known, PlantError when no input could be
    found in which the fault shows.
    """
    if category is None:
        if scene not in SCENES:
            raise InputError(f"{NAME} has the scenes {', '.join(SCENES)}", scene)
        return _in_sample(None, scene, Random(f"{scene} {seed}"), Path(out_dir), host)  # noqa: S311
    if scene != CLEAN:
        raise InputError("a scene without errors and a category exclude each other", scene)
    known = faults(category)
    if not known:
        raise InputError(f"no fault of {NAME} makes errors of this kind", category)
    why = "nothing was tried"
    for shift in range(len(known)):
        fault = known[(seed + shift) % len(known)]
        for attempt in range(_TRIES):
            rng = Random(f"{category} {seed} {fault.name} {attempt}")  # noqa: S311
            try:
                return _in_sample(fault, CLEAN, rng, Path(out_dir), host)
            except PlantError as error:
                why = str(error)
    raise PlantError(f"{NAME}: {category} did not show in {_TRIES} inputs ({why})")


def _in_sample(fault: Fault | None, scene: str, rng: Random, out: Path, host: Host) -> Planted:
    refuses = fault is not None and fault.status > 0
    with _world(fault, rng, rng.randint(0, 1) if refuses else 0) as world:
        shop = Shop(world, scene)
        timeout = 0.5 if world.has("model hangs") else 20.0

        def make(url: str) -> Agent:
            endpoint = Endpoint(f"{NAME}-model", url, "sk-loopback-0001", timeout=timeout,
                                max_retries=2)  # fmt: skip
            return _SampleAgent(endpoint, shop.instructions)

        own = OwnSystem(NAME, make, shop.tools(), lambda: shop.backend, (shop.request,), "sample",
                        AgentLimits(30.0, 22))  # fmt: skip
        return _run(own, world, shop.model, scene, out, host)


@dataclass(frozen=True)
class _SampleAgent:
    """The plain tools loop; its connections are closed with the run."""

    endpoint: Endpoint
    instructions: str

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        # Nobody waits for a loopback service: pauses between retries are short.
        client = connect(self.endpoint, sleep=lambda s: asyncio.sleep(min(0.02, s / 100)))
        try:
            return await OpenAIChatAgent(self.endpoint, client, self.instructions).run(
                dialogue, tools
            )
        finally:
            await client.close()


def own_categories(own: OwnSystem) -> list[str]:
    """The categories of errors that can be planted around an agent."""
    return sorted({fault.category for fault in _around(own)})


def _around(own: OwnSystem, category: str | None = None) -> list[Fault]:
    """The faults that can be made around an agent; its own behaviour is left alone."""
    return [
        fault
        for fault in AROUND
        if category in (None, fault.category) and (own.model_url or fault.at == "service")
    ]


def plant_own(
    own: OwnSystem, category: str, seed: int, out_dir: str | Path, *, host: Host
) -> Planted:
    """One run of a team's agent with a planted error; the trace is in `out_dir`/traces.

    Which fault is made and on which request depends on the seed. What the agent makes of it is its
    own affair; other errors of the agent may stand beside it. Raises InputError for a category
    that cannot be planted around an agent, PlantError when the fault did not show (a tool was
    never called, say) or when the trace does not tell where. Not to be called from a running loop.
    """
    options = _around(own, category)
    if not options:
        known = ", ".join(own_categories(own))
        raise InputError(f"{category!r} cannot be planted here; known: {known}")
    rng = Random(f"own {own.name} {category} {seed}")  # noqa: S311
    with _world(options[seed % len(options)], rng) as world:
        return _run(own, world, own.model_url, CLEAN, Path(out_dir), host)


@contextmanager
def _world(fault: Fault | None, rng: Random, spared: int = 0) -> Iterator[World]:
    folder = Path(tempfile.mkdtemp(prefix="world-"))
    try:
        yield World(fault, rng, folder, spared)
    finally:
        shutil.rmtree(folder)


def _run(
    own: OwnSystem, world: World, model: Model | str | None, scene: str, out: Path, host: Host
) -> Planted:
    """Run the agent once; the trace is kept where it tells what was to be told."""
    host.show(world, model)
    traces = out / "traces"
    traces.mkdir(parents=True, exist_ok=True)
    path = traces / f"{world.folder.name}.jsonl"
    try:
        # the agent of the sample has a span; one from elsewhere may have none around its calls
        around = nullcontext() if callable(model) else _one_trace()
        ended = asyncio.run(_drive(own, world, host.url, path, around))
        runs = read_traces(path, task=own.name).runs
        if len(runs) != 1:
            raise PlantError(f"one run of {own.name} made {len(runs)} traces")
        errors = _locate(world, runs[0])
        if world.fault is None and isinstance(ended, AgentFailure):
            raise PlantError(f"a run without errors ended with {ended.message}")
        if world.fault is not None and not errors:
            raise PlantError(f"{world.fault.name} did not show in this run of {own.name}")
    except PlantError:
        path.unlink()
        raise
    final = path.rename(path.with_name(f"{runs[0].id}.jsonl"))
    name = world.fault.name if world.fault else "nothing"
    return Planted(runs[0], final, errors, own.name, name, scene)


async def _drive(
    own: OwnSystem, world: World, url: str, path: Path, around: AbstractContextManager[None]
) -> AgentLog | AgentFailure:
    from agenteval.agents.traced import traced  # needs the packages of OpenTelemetry

    agent = own.make(f"{url}/v1" if own.model_url else "")
    request = world.rng.choice(tuple(own.requests))
    with world.environment(), traced(path, service=own.name), around:
        tools = Toolbox(own.tools, world.behind_gateway(own.backend(), url), own.limits)
        try:
            return await drive(agent, request, tools)
        except ModelError as error:  # a refused key ends a campaign; here it is the result
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


def _locate(world: World, run: Run) -> tuple[Located, ...]:
    """The gold: the place of the fault, at its spans.

    The n-th request to the model is the n-th LLM span. A call of a tool is the span that was open
    during the call, else the next tool span of this name that gave out its answer. Raises
    PlantError when trace and world do not tell the same story.
    """
    if world.defects:
        raise PlantError(f"failures that nobody planted: {world.defects[:3]}")
    asked = [span.id for span in _by_start(run, "llm")]
    if len(asked) != world.requests:
        raise PlantError(f"{world.requests} requests, but {len(asked)} LLM spans in the trace")
    calls = _calls(world, _by_start(run, "tool"))
    place, fault = world.place, world.fault
    if place is None or fault is None:
        return ()
    if place.call is not None:
        number = world.calls[place.call].asked
        places = [calls[place.call], *asked[number : number + 1]]
    else:
        made = [span for span, call in zip(calls, world.calls, strict=True)
                if call.asked == place.request]  # fmt: skip
        places = [asked[place.request], *made]
        if fault.at == "model" and fault.name != "broken arguments":
            places += [s.id for s in run.spans if s.kind == "agent" and s.status == "error"]
    finding = Finding(
        span=places[0], category=fault.category, evidence=place.evidence,
        description=fault.description, impact=fault.impact, confidence=1.0, source="planted",
    )  # fmt: skip
    return (Located(finding, tuple(places)),)


def _by_start(run: Run, kind: str) -> list[Span]:
    return sorted((s for s in run.spans if s.kind == kind), key=lambda s: s.start or 0.0)


def _calls(world: World, spans: Sequence[Span]) -> list[str]:
    """The id of the span of every call that was carried out."""
    known, left, ids = {s.id for s in spans}, list(spans), []
    for call in world.calls:
        number = call.span
        if not number:
            same = [s for s in left if s.tool == call.name and call.answer == s.output]
            if not same:
                raise PlantError(f"no span in the trace for a call of {call.name}")
            left.remove(same[0])
            number = same[0].id
        if number not in known:
            raise PlantError(f"the span {number} of a tool call is not in the trace")
        ids.append(number)
    return ids


def write(harvest: Harvest, out: Path) -> None:
    """Write the gold and the index; the traces are there already."""
    made = (*harvest.planted, *harvest.negatives)
    (out / "gold").mkdir(parents=True, exist_ok=True)
    write_folder(out / "gold", [planted.gold for planted in made])
    lines = [json.dumps(_line(planted), ensure_ascii=False) + "\n" for planted in made]
    write_atomically(out / "index.jsonl", "".join(lines))


def _line(made: Planted) -> Mapping[str, Any]:
    return {
        "trace_id": made.run.id,
        "system": made.system,
        "fault": made.fault,
        "scene": made.scene,
        "errors": [
            {"category": error.finding.category, "places": list(error.places)}
            for error in made.errors
        ],
    }
