"""VerifierAgent: criteria come in as the critic sends them, verdicts go out typed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from autogen_agentchat.messages import StructuredMessage, TextMessage
from autogen_core import CancellationToken

from agenteval.errors import InputError, ModelError, Transient
from agenteval.evaluators.utility.agents import CriteriaMessage
from agenteval.evaluators.utility.quantifier import Quantifier
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.models.client import Client, RetryPolicy
from agenteval.store import Store
from agenteval.testing.scripted import ScriptedTransport
from agenteval.verifier_agent import VerifiedMessage, VerifierAgent, VerifierSettings
from tests.support.judges import Answers, perfect
from tests.support.world import TASK, criteria, make_runs

RUNS = make_runs(24, np.random.default_rng(2))
SETTINGS = VerifierSettings(
    operators=("drop_sentences", "shuffle_sentences", "swap_numbers", "pad", "whitespace"),
    options=VerifyOptions(resamples=200, draws=1000),
)
ASKED = StructuredMessage[CriteriaMessage](
    content=CriteriaMessage(task=TASK.name, seed=0, criteria=list(criteria())), source="critic"
)


async def test_the_critics_criteria_are_verified_and_the_kept_ones_named(tmp_path: Path) -> None:
    transport = ScriptedTransport(Answers(perfect(), seed=1))
    with Store(tmp_path / "s.db") as store:
        quantifier = Quantifier(Client(transport, cache=store), TASK)
        agent = VerifierAgent("verifier", quantifier, RUNS, store, SETTINGS)
        response = await agent.on_messages([ASKED], CancellationToken())
        asked = len(transport.requests)
        await agent.on_messages([ASKED], CancellationToken())
        assert len(transport.requests) == asked  # stored ratings are not asked again
    content = response.chat_message.content  # type: ignore[attr-defined]
    assert isinstance(content, VerifiedMessage)
    assert content.result.judge.verdict == "trustworthy"
    verdicts = {v.criterion_id: v.verdict for v in content.result.criteria}
    assert [c.id for c in content.kept] == [i for i, v in verdicts.items() if v == "keep"]
    assert content.kept


async def test_without_criteria_or_with_a_dead_endpoint_it_says_so(tmp_path: Path) -> None:
    dead = ScriptedTransport(lambda _: Transient("connection refused"))
    with Store(tmp_path / "s.db") as store:
        quantifier = Quantifier(Client(dead, retry=RetryPolicy(attempts=1)), TASK)
        agent = VerifierAgent("verifier", quantifier, RUNS, store, SETTINGS)
        with pytest.raises(InputError, match="verifier needs a message with criteria"):
            await agent.on_messages(
                [TextMessage(content="hello", source="user")], CancellationToken()
            )
        with pytest.raises(ModelError, match="connection refused"):
            await agent.on_messages([ASKED], CancellationToken())
