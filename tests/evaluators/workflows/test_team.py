"""The chat agents in teams of AutoGen's own."""

from __future__ import annotations

import json

import pytest
from autogen_agentchat.conditions import StopMessageTermination
from autogen_agentchat.messages import StopMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken

from agenteval.errors import ModelError
from agenteval.evaluators.workflows.serving import Serving, ServingLimits
from agenteval.evaluators.workflows.simulators.nouns import Heard
from agenteval.evaluators.workflows.simulators.tools import ToolSimulator
from agenteval.evaluators.workflows.simulators.user_scripted import ScriptedUser
from agenteval.evaluators.workflows.team import (
    AssistantAgent,
    UserAgent,
    session_team,
)
from tests.evaluators.workflows.simulators.desk import (
    BACKEND,
    PROFILES,
    ROLE,
    TOOLS,
    Talker,
    Turn,
)

HANA = PROFILES["hana"]
GIVEN = tuple(tool.tool() for tool in TOOLS.values())


def agent(turn: Turn, limits: ServingLimits | None = None) -> AssistantAgent:
    tools = ToolSimulator(backend=BACKEND).open(ROLE, PROFILES["jan"])
    return AssistantAgent("agent", Serving(Talker(turn), "Be kind.", GIVEN, tools, limits))


def text(content: str, source: str = "user") -> TextMessage:
    return TextMessage(content=content, source=source)


async def test_the_agent_answers_text_and_calls_inline() -> None:
    def turn(dialogue, tools):  # type: ignore[no-untyped-def]
        assert dialogue.instructions == "Be kind."
        return tools.call("find_book", {"title": dialogue.messages[-1].content})

    served = agent(turn)
    response = await served.on_messages([text("Dune")], CancellationToken())
    assert isinstance(response.chat_message, TextMessage)
    assert json.loads(response.chat_message.content) == {"is_in": True, "shelf": "S4"}
    assert [(c.tool, c.status, c.answered) for c in served.serving.calls] == [
        ("find_book", "ok", "backend")
    ]
    await served.on_reset(CancellationToken())
    assert served.serving.messages == []


async def test_an_agent_that_says_nothing_stops() -> None:
    response = await agent(lambda *_: " ").on_messages([text("Hi")], CancellationToken())
    assert isinstance(response.chat_message, StopMessage)


async def test_exceptions_reach_those_who_use_the_agents_themselves() -> None:
    def turn(*_):  # type: ignore[no-untyped-def]
        raise ModelError("gone")

    with pytest.raises(Exception, match="gone"):
        await agent(turn).on_messages([text("Hi")], CancellationToken())


async def test_user_and_agent_in_a_team_of_ones_own() -> None:
    user = UserAgent("user", ScriptedUser(), Heard(HANA, ROLE.now))
    team = RoundRobinGroupChat(
        [user, agent(lambda *_: "Goodbye!")], termination_condition=StopMessageTermination()
    )
    result = await team.run()
    assert [(m.source, m.to_text()) for m in result.messages] == [  # type: ignore[union-attr]
        ("user", "Hi, I would like to borrow a book."),
        ("agent", "Goodbye!"),
        ("user", "[DONE]"),
    ]
    assert user.done
    await user.on_reset(CancellationToken())
    assert (user.done, user.messages) == (False, [])


async def test_the_team_of_a_session_ends_with_the_users_last_word() -> None:
    user = UserAgent("user", ScriptedUser(), Heard(HANA, ROLE.now))
    asking = agent(lambda *_: "Please tell me: `title`.")
    result = await session_team(user, asking, 2).run()
    assert [m.source for m in result.messages] == ["user", "agent", "user", "agent", "user"]  # type: ignore[union-attr]
