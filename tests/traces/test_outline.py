"""Outlines of traces: what is kept, cut and drawn, and the key of a trace."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.records import Message, Run, Span, SpanEvent, ToolCall, Usage
from agenteval.traces.outline import Bounds, Drawn, Forest, OutlineSpan, forest, outline, trace_key
from tests.thorough import often


def test_it_keeps_what_tells_a_span() -> None:
    run = Run(
        id="t",
        input="do it",
        spans=(
            Span(id="1", name="agent", kind="agent", start=10.0, end=12.5),
            Span(
                id="2",
                parent_id="1",
                kind="llm",
                usage=Usage(prompt_tokens=7, completion_tokens=2),
                messages=(
                    Message(role="system", content="be brief"),
                    Message(role="user", content="now"),
                ),
                reply=(
                    Message(
                        role="assistant", tool_calls=(ToolCall(name="find", arguments={"q": 1}),)
                    ),
                ),
            ),
            Span(
                id="3",
                parent_id="1",
                kind="tool",
                tool="find",
                status="error",
                input="{}",
                events=(SpanEvent(name="exception", attributes={"exception.message": "broken"}),),
            ),
        ),
    )
    made = outline(run)
    agent, llm, tool = made.spans
    assert agent.seconds == 2.5
    assert (llm.tokens, llm.input, llm.output) == (9, "now", 'find({"q":1})')
    assert (tool.name, tool.note, tool.status, tool.seconds) == ("find", "broken", "error", None)
    assert (made.tokens, made.errors, made.total) == (9, 1, 3)
    assert made.kinds == {"agent": 1, "llm": 1, "tool": 1}


def test_a_large_trace_is_cut_and_counted() -> None:
    run = Run(id="t", spans=tuple(Span(id=str(i), output="x" * 1000) for i in range(50)))
    made = outline(run, most=10, excerpt=90)
    assert len(made.spans) == 10
    assert made.total == 50
    assert made.tokens is None
    assert "[... 910 characters ...]" in made.spans[0].output


def test_the_key_changes_with_what_a_finder_sees_and_with_nothing_else() -> None:
    message = Message(role="user", content="half a pair: \ud83d")
    base = Run(id="t", spans=(Span(id="1", messages=(message, message)),))
    same = base.model_copy(update={"success": True, "reference": "gold", "metadata": {"a": 1}})
    assert trace_key(base) == trace_key(same)
    equal = Message(role="user", content="half a pair: \ud83d")
    rebuilt = Run(id="t", spans=(Span(id="1", messages=(message, equal)),))
    assert trace_key(rebuilt) == trace_key(base)
    other = Message(role="user", content="half a pair: \ud83e")
    changed = [
        Run(id="u", spans=base.spans),
        base.model_copy(update={"output": "x"}),
        Run(id="t", spans=(Span(id="1", messages=(message, other)),)),
        Run(id="t", spans=(Span(id="1", messages=(message,)),)),
        Run(id="t", spans=(Span(id="1", messages=(message, message), output="x"),)),
        Run(id="t", spans=(*base.spans, Span(id="2"))),
    ]
    assert len({trace_key(run) for run in (base, *changed)}) == 1 + len(changed)


def spans(*pairs: tuple[str, str | None], errors: tuple[str, ...] = ()) -> list[OutlineSpan]:
    return [
        OutlineSpan(id=i, parent_id=p, status="error" if i in errors else "ok") for i, p in pairs
    ]


def ids(nodes: list[Drawn]) -> list[object]:
    return [[n.span.id, ids(n.children)] if n.children else n.span.id for n in nodes]


def everything(drawn: Forest) -> tuple[set[str], int]:
    """Ids drawn, and the number of spans counted as left out."""
    found, left, stack = set(), drawn.hidden.total(), list(drawn.roots)
    while stack:
        node = stack.pop()
        found.add(node.span.id)
        left += node.hidden.total()
        stack.extend(node.children)
    return found, left


def test_marks_and_errors_far_down_are_drawn_with_what_stands_above() -> None:
    row = [("root", None), *((f"s{i}", "root") for i in range(1000)), ("deep", "s998")]
    made = spans(*row, errors=("s500",))
    drawn = forest(made, {"deep"}, Bounds(spans=6, children=25))
    found, left = everything(drawn)
    assert {"root", "s998", "deep", "s500"} <= found
    assert len(found) == 6
    assert left == len(made) - 6
    assert drawn.roots[0].hidden == Counter(chain=len(made) - 6)


def test_a_cycle_and_a_missing_parent_give_roots() -> None:
    made = spans(("a", "b"), ("b", "a"), ("c", "gone"), ("d", "d"))
    assert ids(forest(made).roots) == [["a", ["b"]], "c", "d"]


@given(
    st.lists(st.integers(-1, 30), max_size=60),
    st.sets(st.integers(0, 60), max_size=5),
    st.integers(1, 20),
    st.integers(1, 4),
    st.integers(0, 4),
)
@settings(max_examples=often(80, 200), deadline=None)
def test_every_span_is_drawn_or_counted(
    parents: list[int], marked: set[int], most: int, children: int, depth: int
) -> None:
    made = spans(*((str(i), None if p < 0 else str(p)) for i, p in enumerate(parents)))
    drawn = forest(made, {str(m) for m in marked}, Bounds(most, children, depth))
    found, left = everything(drawn)
    assert len(found) <= most
    assert len(found) + left == len(made)
