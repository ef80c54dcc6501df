"""Whole sessions: how they end, what is kept, and what is whose fault."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, get_args

import pytest

from agenteval.agents.autogen import autogen
from agenteval.agents.endpoint import Endpoint
from agenteval.agents.openai_chat import openai_chat
from agenteval.agents.react import react
from agenteval.errors import (
    BudgetExceeded,
    InputError,
    ModelUnavailable,
    Unauthorized,
)
from agenteval.models.wire import Reply
from agenteval.records import ToolCall, Usage
from agenteval.workflows.cases import OpenRole, session_cases
from agenteval.workflows.run_session import SessionSettings, run_session
from agenteval.workflows.session import (
    DECIDED_BY,
    ENDS,
    DecidedBy,
    SessionEnd,
    SessionFailure,
    SessionLog,
)
from agenteval.workflows.simulated_tools import ToolSimulator
from agenteval.workflows.simulated_user import (
    ScriptedUser,
    UserContext,
    UserSimulator,
    UserTurn,
)
from agenteval.workflows.user_model import UserOnModel
from tests.workflows.desk import (
    BACKEND,
    FOLDER,
    PROFILES,
    RECORDED,
    ROLE,
    Turn,
    client,
    replies,
    spoken,
    system,
)

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


async def test_over_the_call_limit_of_a_turn() -> None:
    found = await log(calling(4), SessionSettings(calls_per_turn=3))
    assert (found.ended, len(found.calls), found.turns) == ("turn_calls", 3, 0)
    assert (await log(calling(3), SessionSettings(calls_per_turn=3, turns=2))).ended == "turns"


async def test_an_agent_that_takes_too_long_or_says_nothing() -> None:
    async def wait(*_: Any) -> str:
        await asyncio.sleep(30)
        return ""

    assert (await log(wait, SessionSettings(seconds=0.05))).ended == "time"
    assert (await log(lambda *_: "")).ended == "agent"


@pytest.mark.parametrize(
    "bad", [{"turns": 0}, {"calls": 0}, {"calls_per_turn": 0}, {"seconds": 0}, {"messages": 0}]
)
def test_limits_below_one(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="at least 1"):
        SessionSettings(**bad)


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
    assert [(m.who, m.turn) for m in found.mistakes] == [
        ("tools", 0),
        ("user", 1),
        ("tools", 1),
    ]
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


async def test_many_sessions_at_once_are_the_same_as_one_after_the_other() -> None:
    cases = session_cases([OpenRole(ROLE, FOLDER, BACKEND, None)])

    async def one(number: int) -> str:
        profile = cases[number % 4].profile
        agent = RECORDED["perfect" if number // 4 % 2 else "skips_step"].at(cases[number % 4])
        assert agent is not None
        found = await run_session(
            ROLE,
            profile,
            agent,
            ScriptedUser(),
            ToolSimulator(backend=BACKEND),
            SessionSettings(seed=number),
        )
        assert isinstance(found, SessionLog)
        return found.model_copy(update={"seconds": 0.0}).model_dump_json()

    together = await asyncio.gather(*(one(n) for n in range(24)))
    assert together[:8] == [await one(n) for n in range(8)]
    assert len(set(together)) > 8


@pytest.mark.parametrize("adapter", [autogen, openai_chat, react])
@pytest.mark.parametrize("waiting", [False, True])
async def test_agents_on_models_and_tools_of_either_kind(adapter: Any, waiting: bool) -> None:
    """Agent and tools on one scripted model: the agent asks, calls twice at once, and is done."""

    def answer(request: Any) -> Reply:
        if request.role == "tool":
            return Reply('{"is_in": true, "shelf": "S4"}')
        said = [m for m in request.messages if m["role"] in ("user", "assistant")]
        if len(said) == 1:
            text = "Which `title`?"
            return Reply(f"Final Answer: {text}" if adapter is react else text)
        if request.messages[-1]["role"] == "user" and "title: Dune" in said[-1]["content"]:
            if adapter is react:
                return Reply('Thought: look\nAction: find_book\nAction Input: {"title": "Dune"}')
            asked = [
                {
                    "id": f"c{i}",
                    "type": "function",
                    "function": {"name": "find_book", "arguments": '{"title": "Dune"}'},
                }
                for i in range(2)
            ]
            return Reply("", tool_calls=tuple(asked), finish="tool_calls")
        if adapter is react:
            return Reply("Thought: done\nFinal Answer: It is in. Goodbye.")
        return Reply("It is in. Goodbye.")

    model, _ = client(answer)
    tools = ToolSimulator("model", client=model) if waiting else ToolSimulator(backend=BACKEND)
    found = await run_session(
        ROLE,
        HANA,
        adapter(Endpoint("scripted", base_url="http://127.0.0.1:9"), model),
        ScriptedUser(),
        tools,
        SessionSettings(),
    )
    assert isinstance(found, SessionLog), found
    assert found.ended == "user", found.messages
    said = [text for role, text in spoken(found.messages) if role == "assistant"]
    assert said == ["Which `title`?", "It is in. Goodbye."]  # each once, as the user heard it
    assert {c.tool for c in found.calls} == {"find_book"}
    assert {c.answered for c in found.calls} == {"model" if waiting else "backend"}
    assert len({c.step for c in found.calls}) == 1
    assert found.usage.requests >= 3


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


async def test_the_published_loop_ends_with_the_turn_of_the_tenth_call() -> None:
    found = await log(calling(4), SessionSettings.flowbench())
    assert (found.ended, len(found.calls), found.turns) == ("calls", 12, 3)
    loops = await log(calling(9), SessionSettings.flowbench())
    assert (loops.ended, len(loops.calls), loops.turns) == ("calls", 10, 0)
    assert (await log(lambda *_: "", SessionSettings.flowbench())).ended == "agent"


def test_every_end_has_its_words_and_a_column_of_its_own() -> None:
    assert ENDS.keys() == set(get_args(SessionEnd))
    assert len({end.column for end in ENDS.values()}) == len(ENDS)
    assert DECIDED_BY.keys() == {*get_args(DecidedBy), None}
