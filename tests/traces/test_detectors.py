"""Steps that failed by what the model wrote, in two conventions; precision on annotated traces,
where these are at hand; no crash and true quotes for any run, and no slow pattern."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agenteval
from agenteval.records import Message, Run, Span, SpanEvent, ToolCall, ToolSpec
from agenteval.traces.detectors import CONFIDENCE, detect
from agenteval.traces.taxonomy import Leaf, Taxonomy, built_in
from benchmarks import detectors as table
from tests.thorough import often
from tests.traces.agent_trace import Trace, check, named, raised

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
    built = built_in().find(table.CATEGORY)
    assert built is not None
    assert built.assigned


TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "Error code: 429",
            "End every reply with the word OVER.",
            "reply with JSON only",
            "{",
            "",
            '{"isError": true}',
            "Answer in at most 1 words.",
            "I called do_it",
            "\ud800",
            "null",
            "Error: tool 'do_it' not found in any workbench",
            "[Errno 28] x",
            "Action: x\nObservation: y",
            "<tool_call>{",
            "missing 1 required positional argument: 'a'",
            "a" * 400,
            "No such file or directory: 'x'",
            "[" * 2000,
        ]
    ),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["do_it", "get_x", "wait", "", "ä", "f"])
CALLS = st.builds(ToolCall, name=NAMES, arguments=VALUES, id=st.sampled_from([None, "a", "b", ""]))
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=TEXTS,
    name=st.none() | NAMES,
    tool_calls=st.lists(CALLS, max_size=3).map(tuple),
    tool_call_id=st.sampled_from([None, "a", "b"]),
)
KEYS = st.sampled_from(
    [
        "exception.type",
        "exception.message",
        "exception.escaped",
        "exception.stacktrace",
        "error.type",
        "http.status_code",
        "llm.invocation_parameters",
        "tool_call.id",
        "stop",
        "graph.node.id",
        "x",
    ]
)
ATTRIBUTES = st.dictionaries(
    KEYS,
    VALUES
    | st.sampled_from(
        [
            429,
            "503",
            "TimeoutError",
            "FileNotFoundError",
            "SyntaxError",
            "x.AgentParsingError",
            '{"response_format": {"type": "json_object"}}',
        ]
    ),
    max_size=4,
)
SCHEMAS = st.none() | st.dictionaries(
    st.sampled_from(
        [
            "type",
            "properties",
            "required",
            "additionalProperties",
            "$ref",
            "$schema",
            "allOf",
            "items",
            "enum",
            "multipleOf",
            "pattern",
        ]
    ),
    VALUES | st.sampled_from(["object", "#", {"a": {"type": "integer"}}, ["a"]]),
    max_size=4,
)
IDS = st.sampled_from(["1", "2", "3", "4", "5"])
SPANS = st.builds(
    Span,
    id=IDS,
    parent_id=st.none() | IDS,
    name=TEXTS,
    kind=st.sampled_from(["agent", "llm", "tool", "chain", "user"]),
    status=st.sampled_from(["ok", "error", "unset"]),
    status_message=TEXTS,
    input=TEXTS,
    output=TEXTS,
    messages=st.lists(MESSAGES, max_size=4).map(tuple),
    reply=st.lists(MESSAGES, max_size=2).map(tuple),
    tools=st.lists(st.builds(ToolSpec, name=NAMES, parameters=SCHEMAS), max_size=2).map(tuple),
    tool=st.none() | NAMES,
    finish=st.sampled_from([None, "stop", "length", "context_window", ""]),
    limit=st.none() | st.integers(0, 9),
    events=st.lists(
        st.builds(SpanEvent, name=st.sampled_from(["exception", "x"]), attributes=ATTRIBUTES),
        max_size=2,
    ).map(tuple),
    attributes=ATTRIBUTES,
)


@pytest.mark.slow
@settings(max_examples=often(25, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(SPANS, max_size=7))
def test_any_run_at_all(spans: list[Span]) -> None:
    run = Run(id="t", spans=tuple(spans))
    before = run.model_copy(deep=True)
    found = detect(run, built_in())
    check(run, found)
    assert found == detect(run, built_in())
    positions = [next(i for i, s in enumerate(spans) if s.id == f.span) for f in found]
    assert positions == sorted(positions)
    assert before == run


@pytest.mark.parametrize(
    "text",
    [
        "<text>" * 30_000,
        "```x\n" * 30_000,
        "-" * 200_000,
        "a" * 200_000,
        " " * 200_000 + "x",
        "<tool_call>" + " " * 200_000 + "{",
        "'" * 200_000,
        "I used " * 30_000,
        "{[" * 100_000,
        "Action: x\n" * 20_000,
        "End your reply with the " * 8_000,
        "Observation:\n" * 20_000,
    ],
    ids=range(12),
)
def test_hostile_texts_take_no_longer_than_others(text: str) -> None:
    trace = Trace(
        system=text,
        user=text,
    )
    trace.ask(text + " search_web OVER")
    trace.step("search_web", {"q": text}, text)
    trace.add(kind="tool", tool="f", status="error", status_message=text, output=text)
    begun = time.process_time()
    trace.found()
    assert time.process_time() - begun < 5


def test_a_trace_without_findings_names_its_failed_spans(tmp_path: Path) -> None:
    trace = Path("tasks/traces/traces") / "95dafead6d3f8408b76df08c7c17cfb1.jsonl"
    report = agenteval.locate(trace, detectors_only=True, store=tmp_path / "store.db")
    assert not any(findings.findings for findings in report.findings)
    assert any("f0658eabec0c0fa7" in note for note in report.notes)
