"""Attributes of spans: nested values as dotted keys and back, and the typed values of OTLP."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

MAX_DEPTH = 64
TOO_DEEP = f"[nested deeper than {MAX_DEPTH} levels]"

SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LEAF = ""  # name of a value that stands where children stand as well ("a" beside "a.b")


def flatten(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys: `{"a": {"b": 1}, "c": [{"d": 2}]}` is `{"a.b": 1, "c.0.d": 2}`.

    Lists are taken apart only where all their items are objects; empty objects and lists stay.
    What lies deeper than MAX_DEPTH is replaced by TOO_DEEP.
    """
    flat: dict[str, Any] = {}
    _flatten(tree, "", 0, flat)
    return flat


def _flatten(tree: Mapping[str, Any], prefix: str, depth: int, flat: dict[str, Any]) -> None:
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if not isinstance(value, (dict, list)) or not value:
            flat[name] = value
        elif depth >= MAX_DEPTH:
            flat[name] = TOO_DEEP
        elif isinstance(value, dict):
            _flatten(value, f"{name}.", depth + 1, flat)
        elif all(isinstance(item, dict) for item in value):
            rows = {str(i): item for i, item in enumerate(value)}
            _flatten(rows, f"{name}.", depth + 1, flat)
        else:
            flat[name] = bounded(value, depth + 1)


def bounded(value: Any, depth: int = 0) -> Any:
    """The value with TOO_DEEP in the place of what lies deeper than MAX_DEPTH."""
    if not isinstance(value, (dict, list)):
        return value
    if depth >= MAX_DEPTH:
        return TOO_DEEP
    if isinstance(value, dict):
        return {str(key): bounded(item, depth + 1) for key, item in value.items()}
    return [bounded(item, depth + 1) for item in value]


def insert(root: dict[str, Any], path: list[str], value: Any) -> None:
    """Put a value under a path; a value that stands on the way moves to the name ""."""
    node = root
    for part in path[:-1]:
        inner = node.get(part)
        if not isinstance(inner, _Node):
            inner = node[part] = _Node() if part not in node else _Node({_LEAF: inner})
        node = inner
    last = path[-1]
    if isinstance(node.get(last), _Node):
        node[last][_LEAF] = value
    else:
        node[last] = value


class _Node(dict[str, Any]):
    """An object made of dotted keys, told apart from an object that is a value."""


def with_lists(node: Any, depth: int = 0) -> Any:
    """The tree that `insert` built, with lists in the place of objects of numbers."""
    if depth > MAX_DEPTH or not isinstance(node, dict) or (depth and not isinstance(node, _Node)):
        return node
    if node and all(key.isascii() and key.isdigit() and len(key) < 10 for key in node):
        return [with_lists(node[key], depth + 1) for key in sorted(node, key=int)]
    return {key: with_lists(value, depth + 1) for key, value in node.items()}


def attributes_of(value: Any) -> dict[str, Any]:
    """Flat attributes from an object, OTLP's list of keys and values, or the JSON text of one."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = json_or_none(value)
    if isinstance(value, list):
        value = key_values(value)
    return flatten(value) if isinstance(value, dict) else {}


def key_values(rows: list[Any], depth: int = 0) -> dict[str, Any]:
    """`[{"key": ..., "value": {"stringValue": ...}}]` as an object; other items are left out."""
    return {
        row["key"]: any_value(row.get("value"), depth)
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("key"), str)
    }


def any_value(value: Any, depth: int = 0) -> Any:
    """The value of OTLP's AnyValue in camel or snake case. Integers come as text, NaN as null."""
    if not isinstance(value, dict):
        return bounded(value, depth)
    if depth >= MAX_DEPTH:
        return TOO_DEEP
    if not value:
        return None
    name, inner = next(iter(value.items()))
    plain = name.replace("_", "").lower()
    if plain == "intvalue":
        return _integer(inner)
    if plain == "doublevalue":
        return _double(inner)
    if plain in ("arrayvalue", "kvlistvalue"):
        rows = inner.get("values") if isinstance(inner, dict) else inner
        rows = rows if isinstance(rows, list) else []
        if plain == "kvlistvalue":
            return key_values(rows, depth + 1)
        return [any_value(row, depth + 1) for row in rows]
    return bounded(inner if plain in ("stringvalue", "boolvalue", "bytesvalue") else value, depth)


def _integer(value: Any) -> Any:
    if isinstance(value, str) and len(value) < 40:
        try:
            return int(value)
        except ValueError:
            return value
    return value


def _double(value: Any) -> Any:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return value if isinstance(value, str) else None
    return number if math.isfinite(number) else None


def json_or_none(text: str) -> Any:
    """The JSON value of a text, with null for NaN; None when it is none."""
    try:
        value = json.loads(text, parse_constant=lambda _: None, parse_float=_double)
    except (ValueError, RecursionError):
        return None
    return whole_characters(value) if SURROGATE_ESCAPE.search(text) else value


def whole_characters(value: Any, found: Callable[[], None] = lambda: None) -> Any:
    """The value with U+FFFD in the place of half characters, at any depth, changed in place.

    `found` is called for each text that had one.
    """

    def whole(text: str) -> str:
        if text.isascii() or not _SURROGATE.search(text):
            return text
        found()
        return _SURROGATE.sub("\ufffd", text)

    top = [value]
    stack: list[Any] = [top]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            pairs = [(whole(key), item) for key, item in node.items()]
            node.clear()
            node.update(pairs)
        for key, item in list(node.items() if isinstance(node, dict) else enumerate(node)):
            if isinstance(item, str):
                node[key] = whole(item)
            elif isinstance(item, (dict, list)):
                stack.append(item)
    return top[0]


def text_of(value: Any) -> str:
    """A value as text: texts as they are, null as nothing, all else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
