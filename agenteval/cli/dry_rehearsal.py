"""A client that asks nobody: stored replies are answered, what would be sent is noted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval.errors import BudgetExceeded

if TYPE_CHECKING:
    from agenteval.models.client import Client, ReplyCache
    from agenteval.models.wire import Reply, Request


class Unsent(BudgetExceeded):
    """The request is not stored, and nothing is sent. As at the end of a budget, nothing is asked
    again and nothing further is begun."""


class Nobody:
    """A transport to nowhere, known by the names of another one. `asked` is what was to be sent."""

    def __init__(self, endpoint: str, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.asked: list[Request] = []

    async def send(self, request: Request) -> Reply:
        """Notes the request. Raises Unsent."""
        self.asked.append(request)
        raise Unsent("nobody is asked in a dry run")

    async def close(self) -> None:
        """Nothing is open."""


def rehearsal(like: Client, cache: ReplyCache | None) -> tuple[Client, Nobody]:
    """A client of the same names over `cache`, and what tells what it would have sent."""
    from agenteval.models.client import Client

    nobody = Nobody(like.transport.endpoint, like.model)
    return Client(nobody, cache=cache), nobody
