"""The AutoGen agents on a scripted model: alone, in our team, and in a team of the user's."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest
from autogen_agentchat.messages import StructuredMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken

from agenteval.errors import InputError
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.wire import Reply, Request
from agenteval.records import Criterion, Run, Task, Usage
from agenteval.testing.scripted import ScriptedTransport
from agenteval.utility.agents import (
    CriteriaMessage,
    CriticAgent,
    ScoresMessage,
    SubCriticAgent,
    VerdictsMessage,
    VerifierAgent,
    critic_team,
    quantifier_agent,
)
from agenteval.utility.critic import Critic, SubCritic
from agenteval.utility.quantifier import Quantifier
from agenteval.utility.verify import VerifyOptions
from tests.support import world
from tests.support.judges import Answers, perfect, random

TASK = Task(name="sums", description="Add numbers.")
LEAF = {"description": "d", "accepted_values": ["poor", "fair", "good"]}
RUBRIC = json.dumps([{"name": "Clarity", **LEAF}, {"name": "Accuracy", **LEAF}])
PARTS = [{"name": "Wording", **LEAF}, {"name": "Order", **LEAF}]
DIVIDED = json.dumps({"criteria": [{"id": "clarity", "sub_criteria": PARTS}]})
GRADES = json.dumps({"clarity/wording": "good", "clarity/order": "fair", "accuracy": "poor"})
BY_ROLE = {"critic": RUBRIC, "subcritic": DIVIDED, "quantifier": GRADES}
CLARITY = Criterion(name="Clarity", accepted_values=("poor", "fair", "good"))


def scripted(**by_role: str | Reply) -> tuple[Client, ScriptedTransport]:
    answers: dict[str, str | Reply] = {**BY_ROLE, **by_role}

    def answer(request: Request) -> str | Reply:
        return answers[request.role]

    transport = ScriptedTransport(answer)
    return Client(transport, retry=RetryPolicy(attempts=1)), transport


def text(content: str) -> TextMessage:
    return TextMessage(content=content, source="user")


def criteria_of(message: Any) -> CriteriaMessage:
    assert isinstance(message, StructuredMessage)
    assert isinstance(message.content, CriteriaMessage)
    return message.content


async def test_in_the_team_both_speak_and_the_sub_criteria_arrive_typed_and_are_scored() -> None:
    client, transport = scripted()
    result = await critic_team(client, TASK, seed=4).run(task="Keep it short.")
    assert [m.source for m in result.messages] == ["user", "critic", "subcritic"]
    assert [r.role for r in transport.requests] == ["critic", "subcritic"]
    assert all("Keep it short." in r.messages[1]["content"] for r in transport.requests)
    last = criteria_of(result.messages[-1])
    assert (last.task, last.seed) == ("sums", 4)
    clarity, accuracy = last.criteria
    assert all(isinstance(part, Criterion) for part in clarity.sub_criteria)
    assert [part.name for part in clarity.sub_criteria] == ["Wording", "Order"]
    assert accuracy.sub_criteria == ()

    agent = quantifier_agent(client, TASK, last.criteria)
    scores = await agent.score(Run(id="r", input="2 + 2?", output="It makes five, plainly."))
    assert scores.failures == []
    # good and fair of three levels are 1 and 1/2; poor is 0
    values = {s.criterion_id: s.value for s in scores.scores}
    assert values == {"clarity": 0.75, "accuracy": 0.0}


async def test_critic_agent_takes_texts_as_instructions_until_reset() -> None:
    client, transport = scripted(
        critic=Reply(text=RUBRIC, usage=Usage(requests=1, prompt_tokens=11, completion_tokens=5))
    )
    agent = CriticAgent("critic", Critic(client, TASK, use_examples=False), seed=10)
    response = await agent.on_messages([text("Mind units.")], CancellationToken())
    assert type(response.chat_message) in agent.produced_message_types
    usage = response.chat_message.models_usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (11, 5)
    await agent.on_messages([text("Mind proofs.")], CancellationToken())
    await agent.on_reset(CancellationToken())
    await agent.on_messages([], CancellationToken())
    users = [r.messages[1]["content"] for r in transport.requests]
    assert ["Mind units." in u for u in users] == [True, True, False]
    assert ["Mind proofs." in u for u in users] == [False, True, False]
    assert [r.repeat for r in transport.requests] == [10, 11, 10]


async def test_quantifier_agent_in_a_users_own_team() -> None:
    grades = json.dumps({"clarity": "good", "accuracy": "superb"})
    client, transport = scripted(**{"quantifier": grades, "quantifier:repair": grades})
    critic = CriticAgent("critic", Critic(client, TASK, use_examples=False))
    team = RoundRobinGroupChat(
        [critic, quantifier_agent(client, TASK)],
        max_turns=2,
        custom_message_types=[StructuredMessage[CriteriaMessage], StructuredMessage[ScoresMessage]],
    )
    result = await team.run(task="Two and two are four.")
    content = result.messages[-1].content  # type: ignore[union-attr]
    assert isinstance(content, ScoresMessage)
    assert [(s.criterion_id, s.value) for s in content.scores] == [("clarity", 1.0)]
    failures = [(f.criterion_id, f.status) for f in content.failures]
    assert failures == [("accuracy", "unscored:off_scale")]
    assert "Two and two are four." in transport.requests[1].messages[1]["content"]


async def test_agents_say_what_they_lack() -> None:
    client, _ = scripted()
    subcritic = SubCriticAgent("subcritic", SubCritic(client, TASK))
    with pytest.raises(InputError, match="criteria to divide"):
        await subcritic.on_messages([text("hello")], CancellationToken())
    agent = quantifier_agent(client, TASK)
    with pytest.raises(InputError, match="no criteria"):
        await agent.on_messages([text("work")], CancellationToken())
    given = CriteriaMessage(task="sums", seed=0, criteria=[CLARITY])
    message = StructuredMessage[CriteriaMessage](content=given, source="critic")
    with pytest.raises(InputError, match="the work to judge"):
        await agent.on_messages([message], CancellationToken())
    await agent.on_reset(CancellationToken())
    with pytest.raises(InputError, match="no criteria"):
        await agent.on_messages([text("work")], CancellationToken())


async def test_a_cancelled_agent_stops() -> None:
    client, _ = scripted()

    class Slow(ScriptedTransport):
        async def send(self, request: Request) -> Reply:
            await asyncio.sleep(60)
            return await super().send(request)

    client.transport = Slow(lambda _: RUBRIC)
    agent = CriticAgent("critic", Critic(client, TASK, use_examples=False))
    token = CancellationToken()
    running = asyncio.ensure_future(agent.on_messages([], token))
    await asyncio.sleep(0)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)


async def test_the_verifier_retains_criteria_and_trusts_only_the_good_judge() -> None:
    message = StructuredMessage[CriteriaMessage](
        content=CriteriaMessage(task="sums", seed=0, criteria=list(world.criteria())), source="c"
    )
    verdicts = []
    for judge in (perfect(), random()):
        client = Client(ScriptedTransport(Answers(judge, seed=1)))
        agent = VerifierAgent(
            "verifier",
            Quantifier(client, world.TASK),
            world.make_runs(30, np.random.default_rng(5)),
            options=VerifyOptions(resamples=200, draws=1000),
        )
        response = await agent.on_messages([message], CancellationToken())
        assert isinstance(response.chat_message, StructuredMessage)
        content = response.chat_message.content
        assert isinstance(content, VerdictsMessage)
        verdicts.append(content)
        assert response.chat_message.models_usage is not None
        kept_ids = [v.criterion_id for v in content.verdicts if v.verdict == "keep"]
        assert [c.id for c in content.retained] == kept_ids
    good, bad = verdicts
    assert (good.trusted, bad.trusted) == (True, False)
    assert len(good.verdicts) == len(world.criteria())
    assert good.retained
    assert bad.retained == []
    await agent.on_reset(CancellationToken())
    with pytest.raises(InputError, match="needs a message with criteria"):
        await agent.on_messages([text("go")], CancellationToken())
