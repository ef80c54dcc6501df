"""Tools that are awaited: order, threads, loops, defects, time; and stopping after some calls."""

import asyncio
import functools
import gc
import json
import threading

import pytest

from agenteval.agents import AgentFailure, AgentLimits, Tool, Toolbox, drive
from agenteval.agents.callable import CallableAgent
from agenteval.agents.toolbox import STOPPED
from agenteval.errors import InputError
from agenteval.records import Usage

START = {
    "type": "object",
    "properties": {"start": {"type": "integer"}},
    "required": ["start"],
    "additionalProperties": False,
}
TOOLS = [Tool(name="rinse"), Tool(name="dry", parameters=START)]


def answer(name, arguments):
    if arguments.get("start") == 13:
        raise ValueError("never at 13")
    return f"{name} done with {json.dumps(dict(arguments))}"


async def answer_later(name, arguments):
    await asyncio.sleep(0)
    return answer(name, arguments)


class Later:
    async def __call__(self, name, arguments):
        return await answer_later(name, arguments)


async def with_more(more, name, arguments):
    return await answer_later(name, arguments)


def box(backend=answer_later, stop_after=None, **limits):
    return Toolbox(TOOLS, backend, AgentLimits(**limits), stop_after=stop_after)


def seen(tools):
    return [(e.name, e.arguments, e.status, e.result, e.turn) for e in tools.events]


CALLS = [
    ("dry", {"start": 9}),
    ("rinse", ""),
    ("polish", {"a": 1}),
    ("dry", {"start": "9"}),
    ("dry", '{"start": 1'),
    ("dry", {"start": 13}),
    (None, 5),
    ("rinse", None),
]


@pytest.mark.parametrize("backend", [answer_later, Later(), functools.partial(with_more, 1)])
async def test_as_tools_that_answer_at_once(backend):
    at_once, later = box(answer), box(backend)
    told = [at_once.attempt(*call) for call in CALLS]
    assert [await later.attempt_async(*call) for call in CALLS] == told
    assert seen(later) == seen(at_once)
    assert [status for status, _ in told] == [
        "ok",
        "ok",
        "unknown_tool",
        "bad_arguments",
        "bad_arguments",
        "bad_arguments",
        "unknown_tool",
        "ok",
    ]


async def test_one_call_after_the_other_in_their_order():
    inside = []

    async def backend(name, arguments):
        inside.append(arguments["start"])
        assert len(inside) == 1
        for _ in range(arguments["start"] % 3):
            await asyncio.sleep(0)
        inside.clear()
        return "done"

    tools = box(backend, turns=100)
    await asyncio.gather(*(tools.call_async("dry", {"start": n}) for n in range(20)))
    assert [e.arguments["start"] for e in tools.events] == list(range(20))
    assert [e.turn for e in tools.events] == list(range(20))


async def test_a_thread_waits_for_the_loop():
    home = []

    async def backend(name, arguments):
        home.append(threading.current_thread())
        return await answer_later(name, arguments)

    def work(request, tools):
        home.append(threading.current_thread())
        return tools["dry"](start=9) + "; " + tools.call("polish")

    log = await drive(CallableAgent(work), "", box(backend))
    assert log.output.startswith('dry done with {"start": 9}; There is no tool')
    assert [e.status for e in log.events] == ["ok", "unknown_tool"]
    assert home[1] is threading.main_thread()
    assert home[0] is not home[1]


async def test_a_loop_of_another_thread_waits_for_the_loop():
    tools = box()
    tools.begin()
    work = asyncio.to_thread(lambda: asyncio.run(tools.call_async("rinse")))
    assert await work == "rinse done with {}"
    assert len(tools.events) == 1


async def test_its_own_loop_cannot_wait_for_itself():
    async def work(request, tools):
        try:
            return tools["rinse"]()
        except Exception:  # noqa: BLE001  a function that survives whatever its tools raise
            return "I could not."

    tools = box()
    with pytest.raises(InputError, match=r"await tools\.call_async"):
        await drive(CallableAgent(work), "", tools)
    assert tools.events == []


def test_a_loop_that_ends_meanwhile():
    """The thread that waits is told that it is over, and no call counts."""
    asked, told = threading.Event(), []

    async def backend(name, arguments):
        asked.set()
        await asyncio.sleep(60)
        return "done"

    tools = box(backend)

    async def case():
        tools.begin()
        waiting = threading.Thread(target=lambda: told.append(tools.attempt("rinse")))
        waiting.start()
        await asyncio.to_thread(asked.wait, 10)
        return waiting

    waiting = asyncio.run(case())
    waiting.join(10)
    assert told == [(None, STOPPED)]
    assert tools.attempt("rinse") == (None, STOPPED)  # the loop is closed by now
    assert tools.events == []


async def test_a_call_under_way_at_the_end_does_not_count():
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def backend(name, arguments):
        asked.set()
        await go_on.wait()
        return "done"

    tools = box(backend)
    call = asyncio.ensure_future(tools.attempt_async("rinse"))
    await asked.wait()
    tools.close()
    go_on.set()
    assert await call == (None, STOPPED)
    assert tools.events == []


async def test_a_call_given_up_lets_the_next_one_in():
    asked = asyncio.Event()

    async def backend(name, arguments):
        if name == "rinse":
            asked.set()
            await asyncio.Event().wait()
        return "done"

    tools = box(backend)
    call = asyncio.ensure_future(tools.attempt_async("rinse"))
    await asked.wait()
    call.cancel()
    assert await tools.call_async("dry", {"start": 1}) == "done"
    assert [e.name for e in tools.events] == ["dry"]
    assert tools.defect is None


def broken(error):
    async def backend(name, arguments):
        raise error

    return backend


async def no_text(name, arguments):
    return 5


@pytest.mark.parametrize(
    "backend", [broken(KeyError("x")), broken(json.JSONDecodeError("x", "y", 0)), no_text]
)
async def test_a_defect_of_the_backend(backend):
    tools = box(backend)
    with pytest.raises(Exception) as caught:
        await tools.call_async("rinse")
    assert tools.defect is caught.value
    assert await tools.call_async("rinse") == STOPPED
    assert tools.events == []
    failure = await drive(CallableAgent(lambda request, tools: tools["rinse"]()), "", box(backend))
    assert isinstance(failure, AgentFailure)
    assert failure.message.startswith("defect of the tools: ")


async def test_only_what_is_declared_can_be_awaited(recwarn):
    tools = box(lambda name, arguments: answer_later(name, arguments))
    with pytest.raises(TypeError, match="async def"):
        await tools.call_async("rinse")
    assert isinstance(tools.defect, TypeError)
    gc.collect()
    assert [str(w.message) for w in recwarn if w.category is RuntimeWarning] == []


async def test_a_timeout_that_the_tools_took_says_nothing_about_the_agent():
    async def backend(name, arguments):
        await asyncio.Event().wait()
        return ""

    async def work(request, tools):
        return await tools.call_async("rinse")

    failure = await drive(CallableAgent(work), "", box(backend, seconds=1.1))
    assert isinstance(failure, AgentFailure)
    assert failure.message.startswith("the tools took 1.")


# ---- stop_after ----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [answer, answer_later])
async def test_nothing_is_carried_out_after_the_last_call(backend):
    tools = box(backend, stop_after=2)
    turn = tools.turn()
    calls = [("polish", {}), ("dry", {"start": 1}), ("rinse", {}), ("fly", {})]
    told = [await tools.attempt_async(*call, turn=turn) for call in calls]
    assert [status for status, _ in told] == ["unknown_tool", "ok", None, None]
    assert [e.name for e in tools.events] == ["polish", "dry"]
    assert tools.beyond == ["rinse", "fly"]
    await tools.call_async("rinse")  # in a turn of its own: nothing simultaneous
    assert tools.beyond == ["rinse", "fly"]
    assert tools.exhausted.is_set()
    assert tools.seen_enough


@pytest.mark.parametrize("backend", [answer, answer_later])
async def test_a_function_is_ended_by_its_last_call(backend):
    after = []

    def plain(request, tools):
        tools["rinse"]()
        after.append("asked the model again")

    async def awaits(request, tools):
        await tools.call_async("rinse")
        after.append("asked the model again")

    for function in (plain, awaits):
        log = await drive(CallableAgent(function), "", box(backend, stop_after=1))
        assert (log.ending, log.output, len(log.events)) == ("iterations", "", 1)
        assert log.usage == Usage()
    assert after == []
