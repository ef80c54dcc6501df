"""Stored results as events: one for each cell, to a collector on the loopback or a file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import agenteval
from agenteval import Criterion, Run
from agenteval.errors import InputError, ModelError
from tests.support.collector import Answer, collecting, events_of

LEVELS = ("poor", "fair", "good")
CLARITY, ACCURACY, TONE = (
    Criterion(name=name, accepted_values=LEVELS) for name in ("Clarity", "Accuracy", "Tone")
)
TRACE, ROOT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SCORE = "gen_ai.evaluation.score"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("AGENTEVAL_STORE", "OTEL_EXPORTER_OTLP_HEADERS", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were waited between attempts, without waiting."""
    waited: list[float] = []
    clock = SimpleNamespace(sleep=waited.append, time_ns=time.time_ns)
    monkeypatch.setattr("agenteval.app.telemetry.time", clock)
    return waited


def stored(texts: list[str], judge: Any = lambda run, criterion: ("good", "so it is")) -> Any:
    runs = [
        Run(id=f"r{i}", task="sums", system="bot", input=f"{i}?", output=text)
        for i, text in enumerate(texts)
    ]
    return agenteval.quantify(runs, [CLARITY], judge=judge, version="1")


@pytest.fixture(scope="module")
def nine_hundred(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """300 runs on three criteria, of which the first 33 have no score: 99 of 900 results."""

    def judge(run: Run, criterion: Criterion) -> Any:
        number = int(run.input[:-1])
        return None if number < 33 else (LEVELS[number % 3], f"because {number}")

    runs = [
        Run(id=f"r{i}", task="sums", system="bot", input=f"{i}?", output=f"answer {i}")
        for i in range(300)
    ]
    store = tmp_path_factory.mktemp("stored") / "agenteval.db"
    criteria = [CLARITY, ACCURACY, TONE]
    return agenteval.quantify(runs, criteria, judge=judge, version="1", store=store)


def in_file(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="ascii").splitlines()
    return [event for line in lines for event in events_of(json.loads(line))]


def test_one_event_for_each_result_and_no_score_for_a_failure(nine_hundred: Any) -> None:
    before = time.time_ns()
    with collecting() as collector:
        report = agenteval.export(collector.url, nine_hundred.store, otlp=True)
    assert report.title == f"900 results sent as events to {collector.url}/v1/logs"
    assert {path for path, _ in collector.requests} == {"/v1/logs"}
    assert {headers["Content-Type"] for _, headers in collector.requests} == {"application/json"}
    events = collector.events
    cells = {
        (e["attributes"]["agenteval.run.id"], e["attributes"]["gen_ai.evaluation.name"])
        for e in events
    }
    assert cells == {(f"r{i}", c) for i in range(300) for c in ("clarity", "accuracy", "tone")}
    failed = [e for e in events if "error.type" in e["attributes"]]
    scored = [e for e in events if f"{SCORE}.value" in e["attributes"]]
    assert (len(failed), len(scored), len(events)) == (99, 801, 900)
    for event in failed:
        assert event["attributes"]["error.type"] == "unscored:missing"
        assert not any(name.startswith(SCORE) for name in event["attributes"])
        assert int(event["attributes"]["agenteval.run.id"][1:]) < 33
        assert event["severityNumber"] == 13
    for event in scored:
        number = int(event["attributes"]["agenteval.run.id"][1:])
        assert event["attributes"][f"{SCORE}.value"] == number % 3 / 2
        assert event["attributes"][f"{SCORE}.label"] == LEVELS[number % 3]
        assert event["attributes"]["gen_ai.evaluation.explanation"] == f"because {number}"
        assert event["severityNumber"] == 9
    for event in events:
        assert event["eventName"] == "gen_ai.evaluation.result"
        assert before <= int(event["observedTimeUnixNano"]) <= time.time_ns()
        assert "timeUnixNano" not in event
        assert "traceId" not in event
        said = event["attributes"]
        assert said["gen_ai.evaluation.evaluator.version"] == nine_hundred.source.sha256
        assert (said["agenteval.repeat"], said["agenteval.task"]) == (0, "sums")
        assert said["agenteval.system"] == "bot"
        assert len(said["agenteval.case.key"]) == 64


def test_texts_are_harmless_and_keys_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "tell-nobody-4711")
    words = "\x1b[2J \u202egnp.exe \ud800 tell-nobody-4711 sk-proj-1234567890abcdef"
    stored(["a"], lambda run, criterion: ("good", words))
    agenteval.export("events.jsonl", otlp=True)
    (event,) = in_file(Path("events.jsonl"))
    said = event["attributes"]["gen_ai.evaluation.explanation"]
    assert said.startswith("[U+001B][2J [U+202E]gnp.exe ")
    assert said.isprintable()
    assert said.endswith(" [hidden] [hidden]")
    Path("events.jsonl").read_text("ascii")


def trace_file() -> None:
    def span(number: str, parent: str | None, **attributes: str) -> dict[str, Any]:
        pairs = [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()]
        return {
            "traceId": TRACE,
            "spanId": number,
            "parentSpanId": parent or "",
            "name": "step",
            "startTimeUnixNano": "1700000000000000000",
            "endTimeUnixNano": "1700000001000000000",
            "attributes": pairs,
        }

    spans = [
        span(
            ROOT,
            None,
            **{"openinference.span.kind": "AGENT", "input.value": "2 + 2?", "output.value": "4"},
        ),
        span(
            "00f067aa0ba902b7",
            ROOT,
            **{"gen_ai.operation.name": "chat", "gen_ai.response.id": "chatcmpl-1"},
        ),
        span(
            "00f067aa0ba902b8",
            ROOT,
            **{"gen_ai.operation.name": "chat", "gen_ai.response.id": "chatcmpl-2"},
        ),
    ]
    document = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    Path("traces.json").write_text(json.dumps(document))


def test_events_belong_to_the_root_span_of_a_trace_that_is_given() -> None:
    trace_file()
    agenteval.quantify("traces.json", [CLARITY], judge=lambda run, criterion: "good", version="1")
    stored(["of no trace"])
    named = {"judge": lambda run, criterion: "good", "version": "2", "system": "bot"}
    agenteval.quantify("traces.json", [CLARITY], **named)
    agenteval.export("events.jsonl", otlp=True, traces="traces.json")
    events = {e["attributes"]["agenteval.run.id"]: e for e in in_file(Path("events.jsonl"))}
    assert set(events) == {TRACE, f"bot/{TRACE}", "r0"}
    for run in (TRACE, f"bot/{TRACE}"):
        assert (events[run]["traceId"], events[run]["spanId"]) == (TRACE, ROOT)
        assert events[run]["attributes"]["gen_ai.response.id"] == "chatcmpl-2"
    assert not {"traceId", "spanId"} & set(events["r0"])
    agenteval.export("plain.jsonl", otlp=True)
    assert not any("traceId" in event for event in in_file(Path("plain.jsonl")))
    Path("traces.json").write_text(Path("traces.json").read_text().replace(TRACE, "my-trace"))
    with pytest.raises(InputError, match=r"traces\.json: "):
        agenteval.export("events.jsonl", otlp=True, traces="traces.json")


@pytest.mark.parametrize(
    ("answers", "taken", "said"),
    [
        ([(401, '{"message": "no such key"}', {})], 0, r'HTTP 401 \({"message": "no such key"}\)'),
        ([(200, "{}", {}), (400, "", {})], 200, r"HTTP 400 \(Bad Request\)"),
        ([(503, "", {})] * 3, 0, r"HTTP 503 \(Service Unavailable\)"),
        ([(429, "", {"Retry-After": "3600"})], 0, r"HTTP 429 \(Too Many Requests\)"),
        ([(200, "<html>log in", {})], 0, "is not OTLP"),
        ([(500, "half", {"Content-Length": "99"})], 0, r"HTTP 500 \(half\)"),
        (
            [(200, '{"partialSuccess": {"rejectedLogRecords": "7", "errorMessage": "old"}}', {})],
            893,
            "old",
        ),
    ],
)
def test_an_endpoint_that_refuses_says_how_much_it_took(
    answers: list[Answer], taken: int, said: str, pauses: list[float], nine_hundred: Any
) -> None:
    with collecting(answers) as collector, pytest.raises(ModelError, match=said) as refused:
        agenteval.export(collector.url, nine_hundred.store, otlp=True)
    assert not collector.answers
    assert f"; {taken} of 900 events were sent; " in str(refused.value)
    assert "agenteval export --otlp events.jsonl" in str(refused.value)
    assert refused.value.exit_code == 3


def test_an_endpoint_that_is_away(pauses: list[float]) -> None:
    stored(["a"])
    with collecting() as collector:
        pass
    with pytest.raises(ModelError, match=r"cannot be reached .*; 0 of 1 events were sent"):
        agenteval.export(collector.url, otlp=True)
    assert pauses == [0.5, 2.0, 0.0]


def test_headers_are_those_of_the_sdk_and_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    stored(["a"])
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20YWdlbnRldmFs,x-team=a")
    with collecting([(403, "you said Basic YWdlbnRldmFs", {})]) as collector:
        with pytest.raises(ModelError, match=r"HTTP 403 \(you said \[hidden\]\)"):
            agenteval.export(f"{collector.url}/otel/v1/logs", otlp=True)
        ((path, headers),) = collector.requests
        assert path == "/otel/v1/logs"
        assert (headers["Authorization"], headers["X-Team"]) == ("Basic YWdlbnRldmFs", "a")
    for wrong in ("Authorization", "a b=c", "a=b%0Ac"):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", wrong)
        with pytest.raises(InputError, match="OTEL_EXPORTER_OTLP_HEADERS: "):
            agenteval.export(collector.url, otlp=True)
