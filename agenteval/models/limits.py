"""Concurrency that follows the endpoint, and a budget that is reserved before it is spent."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from agenteval.errors import BudgetExceeded
from agenteval.records import Usage


class Limiter:
    """At most `limit` attempts in flight; `limit` moves between 1 and `maximum`.

    It shrinks to 0.7 of itself on an overload answer, at most once per `cooldown` seconds (one
    burst of 429s is one message), and grows by one for each full round of answered attempts.
    """

    def __init__(
        self,
        maximum: int,
        *,
        start: int | None = None,
        cooldown: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if maximum < 1:
            raise ValueError("concurrency must be at least 1")
        self.maximum = maximum
        self.limit = float(min(maximum, start or maximum))
        self.in_flight = 0
        self.overloads = 0
        self._cooldown = cooldown
        self._clock = clock
        self._shrunk_at = -cooldown
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        while self.in_flight >= int(self.limit):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                await future
            except BaseException:
                if future in self._waiting:
                    self._waiting.remove(future)
                else:
                    self._wake()  # it had been our turn: hand it on
                raise
        self.in_flight += 1

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        free = int(self.limit) - self.in_flight
        while free > 0 and self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                free -= 1

    def answered(self) -> None:
        """A good answer came: grow slowly."""
        if self.limit < self.maximum:
            self.limit = min(float(self.maximum), self.limit + 1.0 / self.limit)

    def overloaded(self) -> None:
        """The endpoint said that it is too much: shrink."""
        self.overloads += 1
        now = self._clock()
        if now - self._shrunk_at >= self._cooldown:
            self._shrunk_at = now
            self.limit = max(1.0, self.limit * 0.7)


@dataclass(frozen=True, slots=True)
class Price:
    """Money per million tokens."""

    prompt: float
    completion: float

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Cost in the currency of the price."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


class Budget:
    """Caps on requests and money. Reserve before an attempt, settle after it.

    Every attempt counts as a request, failed ones as well. A reservation holds the worst case
    (estimated prompt plus the longest possible reply), so that workers in parallel cannot
    overshoot together. `spent` starts with what earlier sessions of the experiment used.
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
        self.max_calls = max_calls
        self.max_cost = max_cost
        self.price = price
        self.spent = spent or Usage(cost=0.0 if price else None)
        self._held_calls = 0
        self._held_cost = 0.0

    def reserve(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Hold one request and its worst case. Returns the cost held.

        Raises BudgetExceeded when a cap would be passed; nothing is held then.
        """
        worst = self.price.cost(prompt_tokens, completion_tokens) if self.price else 0.0
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

    def settle(self, held: float, usage: Usage | None) -> Usage:
        """Release what was held and count what was used; returns the usage with its cost.

        An attempt without a usage report counts as one request and, when there is a price, as
        the whole sum held: money that may have been spent is never forgotten.
        """
        self._held_calls -= 1
        self._held_cost -= held
        if usage is None or usage.prompt_tokens is None:
            counted = Usage(requests=1, cost=held if self.price else None)
        else:
            cost = (
                self.price.cost(usage.prompt_tokens, usage.completion_tokens or 0)
                if self.price
                else None
            )
            counted = usage.model_copy(update={"requests": 1, "cost": cost})
        self.spent = self.spent + counted
        return counted
