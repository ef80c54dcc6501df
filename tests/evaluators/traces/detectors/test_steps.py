"""Steps that failed by what the model wrote, in the spans of two conventions, and the table of all
rules on annotated traces where these are at hand."""

from __future__ import annotations

import json

import pytest

from agenteval.records import Span
from benchmarks import detectors as table
from tests.evaluators.traces.detectors.conftest import Trace, named, raised

UNEXPECTED = TypeError("fetch() got an unexpected keyword argument 'commit'")
CODE = json.dumps({"code": "print(x)"})


def step(error: Exception, tool: bool = False) -> tuple[Trace, str, str]:
    """OpenInference: a chain span fails around a request that did well; maybe its tool did first.
    With the ids of that request and the next one."""
    trace = Trace()
    at = trace.add(kind="chain", name="Step 1", status="error", events=(raised(error),))
    wrote = trace.ask("fetch(commit=1)", parent_id=at)
    if tool:
        trace.add(kind="tool", tool="fetch", parent_id=at, status="error", events=(raised(error),))
    trace.user(f"Error: {error}")
    return trace, wrote, trace.ask("I will try again.", parent_id=trace.add(kind="chain"))


@pytest.mark.parametrize("tool", [False, True])
@pytest.mark.parametrize("error", [UNEXPECTED, SyntaxError("bad"), FileNotFoundError("no x.csv")])
def test_a_failed_step_is_one_error_where_the_agent_is_told(error: Exception, tool: bool) -> None:
    trace, _, told = step(error, tool)
    (finding,) = trace.found()
    assert (finding.source, finding.category) == ("detector:failed-code", "Formatting Errors")
    assert (finding.span, finding.evidence) == (told, str(error))


def test_the_last_step_has_nobody_to_tell() -> None:
    trace, wrote, told = step(UNEXPECTED)
    trace.spans = [span for span in trace.spans if span.id != told]
    assert [f.span for f in trace.found()] == [wrote]


def test_the_next_request_is_one_of_the_same_agent() -> None:
    trace, _, told = step(UNEXPECTED)
    helper = trace.add(kind="agent", name="helper")
    other = Span(id="other", parent_id=helper, kind="llm", reply=trace.spans[2].reply)
    trace.spans.insert(3, trace.spans.pop())  # the helper works between the two requests
    trace.spans.insert(4, other)
    assert [f.span for f in trace.found()] == [told]


@pytest.mark.parametrize(
    ("arguments", "kind", "message", "expected"),
    [
        ({"code": "print(x)"}, "NameError", "name 'x' is not defined", True),
        ({"code": "1 +"}, "SyntaxError", "invalid syntax", True),
        ({"commit": "a"}, "TypeError", str(UNEXPECTED), True),
        ({"city": "Rome"}, "NameError", "name 'x' is not defined", False),  # the tool's own fault
        ({"code": "go()"}, "ValueError", "no such row", False),
        ({"code": "go()"}, "TimeoutError", "late", False),
    ],
)
def test_a_failed_tool_of_another_convention(
    arguments: object, kind: str, message: str, expected: bool
) -> None:
    """OTel's gen_ai spans: requests and tools side by side, an exception event on the tool."""
    trace = Trace()
    trace.ask("", ("run", arguments))
    trace.run("run", status="error", events=(named(kind, message),))
    told = trace.ask("So it is.")
    assert [f.span for f in trace.found("failed-code")] == ([told] if expected else [])


@pytest.mark.parametrize("refused", ["request", "service", "caught"])
def test_what_the_model_did_not_write(refused: str) -> None:
    trace = Trace()
    limit = named("x.RateLimitError", "Error code: 429")
    about = () if refused == "caught" else (limit,)
    status = "ok" if refused == "caught" else "error"
    at = trace.add(kind="chain", status=status, events=about)
    failing = {"status": "error", "events": (limit,)} if refused == "request" else {}
    trace.ask("go()", parent_id=at, **failing)
    trace.ask("On.")
    assert trace.found("failed-code") == []


def test_chance_is_that_of_drawing_spans() -> None:
    """By hand: 2 flags on 4 spans of which 2 are marked hit both in 1 of 6 draws."""
    marks = frozenset((span, "Formatting Errors") for span in "ab")
    case = table.Case(6, {"llm": ["a", "b", "c", "d"], "tool": ["e"]}, marks, {"r": marks})
    got = table.measure([case], "Formatting Errors", ["r"])
    assert (got.flags, got.hits, got.gold, got.chance) == (2, 2, 2, 1.0)
    assert got.p == pytest.approx(1 / 6)
    assert table.measure([case] * 2, "Formatting Errors", ["r"]).p == pytest.approx(1 / 36)
    assert not got.better


@pytest.mark.skipif(not table.DATA.is_dir(), reason="needs TRAIL's annotated traces")
def test_the_table_of_all_rules() -> None:
    cases = table.read_cases(table.DATA)
    assert len(cases) == 40
    got = {}
    for name in (*table.RULES, "written"):
        category = table.RULES["failed-code" if name == "written" else name].category
        row = table.measure(cases, category, [name])
        if row.flags:
            got[name] = (row.flags, row.hits, round(row.chance, 1))
    assert got == {"failed-code": (44, 31, 12.9), "written": (44, 16, 12.9),
                   "rate-limit": (2, 0, 0), "service": (1, 0, 0)}  # fmt: skip
    assert table.left_out(cases, "failed-code") == (44, 31, 40)
    kept = json.loads(table.KEPT.read_text("utf-8"))["precision"]
    assert kept == {"failed-code": round(31 / 44, 2)}
