"""The parts of `soak.py`: the script of faults, one run of the pipeline, and what is watched."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.testing import HEALING, ServerProcess
from benchmarks.folders import ROOT
from benchmarks.sides import criteria, items, openai_choice

if TYPE_CHECKING:
    from agenteval.engine import ExperimentResult, Pending
    from agenteval.engine.judging import RunJudge
    from agenteval.store import Store
    from agenteval.utility.evaluator import Item
    from benchmarks.sides import Job

WARM = 10.0  # seconds in which the ceiling may be searched for
NEVER = "error:infrastructure", "error:timeout"  # what a resume asks again


@dataclass(frozen=True)
class Size:
    """How much is run. Repeats give calls without more runs in memory."""

    runs: int
    repeats: int
    criteria: int
    concurrency: int
    ceiling: int
    latency: str
    timeout: float
    drips: bool
    again: int  # runs of the second run, on a store of its own: the last so many

    @property
    def calls(self) -> int:
        """Requests if none had to be repeated."""
        return self.runs * self.repeats

    @property
    def cells(self) -> int:
        """Results."""
        return self.calls * self.criteria


def script(size: Size) -> dict[str, Any]:
    """About 10 % faults, drawn by request and attempt; some runs fail for ever, by their number.

    A run ending in 13 is refused, in 29 answered with prose, in 41 filtered; 7 (and 777, 1777 …)
    meets status 500 each time; where there is time for it, the first attempt at 3 meets a reply
    that takes longer than the timeout.
    """
    plain: dict[str, Any] = {
        "status": 500,
        "body": None,
        "headers": {},
        "code": None,
        "seconds": 1.0,
        "usage": None,
    }
    healing = [{k: v for k, v in asdict(f).items() if v != plain.get(k)} for f in HEALING]
    drip: dict[str, Any] = {"kind": "slow_drip", "seconds": 2 * size.timeout}
    for_ever: list[dict[str, Any]] = [
        {"fault": {"kind": "refusal"}, "match": r"Copy \d*13\."},
        {"fault": {"kind": "content", "body": "It is hard to say."}, "match": r"Copy \d*29\."},
        {"fault": {"kind": "content_filter"}, "match": r"Copy \d*41\."},
        {"fault": {"kind": "status", "status": 500}, "match": r"Copy (7|\d*777)\."},
    ]
    if size.drips:
        for_ever.append({"fault": drip, "match": r"Copy 3\.", "first": 1})
    by_chance = [
        (healing, 0.045),
        ({"kind": "slow_drip", "seconds": 0.5}, 0.01),
        ({"kind": "length"}, 0.01),
        ({"kind": "content", "body": "```json\n{'label': "}, 0.005),
        ({"kind": "usage"}, 0.005),
        ({"kind": "content_type"}, 0.005),
        ({"kind": "refusal"}, 0.002),
    ]
    drawn = [{"fault": fault, "probability": p} for fault, p in by_chance]
    settings = {"latency": size.latency, "ceiling": size.ceiling, "seed": 8}
    return {"rules": for_ever + drawn, **settings}


@dataclass
class Watch:
    """Looks at the server twice a second, and at the memory of this process as work is done."""

    server: ServerProcess
    total: int
    done: int = 0
    memory: dict[str, float] = field(default_factory=dict)
    samples: list[tuple[float, int, dict[str, Any]]] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watch:
        self._began = time.monotonic()
        self._cpu = time.process_time()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.seconds = time.monotonic() - self._began
        self.cpu = time.process_time() - self._cpu
        self.memory["end"] = resident_mb()

    def _look(self) -> None:
        while not self._over.wait(0.5):
            self.samples.append(
                (time.monotonic() - self._began, self.done, self.server.stats(keys=False))
            )

    def progress(self, done: int) -> None:
        """So many calls are done."""
        self.done = done
        for name, share in (("tenth", 0.1), ("half", 0.5)):
            if name not in self.memory and done >= share * self.total:
                self.memory[name] = resident_mb()

    def loaded(self, workers: int) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Two samples: after WARM, and the last with work for all workers left."""
        busy = [s for t, done, s in self.samples if t >= WARM and done <= self.total - workers]
        return (busy[0], busy[-1]) if len(busy) >= 10 else None


def resident_mb() -> float:
    """Memory of this process that is in RAM now, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True)
class Judged:
    """One run over one store."""

    planned: int
    ended: ExperimentResult
    statuses: dict[str, int]
    open_again: int  # units that a resume would ask
    broken_units: int  # units with a cell that failed for the infrastructure
    wrong_attempts: int  # calls that took more attempts than the policy allows


async def judge_all(
    job: Job, size: Size, some: Sequence[Item], path: Path, watch: Watch | None = None
) -> Judged:
    """What `agenteval quantify` does, over the store at `path`."""
    from agenteval.engine import Experiment, pending
    from agenteval.models.factory import make_client
    from agenteval.models.limits import Limits
    from agenteval.readers.tasks import find_task
    from agenteval.store import Store
    from agenteval.utility.evaluator import JudgeEvaluator
    from agenteval.utility.quantifier import QuantifierOptions, chat_judge

    task, asked = find_task(str(ROOT / "tasks" / "math")).task, criteria()[: size.criteria]
    with Store(path) as store:
        limits = Limits(concurrency=job.concurrency, timeout=size.timeout)
        client = make_client(openai_choice(job), limits, store)
        evaluator = chat_judge(client, task, QuantifierOptions())
        rated = JudgeEvaluator.of(evaluator, some, asked, size.repeats)
        plan = pending(rated, store)
        ended = await Experiment(rated, store, concurrency=2 * job.concurrency).run(
            lambda progress: watch.progress(progress.done) if watch else None
        )
        await client.close()
        again = pending(rated, store)
        return _judged(plan, ended, again, store, evaluator, client.retry.attempts)


def _judged(
    plan: Pending[Item],
    ended: ExperimentResult,
    again: Pending[Item],
    store: Store,
    evaluator: RunJudge,
    attempts: int,
) -> Judged:
    from sqlalchemy import text

    statuses: dict[str, int] = {}
    broken = set()
    for (run, variant, _, repeat), state in store.states(evaluator.source.sha256):
        name = state.status if state.failed else "scored"
        statuses[name] = statuses.get(name, 0) + 1
        if state.status in NEVER:
            broken.add((run, variant, repeat))
    query = (
        "SELECT count(*) FROM calls WHERE json_extract(record, '$.attempts') > "
        ":most * (1 + coalesce(json_extract(record, '$.repaired'), 0))"
    )
    with store.engine.connect() as connection:
        over = int(connection.execute(text(query), {"most": attempts}).scalar_one())
    return Judged(plan.open, ended, statuses, len(again.units), len(broken), over)


def export(path: Path, runs: Sequence[Item]) -> str:
    """The exported table of a store, lines of other runs left out.

    So is what the last of all failed attempts at an unreachable cell met: whether that was the
    ceiling depends on who else was in flight.
    """
    import json

    from agenteval.store import Store
    from agenteval.store.export import export_cells

    wanted = {run.id for run, _ in runs}
    table = path.with_suffix(".jsonl")
    with Store(path, create=False) as store:
        export_cells(store, table)
    kept = []
    with table.open(encoding="utf-8", newline="") as lines:
        for line in lines:
            row = json.loads(line)
            if row["run_id"] in wanted:
                left_out = row["message"] if row["status"] in NEVER else ""
                kept.append(line.replace(json.dumps(left_out, ensure_ascii=False), '""'))
    return "".join(kept)


__all__ = ["Judged", "Size", "Watch", "export", "items", "judge_all", "script"]
