"""Steps that failed by what the model wrote, in two conventions; precision on annotated traces,
where these are at hand; no slow pattern."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import agenteval
from agenteval.records import Run
from agenteval.traces.detectors import CONFIDENCE, detect
from agenteval.traces.taxonomy import Leaf, Taxonomy
from benchmarks import detectors as table
from tests.traces.agent_trace import Trace, named, raised

UNEXPECTED = TypeError("fetch() got an unexpected keyword argument 'commit'")


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
    assert [f.span for f in trace.found()] == ([told] if expected else [])


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
    assert trace.found() == []


@pytest.mark.slow
@pytest.mark.skipif(not table.DATA.is_dir(), reason="needs TRAIL's annotated traces")
def test_precision_on_annotated_traces() -> None:
    cases = table.read_cases(table.DATA)
    assert len(cases) == 40
    rows = {name: table.measure(cases, table.CATEGORY, [name]) for name in (table.NAME, "written")}
    figures = {name: (m.flags, m.hits, round(m.chance, 1)) for name, m in rows.items()}
    assert figures == {table.NAME: (44, 31, 12.9), "written": (44, 16, 12.9)}
    out = table.left_out(cases)
    assert (sum(out.flags), sum(out.hits), len(out.flags), out.folds) == (44, 31, 21, 40)
    shares = [hits / flags for hits, flags in zip(out.hits, out.flags, strict=True)]
    assert round(sum(shares) / 21, 2) == CONFIDENCE
    assert table.read_cases(table.DATA, table.DEVELOPMENT.read_text().split()) == []


def test_categories_of_a_taxonomy() -> None:
    def leaf(name: str, *aliases: str, assigned: bool = True) -> Leaf:
        return Leaf(
            name=name, area="a", group="g", definition="d", aliases=aliases, assigned=assigned
        )

    run = Run(id="t", spans=tuple(step(UNEXPECTED)[0].spans))
    own = Taxonomy(name="own", leaves=(leaf("Bad form", "formatting errors"), leaf("Other")))
    assert [f.category for f in detect(run, own)] == ["Bad form"]
    silent = Taxonomy(name="own", leaves=(leaf("Formatting Errors", assigned=False),))
    assert detect(run, silent) == ()


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        " " * 200_000 + "x",
        "'" * 200_000,
        "{[" * 100_000,
        "Error code: " * 20_000,
    ],
    ids=range(5),
)
def test_hostile_texts_take_no_longer_than_others(text: str) -> None:
    trace = Trace()
    trace.ask(text)
    trace.add(kind="tool", tool="f", status="error", status_message=text, output=text)
    begun = time.process_time()
    trace.found()
    assert time.process_time() - begun < 5


def test_a_trace_without_findings_names_its_failed_spans(tmp_path: Path) -> None:
    trace = Path("tasks/traces/traces") / "95dafead6d3f8408b76df08c7c17cfb1.jsonl"
    report = agenteval.locate(trace, detectors_only=True, store=tmp_path / "store.db")
    assert not any(findings.findings for findings in report.findings)
    assert any("f0658eabec0c0fa7" in note for note in report.notes)
