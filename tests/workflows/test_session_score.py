"""Calls of sessions against gold: by hand, and properties of a one-to-one matching."""

from __future__ import annotations

import json
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.models.client import Client
from agenteval.models.wire import Request
from agenteval.testing.scripted import ScriptedTransport
from agenteval.workflows.align import Call
from agenteval.workflows.equality import Equality
from agenteval.workflows.judges import EqualityJudge
from agenteval.workflows.scenario import Action
from agenteval.workflows.scores import (
    SessionCounts,
    score_session,
)

A, B, C = (("a", {"n": 1}), ("b", {"n": 2}), ("c", {}))
Pair = tuple[str, Any]


async def counts(
    gold: list[Pair], made: list[Pair], equality: Equality | None = None
) -> SessionCounts:
    found = await score_session(
        "s",
        [Action(tool=t, arguments=a) for t, a in gold],
        [Call(tool=t, arguments=a) for t, a in made],
        equality or Equality(),
    )
    assert SessionCounts.model_validate_json(found.model_dump_json()) == found
    return found


@pytest.mark.parametrize(
    ("gold", "made", "right", "pairs"),
    [
        ([A, B], [A, B], 2, ((0, 0), (1, 1))),
        ([A, B], [A], 1, ((0, 0),)),
        ([A, B], [B, A], 2, ((0, 1), (1, 0))),  # order is for others to judge
        ([A, A], [A], 1, ((0, 0),)),  # one call serves once
        ([A], [A, A], 1, ((0, 0),)),
        ([], [], 0, ()),  # no calls are no calls
        ([], [A], 0, ()),
        ([A], [], 0, ()),
        ([A], [("a", {"n": 1, "m": 5})], 1, ((0, 0),)),
        ([A], [("a", {"n": 2})], 0, ()),
        ([A], [("a", {})], 0, ()),
        ([A], [("A", {"n": 1})], 0, ()),
        ([A], [("a", '{"n": 1')], 0, ()),
        ([C], [("c", None)], 1, ((0, 0),)),
        ([C], [("c", "oops")], 0, ()),
        ([("a", {"n": ""})], [("a", {})], 1, ((0, 0),)),
        ([("a", {"o": {"x": 1}})], [("a", {"o": {"x": 2}})], 0, ()),
        ([("a", {"o": {"x": 1}})], [("a", {"o": {"x": 1}})], 1, ((0, 0),)),
        ([("a", {"n": "x"})], [("a", {"n": "X."})], 1, ((0, 0),)),
    ],
)
async def test_by_hand(
    gold: list[Pair], made: list[Pair], right: int, pairs: tuple[tuple[int, int], ...]
) -> None:
    found = await counts(gold, made)
    assert (found.right, found.unjudged, found.pairs) == (right, 0, pairs)
    assert (found.gold, found.generated) == (len(gold), len(made))


async def test_the_judge_is_asked_only_where_nothing_else_differs() -> None:
    asked: list[str] = []

    def answer(request: Request) -> str:
        asked.append(str(request.messages[1]["content"]))
        return json.dumps({"reason": "r", "equal": True})

    equality = Equality(judge=EqualityJudge(Client(ScriptedTransport(answer))))
    found = await counts(
        [("a", {"t": "7 pm", "n": 1})],
        [
            ("a", {"t": "19:00", "n": 2}),
            ("b", {"t": "19:01", "n": 1}),
            ("a", {"t": "19:02"}),
            ("a", {"t": "19:03", "n": 1}),
        ],
        equality,
    )
    assert (found.right, found.pairs) == (1, ((0, 3),))
    assert len(asked) == 1
    assert "19:03" in asked[0]
    # nor where the call that is surely right leaves nothing to add
    noon, twelve = ("a", {"t": "noon"}), ("a", {"t": "12"})
    found = await counts([noon], [noon, twelve], equality)
    assert (found.right, found.pairs, len(asked)) == (1, ((0, 0),), 1)


PARAMETERS = st.dictionaries(st.sampled_from("mn"), st.sampled_from([1, 2]), max_size=2)
CALLS = st.lists(st.tuples(st.sampled_from("ab"), PARAMETERS), max_size=6)


@given(CALLS, CALLS)
async def test_as_many_pairs_as_any_matching_could_have(gold: list[Pair], made: list[Pair]) -> None:
    def fits(wanted: Pair, call: Pair) -> bool:
        return wanted[0] == call[0] and wanted[1].items() <= call[1].items()

    found = await counts(gold, made)
    graph: networkx.Graph[tuple[str, int]] = networkx.Graph()
    rows = [("gold", i) for i in range(len(gold))]
    graph.add_nodes_from(rows)
    graph.add_edges_from(
        (("gold", i), ("made", j))
        for i, wanted in enumerate(gold)
        for j, call in enumerate(made)
        if fits(wanted, call)
    )
    best = len(networkx.bipartite.maximum_matching(graph, rows)) // 2
    assert found.right == best == len(found.pairs)
    assert len({j for _, j in found.pairs}) == best
    assert all(fits(gold[i], made[j]) for i, j in found.pairs)
