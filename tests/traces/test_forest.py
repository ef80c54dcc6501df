"""What is drawn of a trace, and that everything else is counted."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.traces.outline import Bounds, Drawn, Forest, OutlineSpan, forest
from tests.thorough import often


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
