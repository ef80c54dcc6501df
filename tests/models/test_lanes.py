"""Lanes: as many SDK clients as are needed, each with a bounded number of requests."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from agenteval.models.lanes import Lanes
from agenteval.testing import spawn


def test_a_lane_is_filled_before_another_is_opened_and_used_again_when_free() -> None:
    lanes = Lanes("http://127.0.0.1:9/v1", "", width=2)
    with ExitStack() as stack:
        held = [stack.enter_context(lanes.lane()) for _ in range(5)]
    first, second, third = held[0], held[2], held[4]
    assert held == [first, first, second, second, third]
    assert len({id(sdk) for sdk in (first, second, third)}) == 3
    with lanes.lane() as sdk:
        assert sdk is first
    asyncio.run(lanes.close())


def test_a_request_that_fails_gives_its_place_back() -> None:
    lanes = Lanes("http://127.0.0.1:9/v1", "", width=1)
    try:
        with lanes.lane() as failed:
            raise ValueError
    except ValueError:
        pass
    with lanes.lane() as sdk:
        assert sdk is failed
    asyncio.run(lanes.close())


def test_closed_while_in_use_and_opened_again() -> None:
    async def run() -> None:
        lanes = Lanes("http://127.0.0.1:9/v1", "", width=1)
        with lanes.lane() as before:
            await lanes.close()
        with lanes.lane() as after:
            assert after is not before
            assert not after.is_closed()
        assert before.is_closed()
        await lanes.close()

    asyncio.run(run())


def test_requests_over_several_lanes_reach_the_endpoint() -> None:
    async def run(url: str) -> list[int]:
        lanes = Lanes(url, "", width=1)

        async def ask() -> int:
            with lanes.lane() as sdk:
                answer = await sdk.post("/chat/completions", cast_to=lanes.response, body=body)
            return int(answer.status_code)

        body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        codes = await asyncio.gather(*(ask() for _ in range(4)))
        await lanes.close()
        return codes

    with spawn() as server:
        assert asyncio.run(run(server.base_url)) == [200] * 4
        assert sum(server.stats()["outcomes"].values()) == 4
