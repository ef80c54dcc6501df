"""The limiter lets nobody in too many, loses no slot, starves nobody; the budget holds its cap."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import BudgetExceeded
from agenteval.models.limits import Budget, Limiter, Price, Slot
from agenteval.records import Usage
from tests.thorough import often


async def turn_of_the_loop(times: int = 3) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


@asynccontextmanager
async def entered(limiter: Limiter) -> AsyncIterator[Slot]:
    slot = await limiter.enter()
    try:
        yield slot
    finally:
        limiter.leave(slot)


# ---- Limiter -------------------------------------------------------------------------------------


async def test_never_more_in_flight_than_the_limit() -> None:
    limiter, inside, most = Limiter(3), 0, 0

    async def work() -> None:
        nonlocal inside, most
        for _ in range(5):
            async with entered(limiter):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

    await asyncio.gather(*(work() for _ in range(20)))
    assert most == 3
    assert limiter.in_flight == 0


async def test_who_comes_first_is_served_first() -> None:
    # A worker that leaves and comes back at once must not overtake those who wait.
    limiter, order = Limiter(1), []

    async def work(name: str) -> None:
        for _ in range(3):
            async with entered(limiter):
                order.append(name)
                await asyncio.sleep(0)

    await asyncio.gather(work("a"), work("b"), work("c"))
    assert order == ["a", "b", "c"] * 3


STEPS = st.lists(
    st.sampled_from(["enter", "leave", "cancel", "shrink", "grow", "loop"]), max_size=60
)


@settings(max_examples=often(80, 300), deadline=None)
@given(maximum=st.integers(1, 5), steps=STEPS, pick=st.randoms(use_true_random=False))
def test_no_slot_is_lost_whatever_happens(maximum: int, steps: list[str], pick: object) -> None:
    asyncio.run(_random_walk(maximum, steps, pick))


async def _random_walk(maximum: int, steps: list[str], pick: object) -> None:
    now = 0.0
    limiter = Limiter(maximum, clock=lambda: now)
    inside: dict[asyncio.Task[None], Slot] = {}
    tasks: list[asyncio.Task[None]] = []
    gates: dict[asyncio.Task[None], asyncio.Event] = {}
    most_allowed = maximum

    async def work(gate: asyncio.Event) -> None:
        me = asyncio.current_task()
        assert me is not None
        async with entered(limiter) as slot:
            inside[me] = slot
            # a shrunken limit drives nobody out, but lets nobody in
            assert len(inside) <= most_allowed
            try:
                await gate.wait()
            finally:
                del inside[me]

    for step in steps:
        now += 1.0
        alive = [t for t in tasks if not t.done()]
        if step == "enter":
            gate = asyncio.Event()
            task = asyncio.create_task(work(gate))
            gates[task] = gate
            tasks.append(task)
        elif step == "leave" and inside:
            gates[pick.choice(sorted(inside, key=tasks.index))].set()  # type: ignore[attr-defined]
        elif step == "cancel" and alive:
            pick.choice(alive).cancel()  # type: ignore[attr-defined]
        elif step == "shrink" and inside:
            limiter.overloaded(pick.choice(list(inside.values())))  # type: ignore[attr-defined]
        elif step == "grow" and inside:
            limiter.answered(pick.choice(list(inside.values())))  # type: ignore[attr-defined]
        elif step == "loop":
            await turn_of_the_loop()
    await turn_of_the_loop()
    # nobody waits while a slot is free
    waiting = [t for t in tasks if not t.done() and t not in inside]
    borne = maximum
    assert not waiting or len(inside) >= min(int(limiter.limit), borne)
    for gate in gates.values():
        gate.set()
    done, pending = await asyncio.wait(tasks, timeout=5) if tasks else (set(), set())
    assert not pending
    assert all(t.cancelled() or t.exception() is None for t in done)
    assert limiter.in_flight == 0


# ---- Price and Budget ----------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_a_price_is_a_number(bad: float) -> None:
    with pytest.raises(ValueError, match="price"):
        Price(bad, 1.0)
    with pytest.raises(ValueError, match="price"):
        Price(1.0, bad)


def test_a_cap_on_cost_needs_a_price_and_a_number() -> None:
    with pytest.raises(ValueError, match="needs a price"):
        Budget(max_cost=1.0)
    with pytest.raises(ValueError, match="must be a number"):
        Budget(max_cost=math.nan, price=Price(1, 1))


def test_calls_in_flight_count_against_the_cap() -> None:
    budget = Budget(max_calls=3, spent=Usage(requests=1))
    first = budget.reserve(10, 10)
    budget.reserve(10, 10)
    with pytest.raises(BudgetExceeded, match="cap of 3 calls"):
        budget.reserve(10, 10)
    budget.settle(first, None)
    with pytest.raises(BudgetExceeded):  # a call made is never given back
        budget.reserve(10, 10)
    assert budget.spent.requests == 2


def test_money_is_counted_by_tokens_or_by_what_was_held() -> None:
    budget = Budget(max_cost=10.0, price=Price(1e6, 2e6))  # 1 per prompt token, 2 per generated
    held = budget.reserve(2, 1)
    assert held == 4.0
    assert budget.settle(held, Usage(prompt_tokens=1, completion_tokens=1)).cost == 3.0
    # no report, half a report: the whole sum held
    assert budget.settle(budget.reserve(2, 1), None).cost == 4.0
    half = budget.settle(budget.reserve(1, 1), Usage(prompt_tokens=1))
    assert (half.cost, half.prompt_tokens, half.completion_tokens) == (3.0, 1, None)
    assert budget.spent.cost == 10.0
    assert budget.spent.requests == 3
    with pytest.raises(BudgetExceeded, match="cap of 10 is reached"):
        budget.reserve(1, 0)


def test_an_attempt_turned_away_costs_nothing_but_is_a_call() -> None:
    budget = Budget(max_cost=5.0, price=Price(1e6, 1e6))
    counted = budget.settle(budget.reserve(4, 1), None, charged=False)
    assert (counted.requests, counted.cost) == (1, 0.0)
    assert budget.reserve(4, 1) == 5.0


async def test_hold_waits_for_money_that_may_come_back() -> None:
    budget = Budget(max_cost=10.0, price=Price(1e6, 0))
    held = await budget.hold(8, 0)
    second = asyncio.create_task(budget.hold(8, 0))
    await turn_of_the_loop()
    assert not second.done()
    budget.settle(held, Usage(prompt_tokens=2, completion_tokens=0))  # 2 spent, 8 left
    assert await asyncio.wait_for(second, 1) == 8.0


async def test_hold_raises_when_waiting_could_not_help() -> None:
    budget = Budget(max_cost=10.0, price=Price(1e6, 0))
    held = await budget.hold(8, 0)
    second = asyncio.create_task(budget.hold(8, 0))
    await turn_of_the_loop()
    budget.settle(held, Usage(prompt_tokens=3, completion_tokens=0))  # 7 left, 8 wanted
    with pytest.raises(BudgetExceeded):
        await asyncio.wait_for(second, 1)
    with pytest.raises(BudgetExceeded):  # more than the cap, whoever is under way
        await budget.hold(11, 0)


async def test_hold_does_not_wait_for_calls() -> None:
    budget = Budget(max_calls=1, max_cost=10.0, price=Price(1e6, 0))
    await budget.hold(8, 0)
    with pytest.raises(BudgetExceeded):
        await asyncio.wait_for(budget.hold(8, 0), 1)


@settings(max_examples=60, deadline=None)
@given(
    cap=st.integers(0, 60),
    costs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30),
    workers=st.integers(1, 8),
)
def test_parallel_workers_never_overshoot(
    cap: int, costs: list[tuple[int, int]], workers: int
) -> None:
    """`costs` are (worst case, part of it that is really used)."""

    async def run() -> None:
        budget = Budget(max_cost=float(cap), price=Price(1e6, 0))
        queue = iter(costs)

        async def work() -> None:
            for worst, used in queue:
                try:
                    held = await budget.hold(worst, 0)
                except BudgetExceeded:
                    continue
                await asyncio.sleep(0)
                budget.settle(held, Usage(prompt_tokens=min(worst, used), completion_tokens=0))
                assert (budget.spent.cost or 0.0) <= cap

        await asyncio.wait_for(asyncio.gather(*(work() for _ in range(workers))), 10)

    asyncio.run(run())
