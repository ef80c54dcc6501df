"""Requests at the same time, and what is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx2
import openai

from agenteval.testing import serve
from tests.testing.conftest import ask, client


async def _many(
    url: str, count: int, text: Callable[[int], str] = lambda i: f"text {i}"
) -> list[str]:
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with openai.AsyncOpenAI(
        base_url=url,
        api_key="none",
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(limits=limits),
    ) as sdk:

        async def one(i: int) -> str:
            try:
                reply = await sdk.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": text(i)}]
                )
            except openai.RateLimitError:
                return "429"
            return reply.choices[0].message.content or ""

        return list(await asyncio.gather(*(one(i) for i in range(count))))


async def test_above_the_ceiling_there_are_429s_and_they_use_up_no_turn() -> None:
    with serve(lambda body, n: f"turn {n}", ceiling=10, latency=2.0) as server:
        replies = await _many(server.base_url, 30, lambda i: "same")
        assert server.max_in_flight == 10
        assert server.engine.stats()["outcomes"] == {"ok": 10, "rejected": 20}
    assert sorted(r for r in replies if r != "429") == [f"turn {n}" for n in range(10)]


def test_stats_and_reset() -> None:
    with serve(lambda body, n: "x") as server, client(server) as sdk:
        for text in "aab":
            ask(sdk, text)
        root = server.base_url.removesuffix("/v1")
        stats = httpx2.get(f"{root}/stats").json()
        assert stats["requests"] == 3
        assert sorted(stats["per_request"].values()) == [[1, 1], [2, 2]]
        assert stats["answered_again"] == 1
        assert "per_request" not in httpx2.get(f"{root}/stats?keys=no").json()
        assert httpx2.post(f"{root}/reset").status_code == 200
        assert httpx2.get(f"{root}/stats").json()["requests"] == 0
        assert httpx2.get(f"{root}/reset").status_code == 405
        assert httpx2.get(f"{root}/nothing").status_code == 404
