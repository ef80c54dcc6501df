"""The forms of files: nested trees, OTLP/JSON, lines of spans; spellings of ids, times, states."""

from __future__ import annotations

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
from tests.readers.tracing.samples import FIRST, ROOT, SECOND, TRACE, nested, read, span

STORY = span(
    ROOT,
    span(
        FIRST,
        span_name="find",
        status_code="Error",
        status_message="boom",
        span_attributes={
            "openinference.span.kind": "TOOL",
            "tool.name": "find",
            "input.value": "{}",
            "output.value": "none",
            "depth": 3,
        },
        events=[
            {
                "Timestamp": "2025-03-01T10:00:01Z",
                "Name": "exception",
                "Attributes": {
                    "exception.type": "KeyError",
                    "exception.message": "boom",
                    "exception.stacktrace": "Traceback ...",
                },
            }
        ],
    ),
    span(SECOND, span(FIRST[:-1] + "9")),
    span_name="main",
    status_code="Ok",
    span_attributes={
        "openinference.span.kind": "AGENT",
        "input.value": "Find it.",
        "output.value": "Nothing found.",
    },
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("AbCdEf0123456789", "abcdef0123456789"),
        ("0x00000000000000A1", "00000000000000a1"),
        ("AAAAAAAAAKE=", "00000000000000a1"),
        ("my-span", "my-span"),
        (17, "17"),
        ("0000000000000000", None),
        ("", None),
        (None, None),
        (0, "0"),
        (True, None),
        ("a\nb", "a\\nb"),
    ],
)
def test_ids(given: Any, expected: str | None) -> None:
    assert id_of(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1740823200, 1740823200.0),
        (1740823200500, 1740823200.5),
        (1740823200500000, 1740823200.5),
        (1740823200500000000, 1740823200.5),
        ("1740823200500000000", 1740823200.5),
        ("2025-03-01T10:00:00Z", 1740823200.0),
        ("2025-03-01T12:00:00.5+02:00", 1740823200.5),
        ("2025-03-01T10:00:00.123456789Z", 1740823200.123456),
        (0, None),
        (-5, None),
        ("", None),
        (None, None),
        (True, None),
        ([], None),
        (float("inf"), None),
    ],
)
def test_times(given: Any, expected: float | None) -> None:
    assert seconds(given) == expected


def test_read_runs_recognises_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.json").write_text(json.dumps(nested(STORY)))
    (tmp_path / "b.json").write_text(json.dumps({"output": "a run", "id": "plain"}))
    late = {
        "resource": {"x": "y" * 70_000},
        "scopeSpans": [{"spans": [{"traceId": "9" * 32, "spanId": ROOT, "name": "late"}]}],
    }
    (tmp_path / "c.json").write_text(json.dumps({"about": late["resource"], **late}))
    (tmp_path / "d.json").write_text('{"note": 1}')
    result = read_runs(tmp_path, task="shopping")
    assert [(run.id, run.task, len(run.spans)) for run in result.runs] == [
        (TRACE, "shopping", 4),
        ("plain", "shopping", 0),
        ("9" * 32, "shopping", 1),
    ]
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
