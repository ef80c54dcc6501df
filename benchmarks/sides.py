"""The sides that `quantify.py` compares; each runs in a process of its own and prints JSON."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.folders import ROOT

if TYPE_CHECKING:
    from agenteval.engine.judging import RunJudge
    from agenteval.models.factory import ModelChoice
    from agenteval.models.limits import Limits
    from agenteval.models.wire import Request
    from agenteval.records import Criterion
    from agenteval.utility.evaluator import Item

CRITERIA = 6
MODEL = "test-model"
EXPLANATION = (
    "The work sets up the right quantities, carries each step through and says where the numbers "
    "come from, although one of the steps could have been shown in more detail."
)


@dataclass(frozen=True)
class Job:
    """One side's work, as its process gets it."""

    side: str
    url: str
    runs: int
    concurrency: int
    folder: Path
    profile: bool = False


@dataclass(frozen=True)
class Measured:
    """What one process measured. CPU of the whole process, and of the event loop's thread."""

    seconds: float
    cpu: float
    loop_cpu: float
    peak_mb: float
    cells: int | None = None  # stored, where there is a store


# -- material --------------------------------------------------------------------------------------


def criteria() -> tuple[Criterion, ...]:
    """The first CRITERIA of the reviewed set for mathematics."""
    from agenteval.utility.criteria_file import load_criteria

    loaded = load_criteria(ROOT / "criteria" / "math.reviewed.json")
    return loaded.criteria.criteria[:CRITERIA]


def items(count: int, first: int = 0) -> list[Item]:
    """Numbered copies of the 60 runs of tasks/math, about 800 characters each."""
    from agenteval.readers import make_view, read_runs

    real = read_runs(ROOT / "tasks" / "math" / "runs.jsonl").runs
    copies = [
        real[i % len(real)].model_copy(
            update={"id": f"copy-{i}", "input": f"{real[i % len(real)].input}\n\nCopy {i}."}
        )
        for i in range(first, first + count)
    ]
    return [(run, make_view(run)) for run in copies]


def fixed_reply() -> str:
    """A reply in form: every criterion with an explanation and its second-best value."""
    return json.dumps(
        {c.id: {"explanation": EXPLANATION, "label": c.accepted_values[-2]} for c in criteria()}
    )


def requests(job: Job, count: int, first: int = 0) -> list[Request]:
    """The requests that the quantifier would send, nonces filled in."""
    from agenteval.engine.judging import JudgeUnit
    from agenteval.models.factory import make_client
    from agenteval.readers.tasks import find_task
    from agenteval.utility.quantifier import Quantifier

    client = make_client(openai_choice(job), limits(job), None)
    quantifier = Quantifier(client, find_task(str(ROOT / "tasks" / "math")).task)
    asked = criteria()
    plain = [
        quantifier.request(JudgeUnit(run, view, asked))[0] for run, view in items(count, first)
    ]
    return [r.with_nonce(r.key(job.url, MODEL), b"benchmark") for r in plain]


def openai_body(request: Request) -> dict[str, Any]:
    """Arguments of `chat.completions.create`; the server checks that they equal quantify's."""
    schema = {"name": "answer", "schema": request.schema, "strict": True}
    return {
        "model": MODEL,
        "messages": list(request.messages),
        **request.parameters,
        "response_format": {"type": "json_schema", "json_schema": schema},
    }


# -- the sides -------------------------------------------------------------------------------------


class Clock:
    """Wall and CPU seconds from its making on."""

    def __init__(self) -> None:
        self._start = time.perf_counter(), time.process_time(), time.thread_time()

    def measured(self) -> Measured:
        """Seconds so far and the peak memory of the process."""
        now = time.perf_counter(), time.process_time(), time.thread_time()
        wall, cpu, loop = (b - a for a, b in zip(self._start, now, strict=True))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return Measured(wall, cpu, loop, peak / (2**20 if sys.platform == "darwin" else 2**10))


async def in_flight(
    ask: Callable[[Any], Awaitable[object]], values: Iterable[Any], workers: int
) -> None:
    """Ask for every value, `workers` at a time."""
    left = iter(values)

    async def work() -> None:
        for value in left:
            await ask(value)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())


async def side_bare(job: Job) -> Measured:
    """The openai client alone, as it comes."""
    import openai

    timeout = 120.0  # a busy machine is not the client's fault
    async with openai.AsyncOpenAI(
        base_url=job.url, api_key="none", max_retries=0, timeout=timeout
    ) as client:

        async def ask(body: dict[str, Any]) -> None:
            await client.chat.completions.create(**body)

        return await measured_asking(job, ask)


async def side_aiohttp(job: Job) -> Measured:
    """aiohttp alone: the body is encoded, the reply decoded, and that is all."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask(body: dict[str, Any]) -> None:
            async with session.post(f"{job.url}/chat/completions", json=body) as response:
                json.loads(await response.read())

        return await measured_asking(job, ask)


async def measured_asking(job: Job, ask: Callable[[dict[str, Any]], Awaitable[None]]) -> Measured:
    """Send the bodies that quantify sends; those before the clock starts open the connections."""
    bodies = [openai_body(r) for r in requests(job, job.runs + job.concurrency)]
    await in_flight(ask, bodies[job.runs :], job.concurrency)
    clock = Clock()
    await in_flight(ask, bodies[: job.runs], job.concurrency)
    return clock.measured()


async def side_pipeline(job: Job) -> Measured:
    """The pipeline of the command line over a store on disk; counts the cells in it at the end."""
    from agenteval.engine import Experiment
    from agenteval.models.factory import make_client
    from agenteval.readers.tasks import find_task
    from agenteval.store import Store
    from agenteval.utility.evaluator import JudgeEvaluator
    from agenteval.utility.quantifier import QuantifierOptions, chat_judge

    task, asked = find_task(str(ROOT / "tasks" / "math")).task, criteria()
    path = job.folder / "store.db"
    counted, warm = items(job.runs), items(job.concurrency, first=job.runs)
    with Store(path) as store:
        client = make_client(openai_choice(job), limits(job), store)
        evaluator = chat_judge(client, task, QuantifierOptions())

        async def run(some: Sequence[Item]) -> None:
            rated = JudgeEvaluator.of(evaluator, some, asked)
            # As many workers as the command line takes.
            ended = await Experiment(rated, store, concurrency=2 * job.concurrency).run()
            if ended.stopped:
                raise RuntimeError(ended.stopped)

        await run(warm)
        with profiled(job):
            clock = Clock()
            await run(counted)
            measured = clock.measured()
        await client.close()
    return replace(measured, cells=scored(path, evaluator, counted))


def scored(path: Path, evaluator: RunJudge, some: Sequence[Item]) -> int:
    """Cells of the runs that hold a score, in the store opened anew."""
    from agenteval.store import Store

    runs = {view.sha256 for _, view in some}
    with Store(path, create=False) as store:
        states = dict(store.states(evaluator.source.sha256))
    return sum(key[0] in runs and not state.failed for key, state in states.items())


def limits(job: Job) -> Limits:
    """No cap but on requests in flight."""
    from agenteval.models.limits import Limits

    return Limits(concurrency=job.concurrency)


def openai_choice(job: Job) -> ModelChoice:
    """The server as an OpenAI-compatible endpoint."""
    from agenteval.models.factory import ModelChoice

    return ModelChoice("chat", MODEL, "openai", job.url, "none")


SIDES: dict[str, Callable[[Job], Awaitable[Measured]]] = {
    "bare": side_bare,
    "quantify": side_pipeline,
    "aiohttp": side_aiohttp,
}


@contextlib.contextmanager
def profiled(job: Job) -> Iterator[None]:
    """Print the 25 functions with the most time of their own, if the job wants it.

    The event loop's thread alone is seen; the store's writer has its own.
    """
    if not job.profile:
        yield
        return
    import cProfile
    import pstats

    with cProfile.Profile() as profiler:
        yield
    pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(25)


def main() -> None:
    """Measure one side and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("url")
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--profile", action="store_true")
    job = Job(**vars(parser.parse_args()))

    async def measure() -> Measured:
        return await SIDES[job.side](job)

    print(json.dumps(asdict(asyncio.run(measure()))))


if __name__ == "__main__":
    main()
