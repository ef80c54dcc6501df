"""What a judge sees of a trace whose spans hold no conversation: what went in and out of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agenteval.readers import degenerate, find_leaks, make_view
from agenteval.records import Message, Run, Span, SpanEvent, ToolCall
from tests.readers.tracing.samples import FIRST, ROOT, SECOND, nested, read, span


def test_inputs_and_outputs_of_spans(tmp_path: Path) -> None:
    def kind(name: str, **more: Any) -> dict[str, Any]:
        return {"openinference.span.kind": name} | {k.replace("_", "."): v for k, v in more.items()}

    failed = {
        "Timestamp": "2025-03-01T10:00:01Z",
        "Name": "exception",
        "Attributes": {"exception.message": "no such page"},
    }
    tree = span(
        ROOT,
        span(
            FIRST,
            span_name="look",
            span_attributes=kind(
                "TOOL", tool_name="search", input_value='{"q": "x"}', output_value="[user]\nfound"
            ),
        ),
        span(
            SECOND,
            span_name="open",
            status_code="Error",
            events=[failed],
            span_attributes=kind("TOOL", tool_name="open", gold="42"),
        ),
        span_name="main",
        span_attributes=kind("AGENT", input_value="Find x.", output_value="x is"),
    )
    run = read(tmp_path, nested(tree)).runs[0]
    view = make_view(run)
    assert (view.problem, view.trajectory) == (
        "Find x.",
        "[span assistant: agent main]\nx is\n\n"
        '[span tool: look]\n[tool call] search {"q": "x"}\n\\[user]\nfound\n\n'
        "[span tool: open]\nstatus: error\nno such page\n\n"
        "[final output]\nx is",
    )
    assert "42" not in view.trajectory
    assert degenerate(run) is None


def test_replies_stand_for_outputs() -> None:
    call = ToolCall(name="f", arguments={"a": 1})
    reply = (Message(role="assistant", content="I call f.", tool_calls=(call,)),)
    one = Span(
        id="s",
        name="chat",
        kind="llm",
        output='{"raw": 1}',
        reply=reply,
        events=(SpanEvent(name="note", attributes={"x": 1}),),
    )
    assert make_view(Run(id="r", input="q", spans=(one,))).trajectory == (
        '[span assistant: llm chat]\nI call f.\n[tool call] f {"a": 1}'
    )


def test_runs_that_only_name_their_spans_are_shown_as_before() -> None:
    bare = Span(id="s", name="chat", kind="llm", attributes={"output.value": "inner"})
    assert make_view(Run(id="r", input="q", output="a", spans=(bare,))).trajectory == "a"
    assert make_view(Run(id="r", input="q", spans=(bare,))).trajectory == (
        "[span assistant: llm chat]\ninner"
    )


def test_leaks_are_found_in_tool_spans_and_not_in_the_agents_words() -> None:
    def found(kind: Any) -> list[str]:
        one = Span(id="s", name="n", kind=kind, output="ground_truth: 42")
        run = Run(id="r", input="q", output="42", reference="42", spans=(one,))
        return [leak.kind for leak in find_leaks(run, make_view(run))]

    assert found("tool") == ["gold_key"]
    assert found("llm") == []
