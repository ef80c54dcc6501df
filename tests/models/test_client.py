"""The Client over a scripted transport: cache, budget, retries, limits. No real waiting."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from agenteval.engine import answered
from agenteval.errors import (
    BadRequest,
    BudgetExceeded,
    ModelError,
    RequestTimeout,
    Transient,
    Unauthorized,
)
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.limits import Budget, Limiter, Price
from agenteval.models.wire import NONCE, Reply, Request, Simplified
from agenteval.records import Usage

USAGE = Usage(requests=1, prompt_tokens=10, completion_tokens=5)
Step = Reply | BaseException | Callable[[], Any]


def ask(text: str = "hello", **more: Any) -> Request:
    return Request(messages=({"role": "user", "content": text},), **more)


class Script:
    """A transport that plays steps: a reply, an exception, or a coroutine function; the last one
    for ever. It notes what was sent and how many were under way."""

    endpoint = "scripted"
    model = "script"

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps) or [Reply("ok", usage=USAGE)]
        self.sent: list[Request] = []
        self.under_way = self.most = 0
        self.closed = False

    async def send(self, request: Request) -> Reply:
        self.sent.append(request)
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(0)
            if isinstance(step, BaseException):
                raise step
            reply = step if isinstance(step, Reply) else await step()
            assert isinstance(reply, Reply)
            return reply
        finally:
            self.under_way -= 1

    async def close(self) -> None:
        self.closed = True


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class Cache:
    """In memory, through JSON as the store does it."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}

    def get_reply(self, key: str) -> dict[str, Any] | None:
        row = self.rows.get(key)
        value: dict[str, Any] | None = None if row is None else json.loads(row)
        return value

    def put_reply(self, key: str, reply: dict[str, Any]) -> None:
        self.rows[key] = json.dumps(reply, allow_nan=False)


def make(script: Script, **more: Any) -> tuple[Client, Time]:
    time = Time()
    return Client(script, sleep=time.sleep, clock=time.clock, **more), time


# ---- Cache ---------------------------------------------------------------------------------------


async def test_a_paid_reply_is_not_paid_again() -> None:
    script, cache = Script(Reply("first", usage=USAGE), Reply("second")), Cache()
    client, _ = make(script, cache=cache)
    fresh = await client.complete(ask())
    stored = await client.complete(ask(role="other", run_id="r"))
    assert (fresh.text, fresh.cached) == ("first", False)
    assert stored == dataclasses.replace(fresh, cached=True)
    assert len(script.sent) == 1
    assert client.usage.requests == 1


async def test_repeats_and_attempts_never_share_a_reply() -> None:
    script = Script(*(Reply(str(n)) for n in range(10)))
    client, _ = make(script, cache=Cache())
    texts = [
        (await client.complete(ask(repeat=r, attempt=a))).text for r in range(5) for a in (0, 1)
    ]
    assert texts == [str(n) for n in range(10)]


async def test_timeout_secret_and_retries_are_not_in_the_key() -> None:
    script, cache = Script(), Cache()
    first, _ = make(script, cache=cache, timeout=1.0, secret=b"a")
    second, _ = make(script, cache=cache, timeout=9.0, secret=b"b", retry=RetryPolicy(attempts=1))
    await first.complete(ask(f"{NONCE}"))
    assert (await second.complete(ask(f"{NONCE}"))).cached


@pytest.mark.parametrize(
    "row",
    [
        '{"text": null}',
        '{"text": "x", "tool_calls": "abc"}',
        "[]",
        "3",
        '"text"',
        "{}",
        '{"text": "x", "attempts": Infinity}',
        '{"text": "x", "usage": {"requests": -Infinity}}',
    ],
)
async def test_a_corrupted_entry_is_a_miss_and_is_replaced(row: str) -> None:
    script, cache = Script(), Cache()
    client, _ = make(script, cache=cache)
    key = ask().key(script.endpoint, script.model)
    cache.rows[key] = row
    assert (await client.complete(ask())).text == "ok"
    assert len(script.sent) == 1
    assert (await client.complete(ask())).cached


@pytest.mark.parametrize(
    "reply",
    [Reply("half", finish="length"), Reply("", finish="content_filter"), Reply("", refusal="no")],
)
async def test_what_is_no_answer_is_returned_but_not_cached(reply: Reply) -> None:
    script, cache = Script(reply), Cache()
    client, _ = make(script, cache=cache)
    for _ in range(2):
        got = await client.complete(ask())
        assert (got.finish, got.refusal, got.cached) == (reply.finish, reply.refusal, False)
    assert len(script.sent) == 2
    assert not cache.rows


async def test_the_nonce_is_sent_but_not_stored() -> None:
    script, cache = Script(), Cache()
    client, _ = make(script, cache=cache, secret=b"s")
    await client.complete(ask(f"<<END {NONCE}>>"))
    await client.complete(ask(f"<<END {NONCE}>>", repeat=1))
    sent = [r.messages[0]["content"] for r in script.sent]
    assert all(NONCE not in text and len(text) == len("<<END >>") + 24 for text in sent)
    assert sent[0] != sent[1]
    stored = {json.loads(reply)["request"]["key"] for reply in cache.rows.values()}
    assert ask(f"<<END {NONCE}>>").logical_hash() in stored


# ---- Retries -------------------------------------------------------------------------------------


async def test_a_failure_that_heals() -> None:
    script = Script(Transient("500"), Transient("500"), Reply("at last", usage=USAGE))
    client, time = make(script)
    reply = await client.complete(ask())
    assert (reply.text, reply.attempts) == ("at last", 3)
    assert len(time.slept) == 2
    assert 0 <= time.slept[0] <= 0.5  # full jitter: random(0, 0.5 · 2^n)
    assert 0 <= time.slept[1] <= 1.0
    assert reply.usage == Usage(requests=3, prompt_tokens=10, completion_tokens=5)


@pytest.mark.parametrize(
    "error",
    [Unauthorized("401"), BadRequest("400"), ModelError("?"), Transient("503", again=False)],
)
async def test_what_cannot_heal_is_raised_at_once(error: ModelError) -> None:
    script = Script(error)
    client, time = make(script)
    with pytest.raises(type(error)) as raised:
        await client.complete(ask())
    assert raised.value is error
    assert (len(script.sent), time.slept) == (1, [])


@pytest.mark.parametrize("attempts", [1, 2, 6])
async def test_attempts_are_bounded(attempts: int) -> None:
    script = Script(Transient("503"))
    client, time = make(script, retry=RetryPolicy(attempts=attempts))
    with pytest.raises(Transient, match="503"):
        await client.complete(ask())
    assert len(script.sent) == attempts
    assert len(time.slept) == attempts - 1


@pytest.mark.slow
async def test_pauses_grow_to_the_cap_with_full_jitter() -> None:
    policy = RetryPolicy(attempts=40, first=0.5, longest=4.0, total=1e9)
    everything: list[list[float]] = []
    for seed in range(200):
        client, time = make(Script(Transient("503")), retry=policy, seed=seed)
        with pytest.raises(Transient):
            await client.complete(ask())
        everything.append(time.slept)
    caps = [0.5, 1.0, 2.0] + [4.0] * 36
    for cap, pauses in zip(caps, zip(*everything, strict=True), strict=True):
        assert max(pauses) <= cap
        # mean of 200 uniform draws: cap/2, standard error cap/sqrt(12·200) = .02 cap; six of them
        assert sum(pauses) / 200 == pytest.approx(cap / 2, abs=0.125 * cap)


async def test_waiting_for_a_slot_does_not_eat_the_time_for_retries() -> None:
    time, limiter = Time(), Limiter(1)
    script = Script(Transient("429"), Reply("ok"))
    client = Client(script, limiter=limiter, sleep=time.sleep, clock=time.clock)
    slot = await limiter.enter()
    task = asyncio.create_task(client.complete(ask()))
    await asyncio.sleep(0)
    time.now += 5000.0  # far more than RetryPolicy.total, spent in the queue
    limiter.leave(slot)
    assert (await asyncio.wait_for(task, 5)).text == "ok"


@pytest.mark.parametrize("asked", [0.0, 2.0, 60.0, 120.0])
async def test_the_endpoint_names_the_pause(asked: float) -> None:
    client, time = make(Script(Transient("429", retry_after=asked), Reply("ok")))
    await client.complete(ask())
    (slept,) = time.slept
    # never less than asked, little more; a hint of 0 leaves the usual back-off
    assert asked <= slept <= max(0.5, 1.1 * asked + 0.01)


@pytest.mark.parametrize("asked", [120.1, 3600.0, 1e9])
async def test_who_asks_for_too_long_is_not_waited_for(asked: float) -> None:
    script = Script(Transient("429", retry_after=asked), Reply("ok"))
    client, time = make(script)
    with pytest.raises(Transient):
        await client.complete(ask())
    assert (len(script.sent), time.slept) == (1, [])


async def test_a_pause_beyond_the_time_left_is_not_begun() -> None:
    script = Script(Transient("429", retry_after=100.0))
    client, time = make(script, retry=RetryPolicy(attempts=50, total=350.0))
    with pytest.raises(Transient):
        await client.complete(ask())
    assert len(time.slept) == 3  # 4 · 100 s would pass 350 s


async def test_asking_in_a_simpler_form_costs_a_call_but_no_pause_and_no_failure() -> None:
    script = Script(Simplified("no schema"), Simplified("no seed"), Reply("ok", usage=USAGE))
    client, time = make(script, retry=RetryPolicy(attempts=1), budget=Budget(max_calls=3))
    reply = await client.complete(ask())
    assert (reply.text, reply.attempts, time.slept) == ("ok", 3, [])
    assert client.usage.requests == 3


async def test_an_attempt_that_does_not_end_times_out() -> None:
    async def never() -> Reply:
        await asyncio.sleep(3600)
        raise AssertionError

    script = Script(never)
    client, _ = make(script, timeout=0.01, retry=RetryPolicy(attempts=2))
    with pytest.raises(RequestTimeout, match=r"scripted: no complete answer within 0\.01 s"):
        await client.complete(ask())
    assert len(script.sent) == 2
    assert client.limiter.in_flight == 0


async def test_cancelling_gives_back_slot_and_budget() -> None:
    async def never() -> Reply:
        await asyncio.sleep(3600)
        raise AssertionError

    client, _ = make(Script(never), limiter=Limiter(1), budget=Budget(max_calls=2))
    task = asyncio.create_task(client.complete(ask()))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.limiter.in_flight == 0
    assert client.usage.requests == 1  # it may have reached the endpoint
    assert client.budget.reserve(1, 1) == 0.0


# ---- Budget --------------------------------------------------------------------------------------


async def test_the_worst_case_is_checked_before_sending() -> None:
    # price 1 per token; "x"·n makes a canonical request of more than n bytes
    script = Script()
    price = Price(1e6, 1e6)
    client, _ = make(script, budget=Budget(max_cost=1000.0, price=price))
    with pytest.raises(BudgetExceeded):
        await client.complete(ask("x" * 950, parameters={"max_tokens": 50}))
    assert not script.sent
    await client.complete(ask("x" * 100, parameters={"max_tokens": 50}))
    assert client.usage.cost == 15.0


@pytest.mark.parametrize(
    ("error", "charged"),
    [
        (Transient("429", overload=True), False),
        (BadRequest("400"), False),
        (Unauthorized("401"), False),
        (Transient("reset"), True),
        (RequestTimeout("late"), True),
    ],
)
async def test_money_for_failed_attempts(error: ModelError, charged: bool) -> None:
    client, _ = make(
        Script(error),
        budget=Budget(max_cost=1e6, price=Price(1e6, 1e6)),
        retry=RetryPolicy(attempts=1),
    )
    with pytest.raises(type(error)):
        await client.complete(ask(parameters={"max_tokens": 7}))
    size = ask(parameters={"max_tokens": 7}).identify("scripted", "script")[1]
    assert client.usage.cost == (size + 7 if charged else 0)
    assert client.usage.requests == 1


async def test_the_cost_of_a_reply_includes_its_failed_attempts() -> None:
    client, _ = make(
        Script(Transient("reset"), Reply("ok", usage=USAGE)),
        budget=Budget(max_cost=1e6, price=Price(1e6, 1e6)),
    )
    reply = await client.complete(ask(parameters={"max_tokens": 7}))
    size = ask(parameters={"max_tokens": 7}).identify("scripted", "script")[1]
    assert reply.usage.cost == size + 7 + 15
    assert reply.usage == client.usage


# ---- Concurrency ---------------------------------------------------------------------------------


async def test_no_slot_is_held_while_pausing() -> None:
    gate = asyncio.Event()

    async def sleep(_: float) -> None:
        gate.set()
        await asyncio.sleep(3600)

    script = Script(Transient("503"), Reply("second"))
    client = Client(script, limiter=Limiter(1), sleep=sleep)
    pausing = asyncio.create_task(client.complete(ask("1")))
    await gate.wait()
    assert (await asyncio.wait_for(client.complete(ask("2")), 5)).text == "second"
    pausing.cancel()


# ---- Estimates -----------------------------------------------------------------------------------


async def _wound_down(client: Client, script: Script, count: int, when: int) -> list[str]:
    """How `count` tasks end when the client is wound down as soon as `when` were sent."""
    tasks = [asyncio.create_task(client.complete(ask(str(i)))) for i in range(count)]
    while len(script.sent) < when:
        await asyncio.sleep(0)
    client.wind_down()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    return [e.text if isinstance(e, Reply) else type(e).__name__ for e in ends]


def test_wound_down_what_is_sent_is_answered_and_nothing_more_is_sent() -> None:
    script = Script(Reply("ok", usage=USAGE))
    client = Client(script, limiter=Limiter(2))
    ends = asyncio.run(_wound_down(client, script, 5, 2))
    assert ends == ["ok", "ok", *["CancelledError"] * 3]
    assert len(script.sent) == 2
    assert client.usage.requests == 2  # what waited is not counted, nor held


def test_wound_down_nobody_waits_for_another_attempt() -> None:
    """Not in the pause that was begun, nor in one that would begin."""

    async def for_ever(_: float) -> None:
        await asyncio.Event().wait()

    script = Script(Transient("busy"))
    client = Client(script, limiter=Limiter(1), sleep=for_ever)
    # the first is pausing when the second is sent, which fails afterwards
    assert asyncio.run(_wound_down(client, script, 2, 2)) == ["CancelledError"] * 2
    assert len(script.sent) == 2


def test_wound_down_a_reply_may_still_be_repaired() -> None:
    async def twice(client: Client) -> list[str]:
        first = await client.complete(ask("a"))
        return [first.text, (await client.complete(ask("b"))).text]

    async def work() -> list[str]:
        script = Script(Reply("ok", usage=USAGE))
        client = Client(script)
        task = asyncio.create_task(twice(client))
        while not script.sent:
            await asyncio.sleep(0)
        client.wind_down()
        return await task

    assert asyncio.run(work()) == ["ok", "ok"]


@pytest.mark.parametrize("together", [False, True])
def test_interrupted_what_is_sent_is_answered_and_kept_and_nothing_else_sent(
    together: bool,
) -> None:
    """Also where work that awaits many ends at the first that is not sent."""

    async def work() -> None:
        release, cache, told = asyncio.Event(), Cache(), []

        async def slow() -> Reply:
            await release.wait()
            return Reply("ok", usage=USAGE)

        def tell() -> None:
            told.append(client.under_way)
            asyncio.get_running_loop().call_later(0.05, release.set)

        async def repaired(text: str) -> None:
            await client.complete(ask(text))
            await client.complete(ask(f"{text} once more"))

        script = Script(slow)
        client = Client(script, cache=cache, limiter=Limiter(2))

        async def many() -> None:
            asks = [repaired(str(i)) for i in range(4)]
            await asyncio.gather(*asks, return_exceptions=together)

        asking = asyncio.create_task(answered(many(), client, tell))
        while len(script.sent) < 2:
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert told == [2]
        assert (client.under_way, len(cache.rows)) == (0, 2)
        await asyncio.sleep(0)
        assert len(script.sent) == client.usage.requests == 2

    asyncio.run(work())


async def test_an_overloaded_endpoint_is_asked_by_fewer() -> None:
    """The endpoint takes 5 at a time and turns the rest away."""

    class Narrow(Script):
        async def send(self, request: Request) -> Reply:
            self.sent.append(request)
            if self.under_way >= 5:
                self.most += 1  # here: how often it turned one away
                raise Transient("429", overload=True)
            self.under_way += 1
            await asyncio.sleep(0.002)
            self.under_way -= 1
            return Reply("ok")

    script = Narrow()
    limiter = Limiter(40)
    client = Client(script, limiter=limiter, retry=RetryPolicy(attempts=60, first=0.001))
    replies = await asyncio.gather(*(client.complete(ask(str(n))) for n in range(200)))
    assert len(replies) == 200
    assert limiter.overloads == script.most > 0
    assert script.most < 200  # it learned: the first burst alone turns 35 away
