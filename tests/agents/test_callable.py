"""Python functions as agents, and how they are found by name."""

import asyncio
import functools
import threading
import time

import pytest

from agenteval.agents import AgentFailure, AgentLimits, Tool, Toolbox, drive
from agenteval.agents.callable import CallableAgent, Tools, load_function
from agenteval.errors import InputError

START = {
    "type": "object",
    "properties": {"start": {"type": "integer"}},
    "required": ["start"],
    "additionalProperties": False,
}


def box(**limits):
    tools = [
        Tool(name="rinse", description="Rinse the hair."),
        Tool(name="dry", description="Dry the hair.", parameters=START),
    ]
    return Toolbox(tools, lambda name, given: f"{name} {given.get('start')}", AgentLimits(**limits))


def seen(log):
    return [(e.name, e.arguments, e.status, e.turn) for e in log.events]


def plain(request, tools):
    return tools["dry"](start=9) + ", " + request


async def asynchronous(request, tools):
    await asyncio.sleep(0)
    return plain(request, tools)


class Object:
    def __call__(self, request, tools):
        return plain(request, tools)


class AsyncObject:
    async def __call__(self, request, tools):
        return plain(request, tools)


def partly(more, request, tools):
    assert more == 1
    return plain(request, tools)


@pytest.mark.parametrize(
    "function",
    [
        plain,
        asynchronous,
        Object(),
        AsyncObject(),
        functools.partial(partly, 1),
        functools.partial(asynchronous),
        lambda request, tools: asynchronous(request, tools),
        lambda *given: plain(*given),
    ],
)
async def test_every_kind_of_callable(function):
    log = await drive(CallableAgent(function), "thanks", box())
    assert log.output == "dry 9, thanks"
    assert seen(log) == [("dry", {"start": 9}, "ok", 0)]


async def test_something_else_is_a_failure():
    failure = await drive(CallableAgent(lambda request, tools: 7), "", box())
    assert isinstance(failure, AgentFailure)
    assert failure.message.endswith("returned int instead of text or None")


@pytest.mark.parametrize("function", [lambda request: "", lambda: "", lambda a, b, c: "", "text"])
def test_wrong_signatures_are_refused_at_once(function):
    with pytest.raises(InputError, match="function\\(request, tools\\)"):
        CallableAgent(function)


def test_the_mapping():
    tools = Tools(box())
    assert (list(tools), len(tools), "dry" in tools, "x" in tools) == (
        ["rinse", "dry"],
        2,
        True,
        False,
    )
    assert (tools["dry"].__name__, tools["dry"].__doc__) == ("dry", "Dry the hair.")
    assert tools.specs[1] == {
        "type": "function",
        "function": {"name": "dry", "description": "Dry the hair.", "parameters": START},
    }


async def test_wrong_calls_are_logged_and_answered():
    def work(request, tools):
        said = [
            tools["polish"](a=1),
            tools["dry"](),
            tools.call("dry", '{"start": 1'),
            tools.call(""),
        ]
        return "\n".join(said)

    log = await drive(CallableAgent(work), "", box())
    assert seen(log) == [
        ("polish", {"a": 1}, "unknown_tool", 0),
        ("dry", {}, "bad_arguments", 1),
        ("dry", '{"start": 1', "bad_arguments", 2),
        ("", {}, "unknown_tool", 3),
    ]
    assert "no tool 'polish'" in log.output


async def test_a_timeout_ends_the_case_and_then_the_thread():
    go_on = threading.Event()
    last = []

    def work(request, tools):
        tools["rinse"]()
        go_on.wait(10)
        try:
            tools["rinse"]()
        except Exception:
            last.append("survived")
            raise
        finally:
            last.append("ended")
        return "late"

    began = time.monotonic()
    log = await drive(CallableAgent(work), "", box(seconds=0.1))
    assert (log.ending, log.output, len(log.events)) == ("timeout", "", 1)
    assert time.monotonic() - began < 1
    go_on.set()
    for _ in range(100):
        if last:
            break
        await asyncio.sleep(0.02)
    assert last == ["ended"]  # AgentStopped is no Exception


@pytest.mark.parametrize("error", [ValueError("x"), StopIteration(3), SystemExit(2), OSError("y")])
async def test_what_a_thread_raises(error):
    def work(request, tools):
        raise error

    failure = await drive(CallableAgent(work), "", box())
    assert isinstance(failure, AgentFailure)
    assert type(error).__name__ in failure.message


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("nowhere_at_all:work", "there is no module 'nowhere_at_all'"),
        ("mine.deeper:work", "there is no module 'mine.deeper'"),
        ("mine", "not of the form"),
        ("mine:", "not of the form"),
        (":work", "not of the form"),
        ("mine:wrok", "has no 'wrok'; did you mean work?"),
        ("mine:work.deeper", "has no 'work.deeper'"),
        ("mine:NUMBER", "is a int, not a function"),
        ("needs:work", "cannot be imported: No module named 'not_installed_here'"),
        ("broken:work", "cannot be imported: ZeroDivisionError"),
        ("syntax:work", "cannot be imported: SyntaxError"),
    ],
)
def test_what_cannot_be_loaded(project, reference, said):
    (project / "mine.py").write_text("NUMBER = 5\ndef work(request, tools): return ''\n")
    (project / "needs.py").write_text("import not_installed_here\n")
    (project / "broken.py").write_text("1 / 0\n")
    (project / "syntax.py").write_text("def (:\n")
    with pytest.raises(InputError) as caught:
        load_function(reference)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
