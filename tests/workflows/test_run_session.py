"""Whole sessions: how they end, what is kept, and what is whose fault."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from agenteval.errors import BudgetExceeded, InputError, ModelUnavailable, Unauthorized
from agenteval.records import ToolCall, Usage
from agenteval.workflows.run_session import SessionSettings, run_session
from agenteval.workflows.session import SessionFailure, SessionLog
from agenteval.workflows.simulated_tools import ToolSimulator
from agenteval.workflows.simulated_user import ScriptedUser, UserContext, UserSimulator, UserTurn
from agenteval.workflows.user_model import UserOnModel
from tests.workflows.desk import BACKEND, PROFILES, ROLE, Turn, client, replies, spoken, system

HANA, JAN = PROFILES["hana"], PROFILES["jan"]
DUNE = {"title": "Dune"}


async def session(
    turn: Turn,
    settings: SessionSettings | None = None,
    *,
    user: UserSimulator | None = None,
    tools: ToolSimulator | None = None,
    profile: Any = HANA,
) -> SessionLog | SessionFailure:
    return await run_session(
        ROLE,
        profile,
        system(turn),
        user or ScriptedUser(),
        tools or ToolSimulator(backend=BACKEND),
        settings or SessionSettings(),
    )


async def log(turn: Turn, settings: SessionSettings | None = None, **more: Any) -> SessionLog:
    found = await session(turn, settings, **more)
    assert isinstance(found, SessionLog), found
    return found


def asks(*_: Any) -> str:
    return "Please tell me: `title`."


def raising(error: Exception) -> Turn:
    def turn(*_: Any) -> str:
        raise error

    return turn


async def test_a_session_from_the_first_word_to_the_last() -> None:
    def turn(dialogue: Any, tools: Any) -> str:
        if len(dialogue.messages) == 1:
            return "Which `title`?"
        tools.call("find_book", {"title": "Dune"})
        return "It is in. Goodbye."

    found = await log(turn)
    assert found.ended == "user"
    assert found.turns == 2
    assert spoken(found.messages) == [
        ("user", "Hi, I would like to borrow a book."),
        ("assistant", "Which `title`?"),
        ("user", "title: Dune"),
        ("assistant", "It is in. Goodbye."),
    ]
    asked, result = found.messages[3:5]
    assert asked.tool_calls == (ToolCall(name="find_book", arguments=DUNE, id="call_1"),)
    assert (result.role, result.tool_call_id) == ("tool", "call_1")
    assert json.loads(result.content) == {"is_in": True, "shelf": "S4"}
    assert [(c.tool, c.turn, c.step, c.answered) for c in found.calls] == [
        ("find_book", 1, 0, "backend")
    ]
    assert found.state["fees"] == {"R-17": 0, "R-20": 0, "R-31": 4}  # type: ignore[index,call-overload]


@pytest.mark.parametrize(("profile", "limit"), [(HANA, 15), (JAN, 20)])
async def test_over_the_turn_limit(profile: Any, limit: int) -> None:
    found = await log(asks, profile=profile)
    assert (found.ended, found.turns) == ("turns", limit)
    assert found.messages[-1].role == "user"  # it had the last word
    assert (await log(asks, SessionSettings(turns=3), profile=profile)).turns == 3


def calling(count: int) -> Turn:
    def turn(_: Any, tools: Any) -> str:
        for number in range(count):
            tools.call("find_book", {"title": f"No. {number}"})
        return "Please tell me: `title`."

    return turn


async def test_over_the_call_limit() -> None:
    settings = SessionSettings(calls=5, turns=9)
    found = await log(calling(2), settings)
    assert (found.ended, len(found.calls), found.turns) == ("calls", 5, 2)
    within = await log(calling(1), SessionSettings(calls=5, turns=5))
    assert (within.ended, len(within.calls)) == ("turns", 5)


async def test_a_crash_of_the_agent_is_a_failure_with_the_log_so_far() -> None:
    def turn(_: Any, tools: Any) -> str:
        tools.call("find_book", DUNE)
        tools.spend(Usage(requests=2))
        raise KeyError("oops")

    found = await session(turn)
    assert isinstance(found, SessionFailure)
    assert (found.who, found.status) == ("agent", "error:infrastructure")
    assert "unexpected KeyError" in found.message
    assert found.usage.requests == 2
    assert found.log is not None
    assert [c.tool for c in found.log.calls] == ["find_book"]


FATAL: list[Callable[[str], Exception]] = [
    Unauthorized,
    BudgetExceeded,
    InputError,
    ModelUnavailable,
]


@pytest.mark.parametrize("kind", FATAL)
@pytest.mark.parametrize("who", ["agent", "user", "tools"])
async def test_what_would_fail_every_session_is_raised_as_it_is(
    kind: Callable[[str], Exception], who: str
) -> None:
    error = kind("stop here")
    model, _ = client(replies(error))
    finds: Turn = lambda _, tools: tools.call_async("find_book", {"title": "Walden"})  # noqa: E731
    with pytest.raises(type(error), match="stop here") as raised:
        await session(
            raising(error) if who == "agent" else finds,
            user=UserOnModel(model) if who == "user" else None,
            tools=ToolSimulator("model", client=model) if who == "tools" else None,
        )
    assert type(raised.value) is type(error)
    assert raised.value.spent is not None  # type: ignore[attr-defined]


async def test_a_user_that_cannot_go_on() -> None:
    model, _ = client(replies("Hi there", "", "Thought: hm"))
    found = await session(asks, user=UserOnModel(model))
    assert isinstance(found, SessionFailure)
    assert (found.who, found.status) == ("user", "error:infrastructure")
    assert "4 times in a row" in found.message
    assert found.simulator_usage.requests == 5
    assert found.log is not None
    assert [m.kind for m in found.log.mistakes] == ["empty", *["plays_agent"] * 3]
    assert found.log.turns == 1


async def test_mistakes_of_simulators_are_kept_in_their_order() -> None:
    user_model, _ = client(replies("Hi", "Call 0171 999", "Dune", "[DONE]"))
    fits = '{"is_in": true, "shelf": "S4"}'
    tool_model, _ = client(replies("no idea", fits, "no idea", fits))

    def turn(dialogue: Any, tools: Any) -> Any:
        async def work() -> str:
            title = "Walden" if len(dialogue.messages) == 1 else "Emma"
            await tools.call_async("find_book", {"title": title})
            return "Which?"

        return work()

    found = await log(
        turn, user=UserOnModel(user_model), tools=ToolSimulator("model", client=tool_model)
    )
    assert [(m.who, m.turn) for m in found.mistakes] == [("tools", 0), ("user", 1), ("tools", 1)]
    assert found.simulator_usage.requests == 4 + 4
    assert {c.answered for c in found.calls} == {"model"}


class Breaking(BACKEND):  # type: ignore[misc,valid-type]
    def find_book(self, title: str) -> Any:
        return {"is_in": "maybe", "shelf": ""}


async def test_a_broken_backend_is_not_charged_to_the_agent() -> None:
    found = await session(
        lambda _, tools: tools.call("find_book", DUNE), tools=ToolSimulator(backend=Breaking)
    )
    assert isinstance(found, SessionFailure)
    assert (found.who, found.status) == ("tools", "error:infrastructure")
    assert "find_book returned what its schema forbids" in found.message


async def test_cancelling_a_session_ends_the_agent(capfd: pytest.CaptureFixture[str]) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(*_: Any) -> str:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()
        return ""

    work = asyncio.ensure_future(session(wait))
    await begun.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert ended.is_set()
    assert "Traceback" not in capfd.readouterr().err


class Left(BaseException):
    """What no handler of Exception sees."""


@pytest.mark.parametrize("who", ["agent", "user", "tools"])
async def test_an_exception_that_is_none_ends_this_session_and_no_other(who: str) -> None:
    class Leaving(ScriptedUser):
        async def speak(self, heard: UserContext) -> UserTurn:
            raise Left

    class Closed(BACKEND):  # type: ignore[misc,valid-type]
        def find_book(self, title: str) -> Any:
            raise Left

    def turn(_: Any, tools: Any) -> Any:
        if who == "agent":
            raise Left
        return tools.call("find_book", DUNE)

    work = session(
        turn,
        user=Leaving() if who == "user" else None,
        tools=ToolSimulator(backend=Closed) if who == "tools" else None,
    )
    found = await asyncio.wait_for(work, 60)
    assert isinstance(found, SessionFailure)
    assert (found.who, found.status) == (who, "error:infrastructure")
    assert "Left" in found.message


async def test_in_the_published_loop_the_user_speaks_again_after_five_calls() -> None:
    heard: list[list[str]] = []

    def turn(dialogue: Any, tools: Any) -> str:
        heard.append([m.role for m in dialogue.messages])
        for _ in range(5 if len(heard) == 1 else 1):
            tools.call("find_book", DUNE)
        return "It is in. Goodbye."

    found = await log(turn, SessionSettings.flowbench())
    assert (found.ended, found.turns) == ("user", 1)
    assert heard[1] == ["user", *["assistant", "tool"] * 5, "user"]
    assert spoken(found.messages) == [
        ("user", "Hi, I would like to borrow a book."),
        ("user", "Are you still there?"),
        ("assistant", "It is in. Goodbye."),
    ]
    assert [(c.turn, c.step) for c in found.calls] == [(0, n) for n in range(6)]
