"""Stored results as OpenTelemetry events, by OTLP/JSON.

`gen_ai.evaluation.result` as in open-telemetry/semantic-conventions-genai, model/gen-ai/events.yaml
(status Development); `gen_ai.evaluation.evaluator.version` is pydantic-evals'. The SDK is not used:
it drops records when its queue is full, and only logs what an endpoint refused.
"""

from __future__ import annotations

import json
import os
import re
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPException
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from agenteval.errors import InputError, ModelError
from agenteval.files import replacing
from agenteval.models.http_errors import retry_after
from agenteval.readers.traces import read_traces
from agenteval.records.otlp import key_values
from agenteval.store.rows import batched
from agenteval.text import keep_secret, redacted, url_secrets, visible

_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"


def send_events(
    cells: Path, target: str | Path, total: int, traces: str | Path | None, explanations: bool
) -> str:
    """Send each row of an export (JSON lines) as an event, see `export`; returns where to."""
    spans = {} if traces is None else _spans(traces)
    url = _address(str(target)) if re.match("https?://", str(target)) else None
    accepted, refusal = 0, "rejected"
    with cells.open(encoding="utf-8") as lines:
        requests = _requests(_record(json.loads(line), spans, explanations) for line in lines)
        if url is None:
            with replacing(Path(target)) as temporary, temporary.open("w") as file:
                file.writelines(f"{request}\n" for _, request in requests)
            return str(target)
        for events, body in requests:
            request = urllib.request.Request(url, body.encode(), _headers())  # noqa: S310  http(s)
            rejected, why = _answer(request, events)
            accepted, refusal = accepted + events - rejected, why or refusal
            if rejected >= events:
                break
    if accepted < total:
        raise ModelError(
            f"{url}: {refusal}; {accepted:,} of {total:,} events were sent; to keep them all, "
            "write a file with the same options: agenteval export --otlp events.jsonl"
        )
    return url


def _spans(traces: str | Path) -> dict[str, tuple[str, str | None]]:
    """Return root span and last completion by trace id. Raises InputError, also when
    there is none."""
    span_ids = {}
    for run in read_traces(traces).runs:
        root = run.spans[0].id
        if re.fullmatch("[0-9a-f]{32} [0-9a-f]{16}", f"{run.id} {root}"):
            response_ids = [span.attributes.get("gen_ai.response.id") for span in run.spans]
            names = [n for n in response_ids if isinstance(n, str)]
            span_ids[run.id] = root, names[-1] if names else None
    if not span_ids:
        raise InputError("no trace in this file has ids of 16 and 8 bytes", str(traces))
    return span_ids


def _record(row: Mapping[str, Any], spans: Mapping[str, Any], explanations: bool) -> dict[str, Any]:
    """The log record of a row of an export; the time of a result is not stored."""
    failed = ":" in row["status"]
    trace = row["run_id"].rpartition("/")[2]  # of a system that was named by an option
    span, response = spans.get(trace, (None, None))
    words = redacted(row["message" if failed else "explanation"] or "")
    fields = ("task", "system", "variant", "status", "evaluator", "model", "way", "repeat")
    attributes = {
        "gen_ai.evaluation.name": row["criterion_id"],
        "gen_ai.evaluation.score.value": None if failed else row["value"],
        "gen_ai.evaluation.score.label": None if failed else row["label"],
        "gen_ai.evaluation.explanation": words if explanations else None,
        "gen_ai.evaluation.evaluator.version": row["source_key"],
        "gen_ai.response.id": response,
        "error.type": row["status"] if failed else None,
        "agenteval.run.id": row["run_id"],
        "agenteval.case.key": row["case_key"],
        **{f"agenteval.{name}": row[name] for name in fields},
    }
    visible_attributes = {
        name: visible(value) if isinstance(value, str) else value
        for name, value in attributes.items()
        if value not in (None, "")
    }
    return {
        "observedTimeUnixNano": str(time.time_ns()),
        "severityNumber": 13 if failed else 9,  # WARN, INFO
        "eventName": "gen_ai.evaluation.result",
        "attributes": key_values(visible_attributes),
        **({"traceId": trace, "spanId": span} if span else {}),
    }


def _requests(records: Iterable[dict[str, Any]]) -> Iterator[tuple[int, str]]:
    """Number of events and ExportLogsServiceRequest as JSON (ASCII)."""
    resource = {"attributes": key_values({"service.name": "agenteval"})}
    for batch in batched(records, 200):
        scoped = [{"scope": {"name": "agenteval"}, "logRecords": batch}]
        logs = [{"resource": resource, "scopeLogs": scoped}]
        yield len(batch), json.dumps({"resourceLogs": logs}, allow_nan=False)


def _address(url: str) -> str:
    keep_secret(url_secrets(url))
    if not re.fullmatch("https?://[!-~]+", url) or re.search("[?#@]", url):
        raise InputError(f"the endpoint must be http://HOST/PATH; set keys in {_HEADERS}", url)
    return url if url.endswith("/v1/logs") else f"{url.rstrip('/')}/v1/logs"


def _headers() -> dict[str, str]:
    """Parse headers as the SDK does: NAME=VALUE,... encoded as in URLs. Raises InputError."""
    headers = {"Content-Type": "application/json"}
    for part in filter(str.strip, os.environ.get(_HEADERS, "").split(",")):
        key, _, value = (unquote(piece.strip()) for piece in part.partition("="))
        keep_secret([value])
        if not re.fullmatch("[A-Za-z0-9_-]+", key) or not re.fullmatch("[ -~]+", value):
            raise InputError("headers must be NAME=VALUE,NAME=VALUE", _HEADERS)
        headers[key] = value
    return headers


class _AsItIs(urllib.request.HTTPErrorProcessor):
    """Does not follow redirects, since headers with keys must not be sent elsewhere, and does not
    raise on any status."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


def _answer(request: urllib.request.Request, events: int) -> tuple[int, str]:
    """Return how many of its events an endpoint rejected, with the reason; see OTLP's "OTLP/HTTP
    response"."""
    for wait in (0.5, 2.0, 0.0):  # seconds after each attempt
        try:
            with urllib.request.build_opener(_AsItIs).open(request, timeout=10) as response:
                text = response.read(1 << 20).decode("utf-8", "replace").strip()
            if response.status < 300:
                part = json.loads(text or "{}").get("partialSuccess") or {}
                return int(part.get("rejectedLogRecords", 0)), str(part.get("errorMessage", ""))
            why = f"HTTP {response.status} ({' '.join(text.split())[:200] or response.reason})"
            server_wait = retry_after({k.lower(): v for k, v in response.headers.items()}) or wait
            wait = max(wait, server_wait) if response.status in (429, 502, 503, 504) else inf
        except (OSError, HTTPException) as error:
            why = f"cannot be reached ({getattr(error, 'reason', error)})"
        except (ValueError, TypeError, AttributeError):
            return events, "its answer is not OTLP"
        if wait > 30:
            break
        time.sleep(wait)
    return events, why
