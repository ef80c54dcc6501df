"""One question to a critic, with one repair round when the reply is not in form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agenteval.evaluators.utility.critic_reply import CriticReading
from agenteval.evaluators.utility.proposed import tamed
from agenteval.models import asking
from agenteval.models.client import Client
from agenteval.models.prompts import Prompt
from agenteval.models.wire import Request
from agenteval.records import Criterion, Provenance, Usage


@dataclass(frozen=True, slots=True)
class Asked:
    """What was read, from which text, and what it took. Cached replies cost nothing."""

    reading: CriticReading
    raw: str
    usage: Usage


async def ask(
    client: Client, request: Request, read: Callable[[str], CriticReading], repair: Prompt
) -> Asked:
    """The reading of the reply, or of the one repair; its rung says so. Raises as `asking.ask`."""
    found = await asking.ask(
        client, request, read, lambda problem: repair.render(problem=problem, key="criteria")
    )
    found.value.criteria = tamed(found.value.criteria, found.value.problems)
    if found.repaired:
        found.value.rung = f"repair:{found.value.rung}"
    return Asked(found.value, found.text, found.usage)


def signed(criterion: Criterion, provenance: Provenance) -> Criterion:
    """The criterion and its parts with this provenance."""
    parts = tuple(signed(part, provenance) for part in criterion.sub_criteria)
    return criterion.model_copy(update={"provenance": provenance, "sub_criteria": parts})
