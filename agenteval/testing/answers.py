"""Well-formed replies, chat and embeddings, that depend on the request and the seed alone."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import struct
from typing import Any

from agenteval.testing.schema import Picks, instance
from agenteval.testing.wire import Body, Refused


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
    single = isinstance(given, str) or (isinstance(given, list) and given and is_int(given[0]))
    texts: Any = [given] if single else given
    if not isinstance(texts, list) or not 1 <= len(texts) <= 2048 or not all(map(_fit, texts)):
        raise Refused(400, "input must be a non-empty string or a list of 1 to 2048 of them")
    size = body.get("dimensions") or dimensions
    if not is_int(size) or not 1 <= size <= 8192:
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


def is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _unit(text: str, size: int) -> list[float]:
    raw = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(4 * size)
    numbers = struct.unpack(f"<{size}i", raw)
    norm = math.hypot(*numbers) or 1.0
    return [x / norm for x in numbers]
