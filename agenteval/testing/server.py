"""A scriptable loopback server that speaks the OpenAI protocol, for tests and benchmarks.

In a test, in a thread of its own::

    with serve(answer=lambda body, n: "yes", faults=[Rule(Fault("reset"), first=2)]) as s:
        client = openai.OpenAI(base_url=s.base_url, api_key="none")

As a process of its own (it prints one line of JSON, and ends with the pipe it was started on)::

    python -m agenteval.testing.server --port 0 --latency 0.1 --seed 1 --fault-rate 0.1

POST /v1/chat/completions and /v1/embeddings, GET /v1/models, GET /stats, POST /reset. Not spoken:
streaming, n > 1, images, TLS. It listens on 127.0.0.1 only.

A request's *identity* is a hash of its path and body (without `user` and `metadata`, and without
what `ignore` matches), or what `key` returns. The default answer depends on identity and seed
alone, so two runs can be compared byte by byte. A prompt that holds a nonce needs one of the two:
`ignore=[r"[0-9a-f]{24}"]` takes the nonces of agenteval's data blocks out.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import copy
import hashlib
import json
import marshal
import math
import os
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

from agenteval.errors import InputError
from agenteval.testing.faults import (
    HEALING,
    Asked,
    Body,
    Fault,
    Latency,
    Rule,
    Wire,
    as_rules,
    compiled,
    draw,
    error_body,
    http_bytes,
    json_bytes,
    parse_latency,
    rule_from_json,
)


class Default(Enum):
    """What an answer callable returns to have the default answer sent."""

    DEFAULT = "default"


DEFAULT = Default.DEFAULT
Answer = Callable[[Body, int], "str | Body | Fault | Default"]
MAX_HEAD = 64 * 1024  # bytes
MAX_BODY = 64 * 1024 * 1024
MAX_IDENTITIES = 1_000_000
PARTIAL_SECONDS = 30.0  # a request must have arrived completely within this time
IDLE_SECONDS = 600.0
VOLATILE = ("user", "metadata")


class Refused(Exception):
    """The request is not one this server understands; becomes an HTTP error reply."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


# ---- Well-formed replies -------------------------------------------------------------------------


class Picks:
    """An endless row of deterministic choices, made of `parts` alone (SHAKE-256)."""

    def __init__(self, *parts: object) -> None:
        text = "\x1f".join(map(str, parts))
        self._shake = hashlib.shake_256(text.encode("utf-8", "surrogatepass"))
        self._bytes, self._at = self._shake.digest(512), 0

    def below(self, n: int) -> int:
        """An integer in [0, n)."""
        if self._at == len(self._bytes):
            self._bytes = self._shake.digest(2 * len(self._bytes))
        self._at += 8
        return int.from_bytes(self._bytes[self._at - 8 : self._at], "big") % n


# What would need a solver; an answer callable must serve schemas with these.
_UNSUPPORTED = {"pattern", "not", "if", "contains", "uniqueItems", "patternProperties"} | {
    "propertyNames",
    "minProperties",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
}
_DEEP, _TOO_DEEP = 6, 60  # from _DEEP on recursive schemas are brought to an end


Part = str | tuple[str, ...] | Callable[[Picks], str]  # JSON text: fixed, one of, made


def instance(schema: Any, picks: Picks) -> str:
    """A valid instance of a JSON schema, as JSON text: every declared property, enum values drawn
    evenly.

    An array whose items are a choice of k schemas and that holds at least k items takes them in
    turn. Raises Refused for keywords in _UNSUPPORTED and for schemas without instance.
    """
    key = marshal.dumps(schema, 2)  # a tenth of the time of JSON, and only a key
    parts = _SCHEMAS.get(key)
    if parts is None:
        if len(_SCHEMAS) >= 256:
            _SCHEMAS.clear()
        parts = _SCHEMAS[key] = _merged(_parts(schema, schema, 0))
    return _written(parts, picks)


_SCHEMAS: dict[bytes, tuple[Part, ...]] = {}  # the same few come with every request


def _written(parts: Sequence[Part], picks: Picks) -> str:
    out = []
    for part in parts:
        if type(part) is str:
            out.append(part)
        elif type(part) is tuple:
            out.append(part[picks.below(len(part))])
        else:
            assert callable(part)
            out.append(part(picks))
    return "".join(out)


def _merged(parts: Sequence[Part]) -> tuple[Part, ...]:
    out: list[Part] = []
    for part in parts:
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        else:
            out.append(part)
    return tuple(out)


def _parts(schema: Any, root: Any, depth: int) -> list[Part]:
    if depth > _TOO_DEEP:
        raise Refused(400, "the schema has no finite instance that this server finds")
    schema = _resolved(schema, root)
    if found := _UNSUPPORTED & schema.keys():
        raise Refused(400, f"schema keyword {min(found)!r} needs a scripted answer")
    if "const" in schema:
        return [json.dumps(schema["const"])]
    if "enum" in schema:
        return [tuple(map(json.dumps, schema["enum"]))]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        if schema.keys() & {"properties", "items"}:
            raise Refused(400, "a schema with anyOf beside properties needs a scripted answer")
        ends = [o for o in options if o.get("type") in ("null", "string")] if depth > _DEEP else []
        return [_one_of([_later(o, root, depth + 1) for o in ends or options])]
    kind = schema.get("type") or ("object" if "properties" in schema else "string")
    kinds = kind if isinstance(kind, list) else [kind]
    kinds = ["null"] if depth > _DEEP and "null" in kinds else kinds
    if unknown := set(kinds) - _MAKERS.keys():
        raise Refused(400, f"schema type {min(unknown)!r} is unknown")
    if len(kinds) == 1:
        return _MAKERS[kinds[0]](schema, root, depth)
    return [_one_of([_later({**schema, "type": k}, root, depth + 1) for k in kinds])]


def _one_of(options: list[Callable[[Picks], str]]) -> Part:
    return lambda picks: options[picks.below(len(options))](picks)


def _later(schema: Any, root: Any, depth: int) -> Callable[[Picks], str]:
    """Compiled when first drawn: the branches of a recursive schema have no end."""
    parts: list[Part] = []

    def make(picks: Picks) -> str:
        if not parts:
            parts.extend(_parts(schema, root, depth))
        return _written(parts, picks)

    return make


def _resolved(schema: Any, root: Any) -> dict[str, Any]:
    for _ in range(32):
        if schema is True:
            return {}
        if not isinstance(schema, dict):
            raise Refused(400, "a schema must be an object")
        if "$ref" in schema:
            schema = {**_pointed(schema["$ref"], root), **_without(schema, "$ref")}
        elif "allOf" in schema:
            merged: dict[str, Any] = _without(schema, "allOf")
            for part in schema["allOf"]:
                part = _resolved(part, root)
                properties = {**merged.get("properties", {}), **part.get("properties", {})}
                merged = {**part, **merged, **({"properties": properties} if properties else {})}
            schema = merged
        else:
            return schema
    raise Refused(400, "schema references go round in a circle")


def _without(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    return {k: v for k, v in mapping.items() if k != name}


def _pointed(reference: str, root: Any) -> Any:
    target = root
    for part in reference.removeprefix("#").split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, dict) or part not in target:
            raise Refused(400, f"schema reference {reference!r} leads nowhere")
        target = target[part]
    return target


def _joined(items: Sequence[Sequence[Part]], brackets: str) -> list[Part]:
    out: list[Part] = [brackets[0]]
    for i, item in enumerate(items):
        out += [", ", *item] if i else item
    return [*out, brackets[1]]


def _child(schema: Any, root: Any, depth: int) -> list[Part]:
    return _parts(schema, root, depth) if depth <= _DEEP else [_later(schema, root, depth)]


def _object(schema: dict[str, Any], root: Any, depth: int) -> list[Part]:
    required = set(schema.get("required", ()))
    declared = schema.get("properties", {})
    if missing := required - declared.keys():
        raise Refused(400, f"required property {min(missing)!r} is not declared")
    wanted = {k: v for k, v in declared.items() if depth <= _DEEP or k in required}
    items = [[json.dumps(k) + ": ", *_child(v, root, depth + 1)] for k, v in wanted.items()]
    return _joined(items, "{}")


def _array(schema: dict[str, Any], root: Any, depth: int) -> list[Part]:
    prefix = schema.get("prefixItems", [])
    low = schema.get("minItems", 0)
    high = schema.get("maxItems", max(low, len(prefix), 1))
    if low > high or low > 10_000:
        raise Refused(400, f"the schema asks for {low} to {high} items")
    count = low if depth > _DEEP else max(low, min(high, max(1, len(prefix))))
    items = schema.get("items", True)
    options = _resolved(items, root).get("anyOf", []) if items is not False else []
    row = [*prefix, *(options if low >= len(options) else []), *[items] * count][:count]
    return _joined([_child(one, root, depth + 1) for one in row], "[]")


def _string(schema: dict[str, Any], _root: Any, _depth: int) -> list[Part]:
    low, high = schema.get("minLength", 0), schema.get("maxLength", MAX_BODY)
    if low > min(high, 1_000_000):
        raise Refused(400, f"the schema asks for {low} to {high} characters")
    return [lambda picks: f'"{f"text {picks.below(16**8):08x}".ljust(low, ".")[:high]}"']


def _integer(schema: dict[str, Any], _root: Any, _depth: int) -> list[Part]:
    step = schema.get("multipleOf", 1)
    lows = [math.ceil(schema["minimum"])] if "minimum" in schema else []
    if "exclusiveMinimum" in schema:
        lows.append(math.floor(schema["exclusiveMinimum"]) + 1)
    highs = [math.floor(schema["maximum"])] if "maximum" in schema else []
    if "exclusiveMaximum" in schema:
        highs.append(math.ceil(schema["exclusiveMaximum"]) - 1)
    low = max(lows) if lows else min([0, *highs])
    high = min(highs) if highs else low + 100 * step
    if step < 1 or step != int(step) or math.ceil(low / step) > math.floor(high / step):
        raise Refused(400, "no integer within the bounds of the schema")
    first, last = math.ceil(low / step), math.floor(high / step)
    return [lambda picks: str(int(step) * (first + picks.below(last - first + 1)))]


def _number(schema: dict[str, Any], root: Any, depth: int) -> list[Part]:
    if "multipleOf" in schema:
        return _integer(schema, root, depth)
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    low = (0.0 if high is None or high > 0 else high - 1.0) if low is None else low
    high = low + 1.0 if high is None else high
    if low > high or (low == high and schema.keys() & {"exclusiveMinimum", "exclusiveMaximum"}):
        raise Refused(400, "no number within the bounds of the schema")
    # One of 999 inner points: never at a bound that may be excluded.
    return [lambda picks: repr(low + (high - low) * ((picks.below(999) + 1) / 1000))]


_MAKERS: dict[str, Callable[[dict[str, Any], Any, int], list[Part]]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": lambda *_: [("false", "true")],
    "null": lambda *_: ["null"],
}


def text_of(body: Body) -> str:
    """What the request says: the text of all messages, or the strings to embed, one per line."""
    lines: list[str] = []
    for message in body.get("messages", ()):
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        lines += [str(p["text"]) for p in parts if isinstance(p, dict) and p.get("text")]
    given = body.get("input", [])
    given = given if isinstance(given, list) else [given]
    lines += [x for x in given if isinstance(x, str)]
    return "\n".join(lines)


def default_message(body: Body, picks: Picks) -> Body:
    """The unscripted answer: a tool call if the request insists on one, an instance of its JSON
    schema, an object in JSON mode, else a short line. Raises Refused for what it cannot serve."""
    choice = body.get("tool_choice")
    if body.get("tools") and (choice == "required" or isinstance(choice, dict)):
        name = choice["function"]["name"] if isinstance(choice, dict) else None
        named = [t["function"] for t in body["tools"] if name in (None, t["function"]["name"])]
        if not named:
            raise Refused(400, f"tool_choice names {name!r}, which is not among the tools")
        tool = named[picks.below(len(named))]
        schema = tool.get("parameters") or {"type": "object"}
        call = {"name": tool["name"], "arguments": instance(schema, picks)}
        number = f"call_{picks.below(16**12):012x}"
        return {
            "content": None,
            "tool_calls": [{"id": number, "type": "function", "function": call}],
        }
    form = body.get("response_format") or {"type": "text"}
    if form["type"] == "json_schema":
        return {"content": instance(form["json_schema"]["schema"], picks)}
    if form["type"] == "json_object":
        return {"content": json.dumps({"answer": f"{picks.below(16**8):08x}"})}
    return {"content": f"This is reply {picks.below(16**8):08x}."}


def completion(body: Body, key: str, message: Body, picks: Picks) -> Body:
    """A chat completion around `message`. Tokens are counted as a quarter of the characters,
    rounded up; `created` is a constant, so that equal requests give equal bytes."""
    message = {"role": "assistant", "refusal": None, "content": None, **message}
    said = message["content"] or json.dumps(message.get("tool_calls", ""))
    asked, replied = math.ceil(len(text_of(body)) / 4), math.ceil(len(said) / 4)
    choice: Body = {
        "index": 0,
        "message": message,
        "finish_reason": "tool_calls" if message.get("tool_calls") else "stop",
        "logprobs": None,
    }
    if body.get("logprobs"):
        content = _logprobs(said, int(body.get("top_logprobs") or 0), picks)
        choice["logprobs"] = {"content": content, "refusal": None}
    return {
        "id": f"chatcmpl-{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": [choice],
        "usage": {
            "prompt_tokens": asked,
            "completion_tokens": replied,
            "total_tokens": asked + replied,
        },
    }


def _logprobs(text: str, top: int, picks: Picks) -> list[Body]:
    """Per token (a word with the space before it) its log-probability in (ln 0.5, 0) and `top`
    alternatives, the token itself first, whose probabilities sum to less than 1."""

    def entry(token: str, probability: float) -> Body:
        raw = list(token.encode("utf-8", "surrogatepass"))
        return {"token": token, "logprob": math.log(probability), "bytes": raw}

    tokens = []
    for token in re.findall(r"\s*\S+|\s+$", text):
        p = 0.5 + (picks.below(998) + 1) / 2000
        others = [entry(f" alternative{i}", (1 - p) / 2**i) for i in range(1, top)]
        mine = entry(token, p)
        tokens.append({**mine, "top_logprobs": [mine, *others][:top]})
    return tokens


def embeddings(body: Body, dimensions: int) -> Body:
    """Unit vectors that depend on model, text and dimensions alone; unrelated texts are nearly
    orthogonal. Raises Refused for an empty or malformed input."""
    given = body.get("input")
    single = isinstance(given, str) or (isinstance(given, list) and given and _is_int(given[0]))
    texts: Any = [given] if single else given
    if not isinstance(texts, list) or not 1 <= len(texts) <= 2048 or not all(map(_fit, texts)):
        raise Refused(400, "input must be a non-empty string or a list of 1 to 2048 of them")
    size = body.get("dimensions") or dimensions
    if not _is_int(size) or not 1 <= size <= 8192:
        raise Refused(400, "dimensions must be 1 to 8192")
    plain = body.get("encoding_format", "float") == "float"
    data = []
    for index, text in enumerate(texts):
        vector = _unit(f"{body['model']}\x1f{text}", size)
        coded = vector if plain else base64.b64encode(struct.pack(f"<{size}f", *vector)).decode()
        data.append({"object": "embedding", "index": index, "embedding": coded})
    tokens = sum(math.ceil(len(t) / 4) if isinstance(t, str) else len(t) for t in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}


def _fit(text: object) -> bool:
    """A non-empty string or list of token numbers."""
    return bool(text) and isinstance(text, str | list)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _unit(text: str, size: int) -> list[float]:
    raw = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(4 * size)
    numbers = struct.unpack(f"<{size}i", raw)
    norm = math.hypot(*numbers) or 1.0
    return [x / norm for x in numbers]


# ---- What the server does ------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """Everything that decides a reply.

    answer: `(body, n) -> str | dict | Fault | DEFAULT`, n counts earlier requests of the same
    identity; a dict is the message, or with `choices` the whole response. It runs in the server's
    thread and must not block; if it raises, the client gets 400 and `serve` raises it at the end.
    faults: the first that strikes wins. latency: seconds or a Latency. ceiling: requests in flight
    above this number get 429 at once, with `ceiling_retry_after` as Retry-After.
    key: the identity of a chat request; ignore: patterns taken out of the body's JSON first.
    record: how many of the last requests are kept. Raises InputError for values out of bounds.
    """

    answer: Answer | None = None
    faults: tuple[Rule, ...] = ()
    latency: Latency = field(default_factory=Latency)
    seed: int = 0
    ceiling: int | None = None
    ceiling_retry_after: str | None = None
    key: Callable[[Body], str] | None = None
    ignore: Sequence[str] = ()
    record: int = 4096
    models: tuple[str, ...] = ("test-model", "test-embedding")
    dimensions: int = 384

    def __post_init__(self) -> None:
        if not (_is_int(self.seed) and _is_int(self.record) and self.record >= 0):
            raise InputError("seed and record must be integers, record not below 0")
        if self.ceiling is not None and not (_is_int(self.ceiling) and self.ceiling > 0):
            raise InputError("ceiling must be an integer above 0")
        for pattern in self.ignore:
            compiled(pattern)


@dataclass(slots=True)
class Recorded:
    """One request as it came; times in seconds on the server's monotonic clock.

    `finished` is None while it is in flight; `outcome` is ok, the fault's kind, rejected (above
    the ceiling), refused (bad request) or aborted (the client left).
    """

    order: int
    path: str
    headers: dict[str, str]
    body: Body | None = None
    key: str = ""
    n: int = 0
    received: float = 0.0
    finished: float | None = None
    outcome: str | None = None


_NO_LATENCY = Latency()
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class Exchange(NamedTuple):
    """A request being answered."""

    wire: Wire
    request: Recorded | None = None
    served: bool = False  # counts as in flight


def identity(path: str, body: Body, ignore: Sequence[str] = ()) -> str:
    """Hash (32 hex digits) of path and body without VOLATILE; key order does not matter."""
    kept = {k: v for k, v in body.items() if k not in VOLATILE}
    text = _SORTED.encode(kept)
    for pattern in ignore:
        text = re.sub(pattern, "", text)
    return hashlib.blake2b(f"{path} {text}".encode(), digest_size=16).hexdigest()


class Engine:
    """Requests in, Exchanges out, counters; no I/O. Used by one event loop only."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.error: Exception | None = None  # raised by the answer callable
        self.in_flight = 0
        self.connections = 0  # open now
        self.reset()

    def reset(self) -> None:
        """Forget all counters and recordings."""
        self.count = 0
        self.max_in_flight = self.in_flight
        self.outcomes: Counter[str] = Counter()
        self.per_request: dict[str, list[int]] = {}  # identity -> [asked, answered]
        self.log: deque[Recorded] = deque(maxlen=self.settings.record)
        self._area, self._started = 0.0, time.monotonic()
        self._moved, self._cpu = self._started, time.process_time()

    def handle(self, method: str, path: str, headers: dict[str, str], raw: bytes) -> Exchange:
        """The exchange for one HTTP request. Never raises."""
        path, _, query = path.partition("?")
        if path in ("/v1/chat/completions", "/v1/embeddings") and method == "POST":
            return self._model_request(Recorded(self.count, path, headers), raw)
        routes = {"/v1/models": "GET", "/stats": "GET", "/reset": "POST"}
        routes |= {"/v1/chat/completions": "POST", "/v1/embeddings": "POST"}
        if path not in routes:
            return refusal(404, f"no such path here: {path[:200]}")
        if method != routes[path]:
            return refusal(405, f"{path} wants {routes[path]}", {"allow": routes[path]})
        if path == "/reset":
            if self.in_flight:
                return refusal(409, f"{self.in_flight} requests are in flight")
            self.reset()
        value = self._models() if path == "/v1/models" else self.stats("keys=no" not in query)
        return Exchange(Wire(((0.0, http_bytes(200, json_bytes(value))),)))

    def _models(self) -> Body:
        about = {"object": "model", "created": 1_700_000_000, "owned_by": "agenteval"}
        return {"object": "list", "data": [{"id": m, **about} for m in self.settings.models]}

    def _model_request(self, request: Recorded, raw: bytes) -> Exchange:
        self.count += 1
        request.received = time.monotonic()
        self.log.append(request)
        ceiling = self.settings.ceiling
        if ceiling is not None and self.in_flight >= ceiling:
            return self._done_at_once(request, "rejected", 429, f"more than {ceiling} in flight")
        try:
            request.body = body = _parsed(raw, request.path)
            wire = self._reply(request, body)
        except Refused as error:
            return self._done_at_once(request, "refused", error.status, str(error))
        self._move(+1)
        return Exchange(wire, request, served=True)

    def _done_at_once(self, request: Recorded, outcome: str, status: int, why: str) -> Exchange:
        request.outcome, request.finished = outcome, time.monotonic()
        self.outcomes[outcome] += 1
        wait = self.settings.ceiling_retry_after
        return refusal(status, why, {"retry-after": wait} if wait and status == 429 else None)

    def _reply(self, request: Recorded, body: Body) -> Wire:
        settings, chat = self.settings, "messages" in body
        if chat and settings.key is not None:
            request.key = str(self._called(settings.key, body))
        else:
            request.key = identity(request.path, body, settings.ignore)
        tally = self.per_request.get(request.key)
        if tally is None:
            if len(self.per_request) >= MAX_IDENTITIES:
                raise Refused(507, f"{MAX_IDENTITIES} different requests counted; POST /reset")
            tally = self.per_request[request.key] = [0, 0]
        request.n = n = tally[0]
        tally[0] += 1
        asked = Asked(settings.seed, request.key, n, request.order, chat, lambda: text_of(body))
        struck = (rule.strikes(asked, i) for i, rule in enumerate(settings.faults))
        fault = next((f for f in struck if f is not None), None)
        if chat:
            wire = self._chat(body, request, fault)
        else:
            wire = _wire(embeddings(body, settings.dimensions), fault)
        if settings.latency == _NO_LATENCY:
            return wire
        wait = settings.latency.at(draw("latency", settings.seed, request.key, n))
        first, *rest = wire.steps
        return wire._replace(steps=((first[0] + wait, first[1]), *rest))

    def _chat(self, body: Body, request: Recorded, fault: Fault | None) -> Wire:
        picks = Picks(self.settings.seed, request.key)
        if self.settings.answer is None:
            return _wire(completion(body, request.key, _default(body, picks), picks), fault)
        given = self._called(self.settings.answer, body, request.n)
        if isinstance(given, Fault):
            fault = fault or given
        if isinstance(given, Fault | Default):
            return _wire(completion(body, request.key, _default(body, picks), picks), fault)

        def scripted() -> Wire:
            if not isinstance(given, str | dict):
                raise TypeError(f"answer returned {type(given).__name__}")
            if isinstance(given, dict) and "choices" in given:
                return _wire(given, fault)
            message = {"content": given} if isinstance(given, str) else given
            return _wire(completion(body, request.key, message, picks), fault)

        wire: Wire = self._called(scripted)  # here for what of the script's is not in form
        return wire

    def _called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            self.error = self.error or error
            raise Refused(400, f"the scripted function raised {error!r}") from error

    def _move(self, change: int) -> None:
        now = time.monotonic()
        self._area += self.in_flight * (now - self._moved)
        self._moved = now
        self.in_flight += change
        self.max_in_flight = max(self.max_in_flight, self.in_flight)

    def finish(self, exchange: Exchange, *, delivered: bool) -> None:
        """Count the end of an exchange: the reply is about to be complete, or the client left."""
        request = exchange.request
        if request is None:
            return
        if exchange.served:
            self._move(-1)
        request.outcome = (exchange.wire.fault or "ok") if delivered else "aborted"
        request.finished = time.monotonic()
        self.outcomes[request.outcome] += 1
        if delivered and exchange.wire.accepted:
            self.per_request[request.key][1] += 1

    def stats(self, keys: bool = True) -> Body:
        """The counters, for GET /stats. `per_request` maps identity to [asked, answered];
        `answered_again` counts identities with more than one acceptable reply."""
        self._move(0)
        value: Body = {
            "requests": self.count,
            "outcomes": dict(self.outcomes),
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "in_flight_seconds": self._area,
            "connections": self.connections,
            "elapsed_seconds": time.monotonic() - self._started,
            "cpu_seconds": time.process_time() - self._cpu,
            "identities": len(self.per_request),
            "answered": sum(t[1] > 0 for t in self.per_request.values()),
            "answered_again": sum(t[1] > 1 for t in self.per_request.values()),
        }
        return value | ({"per_request": self.per_request} if keys else {})


def _wire(good: Body, fault: Fault | None) -> Wire:
    if fault is not None:
        return fault.wire(copy.deepcopy(good))
    return Wire(((0.0, http_bytes(200, json_bytes(good))),), accepted=True)


def _default(body: Body, picks: Picks) -> Body:
    try:
        return default_message(body, picks)
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Refused(400, f"response_format or tools are not in form: {error!r}") from error


def refusal(status: int, message: str, headers: dict[str, str] | None = None) -> Exchange:
    """An error that this server means."""
    return Exchange(Wire(((0.0, http_bytes(status, error_body(status, message), headers)),)))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _parsed(raw: bytes, path: str) -> Body:
    try:
        body = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        raise Refused(400, "the body must be an object with a model")
    if path == "/v1/embeddings":
        body.pop("messages", None)
        return body
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        raise Refused(400, "messages must be a non-empty list of objects with a role")
    if body.get("stream") or body.get("n") not in (None, 1):
        raise Refused(400, "this server speaks neither streaming nor n > 1")
    return body


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


# ---- HTTP/1.1 ------------------------------------------------------------------------------------


class Connection(asyncio.Protocol):
    """One client. Requests are answered one after the other; pipelined ones wait in the buffer."""

    def __init__(self, engine: Engine, open_connections: set[Connection]) -> None:
        self.engine, self.peers = engine, open_connections
        self.buffer = bytearray()
        self.head: tuple[str, str, dict[str, str], int] | None = None
        self.exchange: Exchange | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.since = time.monotonic()  # when this request, or this idleness, began
        self.last = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio's callback."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.loop = asyncio.get_running_loop()
        self.peers.add(self)
        self.engine.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """Asyncio's callback."""
        self.peers.discard(self)
        self.engine.connections -= 1
        if self.timer is not None:
            self.timer.cancel()
        if self.exchange is not None:
            self.engine.finish(self.exchange, delivered=False)
            self.exchange = None

    def data_received(self, data: bytes) -> None:
        """Asyncio's callback."""
        if not self.buffer and self.head is None:
            self.since = time.monotonic()
        self.buffer += data
        if len(self.buffer) > MAX_HEAD + MAX_BODY:
            self.transport.abort()
        elif self.exchange is None:
            self._next()

    def expire(self, now: float) -> None:
        """Close when the client is silent in the middle of a request, or for very long."""
        if self.exchange is None:
            partial = bool(self.buffer) or self.head is not None
            if now - self.since > (PARTIAL_SECONDS if partial else IDLE_SECONDS):
                self.transport.abort()

    def _next(self) -> None:
        while self.exchange is None and not self.transport.is_closing():
            try:
                request = self._read()
            except Refused as error:  # not HTTP as we know it: answer, then close
                self.last = True
                self._play(refusal(error.status, str(error)))
                return
            if request is None:
                return
            self._play(self.engine.handle(*request))

    def _read(self) -> tuple[str, str, dict[str, str], bytes] | None:
        if self.head is None:
            end = self.buffer.find(b"\r\n\r\n")
            if end > MAX_HEAD or (end < 0 and len(self.buffer) > MAX_HEAD):
                raise Refused(431, "the request's head is too long")
            if end < 0:
                return None
            self.head = _parse_head(bytes(self.buffer[:end]))
            del self.buffer[: end + 4]
            if self.head[2].get("expect", "").lower() == "100-continue":
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        method, path, headers, length = self.head
        if len(self.buffer) < length:
            return None
        body = bytes(self.buffer[:length])
        del self.buffer[:length]
        self.head = None
        self.last = headers.get("connection", "").lower() == "close"
        return method, path, headers, body

    def _play(self, exchange: Exchange, step: int = 0) -> None:
        wait, _ = exchange.wire.steps[step]
        self.exchange = exchange
        if wait > 0:
            self.timer = self.loop.call_later(wait, self._write, step)
        else:
            self._write(step)

    def _write(self, step: int) -> None:
        exchange, self.timer = self.exchange, None
        assert exchange is not None
        data, final = exchange.wire.steps[step][1], step + 1 == len(exchange.wire.steps)
        if final:  # counted before the last byte leaves, so whoever has the reply sees the count
            self.engine.finish(exchange, delivered=True)
        if data:
            self.transport.write(data)
        if not final:
            self._play(exchange, step + 1)
            return
        self.exchange, self.since = None, time.monotonic()
        if exchange.wire.end == "reset":
            linger = struct.pack("ii", 1, 0)  # close with RST instead of FIN
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, linger
            )
            self.transport.abort()
        elif self.last or exchange.wire.end == "close":
            self.transport.close()
        elif self.buffer:
            self.loop.call_soon(self._next)


def _parse_head(raw: bytes) -> tuple[str, str, dict[str, str], int]:
    first, *lines = raw.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or parts[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise Refused(400, "not an HTTP/1.1 request")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name.strip() != name:
            raise Refused(400, "malformed header line")
        if name == "content-length" and name in headers:
            raise Refused(400, "content-length is given twice")
        headers[name] = value.strip()
    if parts[2] == "HTTP/1.0":
        headers["connection"] = "close"
    if "transfer-encoding" in headers:
        raise Refused(411, "send a content-length; chunked requests are not read here")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise Refused(400, "content-length is not a number")
    if len(length) > 12 or int(length) > MAX_BODY:
        raise Refused(413, f"the body is longer than {MAX_BODY} bytes")
    return parts[0], parts[1], headers, int(length)


# ---- Running it ----------------------------------------------------------------------------------


async def run(engine: Engine, port: int, stop: asyncio.Event, ready: Callable[[int], None]) -> None:
    """Listen on 127.0.0.1 until `stop` is set; `ready` gets the port. Raises OSError when the
    port is taken."""
    connections: set[Connection] = set()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(engine, connections), "127.0.0.1", port, backlog=4096
    )
    try:
        ready(server.sockets[0].getsockname()[1])
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 5)
            for connection in list(connections):
                connection.expire(time.monotonic())
    finally:
        server.close()
        for connection in list(connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # lets connection_lost run


class Server:
    """A server in a thread with its own event loop; see `serve`."""

    def __init__(self, settings: Settings) -> None:
        self.engine = Engine(settings)
        self.base_url = ""
        self._ready: asyncio.AbstractEventLoop | None = None
        self._up = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="fault-server", daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        if not self._up.wait(10):
            raise RuntimeError("the test server did not start within 10 s")
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._ready is not None:
            with contextlib.suppress(RuntimeError):  # the loop may have ended already
                self._ready.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        if self._thread.is_alive():
            raise RuntimeError("the test server did not stop within 10 s")
        trouble = self._failed or self.engine.error
        if trouble is not None and kind is None:
            raise trouble

    def _work(self) -> None:
        try:
            asyncio.run(self._main())
        except Exception as error:  # noqa: BLE001  (raised again in the thread that waits for us)
            self._failed = error
        finally:
            self._up.set()

    async def _main(self) -> None:
        self._ready, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set_exception_handler(self._broken)
        await run(self.engine, 0, self._stop, self._listening)

    def _broken(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # A defect of the server itself: asyncio would only log it.
        error = context.get("exception") or RuntimeError(str(context.get("message")))
        self.engine.error = self.engine.error or error
        loop.default_exception_handler(context)

    def _listening(self, port: int) -> None:
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self._up.set()

    @property
    def requests(self) -> list[Recorded]:
        """The last `record` requests, in order of arrival."""
        return list(self.engine.log.copy())

    @property
    def count(self) -> int:
        """Requests to the model endpoints, faulty and rejected ones included."""
        return self.engine.count

    @property
    def max_in_flight(self) -> int:
        """Most requests that were being answered at once; rejected ones do not count."""
        return self.engine.max_in_flight


class More(TypedDict, total=False):
    """Further settings of `serve`; see Settings."""

    ceiling_retry_after: str
    key: Callable[[Body], str]
    ignore: Sequence[str]
    record: int
    models: tuple[str, ...]
    dimensions: int


def serve(
    answer: Answer | None = None,
    faults: Sequence[Fault | Rule] = (),
    latency: float | Latency = 0.0,
    seed: int = 0,
    ceiling: int | None = None,
    **more: Unpack[More],
) -> Server:
    """A server to be entered with `with`; Settings explains the options.

    Leaving the block raises the first error of `answer` or `key`, if there was one. Raises
    InputError for values out of bounds.
    """
    settings = Settings(
        answer=answer,
        faults=as_rules(faults),
        latency=latency if isinstance(latency, Latency) else Latency(a=latency),
        seed=seed,
        ceiling=ceiling,
    )
    return Server(replace(settings, **more))


# ---- As a process --------------------------------------------------------------------------------


@dataclass
class Child:
    """A server in a process of its own; see `spawn`."""

    base_url: str
    pid: int
    process: subprocess.Popen[bytes] = field(repr=False)

    def stats(self, *, keys: bool = True) -> Body:
        """GET /stats. Raises OSError when the server is gone."""
        return self._call("GET", "/stats" if keys else "/stats?keys=no")

    def reset(self) -> None:
        """POST /reset. Raises OSError when the server is gone or has requests in flight."""
        self._call("POST", "/reset")

    def _call(self, method: str, path: str) -> Body:
        from http.client import HTTPConnection  # no proxy from the environment, unlike urllib

        port = int(self.base_url.rsplit(":", 1)[1].split("/")[0])
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            value = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            raise OSError(f"{method} {path}: {response.status} {value['error']['message']}")
        assert isinstance(value, dict)
        return value


@contextlib.contextmanager
def spawn(*arguments: str) -> Iterator[Child]:
    """The server as a child process, given the arguments of the command line; stopped at the end.

    Raises RuntimeError when it does not come up within 20 s.
    """
    command = [sys.executable, "-m", "agenteval.testing.server", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:  # noqa: S603  (ourselves)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            readable, _, _ = select.select([process.stdout], [], [], 20)
            line = process.stdout.readline() if readable else b""
            if not line:
                raise RuntimeError(f"the test server did not start: {' '.join(command)}")
            said = json.loads(line)
            yield Child(said["base_url"], said["pid"], process)
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def load_script(path: Path) -> Settings:
    """Settings from a JSON file: {"rules": [rule …], "answers": [{"match": regex, "replies":
    [text | message object …]} …], "latency": …, "seed": …, "ceiling": …}.

    Of `answers` the first that matches the request's text serves it: its n-th reply to the n-th
    asking, the last one from then on. Where none matches the default answer stands. Raises
    InputError naming the file and the place.
    """
    try:
        value = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror}", str(path)) from None
    except ValueError as error:
        raise InputError(f"not JSON: {error}", str(path)) from None
    known = {"rules", "answers", "latency", "seed", "ceiling", "ceiling_retry_after"}
    if not isinstance(value, dict) or set(value) - known:
        raise InputError(f"want an object with keys among {sorted(known)}", str(path))
    rules, answers = value.pop("rules", []), value.pop("answers", [])
    if not (isinstance(rules, list) and isinstance(answers, list)):
        raise InputError("rules and answers must be lists", str(path))
    made = [rule_from_json(r, f"{path}: rules[{i}]") for i, r in enumerate(rules)]
    try:
        latency = parse_latency(str(value.pop("latency", 0)))
        answer = _scripted(answers) if answers else None
        return Settings(answer=answer, faults=tuple(made), latency=latency, **value)
    except InputError as error:
        raise InputError(str(error), str(path)) from None


def _scripted(answers: list[Any]) -> Answer:
    table: list[tuple[re.Pattern[str], list[str | Body]]] = []
    for i, row in enumerate(answers):
        replies = row.get("replies") if isinstance(row, dict) else None
        good = isinstance(replies, list) and all(isinstance(r, str | dict) for r in replies)
        if not (good and replies and set(row) <= {"match", "replies"}):
            raise InputError(f"answers[{i}]: want match and a non-empty list replies")
        table.append((compiled(row.get("match", "")), replies))

    def answer(body: Body, n: int) -> str | Body | Default:
        text = text_of(body)
        for pattern, replies in table:
            if pattern.search(text):
                return replies[min(n, len(replies) - 1)]
        return DEFAULT

    return answer


def _key_from(pattern: re.Pattern[str]) -> Callable[[Body], str]:
    def key(body: Body) -> str:
        found = pattern.search(text_of(body))
        if not found:
            raise ValueError(f"--key-regex {pattern.pattern!r} matches nothing in the request")
        return " ".join(g or "" for g in found.groups()) or found.group()

    return key


def _options(arguments: Sequence[str] | None) -> tuple[Settings, int, float]:
    parser = argparse.ArgumentParser(
        prog="python -m agenteval.testing.server",
        description="A loopback server speaking the OpenAI protocol, with faults on demand. Prints "
        'one line, {"base_url": …, "pid": …}, and ends on SIGTERM, SIGINT, after --lifetime, or '
        "when the pipe it was started on (standard input or output) is closed.",
    )
    add = parser.add_argument
    shapes = "SECONDS, uniform:LOW:HIGH, exponential:MEAN, lognormal:MEDIAN:SIGMA"
    rate = "probability of one of the faults that heal when asked again"
    ignore = "taken out of the body before it is hashed (nonces); repeatable"
    add("--port", type=int, default=0, help="0 takes a free one")
    add("--latency", help=shapes)
    add("--seed", type=int, help="another seed gives other answers and faults")
    add("--script", type=Path, help="JSON file with rules and answers")
    add("--ceiling", type=int, help="429 above this many requests in flight")
    add("--fault-rate", type=float, default=0.0, help=rate)
    add("--key-regex", help="a request is identified by the groups of this match in its text")
    add("--ignore-regex", action="append", default=[], help=ignore)
    add("--lifetime", type=float, default=6 * 3600.0, help="seconds, at most a day")
    given = parser.parse_args(arguments)
    settings = load_script(given.script) if given.script else Settings()
    extra: dict[str, Any] = {k: getattr(given, k) for k in ("seed", "ceiling")}
    extra["latency"] = parse_latency(given.latency) if given.latency else None
    extra["key"] = _key_from(compiled(given.key_regex)) if given.key_regex else None
    extra = {k: v for k, v in extra.items() if v is not None}
    rules = settings.faults + ((Rule(HEALING, given.fault_rate),) if given.fault_rate else ())
    settings = replace(settings, faults=rules, ignore=given.ignore_regex, record=0, **extra)
    return settings, given.port, min(given.lifetime, 86_400.0)


async def _run_child(settings: Settings, port: int, lifetime: float) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.call_later(lifetime, stop.set)

    def hung_up(descriptor: int) -> None:
        # A pipe with data to read is no hang-up; its writer is still there.
        if descriptor != 0 or not os.read(0, 65536):
            stop.set()

    for descriptor in (0, 1):  # the far end of a pipe closes when the parent ends, however it ends
        with contextlib.suppress(OSError):
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                loop.add_reader(descriptor, hung_up, descriptor)

    def ready(actual: int) -> None:
        url = f"http://127.0.0.1:{actual}/v1"
        print(json.dumps({"base_url": url, "pid": os.getpid()}), flush=True)

    await run(Engine(settings), port, stop, ready)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until stopped. Returns the exit code: 0, or 2 for a bad option or a port in use."""
    try:
        asyncio.run(_run_child(*_options(arguments)))
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
