"""The dry run: what is summed, what caps leave, what it costs, and that nothing is sent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agenteval.engine import Outcome, RequestBounds, dry_run
from agenteval.engine.dry_run import (
    Amount,
    CostEstimate,
    EstimateLine,
    RequestCounter,
    first_requests,
)
from agenteval.engine.judging import JudgeUnit
from agenteval.models.client import Client, estimate_tokens
from agenteval.models.dry_run import DryRun, WouldSend, nothing_sent
from agenteval.models.limits import Budget, Price
from agenteval.models.wire import Reply, Request
from agenteval.records import Usage
from agenteval.store import Store
from tests.store.making import ScriptedJudge, criteria, experiment, items


class Answering:
    """A transport that counts, and answers."""

    endpoint, model, sent = "http://there/v1", "m", 0

    async def send(self, request: Request) -> Reply:
        self.sent += 1
        return Reply("yes")

    async def close(self) -> None: ...


class Memory(dict[str, Any]):
    get_reply = dict.get
    put_reply = dict.__setitem__


def request(text: str, **more: Any) -> Request:
    return Request(({"role": "user", "content": text},), parameters={"max_tokens": 50}, **more)


BEFORE = Usage(requests=2, cost=0.5)


def estimate(*lines: EstimateLine, **limits: Any) -> dict[str, Any]:
    return CostEstimate(lines, budget=Budget(**limits, spent=BEFORE)).to_json()


A = EstimateLine("a", Amount(3, 30, None), Amount(6, 60, 12), largest=(10, 5))
B = EstimateLine("b", Amount(1, 10, 0), Amount(9, None, 0))
C = EstimateLine("c", Amount(4, 40, 0), Amount(4, 40, 0))
PRICE = Price(1_000_000, 2_000_000)  # 1 and 2 for a token


def test_sums_by_hand() -> None:
    plain = estimate(A, B, C)
    assert plain["requests"] == {"least": 8, "most": 19}
    assert plain["prompt_tokens"] == {"least": 80, "most": None}
    assert plain["reply_tokens"] == {"least": None, "most": 12}
    assert plain["cost"] is None  # no price, no money
    both = CostEstimate((A, B), ("x",), ("n",), "cmd") + CostEstimate(
        (A, C), ("y",), ("n",), "other"
    )
    assert [(line.who, line.least.requests, line.most.requests) for line in both.lines] == [
        ("a", 6, 12),
        ("b", 1, 9),
        ("c", 4, 4),
    ]
    assert (both.about, both.notes, both.command) == (("x", "y"), ("n",), "cmd")
    assert both.uncertain().requests == (0, 25)


def test_a_cap_on_requests_counts_those_sent_before() -> None:
    assert estimate(A, B, C, max_calls=4)["requests"] == {"least": 2, "most": 2}
    assert estimate(A, B, C, max_calls=11)["requests"] == {"least": 8, "most": 9}
    assert estimate(A, B, C, max_calls=1)["cap"]["uncapped"] == {"least": 8, "most": 19}
    assert estimate(A, max_calls=1)["requests"] == {"least": 0, "most": 0}


def test_prices_and_a_cap_on_cost_by_hand() -> None:
    # of unknown tokens nothing is certain, and no upper bound is given
    assert estimate(A, C, price=PRICE)["cost"] == {"least": 70, "most": 100 + 24}
    assert estimate(B, price=PRICE)["cost"] == {"least": 10, "most": None}
    dear = estimate(A, C, price=PRICE, max_cost=30.5)
    # 30 are left, and 20 are reserved for the largest request: one such request is certain
    assert dear["cap"]["reserved_for_one_request"] == 10 + 2 * 5
    assert dear["requests"] == {"least": 1, "most": 10}
    assert dear["cost"]["most"] == 30


def drafted(one: Request) -> DryRun:
    return DryRun([Client(Answering()).draft(one)])


def test_equal_requests_are_sent_once_at_least_and_each_may_be_repaired() -> None:
    counter, short, long = RequestCounter(), request("a" * 300), request("b" * 3000)
    for each in (short, short, long):
        counter.count({"judge": RequestBounds(1, 2)}, drafted(each))
    line = counter.lines["judge"]
    assert (line.least.requests, line.most.requests) == (2, 6)
    assert line.least.prompt == estimate_tokens(short) + estimate_tokens(long)
    assert line.most.reply == 6 * 50
    assert (line.most.prompt or 0) > 2 * (2 * estimate_tokens(short) + estimate_tokens(long))
    assert line.largest[0] > drafted(long).drafts[0].size


def test_of_a_stored_reply_only_the_repair_is_left() -> None:
    counter, first = RequestCounter(), drafted(request("repair it"))
    first.answered = 1
    counter.count({"judge": RequestBounds(1, 2), "user": RequestBounds(2, 5)}, first)
    judge, user = counter.lines.values()
    assert (judge.least.requests, judge.most.requests) == (1, 1)
    assert (user.least.requests, user.most) == (2, Amount(5, None, None))


def test_nothing_is_sent_and_stored_replies_are_used(tmp_path: Path) -> None:
    transport, cache = Answering(), Memory()
    client = Client(transport, cache=cache)

    async def two() -> None:
        await client.complete(request("first"))
        await client.complete(request("second"))

    found = asyncio.run(first_requests(two())) or DryRun()
    assert ([d.request for d in found.drafts], found.answered) == ([request("first")], 0)
    asyncio.run(client.complete(request("first")))  # outside of a dry run it is sent
    found = asyncio.run(first_requests(two())) or DryRun()
    assert ([d.request for d in found.drafts], found.answered) == ([request("second")], 1)
    with nothing_sent(), pytest.raises(WouldSend):
        asyncio.run(client.complete(request("third")))
    assert (transport.sent, len(cache)) == (1, 1)


class Asking(ScriptedJudge):
    """A judge that sends one request for each unit."""

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        await Client(Answering()).complete(request(unit.run.id, repeat=unit.repeat))
        return await super().evaluate(unit)


def test_of_many_units_a_sample_is_drafted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_run, "SAMPLE", 10)
    with Store(tmp_path / "s.db") as store:
        work = experiment(Asking(), items(19), criteria(1), store, repeats=5)
        (line,) = asyncio.run(work.dry_run()).lines
    assert (line.exact, line.least.requests, line.most.requests) == (False, 95, 190)
