"""One question with one repair: what is read, what is raised, and what it took either way."""

from __future__ import annotations

import pytest

from agenteval.errors import Filtered, ReplyError
from agenteval.models.asking import ask
from agenteval.models.client import Client
from agenteval.models.wire import Reply, Request
from agenteval.records import Usage
from agenteval.testing.scripted import ScriptedTransport

TOOK = Usage(requests=1, prompt_tokens=10, completion_tokens=3)
QUESTION = Request(messages=({"role": "user", "content": "How many?"},))


def read(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ReplyError(f"{text!r} is no number") from error


async def asked(*replies: Reply) -> object:
    given = iter(replies)
    client = Client(ScriptedTransport(lambda request: next(given)))
    return await ask(client, QUESTION, read, lambda problem: f"Again: {problem}")


async def test_a_readable_reply_is_taken() -> None:
    found = await asked(Reply(text="7", usage=TOOK))
    assert (found.value, found.repaired, found.usage) == (7, False, TOOK)  # type: ignore[attr-defined]


async def test_a_repair_costs_both_requests() -> None:
    found = await asked(Reply(text="seven", usage=TOOK), Reply(text="7", usage=TOOK))
    assert (found.value, found.repaired, found.usage) == (7, True, TOOK + TOOK)  # type: ignore[attr-defined]


async def test_what_two_unreadable_replies_took_is_known() -> None:
    with pytest.raises(ReplyError, match="'many' is no number") as raised:
        await asked(Reply(text="some", usage=TOOK), Reply(text="many", usage=TOOK))
    assert raised.value.spent == TOOK + TOOK


async def test_a_reply_that_was_cut_says_so() -> None:
    cut = Reply(text="sev", usage=TOOK, finish="length")
    with pytest.raises(ReplyError, match="cut off by the length limit"):
        await asked(cut, cut)


@pytest.mark.parametrize("before", [0, 1])
async def test_what_a_refusal_took_is_known(before: int) -> None:
    unreadable = [Reply(text="some", usage=TOOK)] * before
    with pytest.raises(Filtered) as raised:
        await asked(*unreadable, Reply(text="", refusal="No.", usage=TOOK))
    assert raised.value.spent == sum([TOOK] * before, TOOK)
