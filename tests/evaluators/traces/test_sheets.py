"""Sheets that people fill in: what is written is read back, and every mistake is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.evaluators.traces.annotation_files import FilledSheet, read_sheet, sheet
from agenteval.evaluators.traces.outline import outline
from agenteval.evaluators.traces.taxonomy import built_in
from agenteval.records import Finding, Findings, Grade, Run, Span

LABELS = built_in()
IDS = ("0123456712345670", "12345678901234e1")
RUN = Run(id="t1", spans=tuple(
    Span(id=i, parent_id=IDS[0] if n else None, kind="llm", name="call: #1\n- x: y",
         output="what\u2028now\x07") for n, i in enumerate(IDS)
))  # fmt: skip
FILLED: dict[str, Any] = {
    "trace_id": "t1",
    "errors": [
        {"category": "formatting errors", "location": IDS[0], "evidence": "now", "impact": "low"},
        {"category": "Goal Deviation", "location": IDS[1]},
    ],
    "scores": [{"reliability_score": 4, "reliability_reasoning": "did well", "overall": 3.5,
                "security_score": None}],
}  # fmt: skip


@pytest.fixture
def read(tmp_path: Path) -> Callable[[object], FilledSheet]:
    def of(value: object) -> FilledSheet:
        path = tmp_path / "mine.json"
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return read_sheet(path, LABELS, {"t1": IDS})

    return of


Read = Callable[[object], FilledSheet]


def test_an_untouched_sheet_says_nothing(read: Read) -> None:
    assert read(sheet(outline(RUN), LABELS)) == FilledSheet("t1", None)


def test_an_empty_list_says_that_there_is_no_error(read: Read) -> None:
    text = sheet(outline(RUN), LABELS).replace('"errors": null', '"errors": []')
    assert read(text).findings == Findings(trace="t1")


def test_the_sheet_shows_spans_and_kinds() -> None:
    text = sheet(outline(RUN), LABELS)
    value = json.loads(text)
    assert [line.split()[0] for line in value["spans"] if "  llm  " in line] == list(IDS)
    assert [line.split(":")[0] for line in value["kinds"]] == [x.name for x in LABELS.assigned]
    assert "for Resource Abuse the last" in " ".join(value["how"])
    assert "\x07" not in text
    assert "\u2028" not in text


def test_what_was_filled_in(read: Read) -> None:
    filled = read(FILLED)
    assert filled.problems == ()
    assert filled.findings is not None
    first, second = filled.findings.findings
    assert (first.span, first.category, first.impact) == (IDS[0], "Formatting Errors", "LOW")
    assert (second.span, second.category) == (IDS[1], "Goal Deviation")
    assert filled.findings.grades == {
        "reliability": Grade(value=4, reason="did well"), "overall": Grade(value=3.5),
    }  # fmt: skip


def test_findings_to_begin_with_come_back(read: Read) -> None:
    start = Findings(
        trace="t1",
        findings=(Finding(span=IDS[1], category="Resource Abuse", evidence='say "x": #no',
                          description="twice\nor more", impact="HIGH", confidence=0.5),),
        grades={"security": Grade(value=5, reason="safe")},
    )  # fmt: skip
    back = read(sheet(outline(RUN), LABELS, start)).findings
    assert back is not None
    assert back.findings[0].model_dump(exclude={"confidence"}) == start.findings[0].model_dump(
        exclude={"confidence"}
    )
    assert back.grades["security"] == start.grades["security"]


@pytest.mark.parametrize(
    ("place", "wrong", "says"),
    [
        (("errors", 0, "category"), "formating erors",
         "error 1: unknown category 'formating erors'; meant is perhaps 'Formatting Errors'"),
        (("errors", 1, "category"), None, "error 2: no category"),
        (("errors", 1, "location"), "12345678901234e2", "error 2: the trace has no span"),
        (("errors", 1, "location"), "", "error 2: no location"),
        (("errors", 0, "impact"), "lowest", "error 1: impact 'LOWEST' is not HIGH, MEDIUM or LOW"),
        (("errors", 0, "why"), "now", "error 1: unknown key 'why'"),
        (("errors", 0, "evidenc"), "now", "error 1: unknown key 'evidenc'"),
        (("errors", 0), "late", "error 1 is no object"),
        (("errors",), "none", "no list of errors"),
        (("scores", 0, "reliability_score"), 6, "reliability_score: 6 is not within 0 and 5"),
        (("scores", 0, "reliability_score"), 0, "reliability: 0 is below 1"),
        (("scores", 0, "overall"), "good", "overall: 'good' is no number"),
        (("scores", 0, "reliabilty_score"), 3, "scores: unknown key 'reliabilty_score'"),
        (("trace_id",), "t2", "trace 't2' is not among the traces given"),
        (("trace_id",), None, "no trace_id"),
        (("error",), [], "unknown key 'error'"),
    ],
)  # fmt: skip
def test_every_mistake_is_told(
    read: Read, place: tuple[str | int, ...], wrong: object, says: str
) -> None:
    value = json.loads(json.dumps(FILLED))
    node = value
    for step in place[:-1]:
        node = node[step]
    node[place[-1]] = wrong
    filled = read(value)
    assert filled.findings is None
    assert len(filled.problems) == 1
    assert says in filled.problems[0]
    assert "mine.json: " in filled.problems[0]


def test_all_mistakes_are_told_at_once(read: Read) -> None:
    text = json.dumps(FILLED).replace("Goal Deviation", "Bad").replace('"low"', '"none at all"')
    assert len(read(text).problems) == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"trace_id": "t1",\n"errors": [', "mine.json:2"),
        ("[" * 5000, "mine.json"),
        ('["just", "a list"]', "a sheet is an object with the keys trace_id, errors, scores"),
        ("", "mine.json"),
        ('{"trace_id": "t1", "errors": [], "errors": null}', "mine.json.*'errors'"),
    ],
)
def test_what_is_no_sheet_is_one_line(read: Read, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(text)
