"""The number of trees, against the counting rule worked out by hand."""

from __future__ import annotations

from agenteval.evaluators.planning.dsl.count import expansions, nouns, trees
from agenteval.evaluators.planning.dsl.nodes import Actions, Clause, Pair


def test_340_expansions() -> None:
    # subject = object = 1 + 4; clauses 3 forms x 2 directions x 25; pairs 2 x 2 x 5; 2 sentences
    assert (3 * 2 * 5 * 5 + 2 * 2 * 5) * 2 == 340
    assert expansions() == 340


def test_numbers_of_trees() -> None:
    for depth, options in ((0, 1), (1, 5), (2, 21)):
        assert len(nouns(depth)) == options
        found = list(trees(depth))
        assert len(found) == len(set(found)) == 6 * options**2 + 4 * options
        assert sum(isinstance(part, Pair) for part in found) == 4 * options


def test_every_place_has_its_own_action() -> None:
    for part in trees(2):
        roots = (
            (part.subject, part.object)
            if isinstance(part, Clause)
            else (part.main.subject, part.other.subject)
        )
        ids: list[int] = []
        for root in roots:
            node: object = root
            while isinstance(node, Actions):
                ids += node.ids
                node = node.relative.object if node.relative else None
        assert ids == list(range(len(ids)))
