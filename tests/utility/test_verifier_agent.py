"""The verifier as an AutoGen agent, on the scripted model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from autogen_agentchat.messages import StructuredMessage, TextMessage
from autogen_core import CancellationToken

from agenteval.errors import InputError
from agenteval.models.client import Client
from agenteval.testing.scripted import ScriptedTransport
from agenteval.utility.agents import CriteriaMessage, VerdictsMessage, VerifierAgent
from agenteval.utility.quantifier import Quantifier
from agenteval.utility.verify import VerifyOptions
from tests.support.judges import Answers, perfect, random
from tests.support.world import TASK, criteria, make_runs


def verifier(judge: Any) -> VerifierAgent:
    client = Client(ScriptedTransport(Answers(judge, seed=1)))
    runs = make_runs(30, np.random.default_rng(5))
    options = VerifyOptions(resamples=200, draws=1000)
    return VerifierAgent("verifier", Quantifier(client, TASK), runs, options=options)


async def test_it_says_which_criteria_are_retained_and_whether_the_judge_is_trusted() -> None:
    message = StructuredMessage[CriteriaMessage](
        content=CriteriaMessage(task=TASK.name, seed=0, criteria=list(criteria())), source="critic"
    )
    verdicts = []
    for judge in (perfect(), random()):
        agent = verifier(judge)
        response = await agent.on_messages([message], CancellationToken())
        assert isinstance(response.chat_message, StructuredMessage)
        content = response.chat_message.content
        assert isinstance(content, VerdictsMessage)
        verdicts.append(content)
        assert response.chat_message.models_usage is not None
        assert [c.id for c in content.retained] == [
            v.criterion_id for v in content.verdicts if v.verdict == "keep"
        ]
    good, bad = verdicts
    assert (good.trusted, bad.trusted) == (True, False)
    assert len(good.verdicts) == len(criteria())
    assert good.retained
    assert bad.retained == []
    await agent.on_reset(CancellationToken())
    with pytest.raises(InputError, match="needs a message with criteria"):
        await agent.on_messages([TextMessage(content="go", source="u")], CancellationToken())
