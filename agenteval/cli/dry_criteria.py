"""What `criteria --dry-run` says: requests, tokens and cost of the critics. Nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.cli.dry import Estimate, of_requests, planned_store

if TYPE_CHECKING:
    from agenteval.assemble import Limits
    from agenteval.models.client import Client
    from agenteval.models.factory import ModelChoice
    from agenteval.models.wire import Request
    from agenteval.proposals import CriticOptions
    from agenteval.records import Criterion, Task

_SHOWN = 12  # entries of the bank that a critic is shown


def cost(
    choice: ModelChoice, wanted: CriticOptions, task: Task, limits: Limits, store: Path | None
) -> Iterator[str]:
    """Lines for a person: upper bounds but for replies out of form, which cost one request more.

    A reply counts as long as it may be, and so does the list of criteria that a sub-critic is
    shown; of the bank its longest entries count. Raises InputError for a cap without a price.
    """
    from agenteval.assemble import make_client
    from agenteval.evaluators.utility.critic import Critic

    limits.budget()
    client = make_client(choice, limits, None)
    critic = Critic(
        client, task, use_examples=wanted.use_examples, temperature=wanted.temperature,
        bank=_longest() if wanted.bank else (), sub_criteria=wanted.sub_criteria,
    )  # fmt: skip
    asked = [critic.request(seed) for seed in wanted.seeds]
    missing = asked if wanted.bank else _missing(client, asked, store)
    stored = f", {len(asked) - len(missing)} stored already" if len(missing) < len(asked) else ""
    found = of_requests(missing, choice.name)
    if critic.subcritic is not None:
        shown = found.reply // len(missing) if missing else of_requests(asked[:1], "").reply
        requests = [critic.subcritic.request((), seed) for seed in wanted.seeds]
        found += _with_list(of_requests(requests, choice.name), shown)
    yield (
        f"requests: {found.calls}{' at most' if critic.subcritic else ''}{stored} "
        "(a reply out of form costs one more each)"
    )
    yield from found.lines(limits, "at most, about")
    yield from found.reserve(limits)
    if (wanted.embedder or "").startswith("endpoint:"):
        yield "embeddings: asked from the endpoint to merge the names; not counted here"


def _missing(client: Client, asked: list[Request], path: Path | None) -> list[Request]:
    """Requests whose reply is not stored; without a store nothing is kept between commands."""
    if path is None:
        return asked
    endpoint = client.transport.endpoint
    with planned_store(path) as store:
        return [r for r in asked if store.get_reply(r.key(endpoint, client.model)) is None]


def _with_list(requests: Estimate, tokens: int) -> Estimate:
    """The same requests, each with a list of so many tokens; a token may be four bytes."""
    bound, reply = requests.reserved
    return replace(
        requests,
        prompt=requests.prompt + requests.calls * tokens,
        reserved=(bound + 4 * tokens, reply),
    )


def _longest() -> tuple[Criterion, ...]:
    """As many entries of the bank as a critic is shown, the longest."""
    from agenteval.evaluators.utility.bank import load_bank

    entries = [concept.criterion(0) for concept in load_bank()]
    return tuple(sorted(entries, key=lambda c: -len(c.model_dump_json()))[:_SHOWN])
