"""Spans of other tools, translated into the words that `spans` knows.

Names: Jaeger's JSON (`data`, `spans` with `tags` and `references`) and Zipkin's; Langfuse's traces
with their `observations`, and observations one by one, also as exported in snake case; LangSmith's
runs, nested (`child_runs`), one by one, or as bodies of its API (`post` and `patch`); spans of the
OpenAI Agents SDK (`span_data`), Weave (`op_name`), Opik and Braintrust (`span_attributes`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.chat_forms import first_of, to_messages
from agenteval.readers.fields import json_text, words
from agenteval.readers.vendors import usage_inside

_Object = dict[str, Any]
_KINDS = frozenset(
    words("span generation event agent tool chain retriever evaluator embedding guardrail")
)


def is_observed(value: Any) -> bool:
    """Return whether an object holds or is a span of one of these tools."""
    return isinstance(value, dict) and _translator(value) is not None


def translated(value: _Object, place: str) -> _Object:
    """Return an object of these tools as a span or a holder of spans; any other as it is.

    Raises InputError for a trace of Langfuse that only names its observations.
    """
    translate = _translator(value)
    if translate is _langfuse_trace and not isinstance(value["observations"][0], dict):
        problem = (
            "a Langfuse trace without its observations: export it with GET /api/public/traces/ID"
        )
        raise InputError(problem, place)
    return value if translate is None else translate(value)


def _translator(value: _Object) -> Any:
    return next((translate for matches, translate in _FORMS if matches(value)), None)


def _is_langfuse_trace(value: _Object) -> bool:
    inside = value.get("observations")
    first = inside[0] if isinstance(inside, list) and inside else None
    return isinstance(first, str) or bool(first_of(first, "traceId", "startTime"))


def _is_observation(value: _Object) -> bool:
    kind = value.get("type")
    if not isinstance(kind, str) or kind.lower() not in _KINDS or "spanId" in value:
        return False
    is_exported = {"parent_observation_id", "trace_id"} <= value.keys()
    return is_exported or {"traceId", "startTime"} <= value.keys() or "parentObservationId" in value


def _is_zipkin(value: _Object) -> bool:
    has_tags = isinstance(value.get("tags", {}), dict) and "traceId" in value
    return has_tags and ("localEndpoint" in value or {"timestamp", "tags"} <= value.keys())


def _is_opik(value: _Object) -> bool:
    kinds = ("general", "llm", "tool", "guardrail")
    return value.get("type") in kinds and "parent_span_id" in value


def _holds_jaeger(value: _Object) -> bool:
    data = value.get("data")
    return isinstance(data, list) and bool(data) and first_of(data[0], "processes") is not None


def _camel(key: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), key)


def _object(value: Any) -> _Object:
    return value if isinstance(value, dict) else {}


def _rows(value: Any) -> list[_Object]:
    """Return the objects of a list; what is no object holds no span."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


# ---- Langfuse ------------------------------------------------------------------------------------


def _langfuse_trace(value: _Object) -> _Object:
    """Return a trace as a span around its observations."""
    trace = value["trace"] if isinstance(value.get("trace"), dict) else value
    id = str(first_of(trace, "id") or "")
    root = _observation({**trace, "type": "SPAN", "traceId": id, "parentObservationId": None})
    root["startTime"] = trace.get("timestamp")
    rows = _rows(value["observations"])
    row_ids, spans = {str(row.get("id")) for row in rows}, [root]
    for row in rows:
        spans.append(_observation({"traceId": id, **row}))
        if str(spans[-1]["parentId"]) not in row_ids:
            spans[-1]["parentId"] = id
    return {"spans": spans}


def _observation(value: _Object) -> _Object:
    """Return an observation as a span with the attributes of Langfuse's SDK.

    Keys of exported files are in snake case.
    """
    if "trace_id" in value:
        value = {_camel(key): item for key, item in value.items()}
    kind = "langfuse.observation."
    counts = {"input": value.get("promptTokens"), "output": value.get("completionTokens")}
    usage = next((u for u in (value.get("usageDetails"), value.get("usage")) if u), counts)
    cost = first_of(value, "calculatedTotalCost", "totalCost")
    cost = first_of(value.get("costDetails"), "total") if cost is None else cost
    attributes = {
        f"{kind}type": str(value.get("type")).lower(),
        f"{kind}model.name": first_of(value, "model", "providedModelName"),
        f"{kind}input": _as_text(value.get("input")),
        f"{kind}output": _as_text(value.get("output")),
        f"{kind}usage_details": json_text(usage) if isinstance(usage, dict) else usage,
        "operation.cost": cost,
        "metadata": value.get("metadata"),
    }
    return {
        "traceId": value.get("traceId"),
        "spanId": value.get("id"),
        "parentId": value.get("parentObservationId"),
        "name": value.get("name"),
        "startTime": value.get("startTime"),
        "endTime": value.get("endTime"),
        "status": "ERROR" if value.get("level") == "ERROR" else None,
        "statusMessage": value.get("statusMessage"),
        "attributes": {k: v for k, v in attributes.items() if v not in (None, "", {}, "{}")},
    }


def _as_text(value: Any) -> Any:
    return json_text(value) if isinstance(value, (dict, list)) else value


# ---- other tools, in the words of Langfuse -------------------------------------------------------

_GENERATIONS = ("generation", "response", "llm")
_TOOLS = ("function", "tool")


def _kind(word: Any) -> str:
    """Return Langfuse's word for a kind of span of another tool."""
    text = str(word).lower()
    kind = "generation" if text in _GENERATIONS else "tool" if text in _TOOLS else text
    return kind if kind in _KINDS else "span"


def _of_agents_sdk(value: _Object) -> _Object:
    """Return a span of the OpenAI Agents SDK; its traces hold nothing else."""
    if value["object"] == "trace":
        return {"spans": []}
    data, error = _object(value.get("span_data")), value.get("error")
    handed = {"input": data.get("from_agent"), "output": data.get("to_agent")}
    return _observation(
        (handed if data.get("type") == "handoff" else data)
        | {
            "id": value["id"],
            "traceId": value.get("trace_id"),
            "parentObservationId": value.get("parent_id"),
            "type": _kind(data.get("type")),
            "name": data.get("name") or data.get("type"),
            "startTime": value.get("started_at"),
            "endTime": value.get("ended_at"),
            "level": "ERROR" if error else None,
            "statusMessage": first_of(error, "message"),
            "metadata": {key: item for key, item in data.items() if key in ("handoffs", "tools")},
        }
    )


def _of_weave(value: _Object) -> _Object:
    """Return a call of Weave. Its usage has a figure for each model, added up to the root."""
    inputs, output, error = value["inputs"], value.get("output"), value.get("exception")
    stated = first_of(value.get("attributes"), "kind")
    is_chat = first_of(inputs, "messages", "contents") and first_of(inputs, "model")
    used: dict[str, int] = {}
    for usage in _object(first_of(value.get("summary"), "usage")).values():
        for name, keys in (("input", "prompt_tokens"), ("output", "completion_tokens")):
            count = first_of(usage, keys, f"{name}_tokens")
            used[name] = used.get(name, 0) + (count if isinstance(count, int) else 0)
    return _observation(
        {
            "id": value.get("id"),
            "traceId": value.get("trace_id"),
            "parentObservationId": value.get("parent_id"),
            "type": _kind(stated or ("llm" if is_chat else "span")),
            "name": value.get("display_name")
            or value["op_name"].rpartition("/")[2].partition(":")[0],
            "startTime": value.get("started_at"),
            "endTime": value.get("ended_at"),
            "level": "ERROR" if error else None,
            "statusMessage": error,
            "model": first_of(inputs, "model"),
            "input": inputs,
            "output": output,
            "usage": used or None,
        }
    )


def _of_opik(value: _Object) -> _Object:
    error = value.get("error_info")
    return _observation(
        {
            **value,
            "type": _kind(value["type"]),
            "parentObservationId": value["parent_span_id"],
            "calculatedTotalCost": value.get("total_estimated_cost"),
            "level": "ERROR" if error else None,
            "statusMessage": first_of(error, "message", "exception_type"),
        }
    )


def _of_braintrust(value: _Object) -> _Object:
    parts, figures, error = (
        _object(value["span_attributes"]),
        value.get("metrics"),
        value.get("error"),
    )
    parents, output = value.get("span_parents"), value.get("output")
    of_choices = isinstance(output, list) and output and first_of(output[0], "message")
    return _observation(
        {
            "id": value.get("span_id"),
            "traceId": value["root_span_id"],
            "parentObservationId": parents[0] if isinstance(parents, list) and parents else None,
            "type": _kind(parts.get("type")),
            "name": parts.get("name"),
            "startTime": first_of(figures, "start"),
            "endTime": first_of(figures, "end"),
            "level": "ERROR" if error else None,
            "statusMessage": _as_text(error),
            "model": first_of(value.get("metadata"), "model"),
            "input": value.get("input"),
            "output": {"choices": output} if of_choices else output,
            "promptTokens": first_of(figures, "prompt_tokens"),
            "completionTokens": first_of(figures, "completion_tokens"),
            "metadata": value.get("metadata"),
        }
    )


# ---- LangSmith -----------------------------------------------------------------------------------


def _langsmith_bodies(value: _Object) -> _Object:
    runs = {str(run.get("id")): run for run in _rows(value["post"])}
    for patch in _rows(value["patch"]):
        held = runs.setdefault(str(patch.get("id")), {})
        held |= {key: item for key, item in patch.items() if item is not None}
    return {"spans": [_langsmith(run) for run in runs.values()]}


def _langsmith(run: _Object) -> _Object:
    """Return a run as a span. LangSmith adds tokens and costs up to the root."""
    inputs, answered, extra = run.get("inputs"), run.get("outputs"), run.get("extra")
    kind = str(run.get("run_type") or "chain")
    metadata = first_of(extra, "metadata")
    used = run if run.get("prompt_tokens") is not None else usage_inside(answered)
    attributes = {
        "langsmith.span.kind": kind,
        "gen_ai.usage.input_tokens": first_of(used, "prompt_tokens", "input_tokens"),
        "gen_ai.usage.output_tokens": first_of(used, "completion_tokens", "output_tokens"),
        "operation.cost": run.get("total_cost"),
        "metadata": metadata,
    }
    if kind == "llm":
        settings = first_of(extra, "invocation_params")
        model = first_of(settings, "model", "model_name") or first_of(metadata, "ls_model_name")
        model = model or first_of(inputs, "model")
        attributes["gen_ai.request.model"] = model
        attributes["gen_ai.input.messages"] = to_messages(inputs, "user")
        attributes["gen_ai.output.messages"] = to_messages(answered, "assistant")
    else:
        attributes |= {"input.value": _as_text(inputs), "output.value": _as_text(answered)}
    return {
        "traceId": first_of(run, "trace_id"),
        "spanId": run.get("id"),
        "parentId": run.get("parent_run_id"),
        "name": run.get("name"),
        "startTime": run.get("start_time"),
        "endTime": run.get("end_time"),
        "status": "ERROR" if run.get("error") else None,
        "statusMessage": run.get("error"),
        "attributes": {k: v for k, v in attributes.items() if v not in (None, "", {}, [])},
        "children": [_langsmith(child) for child in _rows(run.get("child_runs"))],
    }


# ---- Jaeger --------------------------------------------------------------------------------------


def _jaeger(trace: _Object) -> _Object:
    processes = trace["processes"]
    return {
        "traceId": trace.get("traceID"),
        "spans": [_jaeger_span(s, processes) for s in _rows(trace["spans"])],
    }


def _jaeger_span(span: _Object, processes: _Object) -> _Object:
    """Return a span of Jaeger: times in microseconds, tags and logs as lists of keys."""
    tags, process = _tags(span.get("tags")), processes.get(str(span.get("processID")))
    parents = [
        r for r in _rows(span.get("references")) if r.get("refType", "CHILD_OF") == "CHILD_OF"
    ]
    failed = tags.pop("error", None) in (True, "true") or tags.get("otel.status_code") == "ERROR"
    name = first_of(process, "serviceName")
    return {
        "traceId": span.get("traceID"),
        "spanId": span.get("spanID"),
        "parentId": first_of(parents[0], "spanID") if parents else span.get("parentSpanID"),
        "name": span.get("operationName"),
        "startTime": span.get("startTime"),
        "endTime": _end(span.get("startTime"), span.get("duration")),
        "status": "ERROR" if failed else tags.get("otel.status_code"),
        "statusMessage": tags.get("otel.status_description"),
        "attributes": tags,
        "events": list(map(_jaeger_event, _rows(span.get("logs")))),
        "resource": {"service.name": name, **_tags(first_of(process, "tags"))},
    }


def _jaeger_event(log: _Object) -> _Object:
    fields = _tags(log.get("fields"))
    name = fields.pop("event", "")
    return {"timestamp": log.get("timestamp"), "name": name, "attributes": fields}


def _tags(rows: Any) -> _Object:
    tags = [row for row in _rows(rows) if isinstance(row.get("key"), str)]
    return {tag["key"]: tag.get("value") for tag in tags}


def _zipkin_span(span: _Object) -> _Object:
    """Return a span of Zipkin: times in microseconds, tags as an object of texts."""
    tags = dict(span.get("tags") or {})
    error = tags.pop("error", None)
    failed = error is not None or tags.get("otel.status_code") == "ERROR"
    return {
        "traceId": span["traceId"],
        "spanId": span.get("id"),
        "parentId": span.get("parentId"),
        "name": span.get("name"),
        "startTime": span.get("timestamp"),
        "endTime": _end(span.get("timestamp"), span.get("duration")),
        "status": "ERROR" if failed else tags.get("otel.status_code"),
        "statusMessage": error,
        "attributes": tags,
        "events": [
            {"timestamp": note.get("timestamp"), "name": note.get("value")}
            for note in _rows(span.get("annotations"))
        ],
        "resource": {"service.name": first_of(span.get("localEndpoint"), "serviceName")},
    }


def _end(start: Any, duration: Any) -> Any:
    numbers = isinstance(start, (int, float)) and isinstance(duration, (int, float))
    return start + duration if numbers else None


# How an object of each tool is recognized, and its translation.
_FORMS: tuple[tuple[Callable[[_Object], bool], Callable[[_Object], _Object]], ...] = (
    (_is_langfuse_trace, _langfuse_trace),
    (lambda value: isinstance(value.get("run_type"), str) and "id" in value, _langsmith),
    (lambda value: isinstance(value.get("post"), list) and "patch" in value, _langsmith_bodies),
    (
        lambda value: value.get("object") in ("trace", "trace.span") and "id" in value,
        _of_agents_sdk,
    ),
    (lambda value: isinstance(value.get("op_name"), str) and "inputs" in value, _of_weave),
    (lambda value: {"span_attributes", "root_span_id"} <= value.keys(), _of_braintrust),
    (_is_opik, _of_opik),
    (_is_zipkin, _zipkin_span),
    (lambda value: isinstance(value.get("processes"), dict) and "spans" in value, _jaeger),
    (_holds_jaeger, lambda value: {"data": [translated(t, "") for t in _rows(value["data"])]}),
    (_is_observation, _observation),
)
