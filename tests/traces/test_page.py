"""The page and tables of findings: counted by hand, bounded; what is from outside is text."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.records import Finding, Findings, Grade, Rejected
from agenteval.traces.api import FindingsReport
from agenteval.traces.outline import Outline, OutlineSpan
from agenteval.traces.tables import FinderFindings, finding_tables
from agenteval.traces.taxonomy import built_in
from tests.reporting.making import Seen, assert_harmless

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m'\"&amp;{{ 7*7 }}"


def span(name: str, parent: str | None = None, **more: object) -> OutlineSpan:
    return OutlineSpan.model_validate({"id": name, "parent_id": parent, "name": name, **more})


def outline(trace: str, *spans: OutlineSpan) -> Outline:
    kinds: dict[str, int] = {}
    for one in spans:
        kinds[one.kind] = kinds.get(one.kind, 0) + 1
    return Outline(trace=trace, spans=spans, kinds=kinds)


def said(trace: str, *marks: tuple[str, str], **more: object) -> Findings:
    found = [Finding(span=s, category=c, evidence=f"words of {s}") for s, c in marks]
    return Findings.model_validate({"trace": trace, "findings": found, **more})


def reported(*finders: FinderFindings, outlines: Sequence[Outline] = ()) -> FindingsReport:
    return FindingsReport(title="", tables=(), finders=finders, outlines=tuple(outlines))


def small() -> FindingsReport:
    """Three traces; rules see two, a judge fails on one, a person did one."""
    rules = FinderFindings(
        "rules",
        {
            "t1": said("t1", ("b", "Rate Limiting"), ("c", "rate limiting")),
            "t2": said("t2"),
        },
    )
    judge = FinderFindings(
        "judge",
        {
            "t1": said(
                "t1",
                ("b", "Goal Deviation"),
                grades={"overall": Grade(value=2, reason="so")},
                rejected=(Rejected(why="no such span"),),
            ),
            "t2": Findings(trace="t2", status="error:timeout", message="slow"),
            "t3": said("t3", ("x", "Odd")),
        },
    )
    person = FinderFindings("person", {"t1": said("t1", ("c", "Rate Limiting"))}, gold=True)
    spans = (span("a", kind="agent"), span("b", "a", kind="llm"), span("c", "a", kind="tool"))
    made = [outline("t1", *spans), outline("t2", *spans)]
    return reported(rules, judge, person, outlines=made)


def test_the_tables_count_by_hand() -> None:
    coverage, categories, grades = finding_tables(small().finders, built_in(), 3)
    assert coverage.title == "Finders on 3 traces"
    names = (
        "finder",
        "examined",
        "failed",
        "not_tried",
        "errors",
        "per_trace",
        "clean",
        "rejected",
        "why",
    )
    assert [tuple(row[name] for name in names) for row in coverage.rows] == [
        ("rules", 2, 0, 1, 2, 1.0, 1, 0, ""),
        ("judge", 2, 1, 0, 2, 1.0, 0, 1, "error:timeout 1"),
        ("person (gold)", 1, 0, 2, 1, 1.0, 0, 0, ""),
    ]
    heads = [column.head for column in categories.columns]
    assert heads == [
        "category",
        "area",
        "rules",
        "traces",
        "judge",
        "traces",
        "person (gold)",
        "traces",
    ]
    area = built_in().find("Rate Limiting").area  # type: ignore[union-attr]
    rows = [tuple(row.values()) for row in categories.rows]
    assert ("Rate Limiting", area, 2, 1, 0, 0, 1, 1) in rows
    assert ("Odd", "not in the taxonomy", 0, 0, 1, 1, 0, 0) in rows
    assert rows[-1] == ("all", "", 2, 1, 2, 2, 1, 1)
    assert grades.records() == [
        {**{c.key: None for c in grades.columns}, "finder": "judge", "overall": 2.0, "overall_n": 1}
    ]


def test_a_failure_is_said_and_is_no_trace_without_errors() -> None:
    words = Seen(small().page()).words
    assert "judge found 2 errors in 2 of 2 traces examined; could not examine 1." in words
    assert "rules found 2 errors in 1 of 2 traces examined; has not examined 1." in words
    assert "judge: failed" in words
    assert "judge: error:timeout: slow" in words
    assert "judge: 0" not in words


def test_findings_stand_at_their_spans() -> None:
    page = small().page()
    tree = page[page.index('<ul class="tree">') :]
    at_b = tree[tree.index("<strong>b</strong>") : tree.index("<strong>c</strong>")]
    assert "Goal Deviation" in at_b
    assert at_b.count('class="card finding') == 2
    assert "words of b" in at_b
    at_c = tree[tree.index("<strong>c</strong>") : tree.index("</section>")]
    assert 'class="card finding gold"' in at_c
    beside = page[page.index('id="traces"') :]
    assert "not in the trace" in beside  # t3's span x
    assert "the trace is not stored" in beside


def test_everything_from_outside_is_text() -> None:
    made = span(HOSTILE, kind="tool", status="error", note=HOSTILE, input=HOSTILE, output=HOSTILE)
    finding = Finding(
        span=HOSTILE,
        category=HOSTILE,
        evidence=HOSTILE,
        description=HOSTILE,
        source=HOSTILE,
        impact="HIGH",
    )
    findings = Findings(
        trace=HOSTILE, findings=(finding,), grades={HOSTILE: Grade(value=1, reason=HOSTILE)}
    )
    lost = Findings(trace="u" + HOSTILE, status="error:timeout", message=HOSTILE)
    finder = FinderFindings(HOSTILE, {HOSTILE: findings, "u" + HOSTILE: lost})
    one = Outline(trace=HOSTILE, task=HOSTILE, spans=(made,), kinds={"tool": 1})
    page = reported(finder, outlines=[one]).page()
    assert_harmless(page)
    assert page.count("Findings at spans") == 0  # the odd id is drawn
    assert "{{ 7*7 }}" in Seen(page).words


def test_a_large_trace_is_bounded_and_counted() -> None:
    spans = [
        span("root"),
        *(span(f"s{i}", "root", kind="llm", output="x" * 400) for i in range(9000)),
    ]
    one = outline("t", *spans)
    finder = FinderFindings("rules", {"t": said("t", ("s8999", "Goal Deviation"))})
    page = reported(finder, outlines=[one]).page(spans=50)
    assert len(page) < 100_000
    assert "<strong>s8999</strong>" in page
    # root, s8999, and as many of the first as the bound of children lets in: 25 in all
    drawn = page.count('<details class="span llm"')
    assert drawn == 25
    assert f"{9001 - 1 - drawn:,} more spans not shown" in page
