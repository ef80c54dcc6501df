"""Convert span attributes: nested, with dotted keys, as OTLP's typed values, or as JSON text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from agenteval.readers.strict_json import MOST_DEPTH, json_or_none

TOO_DEEP = f"[nested deeper than {MOST_DEPTH} levels]"


def flatten(tree: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Return dotted keys: `{"a": {"b": 1}, "c": [{"d": 2}]}` is `{"a.b": 1, "c.0.d": 2}`.

    Lists are flattened only if all their items are objects; empty objects and lists are kept.
    Values deeper than MOST_DEPTH are replaced by TOO_DEEP.
    """
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if not isinstance(value, (dict, list)) or not value:
            flat[name] = value
        elif depth >= MOST_DEPTH:
            flat[name] = TOO_DEEP
        elif isinstance(value, dict):
            flat |= flatten(value, f"{name}.", depth + 1)
        elif all(isinstance(item, dict) for item in value):
            flat |= flatten({str(i): v for i, v in enumerate(value)}, f"{name}.", depth + 1)
        else:
            flat[name] = bounded(value, depth + 1)
    return flat


def bounded(value: Any, depth: int = 0) -> Any:
    """Return the value with TOO_DEEP in place of everything deeper than MOST_DEPTH."""
    if not isinstance(value, (dict, list)):
        return value
    if depth >= MOST_DEPTH:
        return TOO_DEEP
    if isinstance(value, dict):
        return {str(key): bounded(item, depth + 1) for key, item in value.items()}
    return [bounded(item, depth + 1) for item in value]


class _Node(dict[str, Any]):
    """An object built from dotted keys, in contrast to an object that is a value."""


def insert(root: dict[str, Any], path: list[str], value: Any) -> None:
    """Insert a value at a path; an existing value in the way moves to the key ""."""
    node = root
    for part in path[:-1]:
        inner = node.get(part)
        if not isinstance(inner, _Node):
            inner = node[part] = _Node() if part not in node else _Node({"": inner})
        node = inner
    last = path[-1]
    if isinstance(node.get(last), _Node):
        node[last][""] = value
    else:
        node[last] = value


def with_lists(node: Any, depth: int = 0) -> Any:
    """Return a tree built by `insert`, with lists in place of objects with numeric keys."""
    if depth > MOST_DEPTH or not isinstance(node, dict) or (depth and not isinstance(node, _Node)):
        return node
    if node and all(key.isascii() and key.isdigit() and len(key) < 10 for key in node):
        return [with_lists(node[key], depth + 1) for key in sorted(node, key=int)]
    return {key: with_lists(value, depth + 1) for key, value in node.items()}


def attributes_of(value: Any) -> dict[str, Any]:
    """Return flat attributes from an object, OTLP's list of key-value pairs, or their JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = json_or_none(value)
    if isinstance(value, list):
        value = _key_values(value)
    return flatten(value) if isinstance(value, dict) else {}


def _key_values(rows: list[Any], depth: int = 0) -> dict[str, Any]:
    return {
        row["key"]: _any_value(row.get("value"), depth)
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("key"), str)
    }


def _any_value(value: Any, depth: int) -> Any:
    """Return the value of OTLP's AnyValue in camel or snake case.

    Integers are strings there; NaN becomes null.
    """
    if not isinstance(value, dict):
        return bounded(value, depth)
    if depth >= MOST_DEPTH or not value:
        return TOO_DEEP if value else None
    name, inner = next(iter(value.items()))
    kind = name.replace("_", "").lower()
    if kind == "intvalue":
        is_number = isinstance(inner, str) and re.fullmatch(r"\s*[+-]?\d{1,38}\s*", inner)
        return int(inner) if is_number else inner
    if kind == "doublevalue":
        try:
            return number if math.isfinite(number := float(inner)) else None
        except (TypeError, ValueError, OverflowError):
            return inner if isinstance(inner, str) else None
    if kind in ("arrayvalue", "kvlistvalue"):
        rows = inner.get("values") if isinstance(inner, dict) else inner
        rows = rows if isinstance(rows, list) else []
        if kind == "kvlistvalue":
            return _key_values(rows, depth + 1)
        return [_any_value(row, depth + 1) for row in rows]
    return bounded(inner if kind in ("stringvalue", "boolvalue", "bytesvalue") else value, depth)


def text_of(value: Any) -> str:
    """Return strings unchanged, "" for null, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
