"""The one fake of a model: a transport that answers from a function."""

from __future__ import annotations

from collections.abc import Callable

from agenteval.models.wire import Reply, Request


class ScriptedTransport:
    """Answers every request with what `answer(request)` returns: text, a Reply, or an exception.

    `requests` keeps what was asked, in order.
    """

    endpoint = "scripted"

    def __init__(
        self, answer: Callable[[Request], str | Reply | Exception], *, model: str = "scripted"
    ) -> None:
        self.model = model
        self.requests: list[Request] = []
        self._answer = answer

    async def send(self, request: Request) -> Reply:
        """The scripted answer; a returned exception is raised."""
        self.requests.append(request)
        answer = self._answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(text=answer)

    async def close(self) -> None:
        """Nothing to free."""
