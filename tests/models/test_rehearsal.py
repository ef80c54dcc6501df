"""Inside a rehearsal no client sends anything, and what it would send is noted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.models.client import Client, estimate_tokens
from agenteval.models.rehearsal import Amount, Part, Rehearsal, Unsent
from agenteval.models.wire import Reply, Request


class Loud:
    """A transport that counts, and answers."""

    endpoint, model = "http://there/v1", "m"
    sent = 0

    async def send(self, request: Request) -> Reply:
        self.sent += 1
        return Reply("yes")

    async def close(self) -> None: ...


class Memory(dict[str, Any]):
    """A cache of replies."""

    get_reply = dict.get
    put_reply = dict.__setitem__


def request(text: str, **more: Any) -> Request:
    return Request(({"role": "user", "content": text},), parameters={"max_tokens": 50}, **more)


def two(client: Client) -> Any:
    async def work() -> None:
        await client.complete(request("first"))
        await client.complete(request("second, which is longer"))

    return work()


def test_only_what_is_stored_is_answered() -> None:
    transport, cache = Loud(), Memory()
    client = Client(transport, cache=cache)
    with Rehearsal() as rehearsal:
        (first,) = rehearsal.first(two(client))
        assert (first.request, first.reply, rehearsal.answered) == (request("first"), 50, [])
        assert first.prompt == estimate_tokens(request("first")) < first.size
    asyncio.run(client.complete(request("first")))  # outside it is sent as ever
    assert transport.sent == 1
    with Rehearsal() as rehearsal:
        (second,) = rehearsal.first(two(client))
        assert second.request.messages[0]["content"].startswith("second")
        assert rehearsal.answered == [request("first")]
        with pytest.raises(Unsent):
            asyncio.run(client.complete(request("third")))
    assert (transport.sent, len(cache)) == (1, 1)


def test_what_is_wrong_with_the_work_itself_is_raised() -> None:
    async def wrong() -> None:
        raise InputError("no such thing")

    with Rehearsal() as rehearsal, pytest.raises(InputError):
        rehearsal.first(wrong())


def test_questions_are_counted_by_hand() -> None:
    client = Client(Loud())
    part = Part("w", "y")
    one, other = client.draft(request("a" * 300)), client.draft(request("b" * 3000))
    part.ask([one, one, other], reply=7)
    # equal questions are asked once at least; each may be repaired
    assert part.least == Amount(2, one.prompt + other.prompt, 2 * 7)
    assert (part.most.requests, part.most.reply) == (6, 6 * 50)
    assert part.most.prompt is not None
    assert part.most.prompt > 2 * (2 * one.prompt + other.prompt)
    part.ask([one], certain=0, times=5, longer=None)
    assert part.most == Amount(16, None, 16 * 50)
    assert part.largest[0] > other.size

    # an owed repair takes one request, and so does what can be asked once only
    left = Part("w", "y")
    left.ask([client.draft(request("x", role="critic:repair"))])
    left.ask([other], most=1)
    assert left.most.requests == left.least.requests == 2


def test_a_conversation_of_unknown_length() -> None:
    draft, part = Client(Loud()).draft(request("a" * 300)), Part("agent", "y", likely=Amount())
    part.talk(draft, usual=3, most=11, certain=1, times=2)
    assert part.least == Amount(1, draft.prompt, None)
    assert part.most == Amount(22, None, 22 * 50)
    assert part.likely is not None
    assert part.likely.requests == 6
    assert 6 * draft.prompt < (part.likely.prompt or 0)


def test_of_many_units_a_sample_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval.models.rehearsal.LOOKED_AT", 10)
    client = Client(Loud())

    class Plan:
        units = range(95)

        async def evaluate(self, unit: int) -> None:
            await client.complete(request("hello", repeat=unit))

    part = Part("judge", "y")
    part.rehearse([Plan()], lambda unit, drafts: part.ask(drafts))
    assert (part.exact, part.least.requests, part.most.requests) == (False, 95, 190)
