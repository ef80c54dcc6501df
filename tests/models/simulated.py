"""An event loop whose time only waiting moves, and an endpoint with a ceiling to ask in it."""

from __future__ import annotations

import asyncio
import math
import random
import selectors
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agenteval.errors import Transient
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.limits import Limiter
from agenteval.models.wire import Reply, Request

TRIP = 0.001  # seconds to the endpoint, and back


class _Skip(selectors.DefaultSelector):
    """Sleeps by moving the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everybody waits, and nothing is due")
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs as fast as it can; `time()` and sleeping agree with one another."""

    def __init__(self) -> None:
        self._skip = _Skip()
        super().__init__(self._skip)

    def time(self) -> float:
        """Virtual seconds."""
        return self._skip.now


@dataclass
class Narrow:
    """An endpoint that turns away whoever comes when `ceiling` requests are in flight.

    `ceiling` maps the time to the number; `stray` is the share of requests that get 429 whatever
    is in flight. Counts since `measure` was called: `area` is the integral of the number in flight
    over time, `room` that of the ceiling.
    """

    ceiling: Callable[[float], int]
    latency: Callable[[random.Random], float]
    stray: float = 0.0
    endpoint: str = "simulated"
    model: str = "simulated"
    in_flight: int = 0
    requests: int = 0
    refused: int = 0
    area: float = 0.0
    room: float = 0.0
    _moved: float = 0.0
    _chance: random.Random = field(default_factory=lambda: random.Random(7))

    def _count(self, change: int) -> None:
        now = asyncio.get_running_loop().time()
        self.area += self.in_flight * (now - self._moved)
        self.room += self.ceiling(self._moved) * (now - self._moved)
        self._moved = now
        self.in_flight += change

    def measure(self) -> None:
        """Count anew from now on."""
        self._count(0)
        self.requests = self.refused = 0
        self.area = self.room = 0.0

    async def send(self, request: Request) -> Reply:
        """Answer after the latency, or refuse at once."""
        await asyncio.sleep(TRIP)
        self.requests += 1
        full = self.in_flight >= self.ceiling(asyncio.get_running_loop().time())
        if full or self._chance.random() < self.stray:
            self.refused += 1
            await asyncio.sleep(TRIP)
            raise Transient("HTTP 429", overload=True)
        self._count(+1)
        try:
            await asyncio.sleep(self.latency(self._chance))
        finally:
            self._count(-1)
        await asyncio.sleep(TRIP)
        return Reply("ok")

    async def close(self) -> None:
        """Nothing to free."""


@dataclass(frozen=True)
class Figures:
    """What was seen after the warm-up."""

    use: float  # mean in flight over mean ceiling
    refused: float  # share of the requests
    requests: int
    lost: int  # requests that ended in an error


@dataclass(frozen=True)
class Load:
    """`maximum` is the user's limit; warm-up and measuring last in virtual seconds, or until so
    many requests were made, whichever is first."""

    maximum: int
    start: int | None = None
    warm: tuple[float, int] = (10.0, 6000)
    measured: tuple[float, int] = (60.0, 3000)


async def _run(endpoint: Narrow, load: Load) -> Figures:
    loop = asyncio.get_running_loop()
    limiter = Limiter(load.maximum, start=load.start, clock=loop.time)
    client = Client(
        endpoint, limiter=limiter, clock=loop.time, retry=RetryPolicy(attempts=12), seed=1
    )
    lost, numbers = 0, iter(range(10**9))

    async def work() -> None:
        nonlocal lost
        for number in numbers:
            try:
                await client.complete(Request(({"role": "user", "content": str(number)},)))
            except Transient:
                lost += 1

    async def until(seconds: float, requests: int) -> None:
        end = loop.time() + seconds
        while loop.time() < end and endpoint.requests < requests:
            await asyncio.sleep(0.05)

    workers = [asyncio.create_task(work()) for _ in range(2 * load.maximum)]
    await until(*load.warm)
    endpoint.measure()
    await until(*load.measured)
    endpoint._count(0)
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    assert limiter.in_flight == 0
    share = endpoint.refused / endpoint.requests
    return Figures(endpoint.area / endpoint.room, share, endpoint.requests, lost)


def simulate(endpoint: Narrow, load: Load) -> Figures:
    """Ask the endpoint with the real Client and Limiter, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_run(endpoint, load))


def constant(seconds: float) -> Callable[[random.Random], float]:
    """A latency that is always the same."""
    return lambda _: seconds


def lognormal(median: float, sigma: float = 0.6) -> Callable[[random.Random], float]:
    """A latency with a long tail."""
    return lambda chance: chance.lognormvariate(math.log(median), sigma)


def exponential(mean: float) -> Callable[[random.Random], float]:
    """A latency without memory."""
    return lambda chance: chance.expovariate(1 / mean)
