"""What the requests of one question took, those that led to nothing included."""

from __future__ import annotations

from typing import cast

from agenteval.errors import AgentevalError
from agenteval.models.client import Client
from agenteval.models.wire import Reply, Request
from agenteval.records import Usage


class Meter:
    """Stands in the place of the Client, of which questions use `complete`; cached is free."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.usage = Usage()

    def as_client(self) -> Client:
        """For `models.asking.ask`."""
        return cast(Client, self)

    async def complete(self, request: Request) -> Reply:
        """As that of the client."""
        try:
            reply = await self._client.complete(request)
        except AgentevalError as error:
            self.usage += error.spent or Usage()
            raise
        if not reply.cached:
            self.usage += reply.usage
        return reply
