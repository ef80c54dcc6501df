"""The register of rules, and what holds for every run: no crash, true quotes, one order, speed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agenteval
from agenteval.errors import InputError
from agenteval.evaluators.traces.detectors import RULES, detect
from agenteval.evaluators.traces.detectors.registry import rule
from agenteval.evaluators.traces.taxonomy import Leaf, Taxonomy
from agenteval.records import Message, Run, Span, SpanEvent, ToolCall, ToolSpec
from tests.evaluators.traces.detectors.conftest import Trace, check, named, tool_spec
from tests.thorough import often

DATA = Path(agenteval.__file__).parent / "data" / "traces"


def test_rules_are_described() -> None:
    for each in RULES.values():
        assert 60 < len(each.certain) < 400
        assert "not" in each.certain or "none" in each.certain  # what it does not cover
    with pytest.raises(ValueError, match="two detectors"):
        rule("timeout", "x", "LOW", "")(lambda view: iter(()))


def late() -> Run:
    trace = Trace()
    step = trace.add(kind="chain", status="error", events=(named("NameError", "no name x"),))
    trace.ask("x", parent_id=step)
    trace.add(kind="tool", tool="f", status="error", events=(named("TimeoutError", "late"),))
    return Run(id="t", spans=tuple(trace.spans))


def test_a_rule_that_is_not_measured_is_off_until_it_is_asked_for() -> None:
    def names(**how: Any) -> list[tuple[str, float | None]]:
        return [(f.source, f.confidence) for f in detect(late(), **how)]

    kept = json.loads((DATA / "detectors.json").read_text())["precision"]
    sure = ("detector:failed-code", kept["failed-code"])
    assert kept.keys() == {"failed-code"}
    assert names() == [sure]
    assert names(undecided=True) == [sure, ("detector:timeout", None)]
    assert names(only=["timeout"]) == [("detector:timeout", None)]
    assert names(only=()) == []
    with pytest.raises(InputError, match="no detector 'time'"):
        names(only=["time"])


def test_categories_of_a_taxonomy() -> None:
    def leaf(name: str, *aliases: str, assigned: bool = True) -> Leaf:
        return Leaf(name=name, area="a", group="g", definition="d", aliases=aliases,
                    assigned=assigned)  # fmt: skip

    own = Taxonomy(name="own", leaves=(leaf("Too slow", "timeout issues"), leaf("Other")))
    assert [f.category for f in detect(late(), own, undecided=True)] == ["Too slow"]
    silent = Taxonomy(name="own", leaves=(leaf("Timeout Issues", assigned=False),))
    assert detect(late(), silent, undecided=True) == ()


TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from([
        "Error code: 429", "End every reply with the word OVER.", "reply with JSON only", "{", "",
        '{"isError": true}', "Answer in at most 1 words.", "I called do_it", "\ud800", "null",
        "Error: tool 'do_it' not found in any workbench", "[Errno 28] x",
        "Action: x\nObservation: y",
        "<tool_call>{", "missing 1 required positional argument: 'a'", "a" * 400,
        "No such file or directory: 'x'", "[" * 2000,
    ]),
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
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
KEYS = st.sampled_from([
    "exception.type", "exception.message", "exception.escaped", "exception.stacktrace",
    "error.type", "http.status_code", "llm.invocation_parameters", "tool_call.id", "stop",
    "graph.node.id", "x",
])  # fmt: skip
ATTRIBUTES = st.dictionaries(
    KEYS,
    VALUES | st.sampled_from([429, "503", "TimeoutError", "FileNotFoundError", "SyntaxError",
                              "x.AgentParsingError", '{"response_format": {"type": "json_object"}}'
                              ]),
    max_size=4,
)  # fmt: skip
SCHEMAS = st.none() | st.dictionaries(
    st.sampled_from(["type", "properties", "required", "additionalProperties", "$ref", "$schema",
                     "allOf", "items", "enum", "multipleOf", "pattern"]),
    VALUES | st.sampled_from(["object", "#", {"a": {"type": "integer"}}, ["a"]]),
    max_size=4,
)  # fmt: skip
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


@settings(max_examples=often(25, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(SPANS, max_size=7))
def test_any_run_at_all(spans: list[Span]) -> None:
    run = Run(id="t", spans=tuple(spans))
    before = run.model_copy(deep=True)
    found = detect(run, undecided=True)
    check(run, found)
    assert found == detect(run, undecided=True)
    positions = [next(i for i, s in enumerate(spans) if s.id == f.span) for f in found]
    assert positions == sorted(positions)
    assert before == run


def long_trace(requests: int) -> Run:
    """Flat conversations of 50 requests each, with cumulative messages; errors here and there."""
    spec = tool_spec("search", required=("q",), q={"type": "string"})
    spans: list[Span] = [Span(id="root", kind="agent")]
    for start in range(0, requests, 50):
        trace = Trace(tools=(spec,))
        for n in range(start, min(start + 50, requests)):
            trace.step("search", {"q": f"page {n % 7}"}, f"text of page {n % 7} " * 20)
        trace.ask("Done. OVER")
        agent = Span(id=f"agent{start}", parent_id="root", kind="agent")
        spans.append(agent)
        spans += [
            s.model_copy(update={"id": f"{start}/{s.id}", "parent_id": agent.id})
            for s in trace.spans[1:]
        ]
    return Run(id="long", spans=tuple(spans))


@pytest.mark.slow
def test_time_grows_with_size() -> None:
    seconds = []
    for requests in (1_250, 5_000):
        run = long_trace(requests)
        begun = time.process_time()
        detect(run, undecided=True)
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 12 * max(seconds[0], 0.05)  # 4 times the spans; quadratic would be 16


@pytest.mark.slow
def test_many_spans_in_one_conversation() -> None:
    """Requests without cumulative messages, one parent: 30,000 spans, or 100,000."""
    count = often(15_000, 50_000)
    spans = [Span(id="root", kind="agent")]
    for n in range(count):
        call = ToolCall(name="get_x", arguments={"n": n % 3}, id=f"c{n}")
        reply = Message(role="assistant", tool_calls=(call,))
        spans.append(Span(id=f"l{n}", parent_id="root", kind="llm", reply=(reply,)))
        spans.append(Span(
            id=f"t{n}", parent_id="root", kind="tool", tool="get_x", status="error",
            input=json.dumps({"n": n % 3}), output="KeyError: no such thing",
        ))  # fmt: skip
    begun = time.process_time()
    found = detect(Run(id="many", spans=tuple(spans)), undecided=True)
    assert time.process_time() - begun < count * 30 / 50_000  # of the processor: a tenth of it
    assert [(f.source, f.span) for f in found] == [("detector:call-loop", f"l{count - 1}")]


@pytest.mark.parametrize(
    "text",
    [
        "<text>" * 30_000, "```x\n" * 30_000, "-" * 200_000, "a" * 200_000, " " * 200_000 + "x",
        "<tool_call>" + " " * 200_000 + "{", "'" * 200_000, "I used " * 30_000, "{[" * 100_000,
        "Action: x\n" * 20_000, "End your reply with the " * 8_000, "Observation:\n" * 20_000,
    ],
    ids=range(12),
)  # fmt: skip
def test_hostile_texts_take_no_longer_than_others(text: str) -> None:
    trace = Trace(
        system=text,
        user=text,
        tools=(tool_spec("search_web"),),
    )
    trace.ask(text + " search_web OVER")
    trace.step("search_web", {"q": text}, text)
    trace.add(kind="tool", tool="f", status="error", status_message=text, output=text)
    begun = time.process_time()
    trace.found()
    assert time.process_time() - begun < 5


def test_every_category_is_a_leaf() -> None:
    taxonomy = Taxonomy.model_validate_json((DATA / "taxonomy.json").read_text("utf-8"))
    for each in RULES.values():
        leaf = taxonomy.find(each.category)
        assert leaf is not None
        assert leaf.assigned
