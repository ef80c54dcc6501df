"""OTLP/JSON: protobuf's JSON, with hexadecimal ids and 64-bit integers as strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def key_values(attributes: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Convert attributes to OTLP's list of keys and typed values; other types become strings."""
    return [{"key": key, "value": _any_value(value)} for key, value in (attributes or {}).items()]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        finite = value - value == 0
        return {"doubleValue": value if finite else str(value).replace("inf", "Infinity")}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_any_value(item) for item in value]}}
    return {"stringValue": str(value)}
