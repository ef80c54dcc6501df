"""Close spans, on one trace drawn by hand."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.evaluators.traces.tolerance import Nearness, Relation, skeleton
from agenteval.records import Span
from tests.thorough import often

# main > agent > facts (llm)
#              > step1 > llm1, tool1
#              > step2 > llm2, tool2 > sub (agent) > sub1 > sllm1
#                                                  > sub2 > sllm2, stool2 > inner (llm)
#                                                  > sfacts (llm)
TREE = {
    "main": ("chain", None),
    "agent": ("agent", "main"),
    "facts": ("llm", "agent"),
    "step1": ("chain", "agent"),
    "llm1": ("llm", "step1"),
    "tool1": ("tool", "step1"),
    "step2": ("chain", "agent"),
    "llm2": ("llm", "step2"),
    "tool2": ("tool", "step2"),
    "sub": ("agent", "tool2"),
    "sub1": ("chain", "sub"),
    "sllm1": ("llm", "sub1"),
    "sub2": ("chain", "sub"),
    "sllm2": ("llm", "sub2"),
    "stool2": ("tool", "sub2"),
    "inner": ("llm", "stool2"),
    "sfacts": ("llm", "sub"),
}


def tree(layout: Mapping[str, tuple[str, str | None]]) -> list[Span]:
    return [
        Span.model_validate({"id": name, "kind": kind, "parent_id": parent})
        for name, (kind, parent) in layout.items()
    ]


@pytest.mark.parametrize(
    ("span", "ancestor", "neighbour"),
    [
        ("llm1", {"step1"}, {"tool1"}),
        ("tool1", {"step1"}, {"llm1"}),
        ("step1", {"llm1", "tool1"}, {"facts", "step2"}),
        ("facts", set(), {"step1"}),  # no step around it: the agent is not one
        ("agent", set(), set()),
        ("main", set(), set()),
        ("llm2", {"step2"}, {"tool2"}),
        ("tool2", {"step2", "sub"}, {"llm2"}),
        ("sub", {"step2", "tool2"}, set()),
        ("step2", {"llm2", "tool2", "sub"}, {"step1"}),  # not the steps of the agent below
        ("sllm1", {"sub1"}, set()),
        ("inner", {"stool2", "sub2"}, set()),
        ("stool2", {"sub2", "inner"}, {"sllm2"}),
        ("sfacts", set(), {"sub2"}),  # it runs in the inner agent, not in the outer one's step
    ],
)
def test_by_hand(span: str, ancestor: set[str], neighbour: set[str]) -> None:
    spans = tree(TREE)
    assert Nearness(spans, ["ancestor"]).near(span) == {span} | ancestor
    assert Nearness(spans, ["neighbour"]).near(span) == {span} | neighbour
    assert Nearness(spans).near(span) == {span} | ancestor | neighbour


@pytest.mark.parametrize("relations", [["ancestor"], ["neighbour"], ["ancestor", "neighbour"]])
def test_closeness_is_mutual(relations: Sequence[Relation]) -> None:
    near = Nearness(tree(TREE), relations)
    pairs = {(a, b) for a in TREE for b in near.near(a)}
    assert pairs == {(b, a) for a, b in pairs}


def test_without_agent_spans_a_chain_with_a_parent_is_a_step() -> None:
    near = Nearness(
        tree({"r": ("chain", None), "c": ("chain", "r"), "m": ("llm", "c"), "o": ("llm", "r")}),
        ["ancestor"],
    )
    assert near.near("m") == {"m", "c"}
    assert near.near("o") == {"o"}


def test_spans_without_parents_are_neighbours_in_a_row() -> None:
    near = Nearness(tree({"a": ("llm", None), "b": ("tool", "lost"), "c": ("llm", None)}))
    assert near.near("b") == {"a", "b", "c"}
    assert near.near("a") == {"a", "b"}


def test_unknown_and_repeated_spans() -> None:
    near = Nearness([*tree(TREE), Span(id="llm1", kind="tool", parent_id="step2")])
    assert near.near("nowhere") == {"nowhere"}
    assert near.near("llm1") == {"llm1", "step1", "tool1"}


def plain_step(layout: dict[str, tuple[str, str | None]], span: str) -> str | None:
    """The rule of the module, climbed for each span anew."""

    def above(one: str) -> list[str]:
        parent = layout[one][1]
        return [] if parent is None else [parent, *above(parent)]

    agents = any(kind == "agent" for kind, _ in layout.values())
    for one in [span, *above(span)]:
        kinds = [layout[x][0] for x in above(one)]
        if layout[one][0] == "chain" and ("agent" in kinds if agents else bool(kinds)):
            return one
        if layout[one][0] == "agent" and one != span:
            return None
    return None


@settings(max_examples=often(80, 200), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["chain", "agent", "llm", "tool"]), st.integers(0, 9)),
                min_size=1, max_size=10))  # fmt: skip
def test_ancestors_within_a_step_by_brute_force(rows: list[tuple[str, int]]) -> None:
    layout = {
        f"s{i}": (kind, f"s{up % i}" if i and up < 9 else None) for i, (kind, up) in enumerate(rows)
    }

    def above(one: str) -> list[str]:
        parent = layout[one][1]
        return [] if parent is None else [parent, *above(parent)]

    near = Nearness(tree(layout), ["ancestor"])
    for a in layout:
        step = plain_step(layout, a)
        expected = {
            b
            for b in layout
            if step is not None
            and plain_step(layout, b) == step
            and (b in above(a) or a in above(b))
        }
        assert near.near(a) == expected | {a}


def test_a_chain_of_twenty_thousand_spans_is_read_in_linear_time() -> None:
    layout = {f"s{i}": ("chain", f"s{i - 1}" if i else None) for i in range(20_000)}
    near = Nearness([*tree(layout), Span(id="x", kind="llm", parent_id="s19999")], ["ancestor"])
    assert near.near("x") == {"x", "s19999"}


def test_relations_are_checked() -> None:
    for wrong in ([], ["cousin"]):
        with pytest.raises(ValueError, match="relations"):
            Nearness([], wrong)  # type: ignore[arg-type]


def test_a_skeleton_is_as_close_as_the_whole() -> None:
    whole = [one.model_copy(update={"input": "x" * 1000}) for one in tree(TREE)]
    bare = skeleton(whole)
    assert all(one.input == "" for one in bare)
    assert all(Nearness(bare).near(name) == Nearness(whole).near(name) for name in TREE)
