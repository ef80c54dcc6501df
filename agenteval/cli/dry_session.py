"""What the simulators of `flow session` may take at most, told before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agenteval.cli.dry import of_requests

if TYPE_CHECKING:
    from agenteval.assemble import Limits
    from agenteval.models.client import Client

_WORDS = 1200  # characters of a user's words: as many tokens as it may use, four characters each
_REPLY = 4001  # characters of an agent's reply: more than a user is shown


@dataclass(frozen=True)
class Bound:
    """Requests, and the tokens they take together, if every text is as long as it may be."""

    calls: int = 0
    prompt: int = 0
    reply: int = 0
    largest: tuple[int, int] = (0, 0)  # prompt, in bytes, and reply of the largest request

    def __add__(self, other: Bound) -> Bound:
        return Bound(
            self.calls + other.calls,
            self.prompt + other.prompt,
            self.reply + other.reply,
            max(self.largest, other.largest),
        )

    def of(self, who: str, limits: Limits) -> Iterator[str]:
        """Tokens, cost, and what a cap on cost sets aside for one request."""
        yield f"tokens of {who}, at most about: {self.prompt:,} prompt + {self.reply:,} reply"
        if limits.price is not None:
            cost = limits.price.cost(self.prompt, self.reply)
            yield f"cost of {who}, at most about: {cost:.4f}"
        if limits.price is not None and limits.max_cost is not None:
            worst = limits.price.cost(*self.largest)
            yield f"--max-cost: up to about {worst:.4f} is reserved for one request to {who}"


def user_bound(user: Any, cases: Sequence[tuple[Any, int]]) -> Bound:
    """Of a user on a model, for cases with the most replies of the agent.

    It speaks before every reply and once after the last; its prompt grows by as much each time,
    so that the mean of the first and the last is the mean of all.
    """
    from agenteval.evaluators.workflows.simulators.nouns import Heard
    from agenteval.records import Message

    found = Bound()
    for case, turns in cases:
        exchange = (
            Message(role="user", content="x" * _WORDS),
            Message(role="assistant", content="x" * _REPLY),
        )
        first, last = (
            of_requests([user.request(Heard(case.profile, case.of.role.now, talk))], "")
            for talk in ((), exchange * turns)
        )
        found += Bound(
            turns + 1,
            (first.prompt + last.prompt) * (turns + 1) // 2,
            first.reply * (turns + 1),
            last.reserved,
        )
    return found


def tool_bound(client: Client, cases: Sequence[Any], calls: int) -> Bound:
    """Of tools on a model: every call of every session as long as the longest there can be."""
    from agenteval.evaluators.workflows.simulators.tool_model import ToolModel

    found = Bound()
    for case in cases:
        model = ToolModel(client, case.of.role, 0, 0)
        each = [
            of_requests([model.longest(t)], "")
            for t in case.of.role.tools_of(case.profile.scenarios)
        ]
        if not each:
            continue
        longest = max(each, key=lambda e: e.prompt)
        found += Bound(
            calls, calls * longest.prompt, calls * longest.reply, max(e.reserved for e in each)
        )
    return found
