"""Concurrency that follows the endpoint, and a budget that is reserved before it is spent."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from agenteval.errors import BudgetExceeded, InputError
from agenteval.models.ceiling import Ceiling, Slot
from agenteval.records import Usage


class Limiter:
    """At most `limit` attempts in flight; `limit` moves between 1 and `maximum` (see Ceiling).

    `enter` gives the attempt's slot, which `answered` and `overloaded` want back, and
    `leave` at the end of every attempt. Who waits is served in order of arrival.
    """

    def __init__(
        self,
        maximum: int,
        *,
        start: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ceiling = Ceiling(maximum, maximum if start is None else start, clock=clock)
        self.in_flight = 0
        self.overloads = 0
        self._waiting: deque[asyncio.Future[Slot]] = deque()

    @property
    def maximum(self) -> int:
        """Upper bound of `limit`."""
        return self.ceiling.maximum

    @property
    def limit(self) -> float:
        """Attempts that may be in flight now; the whole part counts."""
        return self.ceiling.limit

    async def enter(self) -> Slot:
        """The slot of one attempt, as soon as one is free."""
        if self._free():  # then nobody waits: `_wake` follows every change
            return self._admit()
        turn: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            return await turn  # `_wake` has counted us in: nobody who comes later can be faster
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.leave(turn.result())
            else:
                self._waiting.remove(turn)
                self._wake()
            raise

    def leave(self, slot: Slot) -> None:
        """The attempt is over."""
        self.in_flight -= 1
        self._wake()

    def _free(self) -> bool:
        return self.in_flight < int(self.limit)

    def _admit(self) -> Slot:
        self.in_flight += 1
        return self.ceiling.admitted(self.in_flight)

    def _wake(self) -> None:
        """Give free slots to those who wait, in order of arrival."""
        gone = []
        while self._waiting and self._free():
            turn = self._waiting.popleft()
            if turn.done():  # cancelled, and about to take itself out
                gone.append(turn)
            else:
                turn.set_result(self._admit())
        self._waiting.extendleft(reversed(gone))

    def answered(self, slot: Slot) -> None:
        """The endpoint answered this attempt."""
        self.ceiling.answered(slot)
        self._wake()

    def overloaded(self, slot: Slot) -> None:
        """The endpoint said to this attempt that it is too much."""
        self.overloads += 1
        self.ceiling.refused(slot, self.in_flight - 1)
        self._wake()


@dataclass(frozen=True, slots=True)
class Price:
    """Price per million tokens. Raises ValueError for a negative or infinite price."""

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        if not all(math.isfinite(p) and p >= 0 for p in (self.prompt, self.completion)):
            raise ValueError("a price must be a number, zero or above")

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost in the currency of the price."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


class Budget:
    """Caps on requests and money. Hold before an attempt, settle after it.

    Every attempt counts as a request, failed ones as well. What is held is the worst case (the
    longest prompt the bytes allow plus the longest possible reply), so that workers in parallel
    cannot overshoot together. `spent` starts with what earlier sessions of the experiment used.
    """

    def __init__(
        self,
        *,
        max_calls: int | None = None,
        max_cost: float | None = None,
        price: Price | None = None,
        spent: Usage | None = None,
    ) -> None:
        if max_cost is not None and price is None:
            raise ValueError("a cap on cost needs a price")
        if max_cost is not None and not max_cost >= 0:  # NaN would be no cap at all
            raise ValueError("a cap on cost must be a number, zero or above")
        self.max_calls = max_calls
        self.max_cost = max_cost
        self.price = price
        self.spent = spent or Usage(cost=0.0 if price else None)
        self._held_calls = 0
        self._held_cost = 0.0
        self._settled: list[asyncio.Future[None]] = []

    async def hold(self, prompt_tokens: int, completion_tokens: int) -> float:
        """`reserve`, but waits while attempts under way could still leave enough money.

        Raises BudgetExceeded when even what they leave cannot pay for this one.
        """
        while True:
            try:
                return self.reserve(prompt_tokens, completion_tokens)
            except BudgetExceeded:
                if not self._may_be_freed(self._worst(prompt_tokens, completion_tokens)):
                    raise
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._settled.append(turn)
            await turn

    def _may_be_freed(self, worst: float) -> bool:
        """Held calls are never given back, held money is when a reply costs less than the worst."""
        calls = self.spent.requests + self._held_calls
        if self._held_calls == 0 or (self.max_calls is not None and calls >= self.max_calls):
            return False
        return self.max_cost is not None and (self.spent.cost or 0.0) + worst <= self.max_cost

    def _worst(self, prompt_tokens: int, completion_tokens: int) -> float:
        return self.price.cost(prompt_tokens, completion_tokens) if self.price else 0.0

    def reserve(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Reserve one request with its maximum cost, and return that cost.

        Raises BudgetExceeded, without reserving anything, when a cap would be exceeded.
        """
        worst = self._worst(prompt_tokens, completion_tokens)
        if self.max_calls is not None and (
            self.spent.requests + self._held_calls + 1 > self.max_calls
        ):
            raise BudgetExceeded(
                f"the cap of {self.max_calls} calls is reached "
                f"({self.spent.requests} made, {self._held_calls} under way)"
            )
        if self.max_cost is not None and (
            (self.spent.cost or 0.0) + self._held_cost + worst > self.max_cost
        ):
            raise BudgetExceeded(
                f"the cap of {self.max_cost:g} is reached "
                f"({self.spent.cost or 0.0:.4f} spent, {self._held_cost + worst:.4f} could follow)"
            )
        self._held_calls += 1
        self._held_cost += worst
        return worst

    async def charge(self) -> Usage:
        """Count one request that is made without a client; returns its usage.

        Raises BudgetExceeded when a cap would be passed.
        """
        return self.settle(await self.hold(0, 0), None, charged=False)

    def settle(self, held: float, usage: Usage | None, *, charged: bool = True) -> Usage:
        """Release what was held and count what was used; returns the usage with its cost.

        An attempt counts as one request. Without a full report of tokens it costs, when there is
        a price, the whole sum held: money that may have been spent is never forgotten.
        `charged=False` is for an attempt that the endpoint turned away: it cost nothing.
        """
        self._held_calls -= 1
        self._held_cost = self._held_cost - held if self._held_calls else 0.0
        counted = Usage(
            requests=1,
            prompt_tokens=usage.prompt_tokens if usage else None,
            completion_tokens=usage.completion_tokens if usage else None,
            cost=self._cost(held, usage, charged),
        )
        self.spent = self.spent + counted
        waiting, self._settled = self._settled, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)
        return counted

    def _cost(self, held: float, usage: Usage | None, charged: bool) -> float | None:
        if self.price is None:
            return None
        if not charged:
            return 0.0
        if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
            return held
        return self.price.cost(usage.prompt_tokens, usage.completion_tokens)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an experiment: concurrent requests, total requests and cost (including earlier
    calls of the experiment), and the timeout of one request in seconds."""

    concurrency: int = 8
    max_calls: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    timeout: float = 120.0

    def budget(self, spent: Usage | None = None) -> Budget:
        """Return a budget with these caps. Raises InputError for a cost cap without a price."""
        if self.max_cost is not None and self.price is None:
            raise InputError(
                "a cap on cost needs prices: give --price-in and --price-out per million tokens",
                "--max-cost",
            )
        return Budget(
            max_calls=self.max_calls, max_cost=self.max_cost, price=self.price, spent=spent
        )
