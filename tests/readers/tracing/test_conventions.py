"""What is read of the conventions of other tools: spans by hand after each published schema.

Expected values are by hand: the model calls of a trace are the innermost ones, and its tokens are
the sum over these.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agenteval.readers.assignment import assignment
from agenteval.readers.runs import read_runs
from agenteval.readers.traces import read_traces
from agenteval.records import Run
from agenteval.traces.api import detect, locate
from agenteval.traces.findings_api import findings_report
from agenteval.traces.outline import outline
from agenteval.traces.score_api import score_findings

LINES = (Path(__file__).parent / "conventions.jsonl").read_text().splitlines()
CASES = {case["convention"]: case for case in map(json.loads, LINES)}


def read(path: Path, spans: list[dict[str, Any]]) -> Run:
    path.write_text("".join(json.dumps(span) + "\n" for span in spans))
    (run,) = read_traces(path).runs
    return run


@pytest.mark.parametrize("name", CASES)
def test_read_as_its_own_viewer_shows_it(tmp_path: Path, name: str) -> None:
    expect = CASES[name]["expect"]
    rows = CASES[name].get("spans") or [CASES[name]["document"]]
    run = read(tmp_path / "t.jsonl", rows)
    assigned, shown = assignment(run), outline(run)
    assert (assigned.task.text, assigned.ending.text) == (expect["task"], expect["ending"])
    assert Counter(span.kind for span in run.spans) == expect["kinds"]
    assert (shown.tokens, shown.cost) == (expect["tokens"], expect.get("cost"))
    assert [span.model for span in run.spans if span.kind == "llm"] == expect["models"]
    tools = [(s.tool, json.loads(s.input), s.output) for s in run.spans if s.kind == "tool"]
    assert tools == [tuple(tool) for tool in expect["tools"]]
    (as_run,) = read_runs(tmp_path / "t.jsonl").runs
    assert (as_run.input, as_run.output) == (expect["task"], expect["ending"])
    assert shown.errors == expect.get("errors", 0)
    if "system" in expect:
        assert run.system == expect["system"]
    if expect["tools"] and name != "jaeger":
        calls = [c for s in run.spans if s.kind == "llm" for m in s.reply for c in m.tool_calls]
        silent = name.startswith(("monocle", "pydantic", "google"))  # without calls in these spans
        asked = [] if silent else [(tool[0], tool[1]) for tool in expect["tools"]]
        assert [(call.name, call.arguments) for call in calls] == asked


def spans_of(*rows: tuple[str, str | None, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"trace_id": "t", "span_id": id, "parent_id": parent, "name": id, "attributes": attributes}
        for id, parent, attributes in rows
    ]


@pytest.mark.parametrize("usage", [-5, "many", "-5", 1.5])
def test_usage_that_is_no_count_is_noted_and_not_summed(tmp_path: Path, usage: Any) -> None:
    of_model = {"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": 3}
    rows = spans_of(("m", None, {**of_model, "gen_ai.usage.input_tokens": usage}))
    path = tmp_path / "t.jsonl"
    run = read(path, rows)
    assert outline(run).tokens == 3
    assert any("gen_ai.usage.input_tokens" in line for line in read_traces(path).warnings)


def test_a_negative_cost_is_not_counted(tmp_path: Path) -> None:
    rows = spans_of(("m", None, {"gen_ai.operation.name": "chat", "operation.cost": -1}))
    assert outline(read(tmp_path / "t.jsonl", rows)).cost is None


def test_a_clean_trace_of_a_version_that_did_not_check_is_examined_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, store = tmp_path / "t.jsonl", tmp_path / "s.db"
    read(path, spans_of(("1", None, {"acme.kind": "llm"})))
    with monkeypatch.context() as before:
        before.setattr("agenteval.traces.evaluator.why_not_understood", lambda run: "")
        before.setattr("agenteval.traces.outline._NOT_UNDERSTOOD", b"")
        assert not locate(path, detectors_only=True, store=store).failures
    (failure,) = locate(path, detectors_only=True, store=store).failures
    assert failure.status == "unscored:unsupported"


def test_a_trace_in_unknown_words_is_a_failure(tmp_path: Path) -> None:
    unknown = [(str(i), None, {"acme.kind": "llm", "acme.text": "x"}) for i in range(3)]
    path = tmp_path / "t.jsonl"
    read(path, spans_of(*unknown))
    report = detect(path)
    (findings,) = report.failures
    assert findings.status == "unscored:unsupported"
    for part in ("3 spans, 3 of", "acme.kind, acme.text"):
        assert part in findings.message
    assert any("acme.kind" in note for note in report.notes)
    stored = locate(path, detectors_only=True, store=tmp_path / "s.db")
    assert stored.failures == report.failures
    assert stored.exit_code == 3
    (row,) = findings_report(store=tmp_path / "s.db").tables[0].rows
    assert (row["examined"], row["failed"], row["clean"]) == (0, 1, 0)
    (file,) = stored.write(tmp_path / "found")
    gold = tmp_path / "gold" / file.name
    gold.parent.mkdir()
    gold.write_text('{"errors": []}')
    scored = score_findings(gold.parent, file.parent)
    assert scored.result.scores.coverage.answered == 0
