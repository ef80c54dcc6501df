"""Sheets that people fill in: what is written is read back, and mistakes are told by their line."""

from __future__ import annotations

import json

import pytest
import yaml

from agenteval.errors import InputError
from agenteval.evaluators.traces.outline import outline
from agenteval.evaluators.traces.taxonomy import built_in
from agenteval.evaluators.traces.worksheet import read_worksheet, worksheet, worksheet_json
from agenteval.records import Finding, Findings, Grade, Run, Span

LABELS = built_in()
# ids that YAML would take for a number in octal, a float, and a date
IDS = ("0123456712345670", "12345678901234e1", "2025-03-01")
RUN = Run(id="t1", spans=tuple(
    Span(id=i, parent_id=IDS[0] if n else None, kind="llm", name="call: #1\n- x: y",
         output="what\u2028now\x07") for n, i in enumerate(IDS)
))  # fmt: skip
FILLED = """\
trace_id: t1
errors:
- category: formatting errors
  location: 0123456712345670
  evidence: 'now'
  impact: low
- category: Goal Deviation
  location: 12345678901234e1
scores:
- reliability_score: 4
  reliability_reasoning: did well
  overall: 3.5
"""


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


def test_an_untouched_sheet_says_nothing() -> None:
    for text in (worksheet(outline(RUN), LABELS), worksheet_json(outline(RUN))):
        filled = read_worksheet(text, "f", LABELS, IDS)
        assert filled.trace == "t1"
        assert filled.findings is None
        assert filled.problems == ()


def test_an_empty_list_says_that_there_is_no_error() -> None:
    text = worksheet(outline(RUN), LABELS).replace("errors: null", "errors: []")
    filled = read_worksheet(text, "f", LABELS, IDS)
    assert filled.findings == Findings(trace="t1")


def test_the_sheet_shows_spans_and_kinds_as_comments_only() -> None:
    text = worksheet(outline(RUN), LABELS)
    assert set(yaml.safe_load(text)) == {"trace_id", "errors", "scores"}
    comments = [line for line in text.splitlines() if line.startswith("#")]
    for part in (*IDS, *(leaf.name for leaf in LABELS.assigned)):
        assert any(part in line for line in comments)
    assert "\x07" not in text
    assert "\u2028" not in text


def test_ids_stay_text() -> None:
    filled = read_worksheet(FILLED, "f", LABELS, IDS)
    assert filled.problems == ()
    assert filled.findings is not None
    first, second = filled.findings.findings
    assert (first.span, first.category, first.impact) == (IDS[0], "Formatting Errors", "LOW")
    assert (second.span, second.category) == (IDS[1], "Goal Deviation")
    assert filled.findings.grades["reliability"] == Grade(value=4, reason="did well")
    assert filled.findings.grades["overall"].value == 3.5


def test_findings_to_begin_with_come_back() -> None:
    start = Findings(
        trace="t1",
        findings=(Finding(span=IDS[1], category="Resource Abuse", evidence='say "x": #no',
                          description="twice\nor more", impact="HIGH", confidence=0.5),),
        grades={"security": Grade(value=5, reason="safe")},
    )  # fmt: skip
    back = read_worksheet(worksheet(outline(RUN), LABELS, start), "f", LABELS, IDS).findings
    assert back is not None
    assert back.findings[0].model_dump(exclude={"confidence"}) == start.findings[0].model_dump(
        exclude={"confidence"}
    )
    assert back.grades["security"] == start.grades["security"]
    again = read_worksheet(worksheet_json(outline(RUN), start), "f", LABELS, IDS).findings
    assert again == back


@pytest.mark.parametrize(
    ("wrong", "right", "says"),
    [
        ("formating erors", "formatting errors", "unknown category 'formating erors'"),
        ("location: 12345678901234e2", "location: 12345678901234e1", "no span"),
        ("impact: lowest", "impact: low", "impact 'lowest' is not HIGH, MEDIUM or LOW"),
        ("reliability_score: 6", "reliability_score: 4", "is not a number from 1 to 5"),
        ("reliability_score: .nan", "reliability_score: 4", "is not a number from 1 to 5"),
        ("evidenc: 'now'", "evidence: 'now'", "unknown key 'evidenc'"),
        ("evidence: [a, b]", "evidence: 'now'", "evidence is a text"),
        ("location:  # later", "location: 12345678901234e1", "no location"),
    ],
)
def test_mistakes_are_told_with_their_line(wrong: str, right: str, says: str) -> None:
    text = FILLED.replace(right, wrong)
    assert text != FILLED
    filled = read_worksheet(text, "mine.yaml", LABELS, IDS)
    assert filled.findings is None
    assert len(filled.problems) == 1
    assert filled.problems[0].startswith(f"mine.yaml:{line_of(text, wrong)}: ")
    assert says in filled.problems[0]


def test_all_mistakes_are_told_at_once() -> None:
    text = FILLED.replace("Goal Deviation", "Bad").replace("impact: low", "impact: none at all")
    assert len(read_worksheet(text, "f", LABELS, IDS).problems) == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("trace_id: t1\nerrors: [", "f:2"),
        ("{" * 5000, "not valid|nested"),
        ("- just\n- a list", "has the keys"),
        ("", "has the keys"),
        ("a: &x [1, 2]\nb: *x", "f:2: .*aliases are not read"),
        ("- x\n" * 20_000, "f:20000: .*more than 20,000 values in a sheet"),
    ],
)
def test_what_is_no_sheet_is_one_line(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_worksheet(text, "f", LABELS, IDS)


def test_json_sheets_have_lines_too() -> None:
    value = {"trace_id": "t1", "errors": [{"category": "Nonsense", "location": IDS[0]}]}
    text = json.dumps(value, indent=1)
    (problem,) = read_worksheet(text, "f.json", LABELS, IDS).problems
    assert problem.startswith(f"f.json:{line_of(text, 'Nonsense')}: unknown category")
