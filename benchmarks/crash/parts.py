"""The parts of the benchmark: which there are, how much each does, and who does them."""

from __future__ import annotations

import queue
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agenteval.testing import Server, serve
from benchmarks.crash.storm import Storm, Tally
from benchmarks.crash.watch import Kill
from benchmarks.crash.work import Kitchen, Sizes, answer, works
from benchmarks.crash.zygote import Zygote

LATENCY = 0.03  # seconds; longer than a commit takes
NONCE = r"[0-9a-f]{24}"
FULL = {
    "quantify": 60,
    "verify": 50,
    "criteria": 40,
    "export": 12,
    "export jsonl": 12,
    "export parquet": 12,
    "report": 32,
    "plan test": 20,
    "flow session": 14,
    "flow session model": 12,
    "flow turn": 24,
    "trace locate": 24,
}
QUICK = {
    "quantify": 1,
    "verify": 1,
    "criteria": 1,
    "export": 1,
    "report": 1,
    "flow session": 1,
    "trace locate": 1,
}
# In the quick size each command is killed once, where it matters most to it.
FIRST = {
    "quantify": Kill("write", at=4, write=4, share=0.5),
    "verify": Kill("write", at=4, write=2, share=0.5),
    "criteria": Kill("write", at=2, write=2, share=0.5),
    "export": Kill("file", at=3),
    "report": Kill("file", at=2),
    "flow session": Kill("write", at=4, write=2, share=0.5),
    "trace locate": Kill("write", at=4, write=2, share=0.5),
}
SMALL = Sizes(8, 2, 1, 6, 1, users=2, traces=2, agent_trials=1, pages=False)


@dataclass
class Part:
    """What came of one part, the time from its start to its end, and of its commands."""

    name: str
    result: Tally
    seconds: float
    commands: int
    cpu: float

    def __str__(self) -> str:
        return f"{self.name}: {self.seconds:.1f} s, {self.commands} commands with {self.cpu:.1f} s"


class Kitchens:
    """One kitchen for each size of work."""

    def __init__(self, scratch: Path, zygote: Zygote, url: str) -> None:
        self.scratch, self.zygote, self.url = scratch, zygote, url
        self._made: dict[Sizes, Kitchen] = {}

    def of(self, sizes: Sizes) -> Kitchen:
        if sizes not in self._made:
            folder = self.scratch / f"kitchen{len(self._made)}"
            self._made[sizes] = Kitchen(folder, self.zygote, self.url, sizes)
        return self._made[sizes]


@contextmanager
def _kitchens(scratch: Path) -> Iterator[tuple[Kitchens, Server]]:
    """A server and a process that forks commands, for the parts that this process does."""
    scratch.mkdir(exist_ok=True)
    with (
        serve(answer=answer, latency=LATENCY, ignore=[NONCE], record=0) as server,
        Zygote(scratch) as zygote,
    ):
        yield Kitchens(scratch, zygote, server.base_url), server


def _part(name: str, kitchens: Kitchens, server: Server, *, quick: bool, seed: int) -> Part:
    """The kills of one command."""
    began, zygote = time.monotonic(), kitchens.zygote
    commands, cpu = zygote.commands, zygote.cpu
    sizes = SMALL if quick else Sizes()
    storm = Storm(kitchens.of(sizes), server, works(sizes)[name], random.Random(f"{seed} {name}"))
    kills = (QUICK if quick else FULL)[name]
    result = storm.run(kills, first=FIRST.get(name) if quick else None)
    seconds = time.monotonic() - began
    part = Part(name, result, seconds, zygote.commands - commands, zygote.cpu - cpu)
    print(part, file=sys.stderr, flush=True)
    return part


def run_parts(scratch: Path, *, quick: bool, seed: int, workers: int) -> list[Part]:
    """All parts, by `workers` threads, each with a server and commands of its own.

    What takes longest comes first, so that nobody waits for it at the end.
    """
    names: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in QUICK if quick else FULL:
        names.put(name)

    def share(number: int) -> list[Part]:
        done: list[Part] = []
        with _kitchens(scratch / str(number)) as (kitchens, server):
            while True:
                try:
                    name = names.get_nowait()
                except queue.Empty:
                    return done
                done.append(_part(name, kitchens, server, quick=quick, seed=seed))

    with ThreadPoolExecutor(workers) as pool:
        return [part for parts in pool.map(share, range(workers)) for part in parts]
