"""What trees demand, against a second reading of the semantics that goes by paths."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hypothesis import given, settings

from agenteval.evaluators.planning.case import Before, Constraint, TimeLimit
from agenteval.evaluators.planning.dsl.lexicon import built_in
from agenteval.evaluators.planning.dsl.tree import (
    Actions,
    Object,
    Pair,
    Paragraph,
    Time,
    constraints_of,
    demands,
)
from tests.evaluators.planning.dsl.trees import paragraphs
from tests.thorough import often


def relations(node: object) -> Iterator[tuple[Actions, str, Object]]:
    """(subject, direction, object) of every clause of a part, recursively from both sides."""
    if isinstance(node, Pair):
        yield node.main.subject, node.direction, node.other.subject
        yield from relations(node.main.subject)
        yield from relations(node.other.subject)
    elif isinstance(node, Actions):
        if node.relative is not None:
            yield node, node.relative.link.direction, node.relative.object
            yield from relations(node.relative.object)
    elif not isinstance(node, Time):
        yield node.subject, node.link.direction, node.object  # type: ignore[attr-defined]
        yield from relations(node.subject)  # type: ignore[attr-defined]
        yield from relations(node.object)  # type: ignore[attr-defined]


def expected(part: object) -> set[Constraint]:
    found: set[Constraint] = set()
    for subject, direction, object_ in relations(part):
        if isinstance(object_, Time):
            side = "before" if direction == "prec" else "after"
            found |= {TimeLimit(s, side, object_.hour) for s in subject.ids}
        else:
            for s, o in product(subject.ids, object_.ids):
                found.add(Before(s, o) if direction == "prec" else Before(o, s))
    return found


@settings(max_examples=often(80, 200), deadline=None)
@given(paragraphs(built_in(), 6))
def test_constraints_are_those_of_all_clauses(tree: Paragraph) -> None:
    parts = list(tree.parts())
    for part in parts:
        assert set(demands(part)) == expected(part)
        assert len(demands(part)) == len(set(demands(part)))
    stated = constraints_of(tree)
    assert {s.constraint for s in stated} == set().union(*map(expected, parts))
    assert len({s.constraint for s in stated}) == len(stated)
    for s in stated:
        assert s.sentences == tuple(
            i for i, part in enumerate(parts) if s.constraint in expected(part)
        )
