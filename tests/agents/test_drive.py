"""The driver: how a case may end, what is raised, and what is nobody's verdict."""

import asyncio
import subprocess
import sys
import textwrap
import time

import pytest

from agenteval.agents import AgentFailure, AgentLimits, AgentLog, Dialogue, Tool, Toolbox, drive
from agenteval.errors import (
    BadRequest,
    BudgetExceeded,
    Filtered,
    InputError,
    ModelError,
    ModelUnavailable,
    RequestTimeout,
    TooLong,
    Transient,
    Unauthorized,
)
from agenteval.records import Message, Usage


def box(backend=lambda name, arguments: f"{name} done", **limits):
    return Toolbox([Tool(name="rinse"), Tool(name="dry")], backend, AgentLimits(**limits))


class Doing:
    """An agent whose work is the given coroutine function."""

    def __init__(self, work):
        self.work = work

    async def run(self, request, tools):
        return await self.work(tools)


async def test_finished():
    async def work(tools):
        tools.say(Message(role="assistant", content="first I rinse"))
        tools.call("rinse")
        tools.spend(Usage(requests=1))
        tools.model = "m-1"
        await asyncio.sleep(0.05)
        return "all done"

    tools = box()
    await asyncio.sleep(0.5)  # waiting for its turn is not the agent's time
    log = await drive(Doing(work), "please", tools)
    assert isinstance(log, AgentLog)
    assert (log.ending, log.output, log.turns, log.model) == ("finished", "all done", 1, "m-1")
    assert [e.name for e in log.events] == ["rinse"]
    assert [m.content for m in log.messages] == ["first I rinse"]
    assert log.usage == Usage(requests=1)
    assert 0.05 <= log.seconds < 0.5
    assert log.events[0].at <= log.seconds
    assert AgentLog.model_validate_json(log.model_dump_json()) == log


async def forever(tools):
    while True:
        tools.call("rinse")
        await asyncio.sleep(0)


async def stubborn(tools):
    while True:
        try:
            tools.call("rinse")
            await asyncio.sleep(0)
        except Exception:  # noqa: BLE001
            continue


async def gives_up(tools):
    while not tools.exhausted.is_set():
        tools.call("rinse")
    return "I was told to stop"


@pytest.mark.parametrize("work", [forever, stubborn, gives_up])
async def test_too_many_turns(work):
    began = time.monotonic()
    log = await drive(Doing(work), "", box(turns=5))
    assert (log.ending, log.turns, len(log.events), log.output) == ("iterations", 5, 5, "")
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ZeroDivisionError("x / 0"), "error:infrastructure", "unexpected ZeroDivisionError: x / 0"),
        (Transient("502 from the endpoint"), "error:infrastructure", "502 from the endpoint"),
        (BadRequest("no such model"), "error:infrastructure", "no such model"),
        (RequestTimeout("no answer in 60 s"), "error:timeout", "no answer in 60 s"),
        (TooLong("too long for the model"), "unscored:too_long", "too long for the model"),
        (Filtered("withheld"), "unscored:refusal", "withheld"),
        (ExceptionGroup("g", [RequestTimeout("slow")]), "error:timeout", "slow"),
        (SystemExit(3), "error:infrastructure", "the agent left with SystemExit(3)"),
        (BaseException("odd"), "error:infrastructure", "the agent left with BaseException"),
        (GeneratorExit("odd"), "error:infrastructure", "the agent left with GeneratorExit"),
        (asyncio.CancelledError(), "error:infrastructure", "the agent cancelled itself"),
        (RuntimeError("\ud800" * 600), "error:infrastructure", None),
    ],
)
async def test_a_crash_is_no_verdict(error, status, message):
    async def work(tools):
        tools.call("rinse")
        tools.spend(Usage(requests=2))
        raise error

    failure = await drive(Doing(work), "", box())
    assert isinstance(failure, AgentFailure)
    assert failure.status == status
    assert message is None or failure.message.split(" (")[0] == message
    assert len(failure.message) <= 500
    assert [e.name for e in failure.events] == ["rinse"]
    assert failure.usage == Usage(requests=2)
    failure.model_dump_json()


@pytest.mark.parametrize("error", [Unauthorized, BudgetExceeded, InputError, ModelUnavailable])
@pytest.mark.parametrize("grouped", [False, True])
async def test_what_every_case_would_meet_is_raised(error, grouped):
    async def work(tools):
        raise ExceptionGroup("tasks", [ValueError("x"), error("e")]) if grouped else error("e")

    with pytest.raises(error):
        await drive(Doing(work), "", box())


@pytest.mark.parametrize("work", [forever, stubborn])
async def test_a_defect_of_the_backend_is_not_the_agents(work):
    def backend(name, arguments):
        raise KeyError("start")

    failure = await drive(Doing(work), "", box(backend, seconds=10))
    assert isinstance(failure, AgentFailure)
    assert failure.status == "error:infrastructure"
    assert failure.message.startswith("defect of the tools: unexpected KeyError: 'start' (")
    assert failure.message.endswith(': raise KeyError("start"))')
    assert failure.events == ()
    assert failure.seconds < 2


async def test_the_end_is_the_end_for_an_agent_that_ignores_it(caplog):
    go_on = asyncio.Event()

    async def work(tools):
        while not go_on.is_set():
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                pass
            tools.call("rinse")
            tools.say(Message(role="assistant", content="still here"))
        return "late"

    tools = box(seconds=0.2, turns=100)
    began = time.monotonic()
    log = await drive(Doing(work), "", tools)
    assert time.monotonic() - began < 4
    assert (log.ending, log.output) == ("timeout", "")
    assert "an agent ignored its cancellation" in caplog.text
    assert len(log.events) <= 10
    assert log.events == tuple(tools.events)
    assert log.seconds < 0.5
    await asyncio.sleep(0.1)
    assert len(tools.events) == len(log.events)
    assert len(tools.messages) == len(log.messages)
    go_on.set()
    await asyncio.sleep(0.05)


def run_python(program, timeout):
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


HEAD = """
import asyncio, sys, time
from agenteval.agents import *
from agenteval.agents.callable import CallableAgent
def box(**limits):
    return Toolbox([Tool(name="rinse")], lambda n, a: "ok", AgentLimits(**limits))
"""


def test_a_thread_that_nobody_can_stop_does_not_keep_the_process():
    program = """
def work(request, tools):
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
log = asyncio.run(drive(CallableAgent(work), "", box(seconds=0.1)))
print(log.ending)
"""
    done = run_python(HEAD + program, timeout=30)
    assert (done.returncode, done.stdout.strip()) == (0, "timeout"), done.stderr


async def test_cancelling_twice_still_stops_the_agent():
    stopped = []

    async def work(tools):
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.3)
            stopped.append(True)
        return ""

    task = asyncio.create_task(drive(Doing(work), "", box()))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.5)
    assert stopped == [True]


def test_ctrl_c_ends_agent_and_driver():
    program = (
        HEAD
        + """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell put us behind
async def work(request, tools):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        await asyncio.sleep(30)
    finally:
        print("agent stopped")
try:
    asyncio.run(drive(CallableAgent(work), "", box()))
except KeyboardInterrupt:
    print("interrupted")
"""
    )
    done = run_python(program, timeout=20)
    assert done.stdout.split("\n")[:2] == ["agent stopped", "interrupted"], done.stderr


async def test_a_loop_that_stood_still_gives_no_verdict():
    """One case blocks the loop; the others had no chance, so they did not time out."""

    async def blocks(tools):
        await asyncio.sleep(0.05)
        time.sleep(2.5)
        return "done"

    async def steps(tools):
        for _ in range(3):
            await asyncio.sleep(0.6)
        return "done"

    async def one_step(tools):  # due before its time was over
        await asyncio.sleep(1.8)
        return "done"

    _, other, third = await asyncio.gather(
        *(drive(Doing(work), "", box(seconds=2)) for work in (blocks, steps, one_step))
    )
    assert isinstance(other, AgentFailure)
    assert "stood still for 2." in other.message
    assert (third.ending, third.output) == ("finished", "done")


async def test_time_that_the_endpoint_took_is_no_timeout_of_the_agent() -> None:
    class Waits:
        async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                raise ModelError("the endpoint kept the request waiting") from None
            return ""

    tools = Toolbox([], lambda name, arguments: "", AgentLimits(seconds=0.05))
    log = await drive(Waits(), "request", tools)
    assert isinstance(log, AgentFailure)
    assert log.message == "the endpoint kept the request waiting"


async def test_a_failure_tells_no_secret_of_our_environment(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "k-0123456789")

    async def work(tools):
        raise RuntimeError("refused: k-0123456789 is no key")

    failure = await drive(Doing(work), "", box())
    assert failure.message.startswith("unexpected RuntimeError: refused: [hidden] is no key (")
    assert "0123456789" not in failure.message
