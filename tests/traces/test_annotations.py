"""Annotations in the official layout: what is read from good, bad and broken texts."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.records import Finding, Findings, Grade
from agenteval.traces.annotations import (
    Annotation,
    official_object,
    official_text,
    pair_up,
    read_annotation,
    read_folder,
    write_folder,
)
from tests.thorough import often

FULL = {
    "trace_id": "t1",
    "errors": [
        {
            "category": "Formatting Errors",
            "location": "0123456789abcdef",
            "evidence": "```py",
            "description": "No fence closes it.",
            "impact": "LOW",
        }
    ],
    "scores": [
        {
            "reliability_score": 3,
            "reliability_reasoning": "mostly",
            "security_score": 5,
            "security_reasoning": "",
            "instruction_adherence_score": 2.5,
            "instruction_adherence_reasoning": "x",
            "plan_opt_score": 4,
            "plan_opt_reasoning": "y",
            "overall": 3.6,
        }
    ],
}


def read(value: Any, name: str = "t1") -> Annotation:
    return read_annotation(value if isinstance(value, str) else json.dumps(value), name)


def one(**fields: Any) -> Annotation:
    return read({"errors": [{"category": "Goal Deviation", "location": "a", **fields}]})


def test_a_whole_file() -> None:
    found = read(FULL)
    assert found.warnings == ()
    assert found.findings == Findings(
        trace="t1",
        findings=(
            Finding(
                span="0123456789abcdef",
                category="Formatting Errors",
                evidence="```py",
                description="No fence closes it.",
                impact="LOW",
            ),
        ),
        grades={
            "reliability": Grade(value=3, reason="mostly"),
            "security": Grade(value=5),
            "instruction_adherence": Grade(value=2.5, reason="x"),
            "plan_opt": Grade(value=4, reason="y"),
            "overall": Grade(value=3.6),
        },
    )


def test_a_failure_is_never_written_as_no_errors() -> None:
    failed = Findings(trace="t1", status="unscored:parse", message='got {"errors": []}')
    with pytest.raises(ValueError, match="unscored:parse"):
        official_object(failed)
    assert read(official_text(failed)).findings.status == "unscored:parse"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (json.dumps(FULL)[:-1] + ",}", "not strict JSON"),
        ("```json\n" + json.dumps(FULL) + "\n```", "not strict JSON"),
        ("Here it is: " + json.dumps(FULL), "not strict JSON"),
        ("\ufeff" + json.dumps(FULL), None),
    ],
)
def test_texts_around_or_nearly_json(text: str, says: str | None) -> None:
    found = read(text)
    assert found.findings == read(FULL).findings
    assert found.text == text
    assert [w for w in found.warnings if says and says in w] == list(found.warnings)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("Context window exceeded. No output generated.", "no object"),
        ("{}", "without errors or scores"),
        ('{"scores": []}', "no list of errors"),
        ('{"errors": "none"}', "no list of errors"),
        ("[" * 100_000, ""),
    ],
)
def test_nothing_readable_is_a_status_never_an_empty_list(text: str, why: str) -> None:
    found = read(text)
    assert found.findings.status == "unscored:parse"
    assert why in found.findings.message
    assert found.findings.findings == ()
    assert any(w.startswith("unreadable") for w in found.warnings)


@pytest.mark.parametrize(
    ("written", "category", "warned"),
    [
        ("Task Orchestration Errors", "Task Orchestration", False),
        (" language-ONLY ", "Language-only", False),
        ("Hallucination", "Hallucination", True),
        (7, "7", True),
    ],
)
def test_categories(written: Any, category: str, warned: bool) -> None:
    found = one(category=written)
    assert found.findings.findings[0].category == category
    assert any("unknown category" in w for w in found.warnings) is warned


@pytest.mark.parametrize(
    ("location", "spans", "says"),
    [
        (" abc ", ["abc"], None),
        (12, ["12"], None),
        (None, [""], None),
        (["a", "b"], ["a", "b"], "2 locations"),
        ([], [""], "0 locations"),
        ("Span ID not found for this shard", ["Span ID not found for this shard"], "not a span id"),
    ],
)
def test_locations(location: Any, spans: list[str], says: str | None) -> None:
    found = one(location=location)
    assert [f.span for f in found.findings.findings] == spans
    assert all(says is not None and says in w for w in found.warnings)
    assert bool(found.warnings) == (says is not None)


def test_garbled_and_missing_keys() -> None:
    found = read(
        {
            "errors": [
                {"Category": "Goal Deviation", "locaton": "a", "desciption ": "d", "whatever": 1},
                {"location": "b"},
            ]
        }
    )
    first, second = found.findings.findings
    assert (first.category, first.span, first.description) == ("Goal Deviation", "a", "d")
    assert (second.category, second.span) == ("", "b")
    assert "error 1: unknown key 'whatever'" in found.warnings
    assert "error 1: key 'locaton' read as location" in found.warnings
    assert "error 2: no category" in found.warnings


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("4", 4.0),
        (5, 5.0),
        (5.1, None),
        (float("nan"), None),
        ("4/5", None),
        (True, None),
    ],
)
def test_grades_lie_within_0_and_5_or_have_no_value(value: Any, kept: float | None) -> None:
    found = read({"errors": [], "scores": [{"overall": value}]})
    assert found.findings.grades["overall"].value == kept
    assert bool(found.warnings) == (kept is None)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["errors", "scores", "category", "location", "overall", "impact"])
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=often(80, 300), deadline=None)
@given(json_values, st.integers(0, 40))
def test_no_text_raises_and_every_result_can_be_stored(value: Any, cut: int) -> None:
    for shape in (value, {"errors": value}, {"errors": [value], "scores": value}):
        text = json.dumps(shape)
        for part in (text, text[: max(len(text) - cut, 0)]):
            findings = read(part).findings
            assert Findings.model_validate_json(findings.model_dump_json()) == findings
            if findings.status is not None:
                assert findings.findings == ()


def test_what_the_layout_cannot_hold_is_an_extra() -> None:
    finding = Finding(
        span="s", category="Goal Deviation", impact="LOW", confidence=0.4, source="a rule"
    )
    findings = Findings(trace="t1", findings=(finding,))
    (plain,) = official_object(findings)["errors"]
    (extended,) = official_object(findings, extra=True)["errors"]
    assert extended == {**plain, "confidence": 0.4, "source": "a rule"}
    assert read(official_object(findings, extra=True)).findings.findings == (finding,)


def made(name: str, trace: str | None = None) -> Annotation:
    value = {"errors": [], **({"trace_id": trace} if trace else {})}
    return read_annotation(json.dumps(value), name)


def test_one_file_per_trace_is_written_and_read(tmp_path: Path) -> None:
    written = [
        Findings(trace="b", findings=(Finding(span="s", category="Goal Deviation"),)),
        Findings(trace="a"),
        Findings(trace="c", status="error:timeout"),
    ]
    paths = write_folder(tmp_path / "out", written)
    assert [p.name for p in paths] == ["b.json", "a.json", "c.json"]
    read = read_folder(tmp_path / "out")
    assert [one.trace for one in read] == ["a", "b", "c"]
    assert read[1].findings == written[0]
    assert read[2].findings.status == "unscored:parse"


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.json file"):
        read_folder(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_folder(tmp_path / "none")
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text('{"errors": [], "trace_id": "t"}', "utf-8")
    with pytest.raises(InputError, match=r"b\.json: trace 't' is also annotated in .*a\.json"):
        read_folder(tmp_path)


def test_pairs_by_id_then_by_file_name_each_once() -> None:
    gold = [made("g1", "t1"), made("f2"), made("f3", "t3"), made("f4")]
    predicted = [made("p1", "t1"), made("f2", "other"), made("t3"), made("stray")]
    found = pair_up(gold, predicted)
    names = [(g.name, p.name if p else None) for g, p in found.pairs]
    assert names == [("g1", "p1"), ("f2", "f2"), ("f3", "t3"), ("f4", None)]
    assert [p.name for p in found.without_gold] == ["stray"]
