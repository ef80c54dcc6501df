"""Calls of turns and sessions against gold: rules by hand, tables by counting, a best matching."""

from __future__ import annotations

import json
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.errors import Transient
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.wire import Request
from agenteval.testing.scripted import ScriptedTransport
from agenteval.workflows.equality import Equality
from agenteval.workflows.judges import EqualityJudge
from agenteval.workflows.procedure import Call
from agenteval.workflows.scenario import Action
from agenteval.workflows.scores import (
    GoldTurn,
    MatchCounts,
    Resampling,
    SessionCounts,
    TurnTable,
    TurnVerdict,
    rates,
    score_session,
    score_turn,
    turn_table,
)
from agenteval.workflows.session import Prediction

QUICK = Resampling(resamples=200)


def gold(tool: str | None = "book", session: str = "s", **arguments: Any) -> GoldTurn:
    action = None if tool is None else Action(tool=tool, arguments=arguments)
    return GoldTurn(session=session, turn=3, action=action, response="" if tool else "Hi")


def call(tool: str = "book", arguments: Any = None, **more: Any) -> Prediction:
    return Prediction(form="call", tool=tool, arguments=arguments, **more)


REPLY = Prediction(form="reply", response="hello")
UNREADABLE = Prediction(form="unreadable", raw="???")


def judging(answer: Any) -> Equality:
    client = Client(ScriptedTransport(lambda request: answer), retry=RetryPolicy(attempts=1))
    return Equality(judge=EqualityJudge(client))


def saying(equal: bool) -> Equality:
    return judging(json.dumps({"reason": "r", "equal": equal}))


async def verdict(
    wanted: GoldTurn, prediction: Prediction, equality: Equality | None = None
) -> TurnVerdict:
    found = await score_turn(wanted, prediction, equality or Equality())
    assert TurnVerdict.model_validate_json(found.model_dump_json()) == found
    return found


async def table(*pairs: tuple[GoldTurn, Prediction]) -> TurnTable:
    return turn_table([await verdict(g, p) for g, p in pairs], how=QUICK)


def figures(found: TurnTable) -> list[float | None]:
    """Tool P, R, F1, parameter P, R, and parameter P, R whatever the tool."""
    tool, own, free = found.tool, found.parameters, found.parameters_free
    shares = [
        tool.precision,
        tool.recall,
        tool.f1,
        own.precision,
        own.recall,
        free.precision,
        free.recall,
    ]
    return [one.known.mean for one in shares]


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        (call(arguments={"n": 2}), "right"),
        (call(arguments={"n": 2.0}), "right"),
        (call(arguments={"n": 2, "x": 1}), "right"),  # more parameters are free
        (call(arguments={"n": 3}), "wrong"),
        (call(arguments={}), "wrong"),
        (call(arguments=None), "wrong"),
        (call(arguments='{"n": 2'), "wrong"),
        (call("Book", {"n": 2}), "wrong"),  # names are compared as they are
        (call(" book ", {"n": 2}), "right"),
        (REPLY, None),
        (UNREADABLE, None),
    ],
)
async def test_a_call_due(prediction: Prediction, expected: str | None) -> None:
    assert (await verdict(gold(n=2), prediction)).call == expected


@pytest.mark.parametrize(
    ("equality", "expected"),
    [
        (saying(True), "right"),
        (saying(False), "wrong"),
        (Equality(), "undecided"),
        (judging("?"), "undecided"),
        (judging(Transient("down")), "undecided"),
    ],
)
async def test_what_only_a_judge_can_tell(equality: Equality, expected: str) -> None:
    found = await verdict(gold(t="7 pm", n=2), call(arguments={"t": "19:00", "n": 2}), equality)
    assert found.call == expected


# -- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (
            [(gold(n=2), call(arguments={"n": 2})), (gold(n=2), REPLY)],
            [1, 1 / 2, 2 / 3, 1, 1 / 2, 1, 1 / 2],
        ),
        (
            [(gold(n=2), call(arguments={"n": 2})), (gold(None), call(arguments={"n": 2}))],
            [1 / 2, 1, 2 / 3, 1, 1, 1, 1],
        ),
        # a wrong tool with the right parameters earns nothing, but what stands beside it
        ([(gold(n=2), call("find", {"n": 2}))], [0, 0, 0, 0, 0, 1, 1]),
        ([(gold(n=2), call(arguments={"n": 2, "x": 1}))], [1, 1, 1, 1 / 2, 1, 1 / 2, 1]),
        ([(gold(n=2), UNREADABLE)], [None, 0, 0, None, 0, None, 0]),
        ([(gold(None), REPLY)], [None] * 7),
        ([(gold(n=2), call(arguments="oops"))], [0, 0, 0, None, 0, None, 0]),
        ([(gold(), call(arguments={}))], [1, 1, 1, None, None, None, None]),
    ],
)
async def test_figures_by_hand(
    pairs: list[tuple[GoldTurn, Prediction]], expected: list[float | None]
) -> None:
    got = figures(await table(*pairs))
    assert [None if g is None else pytest.approx(g) for g in got] == expected


# -- rates ---------------------------------------------------------------------------------------

COUNTS = (
    st.integers(0, 4)
    .flatmap(
        lambda both: st.tuples(
            st.integers(0, both), st.integers(0, both), st.just(both), st.integers(0, 3)
        )
    )
    .map(
        lambda t: MatchCounts(min(t[0], t[2]), min(t[1], t[2] - min(t[0], t[2])), t[2], t[2] + t[3])
    )
)


@given(st.lists(COUNTS, min_size=1, max_size=8))
def test_rates_are_sums_divided(counts: list[MatchCounts]) -> None:
    found = rates(counts, list(range(len(counts))), QUICK)
    right = sum(c.right for c in counts)
    undecided = sum(c.undecided for c in counts)
    predicted = sum(c.predicted for c in counts)
    gold_calls = sum(c.gold for c in counts)
    for rate, below in ((found.precision, predicted), (found.recall, gold_calls)):
        if below == 0:
            assert (rate.known.mean, rate.low, rate.high) == (None, None, None)
            continue
        assert rate.low == pytest.approx(right / below)
        assert rate.high == pytest.approx((right + undecided) / below)
        if below > undecided:
            assert rate.known.mean == pytest.approx(right / (below - undecided))
            assert rate.low - 1e-12 <= rate.known.mean <= rate.high + 1e-12
    p, r, f = (x.known.mean for x in (found.precision, found.recall, found.f1))
    if p and r:
        assert f == pytest.approx(2 * p * r / (p + r))


# -- recorded sessions ---------------------------------------------------------------------------


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
        ([A], [("a", {"n": 1, "m": 5})], 1, ((0, 0),)),
        ([A], [("a", {"n": 2})], 0, ()),
        ([A], [("A", {"n": 1})], 0, ()),
        ([C], [("c", None)], 1, ((0, 0),)),
        ([C], [("c", "oops")], 0, ()),
        ([("a", {"n": ""})], [("a", {})], 1, ((0, 0),)),
        ([("a", {"o": {"x": 1}})], [("a", {"o": {"x": 2}})], 0, ()),
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
