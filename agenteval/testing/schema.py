"""A valid instance for a JSON schema, chosen deterministically."""

from __future__ import annotations

import hashlib
import json
import marshal
import math
from collections.abc import Callable, Sequence
from typing import Any

from agenteval.testing.wire import MAX_BODY, Refused


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
