"""What all agents on a model share: endless loops, slow and failing endpoints, secrets, usage."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from agenteval.agents import AgentFailure, AgentLog, System, drive
from agenteval.agents.autogen import autogen
from agenteval.agents.endpoint import ChatTransport, Endpoint, Line, connect
from agenteval.agents.openai_chat import openai_chat
from agenteval.agents.react import react
from agenteval.agents.toolbox import MAX_CALLS
from agenteval.errors import InputError, RequestTimeout, Transient
from agenteval.models.client import Client
from agenteval.models.wire import Request
from agenteval.testing import Fault, Rule, Server, serve
from tests.agents.conftest import CANARY, box, call, calls, instant, made, script, statuses
from tests.models.simulated import VirtualLoop

Maker = Callable[..., System]
FUNCTIONS: list[tuple[Maker, Any, Any]] = [
    (openai_chat, calls(call("pack_bag")), {"content": "done"}),
    (react, "Action: pack_bag\nAction Input: {}", "Final Answer: done"),
    (autogen, calls(call("pack_bag")), {"content": "done"}),
]
every = pytest.mark.parametrize(("make", "act", "finish"), FUNCTIONS)


async def run(make: Maker, server: Server | str, **more: Any) -> Any:
    url = server if isinstance(server, str) else server.base_url
    tools = box(more.pop("seconds", 20.0), more.pop("turns", 5))
    budget, sleep = more.pop("budget", None), more.pop("sleep", instant)
    endpoint = Endpoint("test-model", url, api_key=CANARY, **more)
    client = connect(endpoint, budget=budget, sleep=sleep)
    try:
        return await drive(made(make(endpoint, client)), "Pack.", tools)
    finally:
        await client.close()


@every
async def test_the_same_task_with_every_adapter(make: Maker, act: Any, finish: Any) -> None:
    with serve(script(act, finish)) as server:
        log = await run(make, server)
    assert isinstance(log, AgentLog)
    assert (log.ending, log.output, log.turns, log.usage.requests) == ("finished", "done", 1, 2)
    assert statuses(log.events) == [(0, "pack_bag", "ok")]
    assert [m.role for m in log.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert log.messages[2].tool_calls[0].name == "pack_bag"
    assert "pack_bag done" in log.messages[3].content
    assert log.model == "test-model"


@pytest.mark.parametrize("make", [openai_chat, autogen])
async def test_a_flood_of_calls_in_one_reply_is_ended(make: Maker) -> None:
    flood = calls(*(call("pack_bag", number=f"c{i}") for i in range(MAX_CALLS + 5)))
    with serve(script(flood, {"content": "done"})) as server:
        log = await run(make, server)
        assert server.count == 1
    assert isinstance(log, AgentLog)
    assert (log.ending, len(log.events), log.turns) == ("iterations", MAX_CALLS, 1)


@every
async def test_a_slow_model_is_a_timeout_of_the_agent(make: Maker, act: Any, finish: Any) -> None:
    with serve(script(act, finish), latency=5.0) as server:
        began = time.monotonic()
        log = await run(make, server, seconds=0.5)
        assert time.monotonic() - began < 3
    assert isinstance(log, AgentLog)
    assert (log.ending, log.events, log.output) == ("timeout", (), "")
    assert log.usage.requests == 1


@every
async def test_what_can_heal_is_asked_again(make: Maker, act: Any, finish: Any) -> None:
    full = Fault("status", 429, headers={"retry-after": "7"})
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    with serve(script(act, finish), [Rule(full, first=2)]) as server:
        log = await run(make, server, sleep=sleep)
        assert server.count == 6
    assert isinstance(log, AgentLog)
    assert (log.ending, log.output, log.usage.requests) == ("finished", "done", 6)
    assert len(waited) == 4
    assert min(waited) >= 7


@every
async def test_an_endpoint_that_fails_is_no_verdict(make: Maker, act: Any, finish: Any) -> None:
    # the first turn works, then nothing does: what was done and spent is kept
    with serve(script(act), [Rule(Fault("status", 500), match="pack_bag done")]) as server:
        log = await run(make, server, max_retries=3)
        assert server.count == 5
    assert isinstance(log, AgentFailure)
    assert log.status == "error:infrastructure"
    assert "HTTP 500" in log.message
    assert statuses(log.events) == [(0, "pack_bag", "ok")]
    assert log.usage.requests == 5
    assert log.usage.prompt_tokens


# ---- Who took the time ---------------------------------------------------------------------------


#
# In virtual time: only waiting takes time, so no machine is too slow for these. The seconds are
# many, since a driver also looks at the real clock for an event loop that stands still.

SECONDS = 100.0


class Slow(ChatTransport):
    """Instead of an endpoint: takes its time for each request, then answers or fails."""

    plan: Callable[[dict[str, Any], int], tuple[float, Any]]  # (request, n) -> seconds, reply

    def __init__(self, model: str, **more: Any) -> None:
        super().__init__(model, **more)
        self.asked = 0

    async def _post(self, body: dict[str, Any]) -> bytes:
        self.asked += 1
        seconds, reply = type(self).plan(body, self.asked)
        await asyncio.sleep(seconds)
        if isinstance(reply, Exception):
            raise reply
        message = {"role": "assistant", **({"content": reply} if isinstance(reply, str) else reply)}
        choice = {"message": message, "finish_reason": "stop"}
        return json.dumps({"choices": [choice], "model": "slow"}).encode()


def virtually(
    plan: Callable[[dict[str, Any], int], tuple[float, Any]], work: Any, **more: Any
) -> Any:
    """What `work(endpoint, client)` gives with a model that follows the plan."""
    planned = type("Planned", (Slow,), {"plan": staticmethod(plan)})

    async def run() -> Any:
        endpoint, clock = Endpoint("m"), asyncio.get_running_loop().time
        client = connect(endpoint, transport=planned, clock=clock, **more)
        try:
            return await work(endpoint, client)
        finally:
            await client.close()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


def full(seconds: float) -> Transient:
    return Transient("HTTP 429", retry_after=seconds, overload=True)


def timed(make: Maker, plan: Callable[[dict[str, Any], int], tuple[float, Any]]) -> Any:
    async def work(endpoint: Endpoint, client: Client) -> Any:
        return await drive(made(make(endpoint, client)), "Pack.", box(SECONDS, 5))

    return virtually(plan, work)


@every
@pytest.mark.parametrize("first", [0.0, 80.0])
def test_time_lost_to_the_endpoint_is_no_timeout_of_the_agent(
    make: Maker, act: Any, finish: Any, first: float
) -> None:
    # the first reply takes its time, then the endpoint asks to wait beyond the end, at 99.5 s
    log = timed(make, lambda body, n: (first, act) if n == 1 else (0.0, full(110.0)))
    assert isinstance(log, AgentFailure)
    assert log.status == "error:infrastructure"
    assert f"{99.5 - first:.1f} of 100 s went to retries and waiting" in log.message
    assert log.usage.requests == 2


@every
def test_a_model_that_takes_long_is_a_timeout_of_the_agent(
    make: Maker, act: Any, finish: Any
) -> None:
    log = timed(make, lambda body, n: (80.0, act) if n == 1 else (30.0, finish))
    assert isinstance(log, AgentLog)
    assert (log.ending, log.usage.requests) == ("timeout", 2)


def test_a_case_that_waits_for_others_is_no_timeout_of_the_agent() -> None:
    async def work(endpoint: Endpoint, client: Client) -> Any:
        system = openai_chat(endpoint, client)
        return await asyncio.gather(*(drive(system.make(), "Go.", box(SECONDS)) for _ in range(2)))

    logs = virtually(lambda body, n: (60.0, "x"), work, concurrency=1)
    assert isinstance(logs[0], AgentLog)
    assert logs[0].ending == "finished"
    assert isinstance(logs[1], AgentFailure)
    assert "60.0 of 100 s went to retries and waiting" in logs[1].message


def test_time_lost_earlier_counts() -> None:
    # 11 s until the second attempt, 40 s for its answer: nearly all of the rest is the model's
    plan = [(0.0, full(11.0)), (40.0, "a"), (500.0, "late")]

    async def work(endpoint: Endpoint, client: Client) -> None:
        line = Line(client, box(SECONDS))
        await line.ask(Request(({"role": "user", "content": "1"},)))
        # 11 s, and up to a tenth more so that not all come at once
        with pytest.raises(Transient, match=r"1[12]\.\d of 100 s"):
            await line.ask(Request(({"role": "user", "content": "2"},)))

    virtually(lambda body, n: plan[n - 1], work)


def test_less_than_a_tenth_lost_is_the_agents_time() -> None:
    plan = [(0.0, full(8.0)), (40.0, "a"), (500.0, "late")]

    async def work(endpoint: Endpoint, client: Client) -> None:
        line = Line(client, box(SECONDS))
        await line.ask(Request(({"role": "user", "content": "1"},)))
        with pytest.raises(RequestTimeout, match="no reply within 100 s"):
            await line.ask(Request(({"role": "user", "content": "2"},)))

    virtually(lambda body, n: plan[n - 1], work)


# ---- One client for many cases -------------------------------------------------------------------


# ---- Settings ------------------------------------------------------------------------------------


def test_the_key_shows_nowhere() -> None:
    endpoint = Endpoint("m", f"http://me:{CANARY}@host/v1?key={CANARY}", api_key=CANARY)
    assert CANARY not in f"{endpoint} {endpoint!r} {endpoint.parameters()}"
    assert endpoint.parameters() == {"model": "m", "endpoint": "http://host/v1", "temperature": 0.0}


@pytest.mark.parametrize(
    "wrong", [{"model": ""}, {"timeout": 0.0}, {"timeout": float("nan")}, {"max_retries": -1}]
)
def test_settings_out_of_bounds(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Endpoint(**{"model": "m", **wrong})
