"""The endpoint an agent under test talks to: settings, one shared client, one `Line` per case."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from agenteval.agents.protocol import Agent, System
from agenteval.agents.toolbox import Toolbox, as_object
from agenteval.errors import (
    AgentevalError,
    Filtered,
    InputError,
    OutOfTime,
    RequestTimeout,
    Transient,
)
from agenteval.models.client import Client, ReplyCache, RetryPolicy
from agenteval.models.limits import Budget, Limiter
from agenteval.models.openai import OpenAITransport
from agenteval.models.replay import ReplayTransport
from agenteval.models.wire import Reply, Request, Transport
from agenteval.records import Usage
from agenteval.text import public_url

INSTRUCTIONS = "You are a helpful assistant. Use the tools to do what the user asks for."


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The model that an agent runs on, and its request settings.

    `temperature` and `max_tokens` are not sent when None; `extra` are further parameters. `timeout`
    bounds one request in seconds; transient errors are retried up to `max_retries` times. A
    `recording` replaces the model. The key is in no `repr` and not in `parameters`. Raises
    InputError for values out of bounds.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    timeout: float = 120.0
    max_retries: int = 5
    recording: Path | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    key_header: str = "Authorization"
    query: str = ""

    def __post_init__(self) -> None:
        if not self.model:
            raise InputError("an endpoint needs the name of a model")
        if not self.timeout > 0 or self.max_retries < 0:
            raise InputError("timeout must be above 0 and max_retries not below 0")

    def __repr__(self) -> str:  # neither the key nor credentials in the URL
        return f"Endpoint({self.model!r}, {self.base_url and public_url(self.base_url)!r})"

    def parameters(self) -> dict[str, JsonValue]:
        """Return the settings that can change an agent's behaviour, for `System.parameters`; no
        secrets."""
        where = self.base_url and public_url(self.base_url)
        if self.recording is not None:
            where = f"replay:{hashlib.sha256(self.recording.read_bytes()).hexdigest()[:16]}"
        return {"model": self.model, "endpoint": where, **self.request_parameters()}

    def request_parameters(self) -> dict[str, Any]:
        """Return the request parameters besides messages and tools, in the format of chat
        completions."""
        values: dict[str, Any] = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        values |= self.extra
        return {name: value for name, value in values.items() if value is not None}


def model_system(
    adapter: str,
    endpoint: Endpoint,
    make: Callable[[], Agent],
    name: str | None,
    parameters: Mapping[str, JsonValue],
) -> System:
    """The system of an adapter that runs a model, by default `ADAPTER:MODEL`."""
    described = {"adapter": adapter, "version": 1, **parameters, **endpoint.parameters()}
    return System(name or f"{adapter}:{endpoint.model}", make, described)


def connect(  # noqa: PLR0913  each is one side of a client
    endpoint: Endpoint,
    *,
    concurrency: int = 64,
    budget: Budget | None = None,
    transport: type[OpenAITransport] | None = None,
    store: ReplyCache | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Client:
    """The one client of a campaign: all its cases share its connections, retries and budget.

    Nothing is opened before the first request; close it at the end, in the same event loop. Replies
    are written to `store` for `export --replies`, and never read from it: a second trial of a case
    must be a real one. `concurrency` should not be below the number of cases run at once, or they
    wait for each other while their clocks run. `clock` must agree with that of the event loop, in
    seconds.
    """
    sender: Transport
    if endpoint.recording is not None:
        sender = ReplayTransport(endpoint.recording)
    else:
        sender = (transport or ChatTransport)(
            endpoint.model,
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            key_header=endpoint.key_header,
            query=endpoint.query,
        )
    return Client(
        sender,
        cache=None if store is None else _WriteOnly(store),
        budget=budget,
        limiter=Limiter(concurrency),
        retry=RetryPolicy(attempts=endpoint.max_retries + 1),
        timeout=endpoint.timeout,
        sleep=sleep,
        clock=clock,
    )


class _WriteOnly:
    """A cache that keeps every reply and answers no request."""

    def __init__(self, store: ReplyCache) -> None:
        self.put_reply, self.secret = store.put_reply, store.secret

    def get_reply(self, key: str) -> None:
        """Return None: the request must be sent."""


class Line:
    """The connection of one case to the model; its requests are counted in the toolbox.

    It also attributes waiting time. Retries, Retry-After and queues belong to the endpoint: if a
    case runs out of time after losing a tenth of it to them, this is not a timeout of the agent,
    and `ask` raises Transient, shortly before the driver would report a timeout.
    """

    def __init__(self, client: Client, tools: Toolbox) -> None:
        self._client = client
        self._where = client.transport.endpoint
        self._clock = client.clock
        self._tools = tools
        self._seconds = tools.limits.seconds
        self._margin = min(0.5, 0.05 * self._seconds)
        self._deadline = self._clock() + self._seconds - tools.elapsed() - self._margin
        self._lost = 0.0
        self.last: Reply | None = None

    async def ask(self, request: Request) -> Reply:
        """The model's reply; a refusal in words is its text.

        Raises the ModelError of the client, and Filtered for a reply that a content filter of the
        endpoint withheld.
        """
        began = self._clock()
        # a later attempt at a case never gets the first attempt's recorded reply
        request = replace(request, repeat=self._tools.trial)
        try:
            reply = await self._client.complete(request, within=self._deadline - began)
        except (AgentevalError, asyncio.CancelledError) as error:
            self._tools.spend(getattr(error, "spent", None) or Usage())
            if isinstance(error, OutOfTime):
                await self._out_of_time(error)
            raise
        self._lost += max(0.0, self._clock() - began - reply.latency)
        self._tools.spend(reply.usage)
        self._tools.model = reply.model or self._tools.model
        if reply.finish == "content_filter" and not (reply.refusal or reply.tool_calls):
            raise Filtered(f"{self._where}: a content filter withheld the reply")
        self.last = replace(reply, text=reply.text or reply.refusal or "")
        return self.last

    complete = ask  # as a Client

    async def _out_of_time(self, error: OutOfTime) -> None:
        lost = self._lost + error.lost
        if lost > 0.1 * self._seconds:
            raise Transient(
                f"{self._where}: {lost:.1f} of {self._seconds:g} s went to retries and waiting, so"
                " running out of time says nothing about the agent"
            ) from None
        await asyncio.sleep(2 * self._margin + 1)  # the driver ends the case
        raise RequestTimeout(f"{self._where}: no reply within {self._seconds:g} s") from None


class ChatTransport(OpenAITransport):
    """Chat completions as agents need them: no call is lost, and every history can be sent.

    In a reply, the legacy `function_call` becomes a tool call, a call that cannot be read one
    whose name is "" and whose arguments are its JSON, and a missing or repeated id a new one. In
    a history, names and arguments that endpoints refuse with 400 are made sendable: a model's bad
    call must not look like a fault of the endpoint.
    """

    async def _post(self, body: dict[str, Any]) -> bytes:
        return whole_calls(await super()._post(body))

    def _body(self, request: Request, form: str) -> dict[str, Any]:
        body = super()._body(request, form)
        messages = list(body["messages"])
        for place, message in enumerate(messages):
            if calls := message.get("tool_calls"):
                sendable = [{**c, "function": sendable_call(**c["function"])} for c in calls]
                messages[place] = {**message, "tool_calls": sendable}
        return {**body, "messages": messages}


def whole_calls(payload: bytes) -> bytes:
    """The body of a chat completion with every call in the form of `tool_calls`."""
    if b"_call" not in payload:
        return payload
    try:
        body = json.loads(payload)
        message = body["choices"][0]["message"]
        calls = message.get("tool_calls") or []
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return payload  # the reply parser reports the error
    if not calls and message.get("function_call"):
        calls = [{"function": message["function_call"]}]
    if not calls:
        return payload
    stem = hashlib.blake2b(payload, digest_size=6).hexdigest()
    forms: dict[str, dict[str, Any]] = {}  # by id
    for position, call in enumerate(calls if isinstance(calls, list) else [calls]):
        fields = call if isinstance(call, dict) else {}
        number, function = fields.get("id"), fields.get("function")
        if not (isinstance(number, str) and number) or number in forms:
            number = f"call_{stem}_{position}"
        name = function.get("name") if isinstance(function, dict) else None
        if not (isinstance(name, str) and name):
            function = {"name": "", "arguments": json.dumps(call, ensure_ascii=False)}
        forms[number] = {"id": number, "type": "function", "function": function}
    message["tool_calls"] = list(forms.values())
    return json.dumps(body).encode()


def sendable_call(name: str, arguments: str) -> dict[str, str]:
    """Name and arguments of a call in a form that every endpoint takes back.

    The name gets the letters of the pattern `^[a-zA-Z0-9_-]{1,64}$`; arguments that are not a JSON
    object are wrapped in one: chat templates parse them.
    """
    _, problem = as_object(arguments)
    valid = arguments if arguments and not problem else json.dumps({"not_json": arguments})
    return {
        "name": re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unnamed",
        "arguments": valid if arguments else "{}",
    }
