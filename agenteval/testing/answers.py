"""Well-formed replies, chat, decisions and embeddings, that depend on the request and the seed
alone."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import struct
from collections.abc import Sequence
from typing import Any

from agenteval.testing.wire import MAX_BODY, Body, Refused


def text_of(body: Body) -> str:
    """Return the text of all messages and questions of a request, or the strings to embed, one per
    line."""
    lines: list[str] = []
    inputs = body.get("input", [])
    inputs = inputs if isinstance(inputs, list) else [inputs]
    messages = [*body.get("messages", ()), *(x for x in inputs if isinstance(x, dict))]
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        lines += [str(p["text"]) for p in parts if isinstance(p, dict) and p.get("text")]
    lines += [x for x in inputs if isinstance(x, str)]
    questions = body.get("questions")
    questions = questions if isinstance(questions, list) else []
    lines += [str(q.get("instructions")) for q in questions if isinstance(q, dict)]
    return "\n".join(lines)


def default_message(body: Body, picks: Picks) -> Body:
    """The unscripted answer: a tool call if the request insists on one, an instance of its JSON
    schema, an object in JSON mode, else a short line. Raises Refused for what it cannot serve."""
    choice = body.get("tool_choice")
    if body.get("tools") and (choice == "required" or isinstance(choice, dict)):
        name = choice["function"]["name"] if isinstance(choice, dict) else None
        functions = [t["function"] for t in body["tools"] if name in (None, t["function"]["name"])]
        if not functions:
            raise Refused(400, f"tool_choice names {name!r}, which is not among the tools")
        tool = functions[picks.below(len(functions))]
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
    rounded up; `created` is a constant, so that equal requests give equal bytes. `probabilities` in
    the message are those of its first token, the text being the most probable where there is
    none."""
    message = {"role": "assistant", "refusal": None, "content": None, **message}
    masses = message.pop("probabilities", None)
    if masses and message["content"] is None:
        message["content"] = max(masses, key=masses.get)
    reply = message["content"] or json.dumps(message.get("tool_calls", ""))
    prompt_tokens, replied = math.ceil(len(text_of(body)) / 4), math.ceil(len(reply) / 4)
    choice: Body = {
        "index": 0,
        "message": message,
        "finish_reason": "tool_calls" if message.get("tool_calls") else "stop",
        "logprobs": None,
    }
    if body.get("logprobs"):
        content = _logprobs(reply, int(body.get("top_logprobs") or 0), picks, masses or {})
        choice["logprobs"] = {"content": content, "refusal": None}
    return {
        "id": f"chatcmpl-{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": [choice],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": replied,
            "total_tokens": prompt_tokens + replied,
        },
    }


def _logprobs(text: str, top: int, picks: Picks, masses: dict[str, float]) -> list[Body]:
    """Per token (a word with the space before it) its log-probability in (ln 0.5, 0) and `top`
    alternatives, the token itself first, whose probabilities sum to less than 1; of the first token
    those of `masses` that are above 0."""

    def entry(token: str, probability: float) -> Body:
        raw = list(token.encode("utf-8", "surrogatepass"))
        return {"token": token, "logprob": math.log(probability), "bytes": raw}

    tokens = []
    for token in re.findall(r"\s*\S+|\s+$", text):
        p = 0.5 + (picks.below(998) + 1) / 2000
        alternatives = [entry(f" alternative{i}", (1 - p) / 2**i) for i in range(1, top)]
        mine = entry(token, p)
        tokens.append({**mine, "top_logprobs": [mine, *alternatives][:top]})
    if tokens and masses:
        token_entries = {token: entry(token, p) for token, p in masses.items() if p > 0}
        mine = token_entries.get(tokens[0]["token"], tokens[0])
        tokens[0] = {**mine, "top_logprobs": [*token_entries.values()][:top]}
    return tokens


def decision(body: Body, picks: Picks) -> Body:
    """A response to the questions of a decision, with probabilities that are drawn; tokens as in
    `completion`, none in the reply. Raises LookupError, TypeError or Refused for malformed
    input."""
    if not 1 <= len(body["questions"]) <= 400 or not body["input"]:
        raise Refused(400, "a decision needs an input and 1 to 400 questions")
    tokens = math.ceil(len(text_of(body)) / 4)
    usage = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    answers = [_decided(question, picks) for question in body["questions"]]
    return {"model": body["model"], "answers": answers, "usage": usage}


def _decided(question: Body, picks: Picks) -> Body:
    kind = question["type"]
    about = {"name": question.get("name"), "type": kind}
    if kind == "predicate":
        return {**about, "probability": (picks.below(999) + 1) / 1000}
    options = question["levels" if kind == "score" else "choices"]
    if not 2 <= len(options) <= (10 if kind == "score" else 255) or not question["instructions"]:
        raise Refused(400, "a question has instructions, and 2 to 10 levels or 2 to 255 choices")
    weights = [picks.below(999) + 1 for _ in options]
    masses = [weight / sum(weights) for weight in weights]
    if kind == "score":
        about["score"] = sum(i * p for i, p in enumerate(masses))
        options = [{"value": i, "label": option["label"]} for i, option in enumerate(options)]
    else:
        about["choice"] = options[masses.index(max(masses))]["value"]
        options = [{"value": option["value"]} for option in options]
    pairs = zip(options, masses, strict=True)
    probabilities = [{**option, "probability": p} for option, p in pairs]
    return {**about, "confidence": max(masses), "probabilities": probabilities}


def embeddings(body: Body, dimensions: int) -> Body:
    """Unit vectors that depend on model, text and dimensions alone; unrelated texts are nearly
    orthogonal. Raises Refused for an empty or malformed input."""
    inputs = body.get("input")
    single = isinstance(inputs, str) or (isinstance(inputs, list) and inputs and is_int(inputs[0]))
    texts: Any = [inputs] if single else inputs
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


# Would need a solver; schemas with these require an answer callable.
_UNSUPPORTED = {"pattern", "not", "if", "contains", "uniqueItems", "patternProperties"}
_UNSUPPORTED |= {"propertyNames", "minProperties", "dependentRequired", "dependentSchemas"}
_UNSUPPORTED |= {"unevaluatedProperties"}
_DEEP, _TOO_DEEP = 6, 60  # from _DEEP on, recursive schemas are cut short


def instance(schema: Any, picks: Picks) -> str:
    """A valid instance of a JSON schema, as JSON text: every declared property, enum values drawn
    evenly.

    An array whose items are a choice of k schemas and that holds at least k items takes them in
    turn. A list of strings without bounds has three, any other list without bounds has one. Raises
    Refused for keywords in _UNSUPPORTED and for schemas without instance.
    """
    return json.dumps(_Instances(schema, picks).of(schema, 0))


class _Instances:
    """Instances of the parts of one schema."""

    def __init__(self, root: Any, picks: Picks) -> None:
        self._root = root
        self._picks = picks

    def of(self, schema: Any, depth: int) -> Any:
        """Return an instance of a part at this depth."""
        if depth > _TOO_DEEP:
            raise Refused(400, "this server cannot find a finite instance of the schema")
        schema = self._resolved(schema)
        if unsupported := _UNSUPPORTED & schema.keys():
            raise Refused(400, f"schema keyword {min(unsupported)!r} needs a scripted answer")
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._one_of(schema["enum"])
        if options := schema.get("anyOf") or schema.get("oneOf"):
            if schema.keys() & {"properties", "items"}:
                raise Refused(400, "a schema with anyOf beside properties needs a scripted answer")
            ends = [o for o in options if o.get("type") in ("null", "string")]
            return self.of(self._one_of((depth > _DEEP and ends) or options), depth + 1)
        kind = schema.get("type") or ("object" if "properties" in schema else "string")
        kinds = kind if isinstance(kind, list) else [kind]
        kinds = ["null"] if depth > _DEEP and "null" in kinds else kinds
        if unknown := set(kinds) - set(_KINDS):
            raise Refused(400, f"schema type {min(unknown)!r} is unknown")
        if len(kinds) > 1:
            return self.of({**schema, "type": self._one_of(kinds)}, depth + 1)
        return getattr(self, f"_{kinds[0]}")(schema, depth)

    def _one_of(self, options: Sequence[Any]) -> Any:
        return options[self._picks.below(len(options))]

    def _resolved(self, schema: Any) -> Body:
        """The schema with references followed and the parts of `allOf` joined."""
        for _ in range(32):
            if schema is True:
                return {}
            if not isinstance(schema, dict):
                raise Refused(400, "a schema must be an object")
            if "$ref" in schema:
                target = self._pointed(schema["$ref"])
                schema = {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
            elif "allOf" in schema:
                merged = {k: v for k, v in schema.items() if k != "allOf"}
                for part in map(self._resolved, schema["allOf"]):
                    properties = {**merged.get("properties", {}), **part.get("properties", {})}
                    merged = {**part, **merged}
                    if properties:
                        merged["properties"] = properties
                schema = merged
            else:
                return schema
        raise Refused(400, "schema references are circular")

    def _pointed(self, reference: str) -> Any:
        target = self._root
        for part in reference.removeprefix("#").split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, dict) or part not in target:
                raise Refused(400, f"schema reference {reference!r} does not exist")
            target = target[part]
        return target

    def _object(self, schema: Body, depth: int) -> Body:
        required = set(schema.get("required", ()))
        declared = schema.get("properties", {})
        if missing := required - declared.keys():
            raise Refused(400, f"required property {min(missing)!r} is not declared")
        properties = {k: v for k, v in declared.items() if depth <= _DEEP or k in required}
        return {k: self.of(v, depth + 1) for k, v in properties.items()}

    def _array(self, schema: Body, depth: int) -> list[Any]:
        prefix = schema.get("prefixItems", [])
        low = schema.get("minItems", 0)
        bounds = schema.keys() & {"minItems", "maxItems", "prefixItems"}
        unbounded_texts = not bounds and schema.get("items") == {"type": "string"}
        usual = 3 if unbounded_texts else 1  # such as the levels of a criterion
        high = schema.get("maxItems", max(low, len(prefix), usual))
        if low > high or low > 10_000:
            raise Refused(400, f"the schema asks for {low} to {high} items")
        items = schema.get("items", True)
        count = low if depth > _DEEP else max(low, min(high, max(usual, len(prefix))))
        options = self._resolved(items).get("anyOf", []) if items is not False else []
        row = [*prefix, *(options if low >= len(options) else []), *[items] * count][:count]
        return [self.of(item, depth + 1) for item in row]

    def _string(self, schema: Body, _: int) -> str:
        low, high = schema.get("minLength", 0), schema.get("maxLength", MAX_BODY)
        if low > min(high, 1_000_000):
            raise Refused(400, f"the schema asks for {low} to {high} characters")
        return f"text {self._picks.below(16**8):08x}".ljust(low, ".")[:high]

    def _integer(self, schema: Body, _: int) -> int:
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
        number: int = int(step) * (first + self._picks.below(last - first + 1))
        return number

    def _number(self, schema: Body, depth: int) -> float:
        if "multipleOf" in schema:
            return self._integer(schema, depth)
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        low = (0.0 if high is None or high > 0 else high - 1.0) if low is None else low
        high = low + 1.0 if high is None else high
        if low > high or (low == high and schema.keys() & {"exclusiveMinimum", "exclusiveMaximum"}):
            raise Refused(400, "no number within the bounds of the schema")
        # One of 999 inner points: never at a bound that may be excluded.
        return float(low + (high - low) * ((self._picks.below(999) + 1) / 1000))

    def _boolean(self, _: Body, __: int) -> bool:
        return self._picks.below(2) == 1

    def _null(self, _: Body, __: int) -> None:
        return None


_KINDS = ("object", "array", "string", "integer", "number", "boolean", "null")
