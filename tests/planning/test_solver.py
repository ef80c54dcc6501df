"""Graph and Z3 against enumeration, networkx and counts that are known."""

from __future__ import annotations

import sys
from itertools import combinations, islice, permutations, product
from math import comb, factorial

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.planning.case import Before, Constraint, Span, TimeLimit
from agenteval.planning.solver import (
    Graph,
    Timed,
    Undecided,
    contradiction,
    count_plans,
    graph_of,
    plans,
    schedule,
    solver_for,
)

Schedule = tuple[Span, ...]  # from, until of each action


def kept(constraint: Constraint, times: Schedule) -> bool:
    match constraint:
        case Before(first, second):
            return times[second][0] >= times[first][1]
        case TimeLimit(action, "before", hour):
            return not times[action][1] > hour
        case TimeLimit(action, "after", hour):
            return not times[action][0] < hour
    raise AssertionError(constraint)


def everything(n: int, durations: tuple[int, ...] | None) -> list[Schedule]:
    """All plans as positions, or all schedules in whole hours of one day."""
    if durations is None:
        return [tuple((p, p + 1) for p in plan) for plan in permutations(range(n))]
    starts = product(*(range(25 - hours) for hours in durations))
    every = (tuple((s, s + d) for s, d in zip(of, durations, strict=True)) for of in starts)
    return [t for t in every if all(a[1] <= b[0] or b[1] <= a[0] for a, b in combinations(t, 2))]


def valid(n: int, orders: list[Constraint]) -> list[tuple[int, ...]]:
    """Every plan that keeps the orders."""
    return [
        plan
        for plan in permutations(range(n))
        if all(kept(c, tuple((plan.index(i), plan.index(i) + 1) for i in range(n))) for c in orders)
    ]


def orders(n: int) -> st.SearchStrategy[Constraint]:
    action = st.integers(0, n - 1)
    return st.builds(Before, action, action)


def constraints(n: int) -> st.SearchStrategy[Constraint]:
    sides, hours = st.sampled_from(["before", "after"]), st.integers(0, 24)
    return orders(n) | st.builds(TimeLimit, st.integers(0, n - 1), sides, hours)


@st.composite
def problems(draw: st.DrawFn) -> tuple[int, tuple[int, ...] | None, list[Constraint]]:
    """Orders of up to 6 actions, or orders and limits of actions so long that all can be tried."""
    if draw(st.booleans()):
        n = draw(st.integers(1, 6))
        return n, None, draw(st.lists(orders(n), max_size=8))
    n = draw(st.integers(1, 3))
    low, high = ((1, 24), (2, 12), (5, 8))[n - 1]
    durations = tuple(draw(st.lists(st.integers(low, high), min_size=n, max_size=n)))
    return n, durations, draw(st.lists(constraints(n), max_size=6))


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(problems())
def test_a_growing_set_is_decided_as_by_enumeration(
    problem: tuple[int, tuple[int, ...] | None, list[Constraint]],
) -> None:
    n, durations, asked = problem
    left = everything(n, durations)
    solver = solver_for(n, durations)
    assert solver.allows(asked) == any(all(kept(c, t) for c in asked) for t in left)
    for constraint in asked:
        held = [t for t in left if kept(constraint, t)]
        assert solver.allows([constraint]) == bool(held)
        assert solver.implies(constraint) == (len(held) == len(left))
        if held:
            solver.add([constraint])
            left = held
        else:
            with pytest.raises(ValueError, match="contradicts"):
                solver.add([constraint])
    if isinstance(solver, Timed):
        assert solver.solution() in left


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(problems())
def test_contradictions_are_minimal(
    problem: tuple[int, tuple[int, ...] | None, list[Constraint]],
) -> None:
    n, durations, asked = problem
    left = everything(n, durations)

    def possible(some: list[Constraint]) -> bool:
        return any(all(kept(c, t) for c in some) for t in left)

    core = contradiction(n, asked, durations)
    assert (core is None) == possible(asked)
    if core is not None:
        chosen = [asked[i] for i in core]
        assert not possible(chosen)
        assert all(possible(chosen[:i] + chosen[i + 1 :]) for i in range(len(chosen)))
    if durations is not None:
        starts = schedule(n, asked, durations)
        assert (starts is not None) == possible(asked)
        if starts is not None:
            times = tuple((s, s + d) for s, d in zip(starts, durations, strict=True))
            assert all(kept(c, times) for c in asked)


@given(st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.lists(orders(n), max_size=8))))
def test_plans_closure_and_reduction(problem: tuple[int, list[Constraint]]) -> None:
    n, asked = problem
    expected = valid(n, asked)
    assert list(plans(n, asked)) == expected
    assert count_plans(n, asked) == len(expected)
    graph = graph_of(n, asked)
    assert (graph is not None) == bool(expected)
    if graph is not None:
        directed = nx.DiGraph([(c.first, c.second) for c in asked])  # type: ignore[union-attr]
        directed.add_nodes_from(range(n))
        assert graph.after == [sum(1 << b for b in nx.descendants(directed, a)) for a in range(n)]
        fewest = graph.reduction()
        assert [(c.first, c.second) for c in fewest] == sorted(
            nx.transitive_reduction(directed).edges
        )
        assert valid(n, list(fewest)) == expected


def test_counts_that_are_known() -> None:
    """Fences a<b>c<d>... have as many plans as alternating permutations (OEIS A000111)."""
    zigzag = [1, 1, 1, 2, 5, 16, 61, 272, 1385, 7936, 50521, 353792, 2702765]
    for n in range(1, len(zigzag)):
        fence = [Before(i, i + 1) if i % 2 == 0 else Before(i + 1, i) for i in range(n - 1)]
        assert count_plans(n, fence) == zigzag[n]
    assert count_plans(30, []) == factorial(30)
    assert count_plans(20, [Before(i, i + 1) for i in range(19) if i != 9]) == comb(20, 10)
    assert count_plans(16, [Before(0, i) for i in range(1, 16)]) == factorial(15)
    assert count_plans(18, [Before(0, i) for i in range(1, 18)]) is None  # 2**17 + 1 down-sets
    assert list(islice(plans(25, []), 2)) == [tuple(range(25)), (*range(23), 24, 23)]


def test_refusals() -> None:
    with pytest.raises(TypeError, match="only orders"):
        Graph(2).allows([TimeLimit(0, "before", 9)])
    for wrong in (Before(0, 2), Before(-1, 0)):
        with pytest.raises(ValueError, match="actions 0 to 1"):
            Graph(2).add([wrong])
    with pytest.raises(ValueError, match="contradict"):
        Graph(2, [Before(0, 1), Before(1, 0)])
    for durations, message in (([1], "needs 2"), ([0, 1], "at least 1"), ([20, 5], "25 hours")):
        with pytest.raises(ValueError, match=message):
            Timed(2, durations)
    assert schedule(2, [], [20, 5]) is None


def test_an_unknown_of_z3_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import z3

    monkeypatch.setattr(z3.Solver, "check", lambda *_: z3.unknown)
    with pytest.raises(Undecided):
        Timed(2, [3, 4]).allows([TimeLimit(1, "before", 3)])


def test_orders_need_no_z3_and_hours_without_it_name_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    solver = Timed(2, [3, 4])
    solver.add([Before(0, 1)])
    assert not solver.allows([Before(1, 0)])
    with pytest.raises(InputError, match=r"agenteval\[planning\]"):
        solver.allows([TimeLimit(0, "before", 9)])
