from itertools import combinations, islice, permutations
from math import comb, factorial

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.evaluators.planning.case import Before, TimeLimit
from agenteval.evaluators.planning.solver.graph import (
    MAX_DOWN_SETS,
    Graph,
    closure,
    count_plans,
    equivalent,
    nearest_plan,
    plans,
    reduction,
)

Pairs = list[tuple[int, int]]


def befores(pairs: Pairs) -> list[Before]:
    return [Before(a, b) for a, b in pairs]


def valid(n: int, pairs: Pairs) -> list[tuple[int, ...]]:
    """Every plan that keeps the orders, by trying all permutations."""
    found = []
    for plan in permutations(range(n)):
        place = {action: i for i, action in enumerate(plan)}
        if all(place[a] < place[b] for a, b in pairs):
            found.append(plan)
    return found


def swapped(plan: tuple[int, ...], sequence: list[int]) -> int:
    """Pairs of the sequence that the plan has in the other order."""
    place = {action: i for i, action in enumerate(plan)}
    return sum(place[a] > place[b] for a, b in combinations(sequence, 2))


@st.composite
def problems(draw: st.DrawFn, acyclic: bool = False) -> tuple[int, Pairs]:
    n = draw(st.integers(1, 6))
    action = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(action, action), max_size=8))
    if acyclic:
        rank = draw(st.permutations(range(n)))
        pairs = [(a, b) if rank[a] < rank[b] else (b, a) for a, b in pairs if a != b]
    return n, pairs


@given(problems())
def test_as_by_enumeration(problem: tuple[int, Pairs]) -> None:
    n, pairs = problem
    expected = valid(n, pairs)
    assert list(plans(n, befores(pairs))) == expected
    assert count_plans(n, befores(pairs)) == len(expected)
    assert (closure(n, befores(pairs)) is not None) == bool(expected)
    assert Graph(n).allows(befores(pairs)) == bool(expected)


@given(problems(acyclic=True), st.data())
def test_growing_set_as_by_enumeration(problem: tuple[int, Pairs], data: st.DataObject) -> None:
    n, pairs = problem
    graph = Graph(n, befores(pairs))
    kept = valid(n, pairs)
    for a in range(n):
        for b in range(n):
            holds = [plan.index(a) < plan.index(b) for plan in kept]
            assert graph.implies(Before(a, b)) == all(holds)
            assert graph.allows([Before(a, b)]) == any(holds)
    action = st.integers(0, n - 1)
    more = data.draw(st.lists(st.tuples(action, action), max_size=3))
    left = valid(n, pairs + more)
    assert graph.allows(befores(more)) == bool(left)
    unchanged = graph.copy()
    if left:
        graph.add(befores(more))
        assert graph.after == Graph(n, befores(pairs + more)).after
    else:
        with pytest.raises(ValueError, match="contradicts"):
            graph.add(befores(more))
        assert (graph.after, graph.before) == (unchanged.after, unchanged.before)


@given(problems(acyclic=True))
def test_closure_and_reduction_are_those_of_networkx(problem: tuple[int, Pairs]) -> None:
    n, pairs = problem
    orders = befores(pairs)
    directed = nx.DiGraph(pairs)
    directed.add_nodes_from(range(n))
    expected = tuple(sum(1 << b for b in nx.descendants(directed, a)) for a in range(n))
    assert closure(n, orders) == expected
    fewest = reduction(n, orders)
    assert fewest == befores(sorted(nx.transitive_reduction(directed).edges))
    assert equivalent(n, orders, fewest)


@given(problems(), problems())
def test_equivalent_means_the_same_plans(one: tuple[int, Pairs], other: tuple[int, Pairs]) -> None:
    n = max(one[0], other[0])
    same = valid(n, one[1]) == valid(n, other[1])
    assert equivalent(n, befores(one[1]), befores(other[1])) == same


@given(problems(acyclic=True), st.data())
def test_nearest_plan_as_by_enumeration(problem: tuple[int, Pairs], data: st.DataObject) -> None:
    n, pairs = problem
    order = data.draw(st.permutations(range(n)))
    called = order[: data.draw(st.integers(0, n))]
    repeated = called + data.draw(
        st.lists(st.sampled_from(called), max_size=3) if called else st.just([])
    )
    preferred = called + [i for i in range(n) if i not in called]
    expected = min(
        valid(n, pairs),
        key=lambda plan: (swapped(plan, called), [preferred.index(i) for i in plan]),
    )
    assert nearest_plan(n, befores(pairs), repeated) == expected


def test_a_valid_sequence_is_its_own_nearest_plan() -> None:
    assert nearest_plan(4, [Before(0, 1), Before(2, 3)], [2, 0, 3, 1]) == (2, 0, 3, 1)


def test_fences_are_counted_by_the_zigzag_numbers() -> None:
    """Orders a<b>c<d>... have as many plans as alternating permutations (OEIS A000111)."""
    zigzag = [1, 1, 1, 2, 5, 16, 61, 272, 1385, 7936, 50521, 353792, 2702765]
    for n in range(1, len(zigzag)):
        fence = [Before(i, i + 1) if i % 2 == 0 else Before(i + 1, i) for i in range(n - 1)]
        assert count_plans(n, fence) == zigzag[n]


def test_counts_beyond_enumeration() -> None:
    chains = [Before(i, i + 1) for i in range(19) if i != 9]
    assert count_plans(30, []) == factorial(30)
    assert count_plans(20, chains) == comb(20, 10)
    assert count_plans(0, []) == 1
    assert count_plans(16, [Before(0, i) for i in range(1, 16)]) == factorial(15)


def test_beyond_the_bound() -> None:
    star = [Before(0, i) for i in range(1, 18)]  # 2**17 + 1 down-sets
    assert MAX_DOWN_SETS < 2**17
    assert count_plans(18, star) is None
    plan = nearest_plan(18, star, range(17, -1, -1))
    assert plan == (0, *range(17, 0, -1))  # valid; here the greedy rule is even nearest


def test_plans_are_lazy() -> None:
    assert list(islice(plans(25, []), 2)) == [tuple(range(25)), (*range(23), 24, 23)]


def test_refusals() -> None:
    with pytest.raises(TypeError, match="orders only"):
        Graph(2).allows([TimeLimit(0, "before", 9)])
    with pytest.raises(ValueError, match="actions 0 to 1"):
        Graph(2).add([Before(0, 2)])
    with pytest.raises(ValueError, match="actions 0 to 1"):
        Graph(2).add([Before(-1, 0)])
    cycle = befores([(0, 1), (1, 0)])
    with pytest.raises(ValueError, match="contradict"):
        reduction(2, cycle)
    with pytest.raises(ValueError, match="contradict"):
        nearest_plan(2, cycle, [0, 1])
