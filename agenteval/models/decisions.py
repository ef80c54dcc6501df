"""Endpoints of `POST /v1/decisions`: questions about a text, answered with probabilities.

The form is that of openai 3.54 (`client.decisions.create`): `model`, `input` (messages) and
`questions`, each a `predicate`, `choice` or `score`; the reply holds `answers` in their order, each
of the question's type or a `refusal`. It is posted without the SDK's own method, so that every
version of it can be used.
"""

from __future__ import annotations

from typing import Any

from agenteval.models.completion import raise_reason, read_object, read_usage
from agenteval.models.openai import OpenAITransport
from agenteval.models.wire import Reply, Request, printable
from agenteval.records import canonical_json

MOST_QUESTIONS = 400  # of one request


class DecisionsTransport(OpenAITransport):
    """One endpoint that answers `Request.questions` about `Request.messages`.

    The reply's text is the JSON list of the answers, as they came; parameters of sampling and of
    the form are not sent, since the endpoint has none.
    """

    path = "/decisions"

    def _body(self, request: Request, mode: str) -> dict[str, Any]:
        return {
            "model": self.model,
            "input": list(request.messages),
            "questions": list(request.questions),
        }

    def _read(self, payload: bytes, mode: str, latency: float) -> Reply:
        body = read_object(payload, self.endpoint)
        answers, model = body.get("answers"), body.get("model")
        if not isinstance(answers, list):
            raise_reason(body, None, self.endpoint)
        return Reply(
            text=printable(canonical_json(answers)),
            usage=read_usage(body.get("usage"), "input_tokens", "output_tokens"),
            mode="decisions",
            model=model if isinstance(model, str) else None,
            latency=latency,
        )
