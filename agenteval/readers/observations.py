"""Translate spans of other tools into the format that `spans` reads.

Names: Jaeger's JSON (`data`, `spans` with `tags` and `references`) and Zipkin's; Langfuse's traces
with their `observations`, observations one by one, also as exported in snake case, and batches of
its ingestion API; LangSmith's runs, nested (`child_runs`), one by one, or as bodies of its API
(`post` and `patch`); spans of the OpenAI Agents SDK (`span_data`), Weave (`op_name`), Opik,
Braintrust (`span_attributes`) and Datadog (`span_kind`, `meta`); frames of Phoenix by column.
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
    """Return whether an object is or contains a span of one of these tools."""
    return isinstance(value, dict) and _translator(value) is not None


def translated(value: _Object, place: str) -> _Object:
    """Translate an object of these tools to a span or a container of spans; others are unchanged.

    Raises InputError for a Langfuse trace with only the ids of its observations.
    """
    translate = _translator(value)
    if translate is _langfuse_trace and not isinstance(value["observations"][0], dict):
        problem = (
            "a Langfuse trace without its observations: export it with GET /api/public/traces/ID"
        )
        raise InputError(problem, place)
    return value if translate is None else translate(value)


def _translator(value: _Object) -> Callable[[_Object], _Object] | None:
    return next((translate for matches, translate in _FORMS if matches(value)), None)


def _object(value: Any) -> _Object:
    return value if isinstance(value, dict) else {}


def _rows(value: Any) -> list[_Object]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _at(value: Any, paths: str) -> Any:
    """Return the first value found under one of several paths: "error.message|status"."""
    for path in paths.split("|"):
        inner = value
        for key in path.split("."):
            inner = first_of(inner, key)
        if inner is not None:
            return inner
    return None


def _as_text(value: Any) -> Any:
    return json_text(value) if isinstance(value, (dict, list)) else value


# ---- Langfuse ------------------------------------------------------------------------------------


def _is_langfuse_trace(value: _Object) -> bool:
    inside = value.get("observations")
    first = inside[0] if isinstance(inside, list) and inside else None
    return isinstance(first, str) or bool(first_of(first, "traceId", "startTime"))


def _langfuse_trace(value: _Object) -> _Object:
    """Convert a trace to a span that encloses its observations."""
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


def _is_langfuse_batch(value: _Object) -> bool:
    first = next(iter(_rows(value.get("batch"))), None)
    return isinstance(first_of(first, "body"), dict) and "-" in str(first_of(first, "type"))


def _langfuse_batch(value: _Object) -> _Object:
    """Return the traces of a batch of events that create or update traces and observations."""
    traces: dict[str, _Object] = {}
    rows: dict[str, _Object] = {}
    for event in _rows(value["batch"]):
        kind, body = str(event.get("type")).partition("-")[0], _object(event.get("body"))
        of_kind = traces if kind == "trace" else rows if kind in (*_KINDS, "observation") else {}
        held = of_kind.setdefault(str(body.get("id")), {"type": kind})
        held |= {key: item for key, item in body.items() if item is not None}
    of_trace: dict[str, list[_Object]] = {id: [] for id in traces}
    for row in rows.values():
        of_trace.setdefault(str(row.get("traceId")), []).append(row)
    inside = (
        {"trace": traces.get(id, {"id": id}), "observations": of_trace[id]} for id in of_trace
    )
    return {"spans": [span for trace in inside for span in _langfuse_trace(trace)["spans"]]}


def _is_observation(value: _Object) -> bool:
    kind = value.get("type")
    if not isinstance(kind, str) or kind.lower() not in _KINDS or "spanId" in value:
        return False
    is_exported = {"parent_observation_id", "trace_id"} <= value.keys()
    return is_exported or {"traceId", "startTime"} <= value.keys() or "parentObservationId" in value


def _observation(value: _Object) -> _Object:
    """Convert an observation to a span with the attributes of Langfuse's SDK.

    Keys of exported files are in snake case.
    """
    if "trace_id" in value:
        value = {re.sub(r"_([a-z])", lambda m: m[1].upper(), k): v for k, v in value.items()}
    kind = "langfuse.observation."
    counts = {"input": value.get("promptTokens"), "output": value.get("completionTokens")}
    usage = next((u for u in (value.get("usageDetails"), value.get("usage")) if u), counts)
    attributes = {
        f"{kind}type": str(value.get("type")).lower(),
        f"{kind}model.name": first_of(value, "model", "providedModelName"),
        f"{kind}input": _as_text(value.get("input")),
        f"{kind}output": _as_text(value.get("output")),
        f"{kind}usage_details": json_text(usage) if isinstance(usage, dict) else usage,
        "operation.cost": _at(value, "calculatedTotalCost|totalCost|costDetails.total"),
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


# ---- other tools, with Langfuse's names ----------------------------------------------------------


def _table(text: str) -> dict[str, str]:
    """Parse paths by Langfuse's names: "id=span_id name=name|kind"."""
    return dict(pair.split("=") for pair in words(text))


_AGENTS_SDK = _table("""
    id=id traceId=trace_id parentObservationId=parent_id type=span_data.type
    name=span_data.name|span_data.type startTime=started_at endTime=ended_at
    level=error statusMessage=error.message
""")
_WEAVE = _table("""
    id=id traceId=trace_id parentObservationId=parent_id startTime=started_at endTime=ended_at
    level=exception statusMessage=exception model=inputs.model input=inputs output=output
""")
_OPIK = _table("""
    type=type parentObservationId=parent_span_id calculatedTotalCost=total_estimated_cost
    level=error_info statusMessage=error_info.message|error_info.exception_type
""")
_BRAINTRUST = _table("""
    id=span_id traceId=root_span_id type=span_attributes.type name=span_attributes.name
    startTime=metrics.start endTime=metrics.end level=error statusMessage=error model=metadata.model
    input=input output=output promptTokens=metrics.prompt_tokens
    completionTokens=metrics.completion_tokens metadata=metadata
""")
_DATADOG = _table("""
    id=span_id traceId=trace_id type=span_kind|meta.span.kind name=name
    startTime=start_ns|start_ms|start statusMessage=meta.error.message|meta.error
    model=model_name|meta.model_name metadata=metadata|meta.metadata
    input=input.messages|input.value|meta.input.messages|meta.input.value|input|meta.input
    output=output.messages|output.value|meta.output.messages|meta.output.value|output|meta.output
    promptTokens=metrics.input_tokens completionTokens=metrics.output_tokens
    calculatedTotalCost=metrics.estimated_total_cost
""")
_WORDS = {"response": "generation", "llm": "generation", "function": "tool"}


def _renamed(value: _Object, paths: dict[str, str], **more: Any) -> _Object:
    """Convert a span to an observation, with its values under Langfuse's names."""
    row = {field: _at(value, path) for field, path in paths.items()} | more
    kind = str(row.get("type")).lower()
    kind = _WORDS.get(kind, kind)
    row["type"] = kind if kind in _KINDS else "span"
    row["level"] = "ERROR" if row.get("level") else None
    row["statusMessage"] = _as_text(row.get("statusMessage"))
    return _observation(row)


def _agents_sdk(value: _Object) -> _Object:
    if value["object"] == "trace":
        return {"spans": []}
    data = _object(value.get("span_data"))
    handed = {"input": data.get("from_agent"), "output": data.get("to_agent")}
    row = handed if data.get("type") == "handoff" else data
    row = {key: item for key, item in row.items() if key not in _AGENTS_SDK}
    row["metadata"] = {key: data[key] for key in ("handoffs", "tools") if key in data}
    row["name"] = data.get("name") or data.get("type")
    return _renamed(value, _AGENTS_SDK, **row)


def _weave(value: _Object) -> _Object:
    """Convert a Weave call. Its usage is per model and accumulates up to the root."""
    inputs = value["inputs"]
    is_chat = first_of(inputs, "messages", "contents") and first_of(inputs, "model")
    used: dict[str, int] = {}
    for usage in _object(_at(value, "summary.usage")).values():
        for name, keys in (("input", "prompt_tokens"), ("output", "completion_tokens")):
            count = first_of(usage, keys, f"{name}_tokens")
            used[name] = used.get(name, 0) + (count if isinstance(count, int) else 0)
    name = value["op_name"].rpartition("/")[2].partition(":")[0]
    return _renamed(
        value,
        _WEAVE,
        type=_at(value, "attributes.kind") or ("llm" if is_chat else "span"),
        name=value.get("display_name") or name,
        usage=used or None,
    )


def _opik(value: _Object) -> _Object:
    return _renamed({}, {}, **{**value, **{k: _at(value, path) for k, path in _OPIK.items()}})


def _braintrust(value: _Object) -> _Object:
    parents, output = value.get("span_parents"), value.get("output")
    parent = parents[0] if isinstance(parents, list) and parents else None
    if isinstance(output, list) and output and first_of(output[0], "message"):
        return _renamed(value, _BRAINTRUST, parentObservationId=parent, output={"choices": output})
    return _renamed(value, _BRAINTRUST, parentObservationId=parent)


def _is_datadog(value: _Object) -> bool:
    span = _object(value.get("attributes")) if value.get("type") == "span" else value
    is_kind = isinstance(_at(span, _DATADOG["type"]), str) and "span_id" in span
    return is_kind and ("start_ns" in span or "start_ms" in span or "meta" in span)


def _datadog(value: _Object) -> _Object:
    """Convert a span of Datadog's LLM Observability, as exported or as sent by its SDK."""
    span = _object(value.get("attributes")) if value.get("type") == "span" else value
    parent, error = span.get("parent_id"), span.get("error")
    return _renamed(
        span,
        _DATADOG,
        parentObservationId=None if parent in ("undefined", "0", 0) else parent,
        endTime=_end(_at(span, _DATADOG["startTime"]), span.get("duration")),
        level=span.get("status") == "error" or error in (1, True),
    )


def _is_frame(value: _Object) -> bool:
    columns = value.get("columns")
    by_row = isinstance(columns, list) and "context.span_id" in columns and "data" in value
    return by_row or isinstance(value.get("context.span_id"), dict)


def _frame(value: _Object) -> _Object:
    if isinstance(value.get("columns"), list):
        rows = value["data"] if isinstance(value["data"], list) else []
        rows = [row for row in rows if isinstance(row, list)]
        return {"spans": [dict(zip(value["columns"], row, strict=False)) for row in rows]}
    columns = {name: column for name, column in value.items() if isinstance(column, dict)}
    spans = value["context.span_id"]
    return {"spans": [{name: c.get(row) for name, c in columns.items()} for row in spans]}


# ---- LangSmith -----------------------------------------------------------------------------------


def _langsmith_bodies(value: _Object) -> _Object:
    runs = {str(run.get("id")): run for run in _rows(value["post"])}
    for patch in _rows(value["patch"]):
        held = runs.setdefault(str(patch.get("id")), {})
        held |= {key: item for key, item in patch.items() if item is not None}
    return {"spans": [_langsmith(run) for run in runs.values()]}


def _langsmith(run: _Object) -> _Object:
    """Convert a run to a span. LangSmith accumulates tokens and costs up to the root."""
    inputs, answered = run.get("inputs"), run.get("outputs")
    kind = str(run.get("run_type") or "chain")
    used = run if run.get("prompt_tokens") is not None else usage_inside(answered)
    attributes = {
        "langsmith.span.kind": kind,
        "gen_ai.usage.input_tokens": first_of(used, "prompt_tokens", "input_tokens"),
        "gen_ai.usage.output_tokens": first_of(used, "completion_tokens", "output_tokens"),
        "operation.cost": run.get("total_cost"),
        "metadata": _at(run, "extra.metadata"),
    }
    if kind == "llm":
        model = _at(run, "extra.invocation_params.model|extra.invocation_params.model_name")
        model = model or _at(run, "extra.metadata.ls_model_name") or first_of(inputs, "model")
        attributes["gen_ai.request.model"] = model
        attributes["gen_ai.input.messages"] = to_messages(inputs, "user")
        attributes["gen_ai.output.messages"] = to_messages(answered, "assistant")
    else:
        attributes |= {"input.value": _as_text(inputs), "output.value": _as_text(answered)}
    return {
        "traceId": run.get("trace_id"),
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


# ---- Jaeger and Zipkin ---------------------------------------------------------------------------


def _holds_jaeger(value: _Object) -> bool:
    data = value.get("data")
    return isinstance(data, list) and bool(data) and first_of(data[0], "processes") is not None


def _jaeger(trace: _Object) -> _Object:
    spans = [_jaeger_span(span, trace["processes"]) for span in _rows(trace["spans"])]
    return {"traceId": trace.get("traceID"), "spans": spans}


def _jaeger_span(span: _Object, processes: _Object) -> _Object:
    tags, process = _tags(span.get("tags")), processes.get(str(span.get("processID")))
    references = _rows(span.get("references"))
    parents = [r for r in references if r.get("refType", "CHILD_OF") == "CHILD_OF"]
    failed = tags.pop("error", None) in (True, "true") or tags.get("otel.status_code") == "ERROR"
    events = []
    for log in _rows(span.get("logs")):
        fields = _tags(log.get("fields"))
        name = fields.pop("event", "")
        events.append({"timestamp": log.get("timestamp"), "name": name, "attributes": fields})
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
        "events": events,
        "resource": {"service.name": name, **_tags(first_of(process, "tags"))},
    }


def _tags(rows: Any) -> _Object:
    tags = [row for row in _rows(rows) if isinstance(row.get("key"), str)]
    return {tag["key"]: tag.get("value") for tag in tags}


def _is_zipkin(value: _Object) -> bool:
    has_tags = isinstance(value.get("tags", {}), dict) and "traceId" in value
    return has_tags and ("localEndpoint" in value or {"timestamp", "tags"} <= value.keys())


def _zipkin(span: _Object) -> _Object:
    tags = dict(span.get("tags") or {})
    error = tags.pop("error", None)
    failed = error is not None or tags.get("otel.status_code") == "ERROR"
    notes = _rows(span.get("annotations"))
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
        "events": [{"timestamp": n.get("timestamp"), "name": n.get("value")} for n in notes],
        "resource": {"service.name": _at(span, "localEndpoint.serviceName")},
    }


def _end(start: Any, duration: Any) -> Any:
    numbers = isinstance(start, (int, float)) and isinstance(duration, (int, float))
    return start + duration if numbers else None


# The test for an object of each tool, and its translation
_FORMS: tuple[tuple[Callable[[_Object], bool], Callable[[_Object], _Object]], ...] = (
    (_is_langfuse_trace, _langfuse_trace),
    (_is_langfuse_batch, _langfuse_batch),
    (lambda value: isinstance(value.get("run_type"), str) and "id" in value, _langsmith),
    (lambda value: isinstance(value.get("post"), list) and "patch" in value, _langsmith_bodies),
    (lambda v: v.get("object") in ("trace", "trace.span") and "id" in v, _agents_sdk),
    (lambda value: isinstance(value.get("op_name"), str) and "inputs" in value, _weave),
    (lambda value: {"span_attributes", "root_span_id"} <= value.keys(), _braintrust),
    (
        lambda value: (
            value.get("type") in ("general", "llm", "tool", "guardrail")
            and "parent_span_id" in value
        ),
        _opik,
    ),
    (_is_datadog, _datadog),
    (_is_frame, _frame),
    (_is_zipkin, _zipkin),
    (lambda value: isinstance(value.get("processes"), dict) and "spans" in value, _jaeger),
    (_holds_jaeger, lambda value: {"data": [translated(t, "") for t in _rows(value["data"])]}),
    (_is_observation, _observation),
)
