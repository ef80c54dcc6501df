"""Request and Reply: the messages to and from a model, independent of the transport."""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from agenteval.errors import Transient
from agenteval.records import Usage, canonical_json
from agenteval.text import redacted

# Placeholder for the nonce in a logical request. It is removed from untrusted text (prompts.py).
NONCE = "\ue0f0nonce\ue0f0"

WireMessage = dict[str, Any]  # OpenAI's message format: {"role": ..., "content": ...}


@dataclass(frozen=True, slots=True)
class Request:
    """One logical request.

    `messages` follow OpenAI's wire format. `schema` is the JSON schema of the reply; `questions`
    are those of a decision (`DecisionsTransport`). `repeat` and `attempt` are part of the identity,
    so repeats never share a reply and a retry after a malformed reply is really sent. `role`,
    `run_id`, `variant` (of a perturbed copy) and `about` (hashes of what it is about, by name) say
    what the request is for; they help to find recorded replies after prompts change, and are not
    part of the identity.
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
    variant: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    questions: tuple[dict[str, Any], ...] = ()

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
            **({"questions": self.questions} if self.questions else {}),
        }

    @property
    def final(self) -> bool:
        """Whether there is no repair, because there is no text to repair."""
        return bool(self.questions or self.parameters.get("logprobs"))

    def identify(self, endpoint: str, model: str) -> tuple[str, int]:
        """The key, and the bytes it was made from: more than the prompt can have tokens.

        Byte-level tokenizers make at most one token of a byte, and the text holds messages,
        schema and tools.
        """
        text = canonical_json({"endpoint": endpoint, "model": model, **self.logical()})
        data = text.encode("utf-8", "surrogatepass")
        return hashlib.sha256(data).hexdigest(), len(data)

    def key(self, endpoint: str, model: str) -> str:
        """sha256 (hex) over endpoint, model and the logical request; the nonce is not in it."""
        return self.identify(endpoint, model)[0]

    def logical_hash(self) -> str:
        """Return the sha256 (hex) of the logical request, to find a recording by any sender."""
        return self.key("", "")

    def described(self) -> dict[str, Any]:
        """Return the members of a recorded reply that find it again, see `models.replay`."""
        members: dict[str, Any] = {
            "key": self.logical_hash(),
            "run": self.run_id,
            "repeat": self.repeat,
            "attempt": self.attempt,
            "role": self.role,
        }
        if self.variant:
            members["variant"] = self.variant
        if self.about:
            members["about"] = dict(self.about)
        return members

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
    """The reply of a model.

    `finish` is stop, length, content_filter, tool_calls or unknown. `mode` is how the format was
    requested: json_schema, json_object, text or decisions. `logprobs` has for each generated token
    the token and its alternatives with natural-log probabilities, if requested. `latency` is that
    of the successful attempt, in seconds. `attempts` and `usage` include failed ones.
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

    @property
    def says_nothing(self) -> bool:
        """Whether the length limit cut it off before any text, for example while reasoning."""
        if self.finish != "length" or self.tool_calls:
            return False
        return not self.text.strip() or bool(_UNFINISHED_THOUGHT.fullmatch(self.text))

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
        """Inverse of `to_json`; only `text` is required. Raises KeyError, TypeError or ValueError
        for an invalid value; nothing is coerced."""
        if not isinstance(value, dict):
            raise TypeError(f"a reply is an object, not {type(value).__name__}")
        return cls(
            text=printable(_typed(value, "text", str, ...)),
            finish=_typed(value, "finish", str, "stop"),
            refusal=_typed(value, "refusal", str, None),
            tool_calls=_dicts(value, "tool_calls") or (),
            usage=Usage.model_validate(_typed(value, "usage", dict, {"requests": 1})),
            logprobs=_dicts(value, "logprobs"),
            mode=_typed(value, "mode", str, "text"),
            model=_typed(value, "model", str, None),
            latency=_typed(value, "latency", (int, float), 0.0),
            attempts=_typed(value, "attempts", int, 1),
            cached=cached,
            key=key,
        )


def _typed(value: dict[str, Any], name: str, kind: Any, default: Any) -> Any:
    """The member, or `default` when it is absent or null; `...` as default means required."""
    member = value[name] if default is ... else value.get(name)
    if member is None and default is not ...:
        return default
    if not isinstance(member, kind) or isinstance(member, bool):
        raise TypeError(f"{name} is {type(member).__name__}")
    if isinstance(member, float) and not math.isfinite(member):
        raise ValueError(f"{name} is {member}")
    return member


def _dicts(value: dict[str, Any], name: str) -> tuple[dict[str, Any], ...] | None:
    objects = _typed(value, name, (list, tuple), None)
    if objects is not None and not all(isinstance(item, dict) for item in objects):
        raise TypeError(f"{name} holds something other than objects")
    return None if objects is None else tuple(objects)


class Resend(Transient):
    """Send the request again at once: this attempt does not count as a failure.

    A transport raises it a bounded number of times for one request.
    """


class Simplified(Resend):
    """The endpoint refused part of the request, and the transport will now leave it out."""


class Transport(Protocol):
    """The interface to a model. Everything above it is the same for all models and in tests."""

    endpoint: str
    model: str

    async def send(self, request: Request) -> Reply:
        """Send one request. Raises the matching ModelError; never retries, never caches."""
        ...

    async def close(self) -> None:
        """Free connections and memory."""
        ...


_UNFINISHED_THOUGHT = re.compile(r"\s*<think(?:ing)?>(?:(?!</think).)*", re.S | re.I)
_SURROGATE = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    """Replace lone surrogates, which cannot be stored, with U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def one_line(value: object) -> str:
    """At most 300 characters of its text on one line, keys taken out before it is cut."""
    return " ".join(redacted(value).split())[:300]
