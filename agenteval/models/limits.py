"""Concurrency that follows the endpoint, and a budget that is reserved before it is spent.

The endpoint has an unknown ceiling that may change; each excess attempt gets a 429, and some 429s
are unrelated to load. One idea: 429s are bought. Every answer earns SHARE of a 429; trying one more
attempt costs the 429s it causes, so expensive trials are rare. The rest comes from TCP: slow start
(RFC 5681, section 3.1: one slot more for each answer, which doubles the number each round trip),
only while the limit is used (RFC 7661); above a limit that was refused before, growth begins slowly
and accelerates (the shape of CUBIC, RFC 9438, section 4.2, here in answers instead of seconds);
attempts know their epoch, so that one burst is one message. Unlike a router, an endpoint reports a
loss at once and keeps the requests it has accepted: the number in flight after a burst is the
ceiling itself, and nothing has to be halved.

What the tests show in virtual time under the thorough profile, from a start of 8: with ceilings of
5 to 500 and latencies of 0.05 to 3 s at least 80% of the ceiling is used and at most 2% of the
requests are refused after 10 s, or after eight round trips when these take longer; with up to 1% of
429s that load did not cause where latencies are exponential, up to 0.1% where all are equal. The
same holds 20 s after the ceiling rose or fell tenfold, for exponential latencies up to 1 s. It does
not hold for 500 at 3 s when all latencies are equal: six round trips double to it, and the last, at
one instant, may overshoot by half. Trials cost about one 429 in 60 answers, so that with few
requests each second they are rare: a ceiling of 5 at 3 s that rises is found after a minute, and so
is any limit after everything was refused for a while.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from agenteval.errors import BudgetExceeded, InputError
from agenteval.records import Usage

SHARE = 1 / 60  # of a 429 that an answer earns: strays and trials together stay below 2%
LOW = 4  # a lower limit earns as much per round trip as LOW would; otherwise an outage lasts
SAVED = 2.0  # 429s that can be saved on top of one round trip's earnings; enough for a trial
OWED = -2.0  # the largest debt: a burst must not postpone the next trial forever
CLOSE = 2  # 429s of attempts this close together are not a coincidence
PAUSE = 4.0  # seconds without a trial after the limit fell; many a quick endpoint sees few trials
ROUND = 32  # attempts after the one that proves a trial (one round trip, when that is fewer)
SPEED = 2.0  # what was gained grows about e^SPEED times a round trip, until slots double in it
SHRINK = 0.93  # drop of a limit that once worked; these slots are soon regained


class Slot(NamedTuple):
    """The admission of an attempt: its sequence number, and the number of requests in flight."""

    serial: int
    rank: int  # itself counted


class Ceiling:
    """Moves `limit`, how many attempts may be in flight, between 1 and `maximum`.

    `base` is where the limit last fell to; above it the limit is being searched.

    - At the base, when a 429 is earned, one attempt more is let in: a trial. It has succeeded when
      an attempt is answered that was let in a round trip (ROUND) later; growth begins, slowly at
      first, then by one slot for each answer.
    - A lone 429 (no other CLOSE by) is paid for and changes nothing.
    - 429s CLOSE to one another end a search: base and limit are now what is in flight. At the base
      they lower it only when no 429 is saved any more, and by SHRINK at least; the 429 that comes
      right after a fall counts as close.
    - A 429 of an attempt let in before the limit fell is part of the same burst: the limit goes
      down to what is in flight, and nothing is paid.

    Attempts while less than half of the limit is used prove nothing. Raises ValueError for a limit
    below 1.
    """

    def __init__(
        self, maximum: int, start: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if maximum < 1 or start < 1:
            raise ValueError("concurrency must be at least 1")
        self.maximum = maximum
        self.limit = float(min(maximum, start))
        self.base = 0.0  # nothing was refused yet
        self._saved = SAVED
        self._serial = 0  # of the attempt let in last
        self._epoch = 0  # the same, when the limit fell or a trial began
        self._marked = -CLOSE  # the attempt refused last, or the epoch
        self._clock = clock
        self._since = clock()  # the epoch's time

    def admitted(self, in_flight: int) -> Slot:
        """An attempt was let in, and is one of `in_flight`."""
        self._serial += 1
        return Slot(self._serial, in_flight)

    def answered(self, slot: Slot) -> None:
        """An attempt was answered."""
        most = SAVED + SHARE * self.limit
        self._saved = min(most, self._saved + SHARE * max(1.0, LOW / self.limit))
        age = slot.serial - self._epoch
        if age <= 0 or 2 * slot.rank < self.limit:
            return
        gained = self.limit - self.base
        if self.base == 0 or gained > 1 or (gained == 1 and age > min(self.limit, ROUND)):
            step = min(1.0, SPEED * gained / self.limit)
            self.limit = min(float(self.maximum), self.limit + step)
        elif gained == 0 and self.limit < self.maximum:
            rested = self._clock() - self._since >= PAUSE
            if self._saved >= SAVED and rested:
                self._begin(self.base, self.limit + 1)

    def refused(self, slot: Slot, others: int) -> None:
        """An attempt was turned away with 429; `others` are in flight without it."""
        carried = max(1.0, min(self.limit, float(others)))
        if slot.serial <= self._epoch:
            if carried < self.limit:
                self.base = self.limit = carried
            return
        paid, self._saved = self._saved >= 1, max(OWED, self._saved - 1)
        lone = slot.serial - self._marked > CLOSE
        self._marked = slot.serial
        if lone:
            return
        if self.limit > self.base:
            self._begin(float(int(carried)), float(int(carried)))
        elif not paid:
            lower = max(1.0, float(int(min(carried, SHRINK * self.limit))))
            self._begin(lower, lower)

    def _begin(self, base: float, limit: float) -> None:
        self.base, self.limit = base, limit
        self._epoch = self._marked = self._serial
        self._since = self._clock()


class Limiter:
    """At most `limit` attempts in flight; `limit` moves between 1 and `maximum` (see Ceiling).

    `enter` gives the attempt's slot, which `answered` and `overloaded` take; call `leave` at the
    end of every attempt. Waiting attempts are served in order of arrival.
    """

    def __init__(
        self, maximum: int, *, start: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.ceiling = Ceiling(maximum, maximum if start is None else start, clock=clock)
        self.in_flight = 0
        self.overloads = 0
        self._waiting: deque[asyncio.Future[Slot]] = deque()

    @property
    def limit(self) -> float:
        """Attempts that may be in flight now; the whole part counts."""
        return self.ceiling.limit

    async def enter(self) -> Slot:
        """The slot of one attempt, as soon as one is free."""
        if self.in_flight < int(self.limit):  # then nothing waits: `_wake` follows every change
            return self._admit()
        turn: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            return await turn  # `_wake` has counted this attempt: later ones cannot overtake it
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

    def _admit(self) -> Slot:
        self.in_flight += 1
        return self.ceiling.admitted(self.in_flight)

    def _wake(self) -> None:
        """Give free slots to those who wait, in order of arrival."""
        gone = []
        while self._waiting and self.in_flight < int(self.limit):
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
        """Record that the endpoint refused this attempt as one too many."""
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

    Every attempt counts as a request, failed ones as well. The worst case is held (the longest
    prompt the bytes allow plus the longest reply), so parallel workers cannot exceed the cap
    together. `spent` starts with what earlier sessions of the experiment used.
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
        if max_cost is not None and not max_cost >= 0:  # NaN would not limit anything
            raise ValueError("a cap on cost must be a number, zero or above")
        self.max_calls = max_calls
        self.max_cost = max_cost
        self.price = price
        self.spent = spent or Usage(cost=0.0 if price else None)
        self._held_calls = 0
        self._held_cost = 0.0
        self._settled: list[asyncio.Future[None]] = []

    async def hold(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Like `reserve`, but wait while running attempts could still leave enough money. Raises
        BudgetExceeded if even that cannot pay for this attempt.
        """
        while True:
            try:
                return self.reserve(prompt_tokens, completion_tokens)
            except BudgetExceeded:
                # held calls are never given back; held money is, by a reply that costs less
                calls = self.spent.requests + self._held_calls
                if self.max_cost is None or self._held_calls == 0:
                    raise
                if self.max_calls is not None and calls >= self.max_calls:
                    raise
                worst = self._worst(prompt_tokens, completion_tokens)
                if (self.spent.cost or 0.0) + worst > self.max_cost:
                    raise
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._settled.append(turn)
            await turn

    def _worst(self, prompt_tokens: int, completion_tokens: int) -> float:
        return self.price.cost(prompt_tokens, completion_tokens) if self.price else 0.0

    def reserve(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Reserve one request with its maximum cost, and return that cost.

        Raises BudgetExceeded, without reserving anything, when a cap would be exceeded.
        """
        worst, spent = self._worst(prompt_tokens, completion_tokens), self.spent.cost or 0.0
        calls = self.spent.requests + self._held_calls
        if self.max_calls is not None and calls >= self.max_calls:
            raise BudgetExceeded(
                f"the cap of {self.max_calls} calls is reached "
                f"({self.spent.requests} made, {self._held_calls} under way)"
            )
        if self.max_cost is not None and spent + self._held_cost + worst > self.max_cost:
            raise BudgetExceeded(
                f"the cap of {self.max_cost:g} is reached "
                f"({spent:.4f} spent, {self._held_cost + worst:.4f} could follow)"
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

        An attempt counts as one request. With a price but without a full token report, it costs the
        whole amount held, which may have been spent. `charged=False` is for an attempt that the
        endpoint turned away: it cost nothing.
        """
        self._held_calls -= 1
        self._held_cost = self._held_cost - held if self._held_calls else 0.0
        cost: float | None = None
        if self.price is not None:
            cost = held if charged else 0.0
            report = usage or Usage()
            prompt, completion = report.prompt_tokens, report.completion_tokens
            if charged and prompt is not None and completion is not None:
                cost = self.price.cost(prompt, completion)
        counted = (usage or Usage()).model_copy(update={"requests": 1, "cost": cost})
        self.spent = self.spent + counted
        waiting, self._settled = self._settled, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)
        return counted


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
