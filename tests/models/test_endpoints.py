"""Several endpoints of one model, each a real loopback server: who is asked, and what is lost."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import pytest

from agenteval.errors import BadRequest, Transient, Unauthorized
from agenteval.models.client import Client
from agenteval.models.endpoints import LONGEST, Endpoints
from agenteval.models.factory import choose_model, make_client
from agenteval.models.limits import Limits
from agenteval.models.openai import OpenAITransport
from agenteval.models.wire import Request
from agenteval.testing import Fault, Latency, Rule, Server, serve, spawn

NOWHERE = "http://127.0.0.1:9/v1"  # the discard port: refused


@asynccontextmanager
async def client_of(*servers: Server | str, concurrency: int = 12) -> AsyncIterator[Client]:
    urls = [one if isinstance(one, str) else one.base_url for one in servers]
    client = make_client(choose_model("m", " ".join(urls)), Limits(concurrency), None)
    try:
        yield client
    finally:
        await client.close()


def ask(n: int, **more: object) -> Request:
    return Request(messages=({"role": "user", "content": f"case {n}."},), **more)  # type: ignore[arg-type]


async def asked(client: Client, count: int, start: int = 0) -> list[str]:
    numbers = range(start, start + count)
    return [r.text for r in await asyncio.gather(*(client.complete(ask(n)) for n in numbers))]


def answer(body: dict[str, object], n: int) -> str:
    return "yes"


@pytest.mark.parametrize("concurrency", [1, 12])
async def test_equal_endpoints_get_equal_shares(concurrency: int) -> None:
    with serve(answer, latency=0.01) as a, serve(answer, latency=0.01) as b:
        async with client_of(a, b, concurrency=concurrency) as client:
            assert await asked(client, 60) == ["yes"] * 60
        assert abs(a.count - b.count) <= (20 if concurrency > 1 else 0)  # threads take turns
        assert a.count + b.count == 60
        assert a.max_in_flight + b.max_in_flight <= concurrency + 1  # the most were not at once
        assert max(a.max_in_flight, b.max_in_flight) <= concurrency // 2 + 1


async def test_endpoints_that_answer_in_turn_get_equal_shares() -> None:
    limiter = Endpoints(["a", "b", "c"], 12)
    under_way = [await limiter.enter() for _ in range(12)]
    for _ in range(288):  # whoever came first is answered first
        slot = under_way.pop(0)
        limiter.answered(slot)
        limiter.leave(slot)
        under_way.append(await limiter.enter())
    assert [place.in_flight for place in limiter.places] == [4, 4, 4]
    assert [place.answered for place in limiter.places] == [96, 96, 96]


async def test_a_slow_endpoint_gets_fewer() -> None:
    # Six each in flight: what is answered is as one to ten, and its first six.
    with serve(answer, latency=0.2) as slow, serve(answer, latency=0.02) as quick:
        async with client_of(slow, quick) as client:
            await asked(client, 200)
        assert 6 <= slow.count <= 200 / 5
        assert slow.count + quick.count == 200


async def test_each_endpoint_has_its_own_ceiling() -> None:
    # 3 and 13 at once are borne: of 16 in flight those who are turned away are few.
    with serve(answer, latency=0.02, ceiling=3) as small, serve(answer, latency=0.02) as large:
        async with client_of(small, large, concurrency=16) as client:
            assert await asked(client, 400) == ["yes"] * 400
            limiter = client.limiter
            assert isinstance(limiter, Endpoints)
            limits = [place.ceiling.limit for place in limiter.places]
        rejected = sum(one.outcome == "rejected" for one in small.requests)
        assert limits[1] == 16  # 429s of one are no matter of the other
        assert limits[0] <= 5
        assert rejected == limiter.overloads > 0
        assert rejected <= 40
        assert small.count - rejected >= 20


async def test_one_that_is_dead_costs_no_answer_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serve(answer) as alive, caplog.at_level(logging.WARNING):
        async with client_of(NOWHERE, alive, concurrency=8) as client:
            assert await asked(client, 50) == ["yes"] * 50
            assert client.usage.requests <= 50 + 8  # those that were under way at first
            assert isinstance(client.limiter, Endpoints)
            told = client.limiter.told
    (line,) = [r.getMessage() for r in caplog.records if "left out" in r.getMessage()]
    assert line.startswith(f"{NOWHERE}: cannot connect (Connection refused); it is left out")
    assert told.startswith(f"endpoints: {NOWHERE} answered 0, failed ")
    assert told.endswith(f"; {alive.base_url} answered 50")


async def test_most_of_many_dead_use_up_no_attempts() -> None:
    # One by one each of seven is found to be dead: six attempts alone would not do.
    dead = [f"http://127.0.0.1:{port}/v1" for port in range(1, 8)]
    with serve(answer) as alive:
        async with client_of(*dead, alive, concurrency=1) as client:
            assert await asked(client, 3) == ["yes"] * 3
            assert client.usage.requests == 3 + 7


async def test_one_that_dies_in_the_middle_loses_nothing() -> None:
    with spawn("--latency", "0.05") as dying, serve(answer, latency=0.05) as alive:
        async with client_of(dying.base_url, alive) as client:
            work = asyncio.create_task(asked(client, 200))
            while alive.count < 20:
                await asyncio.sleep(0.01)
            dying.process.kill()
            assert len(await work) == 200


async def test_one_that_fails_for_a_while_comes_back() -> None:
    down = True

    def sometimes(body: dict[str, object], n: int) -> str | Fault:
        return Fault("status", 503) if down else "yes"

    with serve(sometimes, latency=0.01) as ill, serve(answer, latency=0.01) as well:
        async with client_of(ill, well, concurrency=4) as client:
            assert await asked(client, 60) == ["yes"] * 60
            assert ill.count <= 4  # those under way at the first 503
            down = False
            await asyncio.sleep(1.1)
            before = well.count
            assert await asked(client, 60, start=60) == ["yes"] * 60
        assert ill.count >= 20
        assert well.count - before >= 20


async def test_one_that_is_silent_loses_nothing() -> None:
    hanging = [Fault("hang", seconds=30)]
    with serve(answer, faults=hanging) as silent, serve(answer) as alive:
        async with client_of(silent, alive, concurrency=8) as client:
            client.timeout = 0.5
            assert await asked(client, 60) == ["yes"] * 60
        assert silent.count <= 4 + 1  # its share at first, and one that tried it


async def test_how_long_it_is_left_out() -> None:
    # 1, 2, 4 ... 60 s, or what it asks for; one attempt at a time tries it; an answer ends it.
    now = 0.0
    limiter = Endpoints(["a", "b"], 8, clock=lambda: now)

    async def place() -> int:
        """Where the next attempt goes when b is busier than a."""
        slots = [await limiter.enter() for _ in range(3)]
        for slot in slots:
            limiter.leave(slot)
        return sum(slot.place == 0 for slot in slots)

    pauses, error = [], Transient("503")
    slot = await limiter.enter()
    assert slot.place == 0
    assert await place() == 1  # two more to b, then one to a
    for _ in range(8):
        assert limiter.failed(slot, error)
        limiter.leave(slot)
        began = now
        while await place() == 0:
            now += 0.5
        pauses.append(now - began)
        assert await place() == 1  # and no second beside it
        slot = await limiter.enter()
        slot = slot if slot.place == 0 else await limiter.enter()
        assert slot.place == 0
    assert pauses == [1, 2, 4, 8, 16, 32, LONGEST, LONGEST]
    limiter.answered(slot)
    limiter.leave(slot)
    assert await place() >= 1
    slot = await limiter.enter()
    while slot.place != 0:
        slot = await limiter.enter()
    began = now
    assert limiter.failed(slot, Transient("429", overload=True, retry_after=90))
    limiter.leave(slot)
    while await place() == 0:
        now += 0.5
    assert now - began == 90


async def test_a_burst_of_failures_is_one() -> None:
    now = 0.0
    limiter = Endpoints(["a", "b"], 8, clock=lambda: now)
    slots = [await limiter.enter() for _ in range(8)]
    for slot in slots:
        if slot.place == 0:
            assert limiter.failed(slot, Transient("reset"))
        limiter.leave(slot)
    now = 1.0
    assert Counter(s.place for s in [await limiter.enter() for _ in range(4)])[0] == 1


async def test_when_all_are_out_all_are_asked() -> None:
    limiter = Endpoints(["a", "b"], 4, clock=lambda: 0.0)
    for expected in (True, False):  # another is left; none is
        slot = await limiter.enter()
        assert limiter.failed(slot, Transient("refused")) is expected
        limiter.leave(slot)
    slots = [await asyncio.wait_for(limiter.enter(), 1) for _ in range(4)]
    assert Counter(slot.place for slot in slots) == {0: 2, 1: 2}


async def test_who_waits_is_let_in_when_an_endpoint_may_be_back() -> None:
    limiter = Endpoints(["a", "b"], 2)
    one, two = await limiter.enter(), await limiter.enter()
    limiter.places[1].ceiling.limit = 1.0
    limiter.failed(one, Transient("503"))
    limiter.leave(one)
    waiting = asyncio.create_task(limiter.enter())
    await asyncio.sleep(0.1)
    assert not waiting.done()  # b is full, a is out
    assert (await asyncio.wait_for(waiting, 2)).place == one.place
    assert limiter.places[two.place].in_flight == 1


async def test_a_refused_key_at_one_is_the_end() -> None:
    with serve(answer) as a, serve(faults=[Fault("status", 401)]) as b:
        async with client_of(a, b) as client:
            with pytest.raises(Unauthorized, match=f"^{b.base_url}: HTTP 401"):
                await asked(client, 20)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, '{"error": {"message": "The model `m` does not exist."}}'),
        (400, '{"error": {"message": "Invalid model name passed in model=m"}}'),
        (404, "no such page"),
    ],
)
async def test_another_model_at_one_is_told_and_not_left_out(status: int, body: str) -> None:
    with serve(answer) as a, serve(faults=[Fault("status", status, body=body)]) as b:
        async with client_of(a, b) as client:
            with pytest.raises(Unauthorized) as raised:
                await asked(client, 20)
    assert str(raised.value).startswith(f"{b.base_url}: HTTP {status} (")
    assert str(raised.value).endswith("each of several base URLs must serve the model m")


async def test_one_that_redirects_elsewhere_is_the_end() -> None:
    away = Fault("status", 307, headers={"location": "http://127.0.0.1:9/v1/chat/completions"})
    with serve(answer) as a, serve(faults=[away]) as b:
        async with client_of(a, b) as client:
            with pytest.raises(Unauthorized, match="nothing was sent there"):
                await asked(client, 20)


async def test_a_request_that_cannot_be_served_is_its_own_matter() -> None:
    faults = [
        Rule(Fault("status", 400, body='{"error": {"message": "bad text"}}'), match="case 3\\.")
    ]
    with serve(answer, faults=faults) as a, serve(answer, faults=faults) as b:
        async with client_of(a, b) as client:
            with pytest.raises(BadRequest) as raised:
                await client.complete(ask(3))
            assert not isinstance(raised.value, Unauthorized)
            assert await asked(client, 3) == ["yes"] * 3


async def test_what_an_endpoint_does_not_take_is_remembered_for_it_alone() -> None:
    def no_schema(body: dict[str, object], n: int) -> str | Fault:
        if "json_schema" in str(body.get("response_format")):
            refusal = '{"error": {"message": "response_format is not supported"}}'
            return Fault("status", 400, body=refusal)
        return '{"a": 1}'

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    with serve(no_schema) as old, serve(lambda body, n: '{"a": 1}') as new:
        async with client_of(old, new, concurrency=1) as client:
            replies = [await client.complete(ask(n, schema=schema)) for n in range(6)]
        refused = [r for r in old.requests if r.outcome == "status"]
        assert len(refused) == 1
        forms = Counter(reply.mode for reply in replies)
        assert forms["json_object"] == old.count - 1 > 0
        assert forms["json_schema"] == new.count > 0


async def test_the_first_one_stands_for_all_in_keys() -> None:
    with ExitStack() as stack:
        a, b, c = (stack.enter_context(serve(answer, latency=Latency(a=0.0))) for _ in range(3))
        alone = OpenAITransport("m", base_url=a.base_url, api_key=None)
        key = ask(0).key(alone.endpoint, "m")
        for urls in ((a, b), (a, c, b), (a,)):
            async with client_of(*urls) as client:
                assert (await client.complete(ask(0))).key == key
        async with client_of(b, a) as client:
            assert (await client.complete(ask(0))).key != key
