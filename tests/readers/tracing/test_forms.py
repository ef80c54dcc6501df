"""The forms of files: nested trees, OTLP/JSON, lines of spans; spellings of ids, times, states."""

from __future__ import annotations

import base64
import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers import read_runs
from agenteval.readers.spans import id_of, seconds
from agenteval.readers.traces import LARGEST, is_trace, read_traces
from tests.readers.tracing.samples import (
    FIRST,
    ROOT,
    SECOND,
    TRACE,
    nested,
    otlp,
    pairs,
    read,
    span,
)

STORY = span(
    ROOT,
    span(FIRST, span_name="find", status_code="Error", status_message="boom",
         span_attributes={"openinference.span.kind": "TOOL", "tool.name": "find",
                          "input.value": "{}", "output.value": "none", "depth": 3},
         events=[{"Timestamp": "2025-03-01T10:00:01Z", "Name": "exception",
                  "Attributes": {"exception.type": "KeyError", "exception.message": "boom",
                                 "exception.stacktrace": "Traceback ..."}}]),
    span(SECOND, span(FIRST[:-1] + "9")),
    span_name="main", status_code="Ok",
    span_attributes={"openinference.span.kind": "AGENT", "input.value": "Find it.",
                     "output.value": "Nothing found."},
)  # fmt: skip


def test_a_nested_tree(tmp_path: Path) -> None:
    result = read(tmp_path, nested(STORY))
    assert (result.warnings, result.skipped) == ([], [])
    (run,) = result.runs
    assert (run.id, run.system, run.input, run.output) == (TRACE, "shop", "Find it.",
                                                           "Nothing found.")  # fmt: skip
    assert run.metadata == {"resource": {"service.name": "shop"}}
    root, tool, plain, inner = run.spans
    assert (root.name, root.kind, root.status, root.parent_id) == ("main", "agent", "ok", None)
    # 2025-03-01 is day 20148 of the epoch
    assert root.start == 20148 * 86400 + 10 * 3600 + 0.25
    assert root.end == pytest.approx(root.start + 62.5)
    assert (tool.kind, tool.tool, tool.input, tool.output) == ("tool", "find", "{}", "none")
    assert (tool.status, tool.status_message, tool.parent_id) == ("error", "boom", ROOT)
    (event,) = tool.events
    assert (event.name, event.at) == ("exception", 20148 * 86400 + 36001.0)
    assert event.attributes == {
        "exception.type": "KeyError", "exception.message": "boom",
        "exception.stacktrace": "Traceback ...",
    }  # fmt: skip
    assert tool.attributes["depth"] == 3
    assert not {"input.value", "output.value", "tool.name"} & set(tool.attributes)
    assert (plain.kind, plain.input, plain.usage, plain.status) == ("chain", "", None, "unset")
    assert inner.parent_id == SECOND


def simple(run: Any) -> list[Any]:
    """What has to be the same in every form."""
    left = {"scope_name", "scope_version", "service_name"}
    return [
        s.model_dump() | {"attributes": {k: v for k, v in s.attributes.items() if k not in left}}
        for s in run.spans
    ]


def test_otlp_says_the_same(tmp_path: Path) -> None:
    expected = simple(read(tmp_path, nested(STORY)).runs[0])
    result = read(tmp_path, otlp(STORY))
    assert result.warnings == []
    assert simple(result.runs[0]) == expected
    assert result.runs[0].system == "shop"
    # one document per line, in one file and over several groups
    assert simple(read(tmp_path, [otlp(STORY)], "t.jsonl").runs[0]) == expected
    # children before parents, each in a document of its own, as exporters write
    document = otlp(STORY)
    group = document["resourceSpans"][0]
    spans = group["scopeSpans"][0]["spans"]
    lines = [
        {"resourceSpans": [{**group, "scopeSpans": [{"scope": {}, "spans": [one]}]}]}
        for one in reversed(spans)
    ]
    read_back = read(tmp_path, lines, "t.jsonl").runs[0]
    assert {s["id"]: s for s in simple(read_back)} == {s["id"]: s for s in expected}
    assert read_back.spans[0].id == ROOT
    # snake case and ids in base64, as protobuf's own JSON has them
    text = json.dumps(document)
    for old, new in (("resourceSpans", "resource_spans"), ("scopeSpans", "scope_spans"),
                     ("startTimeUnixNano", "start_time_unix_nano"), ("spanId", "span_id"),
                     ("stringValue", "string_value"), ("endTimeUnixNano", "end_time_unix_nano"),
                     ("timeUnixNano", "time_unix_nano"), ("traceId", "trace_id"),
                     ("parentSpanId", "parent_span_id"), ("intValue", "int_value")):  # fmt: skip
        text = text.replace(f'"{old}"', f'"{new}"')
    for number in (TRACE, ROOT, FIRST, SECOND, FIRST[:-1] + "9"):
        coded = base64.b64encode(bytes.fromhex(number)).decode()
        text = text.replace(f'"{number}"', f'"{coded}"')
    assert ROOT not in text
    assert simple(read(tmp_path, text).runs[0]) == expected


SDK = {
    "name": "main",
    "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{ROOT}", "trace_state": "[]"},
    "kind": "SpanKind.INTERNAL", "parent_id": None,
    "start_time": "2025-03-01T10:00:00.250000Z", "end_time": "2025-03-01T10:01:02.750000Z",
    "status": {"status_code": "ERROR", "description": "boom"},
    "attributes": {"openinference.span.kind": "AGENT", "n": 1},
    "events": [{"name": "exception", "timestamp": "2025-03-01T10:00:01Z",
                "attributes": {"exception.type": "E"}}],
    "links": [], "resource": {"attributes": {"service.name": "shop"}, "schema_url": ""},
}  # fmt: skip
TABLE = {
    "name": "main", "span_kind": "AGENT", "parent_id": None,
    "start_time": "2025-03-01T10:00:00.250000+00:00",
    "end_time": "2025-03-01T10:01:02.750000+00:00", "status_code": "ERROR",
    "status_message": "boom",
    "events": '[{"name": "exception", "timestamp": "2025-03-01T10:00:01Z",'
              ' "attributes": {"exception.type": "E"}}]',
    "context.span_id": ROOT, "context.trace_id": TRACE, "attributes.n": 1,
    "attributes.none": None,
}  # fmt: skip
CAMEL = {
    "traceId": TRACE, "spanId": ROOT, "parentSpanId": "", "operationName": "main",
    "startTime": 1740823200250, "endTime": 1740823262750, "status": "error",
    "statusMessage": "boom", "attributes": pairs({"openinference.span.kind": "AGENT", "n": 1}),
    "events": [{"name": "exception", "timestamp": 1740823201000,
                "attributes": pairs({"exception.type": "E"})}],
}  # fmt: skip


@pytest.mark.parametrize("row", [SDK, TABLE, CAMEL], ids=["sdk", "table", "camel"])
def test_lines_of_spans(tmp_path: Path, row: dict[str, Any]) -> None:
    result = read(tmp_path, [row], "t.jsonl")
    assert result.warnings == []
    (run,) = result.runs
    (one,) = run.spans
    assert (run.id, one.id, one.parent_id, one.name) == (TRACE, ROOT, None, "main")
    assert (one.kind, one.status, one.status_message) == ("agent", "error", "boom")
    assert (one.start, one.end) == (1740823200.25, 1740823262.75)
    assert [(e.name, e.at, e.attributes) for e in one.events] == [
        ("exception", 1740823201.0, {"exception.type": "E"})
    ]
    assert one.attributes == {"n": 1}


def test_several_traces_in_one_file(tmp_path: Path) -> None:
    rows = [
        {"trace_id": f"{i % 3 + 1:032x}", "span_id": f"{i + 1:016x}", "name": str(i),
         "parent_id": f"{i - 2:016x}" if i > 2 else None, "attributes": {}}
        for i in range(9)
    ]  # fmt: skip
    result = read(tmp_path, rows, "t.jsonl")
    assert [run.id for run in result.runs] == [f"{i:032x}" for i in (1, 2, 3)]
    assert [[s.name for s in run.spans] for run in result.runs] == [
        ["0", "3", "6"], ["1", "4", "7"], ["2", "5", "8"],
    ]  # fmt: skip
    again = read(tmp_path, json.dumps(rows))  # the same as one array
    assert [run.spans for run in again.runs] == [run.spans for run in result.runs]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("AbCdEf0123456789", "abcdef0123456789"), ("0x00000000000000A1", "00000000000000a1"),
        ("AAAAAAAAAKE=", "00000000000000a1"), ("my-span", "my-span"), (17, "17"),
        ("b2f5ff47-4363-4bb5-8dd7-e2b5a4d4a4a4", "b2f5ff47-4363-4bb5-8dd7-e2b5a4d4a4a4"),
        ("0000000000000000", None), ("AAAAAAAAAAA=", None), ("", None), (None, None), (0, "0"),
        (True, None), ("a\nb", "a\\nb"),
    ],
)  # fmt: skip
def test_ids(given: Any, expected: str | None) -> None:
    assert id_of(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1740823200, 1740823200.0), (1740823200.5, 1740823200.5),
        (1740823200500, 1740823200.5), (1740823200500000, 1740823200.5),
        (1740823200500000000, 1740823200.5), ("1740823200500000000", 1740823200.5),
        ("2025-03-01T10:00:00Z", 1740823200.0), ("2025-03-01 10:00:00", 1740823200.0),
        ("2025-03-01T12:00:00.5+02:00", 1740823200.5),
        ("2025-03-01T10:00:00.123456789Z", 1740823200.123456),
        (0, None), (-5, None), ("", None), ("yesterday", None), (None, None), (True, None),
        ([], None), (float("inf"), None),
    ],
)  # fmt: skip
def test_times(given: Any, expected: float | None) -> None:
    assert seconds(given) == expected


def test_no_time_is_invented(tmp_path: Path) -> None:
    one = span(ROOT, timestamp=None)
    two = span(FIRST, duration=5, start_time_unix_nano="2000000000", timestamp=None)
    first, second = read(tmp_path, nested(one, two)).runs[0].spans
    assert (first.start, first.end) == (None, None)
    assert (second.start, second.end) == (2.0, None)  # a bare number of a duration has no unit


def test_read_runs_recognises_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.json").write_text(json.dumps(nested(STORY)))
    (tmp_path / "b.json").write_text(json.dumps({"output": "a run", "id": "plain"}))
    late = {"resource": {"x": "y" * 70_000}, "scopeSpans": [
        {"spans": [{"traceId": "9" * 32, "spanId": ROOT, "name": "late"}]}]}  # fmt: skip
    (tmp_path / "c.json").write_text(json.dumps({"about": late["resource"], **late}))
    (tmp_path / "d.json").write_text('{"note": 1}')
    result = read_runs(tmp_path, task="shopping")
    assert [(run.id, run.task, len(run.spans)) for run in result.runs] == [
        (TRACE, "shopping", 4), ("plain", "shopping", 0), ("9" * 32, "shopping", 1),
    ]  # fmt: skip
    assert result.runs[0].spans == read_traces(tmp_path / "a.json").runs[0].spans
    only = read_traces(tmp_path)
    assert [run.id for run in only.runs] == [TRACE, "9" * 32]
    assert [Path(s.path).name for s in only.skipped] == ["b.json", "d.json"]
    stream = TextIOWrapper(BytesIO((tmp_path / "a.json").read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert read_runs("-").runs[0].spans == result.runs[0].spans


def test_own_runs_with_spans_are_no_foreign_traces(tmp_path: Path) -> None:
    run = read(tmp_path, nested(STORY)).runs[0]
    (tmp_path / "own.jsonl").write_text(run.model_dump_json() + "\n")
    (back,) = read_runs(tmp_path / "own.jsonl").runs
    assert back.spans == run.spans
    assert back.messages == run.messages
    assert not is_trace(json.loads(run.model_dump_json()))
    assert not is_trace({"trace_id": "x", "messages": [{"role": "user", "content": "hi"}]})
    assert not is_trace([{"role": "user", "content": "hi", "span_name": "x"}])


@pytest.mark.parametrize("value", [{"a": 1}, [], [1], "text", 3, None, {"spans": 3}, {"spans": []}])
def test_not_a_trace(tmp_path: Path, value: Any) -> None:
    with pytest.raises(InputError, match=r"t\.json.*`spans` or `resourceSpans`"):
        read(tmp_path, json.dumps(value))


def test_lists_of_spans_under_names(tmp_path: Path) -> None:
    def row(number: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
        context = {"span_id": number, **more}
        return {"name": number, "context": context, "parent_id": parent, "start_time": 1.7e9}

    projects = {"shop": [row("a", trace_id=TRACE), row("b", "a", trace_id=TRACE)], "none": [],
                "bank": [row("c")]}  # fmt: skip
    shop, bank = read(tmp_path, projects).runs
    assert (shop.id, [s.id for s in shop.spans]) == (TRACE, ["a", "b"])
    assert (bank.id, [s.id for s in bank.spans]) == ("bank", ["c"])
    assert [r.id for r in read_runs(tmp_path / "t.json").runs] == [TRACE, "bank"]


def test_a_folder_goes_on_and_says_of_each_file_why_not(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(nested(STORY)))
    (tmp_path / "b.json").write_text('{"observations": [], "scores": 3}')
    (tmp_path / "c.json").write_text('{"spans": [{"span_id"')
    (tmp_path / "d.json").write_text('[{"hello": 1}]')
    result = read_traces(tmp_path)
    assert [run.id for run in result.runs] == [TRACE]
    b, c, d = (skipped.reason for skipped in result.skipped)
    assert b.startswith("no spans but an object with the keys 'observations', 'scores'; a trace is")
    assert "broken JSON" in c
    assert d.startswith("no spans but an array, first an object with the keys 'hello'; a trace is")


@pytest.mark.slow
def test_a_trace_above_64_megabytes_is_read_whole_and_one_above_the_bound_refused(
    tmp_path: Path,
) -> None:
    path, long = tmp_path / "t.json", "word " * (14 << 20)
    path.write_text(json.dumps(nested(span(ROOT, span_attributes={"input.value": long}))))
    assert read_traces(path).runs[0].spans[0].input == long
    with path.open("r+b") as file:
        file.truncate(LARGEST + 10)
    with pytest.raises(InputError, match="larger than 268,435,456 bytes"):
        read_traces(path)


def test_one_id_in_two_files(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(nested(STORY)))
    for reader in (read_traces, read_runs):
        with pytest.raises(InputError, match="already used"):
            reader(tmp_path)
