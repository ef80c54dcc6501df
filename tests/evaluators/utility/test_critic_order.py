"""The question which level is the best: asked once, for what does not show it, and never needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agenteval.errors import BadRequest, BudgetExceeded, ReplyError, Unauthorized
from agenteval.evaluators.utility.critic import Critic, Proposal
from agenteval.evaluators.utility.critic_order import read_orders
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.wire import Reply, Request
from agenteval.records import Task, Usage
from agenteval.testing.scripted import ScriptedTransport

STEPS = {
    "name": "Steps",
    "description": "How many.",
    "accepted_values": ["few steps", "many steps"],
}
PACE = {"name": "Pace", "accepted_values": ["brisk", "halting"], "scale": "ordinal"}
CLARITY = {"name": "Clarity", "accepted_values": ["clear", "unclear"]}
NUMBERS = {"name": "Error rate", "accepted_values": "0-10"}
CONTRARY = {"name": "Grade", "accepted_values": ["good", "poor"], "order": "worst_to_best"}
Answer = Callable[[Request], str | Reply | Exception]


def orders(*best: str) -> str:
    return json.dumps({"answers": [
        {"criterion": n, "reason": "r", "best": b} for n, b in enumerate(best, start=1)
    ]})  # fmt: skip


async def proposed(rubric: list[dict[str, Any]], answer: Answer) -> tuple[Proposal, list[Request]]:
    def reply(request: Request) -> str | Reply | Exception:
        return answer(request) if request.role == "critic:order" else json.dumps(rubric)

    transport = ScriptedTransport(reply, model="m")
    client = Client(transport, retry=RetryPolicy(attempts=1))
    task = Task(name="sums", description="Add numbers.")
    proposal = await Critic(client, task, use_examples=False).propose(7)
    return proposal, [r for r in transport.requests if r.role == "critic:order"]


@pytest.mark.parametrize(
    ("best", "values", "order", "scale"),
    [
        ("first", ("many steps", "few steps"), "worst_to_best", "binary"),
        ("last", ("few steps", "many steps"), "worst_to_best", "binary"),
        ("none", ("few steps", "many steps"), "unclear", "nominal"),
    ],
)
async def test_the_answer_settles_the_order_and_says_so(
    best: str, values: tuple[str, ...], order: str, scale: str
) -> None:
    proposal, asked = await proposed([CLARITY, STEPS], lambda _: orders(best))
    clarity, steps = proposal.criteria
    assert (steps.accepted_values, steps.order, steps.scale) == (values, order, scale)
    assert steps.order_reason is not None
    assert steps.order_reason.startswith("asked the critic: ")
    assert steps.order_confirmed is (best != "none")
    assert clarity.accepted_values == ("unclear", "clear")  # what shows its order is not asked
    assert len(asked) == 1
    (line,) = [p for p in proposal.problems if p.startswith("Steps")]
    assert line.startswith("Steps: order asked of the critic: ")
    assert "order unclear" not in line


async def test_one_request_holds_all_that_is_unclear() -> None:
    proposal, (request,) = await proposed(
        [STEPS, CLARITY, CONTRARY, NUMBERS],
        lambda _: Reply(text=orders("first", "first", "first"), usage=Usage(requests=1)),
    )
    text = request.messages[0]["content"]
    for part in ("Criterion 1: Steps", "Criterion 2: Grade", "Criterion 3: Error rate", "How many.",
                 "value 1 (first): few steps", "value 2 (last): many steps", "<<BEGIN criteria",
                 "a number from 0.0 (first) to 10.0 (last)", "Add numbers."):  # fmt: skip
        assert part in text
    assert "Clarity" not in text
    assert (request.repeat, request.parameters["seed"]) == (7, 7)
    steps, _, grade, rate = proposal.criteria
    assert [c.accepted_values[-1:] for c in (steps, grade)] == [("few steps",), ("good",)]
    assert rate.numeric_range == (10, 0)
    assert all(c.ordered for c in proposal.criteria)
    assert proposal.usage.requests == 2  # the rubric and the orders


async def test_nothing_is_asked_where_every_order_is_shown() -> None:
    _, asked = await proposed([CLARITY], lambda _: AssertionError("asked"))
    assert asked == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("I cannot say.", "no object or list"),
        ('{"answers": []}', "names no order"),
        (orders("sideways"), "names no order"),
        ('{"answers": [{"criterion": 9, "best": "last"}]}', "names no order"),
        ('{"answers": [{"criterion": 1, "best": "last"}, {"criterion": 1, "best": "first"}]}',
         "names no order"),
        (Reply(text="", refusal="no"), "refused"),
        (Reply(text=orders("last"), finish="content_filter"), "refused"),
        (BadRequest("no recorded reply"), "no recorded reply"),
        (BudgetExceeded("the cap is reached"), "the cap is reached"),
    ],
)  # fmt: skip
async def test_without_an_answer_it_stays_unclear_and_is_kept(
    answer: str | Reply | Exception, why: str
) -> None:
    proposal, asked = await proposed([STEPS, CLARITY], lambda _: answer)
    steps, clarity = proposal.criteria
    assert (steps.order, steps.accepted_values) == ("unclear", ("few steps", "many steps"))
    assert clarity.ordered
    assert len(asked) == 1
    (line,) = [p for p in proposal.problems if p.startswith("Steps")]
    assert why in line
    assert line.endswith("it stays unclear and has no mean")


async def test_one_of_two_may_be_answered() -> None:
    answer = '{"answers": [{"criterion": 2, "best": "first"}]}'
    proposal, _ = await proposed([STEPS, CONTRARY], lambda _: answer)
    steps, grade = proposal.criteria
    assert (steps.ordered, grade.accepted_values) == (False, ("poor", "good"))
    assert any(p.startswith("Steps: order asked of the critic: the critic did not say; it stays")
               for p in proposal.problems)  # fmt: skip


async def test_a_refused_key_stops_everything() -> None:
    with pytest.raises(Unauthorized):
        await proposed([STEPS], lambda _: Unauthorized("no"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (orders("first", "none"), {1: "first", 2: "none"}),
        ('[{"criterion": "1", "best": "Last"}]', {1: "last"}),
        ('{"1": "first", "2": {"best": "last"}}', {1: "first", 2: "last"}),
        ('{"answers": [{"criterion": 1, "best": "last"}, {"criterion": 3, "best": "last"}]}',
         {1: "last"}),
    ],
)  # fmt: skip
def test_forms_of_the_answer(text: str, expected: dict[int, str]) -> None:
    assert read_orders(text, 2) == expected


def test_an_answer_about_nothing_is_an_error() -> None:
    with pytest.raises(ReplyError):
        read_orders("{}", 2)
