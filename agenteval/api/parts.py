"""One experiment in several processes: each judges a part of the runs, here or elsewhere."""

from __future__ import annotations

import multiprocessing
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from agenteval.errors import AgentevalError, InputError, StoreLocked
from agenteval.models.limits import Limits
from agenteval.records import Usage, content_hash
from agenteval.store import Store
from agenteval.store.experiments import at_work, open_experiments
from agenteval.text import redacted, visible_line

MOST = 1000  # parts of one experiment
_SIGINT = 130  # exit code of what was interrupted


@dataclass(frozen=True)
class Part:
    """The `number`-th of `of` parts, from 1. What is in it follows from the content of a run, so it
    is the same on every machine and at every start."""

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> Part:
        """From "2/8". Raises InputError."""
        match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
        number, of = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= of <= MOST:
            raise InputError(f"{text!r} is no part such as 2/8", "--part")
        return cls(number, of)

    def holds(self, key: str) -> bool:
        """Whether a run (its content hash) is of this part."""
        return int(key[:8], 16) % self.of == self.number - 1

    def lock(self, experiment: str) -> str:
        """What the process that judges this part holds."""
        return content_hash([experiment, self.number, self.of])

    def limits(self, limits: Limits, spent: Usage) -> Limits:
        """Caps of this part: its share of what is left of them, on top of what is spent already, so
        that all parts together keep them."""
        calls, cost = limits.max_calls, limits.max_cost
        before = spent.cost or 0.0
        return replace(
            limits,
            max_calls=calls and spent.requests + max(0, calls - spent.requests) // self.of,
            max_cost=cost and before + max(0.0, cost - before) / self.of,
        )


@contextmanager
def held(store: Store, source: str, experiment: str, part: Part | None = None) -> Iterator[str]:
    """Hold an experiment, or a part of it, for this process; yields the name of the lock.

    Raises StoreLocked when it is held, and when others work on it in another way: on a part where
    all is wanted, on parts of another number.
    """
    mine = experiment if part is None else part.lock(experiment)
    friends = {mine} if part is None else {
        Part(n, part.of).lock(experiment) for n in range(1, part.of + 1)
    }  # fmt: skip
    for other in open_experiments(store, [source]):
        if other.lock not in friends and (who := at_work(store, other.lock)):
            raise StoreLocked(
                f"{store.shown}: {who} works on the same experiment or a part of it; wait for it"
            )
    with store.lock(mine):
        yield mine


def run_parts(arguments: Mapping[str, Any], count: int, told: Callable[[str], None]) -> int:
    """Judge in `count` processes, each with `quantify` and these arguments on its part, and an
    equal share of the requests in flight. Returns the largest exit code; `told` hears how each
    ended.

    Ctrl-C reaches them all: each finishes what is paid.
    """
    limits: Limits = arguments["limits"]
    share = replace(limits, concurrency=max(1, limits.concurrency // count))
    spawn = multiprocessing.get_context("spawn")
    workers = [
        spawn.Process(
            target=_judge_part, args=({**arguments, "limits": share, "part": Part(n, count)},)
        )
        for n in range(1, count + 1)
    ]
    for worker in workers:
        worker.start()
    told(f"{count} processes judge a part each, {share.concurrency} requests in flight")
    interrupted = False
    for number, worker in enumerate(workers, 1):
        while worker.is_alive():
            try:
                worker.join()
            except KeyboardInterrupt:  # they heard it as well
                interrupted = True
        how = {0: "done", _SIGINT: "interrupted"}.get(
            worker.exitcode or 0, f"ended with {worker.exitcode}"
        )
        told(f"part {number} of {count}: {how}")
    codes = [abs(worker.exitcode or 0) for worker in workers]
    return _SIGINT if interrupted else max(codes)


def _judge_part(arguments: Mapping[str, Any]) -> None:
    """What a process of `run_parts` does."""
    from agenteval.api.utility import quantify

    code = 0
    try:
        code = quantify(**arguments).exit_code
    except KeyboardInterrupt:
        code = _SIGINT
    except AgentevalError as error:
        part = arguments["part"]
        told = visible_line(redacted(" ".join(str(error).split())))
        print(f"agenteval: part {part.number} of {part.of}: {told}", file=sys.stderr, flush=True)
        code = error.exit_code
    sys.exit(code)
