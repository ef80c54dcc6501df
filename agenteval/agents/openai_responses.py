"""The tools loop over the Responses API, stateless: every request carries all items so far."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.agents.conversation import wire_messages
from agenteval.agents.endpoint import INSTRUCTIONS, Endpoint, sendable_call
from agenteval.agents.openai_chat import Items, OpenAIChatAgent, openai_chat
from agenteval.agents.protocol import Dialogue, System, Tool
from agenteval.errors import BadRequest, Transient
from agenteval.models.client import Client
from agenteval.models.completion import read_usage
from agenteval.models.openai import OpenAITransport
from agenteval.models.wire import Reply, Request, Simplified, WireMessage, one_line, printable

_REASONING = "reasoning.encrypted_content"
_OVERLOADED = ("rate_limit_exceeded", "server_error", "vector_store_timeout")


@dataclass(frozen=True, slots=True)
class ItemsReply(Reply):
    """A reply with the output items that the next request carries along."""

    items: tuple[dict[str, Any], ...] = ()


class ResponsesTransport(OpenAITransport):
    """The Responses API of one endpoint; `Request.messages` are its input items.

    Nothing is kept by the endpoint (`store` false), so reasoning models must return encrypted
    reasoning; it is no longer requested from an endpoint that does not support it.
    """

    path = "/responses"
    _include = True

    async def send(self, request: Request) -> Reply:
        """Send one request and return an ItemsReply. Raises Simplified when the next attempt will
        be simpler."""
        body = self._body(request, "text")
        started = time.monotonic()
        try:
            payload = await self._post(body)
            return read_response(payload, time.monotonic() - started, self.endpoint)
        except (BadRequest, Transient) as error:
            details = error.said
            if details is None:
                raise
            text = details.text
            if "include" in body and ("encrypted" in text or "include" in text):
                self._include = False
            elif not self.adaptation.learn(details, body, request, "text"):
                raise
            raise Simplified(str(error)) from None

    def _body(self, request: Request, form: str) -> dict[str, Any]:
        parameters = self.adaptation.parameters(request)
        limit = parameters.pop("max_tokens", parameters.pop("max_completion_tokens", None))
        if limit is not None:
            parameters["max_output_tokens"] = limit
        if self._include:
            parameters["include"] = [_REASONING]
        if request.tools:
            parameters["tools"] = list(request.tools)
        items = list(request.messages)
        return {"model": self.model, "input": items, "store": False, **parameters}


def read_response(payload: bytes, latency: float, where: str) -> ItemsReply:
    """Return the reply in the body of a response.

    Raises Transient when it has no finished answer, and BadRequest when the endpoint reports that
    it could not answer this request.
    """
    try:
        body = json.loads(payload)
    except (ValueError, RecursionError):
        raise Transient(f"{where}: the answer is not JSON ({len(payload)} bytes)") from None
    if not isinstance(body, dict):
        raise Transient(f"{where}: the answer is not a JSON object")
    output, status, model = body.get("output"), body.get("status"), body.get("model")
    items = [i for i in output if isinstance(i, dict)] if isinstance(output, list) else []
    error = body.get("error")
    if error or status not in ("completed", "incomplete", None):
        described = error if isinstance(error, dict) else {"message": error}
        code, reason = described.get("code"), described.get("message") or "no reason given"
        message = f"{where}: {one_line(reason)} ({status}, {code})"
        if status == "failed" and isinstance(code, str) and code not in _OVERLOADED:
            raise BadRequest(message)
        raise Transient(message, overload=code == "rate_limit_exceeded")
    if not items and status != "incomplete":
        raise Transient(f"{where}: no items in the answer")
    stem = hashlib.blake2b(payload, digest_size=6).hexdigest()
    calls, sendable = _calls(items, stem)
    parts = list(_parts(items))
    refusal = "".join(str(p.get("refusal") or "") for p in parts if p.get("type") == "refusal")
    texts = [p.get("text") for p in parts if p.get("type") != "refusal"]
    finish = "tool_calls" if calls else "stop"
    if status == "incomplete":
        details = body.get("incomplete_details")
        filtered = isinstance(details, dict) and details.get("reason") == "content_filter"
        finish = "content_filter" if filtered else "length"
    return ItemsReply(
        text=printable("".join(text for text in texts if isinstance(text, str))),
        finish=finish,
        refusal=printable(refusal) or None,
        tool_calls=tuple(calls),
        usage=read_usage(body.get("usage"), "input_tokens", "output_tokens"),
        model=model if isinstance(model, str) else None,
        latency=latency,
        items=tuple(sendable),
    )


def _parts(items: Items) -> Iterator[dict[str, Any]]:
    """The parts of all messages."""
    for item in items:
        content = item.get("content") if item.get("type") == "message" else None
        if isinstance(content, str):
            yield {"text": content}
        yield from (p for p in content or () if isinstance(p, dict))


def _calls(items: Items, stem: str) -> tuple[Items, Items]:
    """The calls in the form of chat completions, and the items to be sent back with them."""
    calls: Items = []
    sendable: Items = []
    for position, item in enumerate(items):
        item = {name: value for name, value in item.items() if value is not None}
        if item.get("type") == "function_call":
            name, arguments, number = (item.get(key) for key in ("name", "arguments", "call_id"))
            if not (isinstance(name, str) and name):
                name, arguments = "", json.dumps(item, ensure_ascii=False)
            elif not isinstance(arguments, str):  # some endpoints send the object itself
                arguments = json.dumps(arguments if arguments is not None else {})
            if not (isinstance(number, str) and number) or any(c["id"] == number for c in calls):
                number = f"call_{stem}_{position}"
            function = {"name": printable(name), "arguments": printable(arguments)}
            calls.append({"id": number, "type": "function", "function": function})
            item |= {"call_id": number, **sendable_call(**function)}
        # the endpoint does not store reasoning items, so an id alone is useless
        empty = not (item.get("encrypted_content") or item.get("content"))
        if not (item.get("type") == "reasoning" and empty):
            sendable.append(item)
    return calls, sendable


class OpenAIResponsesAgent(OpenAIChatAgent):
    """A model with function tools behind the Responses API, called until it requests no tools."""

    adapter = "openai-responses"

    def history(self, dialogue: Dialogue) -> Items:
        """The input items of the dialogue."""
        return [item for message in wire_messages(dialogue) for item in _items(message)]

    def functions(self, tools: Sequence[Tool]) -> Items:
        """Return the tools, not strict: strict mode requires every property, and an adapter must
        not change the schema."""
        return [{"type": "function", **tool.model_dump(), "strict": False} for tool in tools]

    def asked(self, reply: Reply) -> Items:
        """The items of the reply, reasoning among them."""
        assert isinstance(reply, ItemsReply)  # the transport makes no other
        return list(reply.items)

    def answered(self, number: str, answer: str) -> dict[str, Any]:
        """The item of an answer."""
        return {"type": "function_call_output", "call_id": number, "output": answer}


def _items(message: WireMessage) -> Iterator[dict[str, Any]]:
    """The input items of a message of chat completions."""
    if message["role"] == "tool":
        number, content = message["tool_call_id"], message["content"]
        yield {"type": "function_call_output", "call_id": number, "output": content}
    elif message["content"] or not message.get("tool_calls"):  # the user's may be empty
        yield {"role": message["role"], "content": message["content"] or ""}
    for call in message.get("tool_calls") or ():
        sendable = sendable_call(**call["function"])
        yield {"type": "function_call", "call_id": call["id"], **sendable}


def openai_responses(
    endpoint: Endpoint,
    client: Client,
    *,
    instructions: str | None = INSTRUCTIONS,
    name: str | None = None,
    dialogue: bool = False,
) -> System:
    """The system `openai-responses:MODEL`, as `openai_chat`.

    `client` comes from `connect(endpoint, transport=ResponsesTransport)`.
    """
    return openai_chat(
        endpoint,
        client,
        instructions=instructions,
        name=name,
        dialogue=dialogue,
        kind=OpenAIResponsesAgent,
    )
