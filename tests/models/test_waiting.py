"""What endpoints say in headers about asking again: `x-should-retry`, and lists of numbers."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.engine.judging import classify
from agenteval.errors import BadRequest, ModelError, TooLong, Transient, Unauthorized
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.http_errors import retry_after
from agenteval.models.openai import OpenAITransport
from agenteval.models.wire import Request
from agenteval.testing import Fault, Rule, Server, serve

ASK = Request(({"role": "user", "content": "hello"},))


def told(status: int, said: str, **more: Any) -> Fault:
    return Fault(
        "status", status, headers={"x-should-retry": said, **more.pop("headers", {})}, **more
    )


def client_of(server: Server, slept: list[float], attempts: int = 6) -> Client:
    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    transport = OpenAITransport("m", base_url=server.base_url, api_key=None)
    return Client(transport, sleep=sleep, retry=RetryPolicy(attempts=attempts))


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_who_asks_not_to_be_asked_again_is_not(status: int) -> None:
    slept: list[float] = []
    with serve(faults=[told(status, "false", headers={"retry-after": "3"})]) as server:
        client = client_of(server, slept)
        with pytest.raises(Transient, match=rf"HTTP {status} .*asks not to be asked again$") as no:
            await client.complete(ASK)
        await client.close()
    assert (server.count, slept) == (1, [])
    assert client.limiter.overloads == (status == 429)  # it is still too much
    # may heal later: the cell is asked again by the next session
    assert classify(no.value)[0] == "error:infrastructure"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 418, 422])
async def test_who_asks_to_be_asked_again_is_within_the_same_bounds(status: int) -> None:
    for first, attempts, count in ((2, 6, 3), (9, 4, 4)):
        slept: list[float] = []
        with serve(lambda b, n: "ok", [Rule(told(status, "true"), first=first)]) as server:
            client = client_of(server, slept, attempts)
            if count == attempts:
                with pytest.raises(Transient, match=f"HTTP {status}"):
                    await client.complete(ASK)
            else:
                assert (await client.complete(ASK)).text == "ok"
            await client.close()
        assert (server.count, len(slept)) == (count, count - 1)


async def test_the_pause_that_goes_with_it_is_kept() -> None:
    slept: list[float] = []
    again = told(400, "true", headers={"retry-after": "7"})
    with serve(lambda b, n: "ok", [Rule(again, first=1)]) as server:
        client = client_of(server, slept)
        await client.complete(ASK)
        await client.close()
    assert len(slept) == 1
    assert 7 <= slept[0] <= 7.8


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (told(400, "false"), BadRequest),
        (told(401, "false"), Unauthorized),
        (told(429, "false", code="insufficient_quota"), Unauthorized),
        # no second answer can differ from the first
        (told(400, "true", code="context_length_exceeded"), TooLong),
    ],
)
async def test_what_is_final_stays_what_it_is(fault: Fault, kind: type[ModelError]) -> None:
    slept: list[float] = []
    with serve(faults=[fault]) as server:
        client = client_of(server, slept)
        with pytest.raises(kind) as raised:
            await client.complete(ASK)
        await client.close()
    assert type(raised.value) is kind
    assert (server.count, slept) == (1, [])


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        # the same header several times arrives as one
        ({"retry-after": "5, 10"}, 10.0),
        ({"retry-after": "10,5"}, 10.0),
        ({"retry-after-ms": "250, 1500"}, 1.5),
        ({"retry-after": "-4, 3"}, 3.0),
        ({"retry-after": "5, soon"}, None),
        ({"retry-after": "1e1"}, 10.0),
        ({"retry-after": "+2"}, 2.0),
        ({"retry-after": ".5"}, 0.5),
        ({"retry-after": "1e9"}, 1e9),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "inf"}, None),
        # numbers to Python, but to nobody who speaks HTTP
        ({"retry-after": "1_000"}, None),
        ({"retry-after": "\u0667"}, None),
        ({"retry-after-ms": "-1", "retry-after": "2"}, 2.0),
    ],
)
def test_numbers(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers, now=0.0) == expected


def test_no_long_text_takes_long() -> None:
    texts = "1" * 100_000, "1," * 50_000, "1e" * 50_000, "1 , " * 25_000 + "x"
    # where a digit could belong to two parts of a number, these would outlast the universe
    for text in (*texts, "11," * 200 + "x", "1" * 100_000 + "x"):
        retry_after({"retry-after": text}, now=0.0)
