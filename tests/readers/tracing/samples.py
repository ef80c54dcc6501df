"""Traces written by hand, and one tree in every form that files give it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agenteval.readers import ReadResult
from agenteval.readers.traces import read_traces

TRACE = "0af7651916cd43dd8448eb211c80319c"
ROOT, FIRST, SECOND = "00000000000000a1", "00000000000000a2", "00000000000000a3"


def span(number: str, *children: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A span of a nested tree, in the form of section 4 of the specification of traces."""
    made: dict[str, Any] = {
        "timestamp": "2025-03-01T10:00:00.250000Z",
        "trace_id": TRACE,
        "span_id": number,
        "parent_span_id": None,
        "trace_state": "",
        "span_name": f"step {number}",
        "span_kind": "Internal",
        "service_name": "shop",
        "resource_attributes": {"service.name": "shop"},
        "scope_name": "by.hand",
        "scope_version": "1",
        "span_attributes": {},
        "duration": "PT1M2.5S",
        "status_code": "Unset",
        "status_message": "",
        "events": [],
        "links": [],
        "logs": [],
        "child_spans": [{**child, "parent_span_id": number} for child in children],
    }
    return made | more


def nested(*roots: dict[str, Any], trace: str | None = TRACE) -> dict[str, Any]:
    return {"trace_id": trace, "spans": list(roots)}


def flat(*roots: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The spans of nested ones, parents first."""
    for root in roots:
        yield {key: value for key, value in root.items() if key != "child_spans"}
        yield from flat(*root["child_spans"])


def any_value(value: Any) -> dict[str, Any]:
    """OTLP's typed form of a value."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": pairs(value)}}
    return {} if value is None else {"stringValue": value}


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def otlp(*roots: dict[str, Any]) -> dict[str, Any]:
    """The same spans as one OTLP/JSON document; the times are those of `span`, worked out."""
    spans = []
    for one in flat(*roots):
        made = {
            "traceId": one["trace_id"],
            "spanId": one["span_id"],
            "name": one["span_name"],
            "kind": 1,
            "startTimeUnixNano": "1740823200250000000",
            "endTimeUnixNano": "1740823262750000000",
            "attributes": pairs(one["span_attributes"]),
            "status": {
                "code": {"Unset": 0, "Ok": 1, "Error": 2}[one["status_code"]],
                "message": one["status_message"],
            },
            "events": [
                {
                    "timeUnixNano": "1740823201000000000",
                    "name": e["Name"],
                    "attributes": pairs(e["Attributes"]),
                }
                for e in one["events"]
            ],
        }
        if one["parent_span_id"]:
            made["parentSpanId"] = one["parent_span_id"]
        spans.append(made)
    scope = {"scope": {"name": "by.hand", "version": "1"}, "spans": spans}
    resource = {"attributes": pairs({"service.name": "shop"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def read(folder: Path, value: Any, name: str = "t.json") -> ReadResult:
    """What the reader makes of a value, or of a text as it stands; a list of lines for .jsonl."""
    path = folder / name
    if name.endswith(".jsonl") and isinstance(value, list):
        value = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    path.write_text(text, "utf-8")
    return read_traces(path)
