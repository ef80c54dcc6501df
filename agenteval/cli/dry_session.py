"""What the simulators of `flow session` would be asked, told before anything is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agenteval.cli.dry_bill import Amount, Asked, of_requests, repaired
from agenteval.cli.dry_rehearsal import rehearsal
from agenteval.errors import AgentevalError

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.trials import Work
    from agenteval.models.client import Client
    from agenteval.store import Store

_WORDS = 1200  # characters of a user's words: as many tokens as it may use, four characters each
_REPLY = 4001  # characters of an agent's reply: more than a user is shown


def user_asked(client: Client, work: Sequence[tuple[Work, int]], seed: int, store: Store) -> Asked:
    """Of a user on a model, for sessions with the most replies of the agent.

    It speaks before every reply and once after the last. Its prompt grows by as much each time, so
    that the mean of the first and the last is the mean of all. What is stored is not asked again:
    the first words of a session are the same for every agent and format.
    """
    least, most, largest = Amount(), Amount(), (0, 0)
    seen: set[tuple[str, int]] = set()
    tries = 1
    for one, turns in work:
        user, nobody = _user(client, store)
        tries = int(user.parameters["tries"])
        first, whole, longest = _sizes(user, one.case, turns, seed, one.number)
        most, largest = most + whole, max(largest, longest)
        if (key := (one.case.key, one.number)) in seen:
            continue
        seen.add(key)
        certain = _certain(user, nobody, _heard(one.case, seed, one.number))
        least += Amount(1, first.prompt, None) * certain
    return Asked(
        "simulated user", least, repaired(most) * tries,
        "it speaks before each reply of the agent and once after the last, 2 times at least; "
        f"words that cannot stand are asked for up to {2 * tries - 1} times more",
        largest=largest,
    )  # fmt: skip


def _certain(user: Any, nobody: Any, heard: Any) -> int:
    """Requests that a session makes at least: two, less where the first words are stored."""
    try:
        asyncio.run(user.speak(heard))
    except AgentevalError:
        if nobody.asked and nobody.asked[0].role == "user" and nobody.asked[0].attempt == 0:
            return 2
    return len(nobody.asked[:1])


def _user(client: Client, store: Store | None) -> tuple[Any, Any]:
    from agenteval.evaluators.workflows.simulators.user_model import UserOnModel

    own, nobody = rehearsal(client, store)
    return UserOnModel(own), nobody


def _heard(case: Any, seed: int, repeat: int, talk: tuple[Any, ...] = ()) -> Any:
    from agenteval.evaluators.workflows.simulators.nouns import Heard

    return Heard(case.profile, case.of.role.now, talk, seed, repeat)


def _sizes(
    user: Any, case: Any, turns: int, seed: int, repeat: int
) -> tuple[Amount, Amount, tuple[int, int]]:
    """The first request, all at most before repairs, and the largest of them."""
    from agenteval.records import Message

    exchange = (
        Message(role="user", content="x" * _WORDS),
        Message(role="assistant", content="x" * _REPLY),
    )
    first, _ = of_requests([user.request(_heard(case, seed, repeat))])
    last, largest = of_requests([user.request(_heard(case, seed, repeat, exchange * turns))])
    prompt = ((first.prompt or 0) + (last.prompt or 0)) * (turns + 1) // 2
    return first, Amount(turns + 1, prompt, (first.reply or 0) * (turns + 1)), largest


def tools_asked(client: Client, cases: Sequence[Any], calls: int) -> Asked:
    """Of tools on a model: every call of every session as long as the longest there can be."""
    from agenteval.evaluators.workflows.simulators.tool_model import ToolModel

    most, largest = Amount(), (0, 0)
    for case in cases:
        model = ToolModel(client, case.of.role, 0, 0)
        tools = case.of.role.tools_of(case.profile.scenarios)
        each = [of_requests([model.longest(tool)]) for tool in tools]
        if not each:
            continue
        longest = max((one for one, _ in each), key=lambda one: one.prompt or 0)
        most, largest = most + longest * calls, max(largest, *(size for _, size in each))
    return Asked(
        "simulated tools", Amount(), repaired(most),
        f"one request for each call that the agent makes ({calls} in a session at most); one more "
        "for a reply out of form",
        largest=largest,
    )  # fmt: skip
