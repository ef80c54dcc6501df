"""Request and Reply: what goes to a model and what comes back, whatever carries it."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from agenteval.records import Usage, canonical_json

# Stands in a logical request wherever the nonce goes. Untrusted text is cleared of it (prompts.py).
NONCE = "\ue0f0nonce\ue0f0"

WireMessage = dict[str, Any]  # OpenAI's message format: {"role": ..., "content": ...}


@dataclass(frozen=True, slots=True)
class Request:
    """One logical request.

    `messages` follow OpenAI's wire format. `schema` is the JSON schema of the reply. `repeat` and
    `attempt` are part of the identity, so repeats never answer for one another and a fresh try of
    a reply that was not in form is really sent. `role` and `run_id` say what the request is for;
    they help to find recorded replies and are not part of the identity.
    """

    messages: tuple[WireMessage, ...]
    schema: dict[str, Any] | None = None
    parameters: dict[str, Any] = field(default_factory=dict)  # temperature, max_tokens, seed ...
    repeat: int = 0
    attempt: int = 0
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: str | dict[str, Any] | None = None
    role: str = ""
    run_id: str | None = None

    def logical(self) -> dict[str, Any]:
        """Everything that identifies the request apart from who answers it."""
        return {
            "messages": self.messages,
            "schema": self.schema,
            "parameters": self.parameters,
            "repeat": self.repeat,
            "attempt": self.attempt,
            "tools": self.tools,
            "tool_choice": self.tool_choice,
        }

    def key(self, endpoint: str, model: str) -> str:
        """sha256 (hex) over endpoint, model and the logical request; the nonce is not in it."""
        text = canonical_json({"endpoint": endpoint, "model": model, **self.logical()})
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def logical_hash(self) -> str:
        """sha256 (hex) of the logical request alone: finds a recording whoever made it."""
        return self.key("", "")

    def with_nonce(self, key: str, secret: bytes) -> Request:
        """The request with the placeholder replaced by 96 bits of HMAC(secret, key)."""
        nonce = hmac.new(secret, key.encode(), hashlib.sha256).hexdigest()[:24]
        messages = tuple(
            {**m, "content": m["content"].replace(NONCE, nonce)}
            if isinstance(m.get("content"), str) and NONCE in m["content"]
            else m
            for m in self.messages
        )
        return replace(self, messages=messages)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model returned.

    `finish` is stop, length, content_filter, tool_calls or unknown. `mode` tells how the form was
    asked for: json_schema, json_object or text. `logprobs` holds, per generated token, the token
    and its alternatives with natural-log probabilities, when asked for. `latency` in seconds.
    """

    text: str
    finish: str = "stop"
    refusal: str | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()
    usage: Usage = Usage(requests=1)  # noqa: RUF009  frozen
    logprobs: tuple[dict[str, Any], ...] | None = None
    mode: str = "text"
    model: str | None = None
    latency: float = 0.0
    attempts: int = 1
    cached: bool = False
    key: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON value for cache and recordings; `cached` and `key` are left out."""
        return {
            "text": self.text,
            "finish": self.finish,
            "refusal": self.refusal,
            "tool_calls": list(self.tool_calls),
            "usage": self.usage.model_dump(),
            "logprobs": None if self.logprobs is None else list(self.logprobs),
            "mode": self.mode,
            "model": self.model,
            "latency": self.latency,
            "attempts": self.attempts,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any], *, key: str, cached: bool) -> Reply:
        """Inverse of `to_json`. Raises KeyError, TypeError or ValueError on a foreign value."""
        return cls(
            text=str(value["text"]),
            finish=str(value.get("finish", "stop")),
            refusal=value.get("refusal"),
            tool_calls=tuple(value.get("tool_calls") or ()),
            usage=Usage.model_validate(value.get("usage") or {"requests": 1}),
            logprobs=None if value.get("logprobs") is None else tuple(value["logprobs"]),
            mode=str(value.get("mode", "text")),
            model=value.get("model"),
            latency=float(value.get("latency", 0.0)),
            attempts=int(value.get("attempts", 1)),
            cached=cached,
            key=key,
        )


class Transport(Protocol):
    """The one seam to a model. Everything above it is the same for all models and in tests."""

    endpoint: str
    model: str

    async def send(self, request: Request) -> Reply:
        """One attempt. Raises the ModelError that fits; never retries, never caches."""
        ...

    async def close(self) -> None:
        """Free connections and memory."""
        ...
