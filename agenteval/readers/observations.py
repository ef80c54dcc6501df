"""Spans of Jaeger, Langfuse and LangSmith, translated into the words that `spans` knows.

Names: Jaeger's JSON (`data`, `spans` with `tags` and `references`); Langfuse's traces with their
`observations`, and observations one by one; LangSmith's runs, nested (`child_runs`), one by one, or
as bodies of its API (`post` and `patch`).
"""

from __future__ import annotations

from typing import Any

from agenteval.readers.chat_forms import first_of, to_messages
from agenteval.readers.fields import json_text, words

_Object = dict[str, Any]
_KINDS = frozenset(
    words("span generation event agent tool chain retriever evaluator embedding guardrail")
)


def is_observed(value: Any) -> bool:
    """Return whether an object holds or is a span of one of these tools."""
    return isinstance(value, dict) and _translator(value) is not None


def translated(value: _Object) -> _Object:
    """Return an object of these tools as a span or a holder of spans; any other as it is."""
    translate = _translator(value)
    return value if translate is None else translate(value)


def _translator(value: _Object) -> Any:
    inside = value.get("observations")
    if isinstance(inside, list) and inside and first_of(inside[0], "traceId", "startTime"):
        return _langfuse_trace
    if isinstance(value.get("run_type"), str) and "id" in value:
        return _langsmith
    if isinstance(value.get("post"), list) and "patch" in value:
        return _langsmith_bodies
    if isinstance(value.get("spans"), list) and isinstance(value.get("processes"), dict):
        return _jaeger
    data = value.get("data")
    if isinstance(data, list) and data and isinstance(data[0], dict) and "processes" in data[0]:
        return lambda document: {"data": list(map(translated, document["data"]))}
    is_langfuse = ("traceId" in value and "startTime" in value) or "parentObservationId" in value
    kind = value.get("type")
    of_kind = isinstance(kind, str) and kind.lower() in _KINDS
    return _observation if is_langfuse and of_kind and "spanId" not in value else None


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
    """Return an observation as a span with the attributes of Langfuse's SDK."""
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
    used = run if run.get("prompt_tokens") is not None else _langchain_usage(answered)
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


def _langchain_usage(answered: Any) -> Any:
    """Return the tokens inside the outputs of a LangChain model."""
    stated = first_of(answered, "usage_metadata")
    stated = stated or first_of(first_of(answered, "llm_output"), "token_usage")
    inner = first_of(answered, "generations")
    while isinstance(inner, list) and inner:
        inner = inner[0]
    message = first_of(inner, "message")
    return stated or first_of(first_of(message, "kwargs") or message, "usage_metadata")


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
    start, duration = span.get("startTime"), span.get("duration")
    timed = isinstance(start, (int, float)) and isinstance(duration, (int, float))
    failed = tags.pop("error", None) in (True, "true") or tags.get("otel.status_code") == "ERROR"
    name = first_of(process, "serviceName")
    return {
        "traceId": span.get("traceID"),
        "spanId": span.get("spanID"),
        "parentId": first_of(parents[0], "spanID") if parents else span.get("parentSpanID"),
        "name": span.get("operationName"),
        "startTime": start,
        "endTime": start + duration if timed else None,  # type: ignore[operator]
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
