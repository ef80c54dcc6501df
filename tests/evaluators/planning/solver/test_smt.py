import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.evaluators.planning.case import Before, Constraint, Stated, TimeLimit
from agenteval.evaluators.planning.solver.choose import Timed
from agenteval.evaluators.planning.solver.graph import MAX_ACTIONS, Graph, closure, nearest_schedule
from agenteval.evaluators.planning.solver.smt import Smt, Undecided, core, schedule, violated_core
from tests.evaluators.planning.solver import times

SLOW = settings(max_examples=60, deadline=None)


def orders(n: int) -> st.SearchStrategy[Before]:
    action = st.integers(0, n - 1)
    return st.builds(Before, action, action)


def growing(solver: Graph | Smt | Timed, constraints: list[Constraint]) -> list[str]:
    """What a solver says of one constraint after the other, keeping those that it allows."""
    said = []
    for constraint in constraints:
        allowed = solver.allows([constraint])
        said.append(f"{constraint}: implied {solver.implies(constraint)}, allowed {allowed}")
        if allowed:
            solver.add([constraint])
        else:
            with pytest.raises(ValueError):
                solver.add([constraint])
    return said


def growing_by_enumeration(everything: list[times.Times], asked: list[Constraint]) -> list[str]:
    said = []
    for constraint in asked:
        held = [t for t in everything if times.kept(constraint, t)]
        said.append(f"{constraint}: implied {len(held) == len(everything)}, allowed {bool(held)}")
        everything = held or everything
    return said


def positions(n: int) -> list[times.Times]:
    return [tuple((p, p + 1) for p in plan) for plan in permutations(range(n))]


@SLOW
@given(st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.lists(orders(n), max_size=9))))
def test_orders_on_graph_and_z3_as_by_enumeration(problem: tuple[int, list[Constraint]]) -> None:
    n, asked = problem
    expected = growing_by_enumeration(positions(n), asked)
    assert growing(Smt(n), asked) == expected
    assert growing(Graph(n), asked) == expected


@SLOW
@given(times.problems())
def test_times_by_z3_as_by_enumeration(problem: tuple[tuple[int, ...], list[Constraint]]) -> None:
    durations, asked = problem
    everything = times.schedules(durations)
    if not everything:
        with pytest.raises(ValueError, match="hours, a day has 24"):
            Smt(len(durations), durations=durations)
        with pytest.raises(ValueError, match="hours, a day has 24"):
            Timed(len(durations), durations)
        return
    expected = growing_by_enumeration(everything, asked)
    assert growing(Smt(len(durations), durations=durations), asked) == expected
    assert growing(Timed(len(durations), durations), asked) == expected


@SLOW
@given(times.problems())
def test_several_at_once(problem: tuple[tuple[int, ...], list[Constraint]]) -> None:
    durations, asked = problem
    if not times.schedules(durations):
        return
    expected = bool(times.schedules(durations, asked))
    timed = Timed(len(durations), durations)
    assert timed.allows(asked) == expected
    assert Smt(len(durations), durations=durations).allows(asked) == expected
    if expected:
        timed.add(asked)
        assert all(timed.implies(constraint) for constraint in asked)


@settings(max_examples=8, deadline=None)
@given(st.lists(times.constraints(2), max_size=4))
def test_times_without_durations(asked: list[Constraint]) -> None:
    expected = growing_by_enumeration(list(times.free_schedules(2)), asked)
    assert growing(Smt(2), asked) == expected


def test_positions_are_no_hours() -> None:
    """The last of 24 positions lasts until 25, the last of 24 hours until 24."""
    solver = Smt(24, [Before(0, 1)])
    assert not any(solver.allows([TimeLimit(i, "after", 24)]) for i in range(24))


@SLOW
@given(times.problems(), st.data())
def test_schedules(problem: tuple[tuple[int, ...], list[Constraint]], data: st.DataObject) -> None:
    durations, asked = problem
    n = len(durations)
    possible = times.schedules(durations, asked)
    found = schedule(n, asked, durations)
    assert (found is not None) == bool(possible)
    if found is not None:
        assert tuple((s, s + d) for s, d in zip(found, durations, strict=True)) in possible
    order: list[int] = data.draw(st.permutations(list(range(n))))
    sequence = order[: data.draw(st.integers(0, n))]
    nearest = nearest_schedule(n, asked, durations, sequence)
    assert (nearest is not None) == bool(possible)
    if nearest is not None:
        assert [start for _, start in nearest] == sorted(start for _, start in nearest)
        chosen = tuple((s, s + durations[i]) for i, s in sorted(nearest))
        assert chosen in possible
        assert badness(chosen, sequence) == min(badness(t, sequence) for t in possible)


def badness(chosen: times.Times, sequence: list[int]) -> tuple[int, int]:
    """Swapped pairs, then the end of the day's last action."""
    pairs = [(a, b) for i, a in enumerate(sequence) for b in sequence[i + 1 :]]
    return sum(chosen[a] > chosen[b] for a, b in pairs), max(end for _, end in chosen)


def earliest(
    plan: Sequence[int], durations: Sequence[int], asked: Sequence[Constraint]
) -> times.Times | None:
    """The plan with every action as early as it can be; None if it breaks a constraint."""
    found, now = {}, 0
    for action in plan:
        start = now
        while not all(times.kept(c, {action: (start, start)}) for c in afters(action, asked)):
            start += 1
        now = start + durations[action]
        found[action] = (start, now)
    chosen = tuple(found[i] for i in range(len(plan)))
    return chosen if now <= 24 and all(times.kept(c, chosen) for c in asked) else None


def afters(action: int, asked: Sequence[Constraint]) -> list[TimeLimit]:
    limits = [c for c in asked if isinstance(c, TimeLimit)]
    return [c for c in limits if c.action == action and c.side == "after"]


@SLOW
@given(
    st.lists(st.integers(1, 5), min_size=5, max_size=5),
    st.lists(times.constraints(5), max_size=6),
    st.permutations(range(5)),
    st.integers(0, 3),
)
def test_nearest_of_five(
    durations: list[int], asked: list[Constraint], order: list[int], called: int
) -> None:
    """Against all 120 plans, each as early as can be, with two lost actions or more."""
    sequence = order[:called]
    every = (earliest(plan, durations, asked) for plan in permutations(range(5)))
    possible = [times for times in every if times is not None]
    nearest = nearest_schedule(5, asked, durations, sequence)
    assert (nearest is not None) == bool(possible)
    if nearest is not None:
        chosen = tuple((s, s + durations[i]) for i, s in sorted(nearest))
        assert chosen in possible
        assert badness(chosen, sequence) == min(badness(t, sequence) for t in possible)


def test_schedule_by_hand() -> None:
    """Action 1 must be over by 15 and follow 0, which takes 2 hours; the agent did 1 first."""
    asked: list[Constraint] = [Before(0, 1), TimeLimit(1, "before", 15), TimeLimit(0, "after", 9)]
    assert nearest_schedule(2, asked, [2, 1], [1, 0]) == ((0, 9), (1, 11))
    assert nearest_schedule(2, [Before(0, 1), TimeLimit(1, "before", 4)], [3, 2], [0, 1]) is None
    assert nearest_schedule(2, [Before(0, 1), Before(1, 0)], [1, 1], [0]) is None
    assert nearest_schedule(2, [], [13, 12], [0, 1]) is None
    # both were lost: the one that can start at once comes first
    assert nearest_schedule(2, [TimeLimit(0, "after", 10)], [1, 2], []) == ((1, 0), (0, 10))
    with pytest.raises(ValueError, match="up to"):
        nearest_schedule(MAX_ACTIONS + 1, [], [1] * (MAX_ACTIONS + 1), [])


def numbered(constraints: Sequence[Constraint]) -> list[Stated]:
    return [Stated(c, (i,)) for i, c in enumerate(constraints)]


@SLOW
@given(st.integers(2, 5).flatmap(lambda n: st.tuples(st.just(n), st.lists(orders(n), max_size=9))))
def test_cores_of_orders_are_minimal(problem: tuple[int, list[Constraint]]) -> None:
    n, asked = problem
    found = core(n, numbered(asked))
    if closure(n, asked) is not None:
        assert found is None
        return
    assert found is not None
    because = [asked[i] for i in found]
    assert closure(n, because) is None
    for i in range(len(because)):
        assert closure(n, because[:i] + because[i + 1 :]) is not None


@SLOW
@given(times.problems())
def test_cores_of_times_are_minimal(problem: tuple[tuple[int, ...], list[Constraint]]) -> None:
    durations, asked = problem
    found = core(len(durations), numbered(asked), durations)
    if times.schedules(durations, asked):
        assert found is None
        return
    assert found is not None
    because = [asked[i] for i in found]
    assert not times.schedules(durations, because)
    for i in range(len(because)):
        assert times.schedules(durations, because[:i] + because[i + 1 :])


def test_cores_by_hand() -> None:
    cycle = [Before(3, 0), Before(0, 1), Before(1, 2), Before(2, 0), Before(3, 2)]
    assert core(4, numbered(cycle)) == (1, 2, 3)
    # Z3's own core holds the second limit too, of which nothing depends
    late = [TimeLimit(0, "after", 15), TimeLimit(2, "after", 17), TimeLimit(3, "before", 4)]
    assert core(4, numbered([*late, Before(0, 3)]), [4, 1, 3, 4]) == (2, 3)
    limits = [TimeLimit(2, "after", 1), TimeLimit(0, "after", 15), TimeLimit(0, "before", 15)]
    assert core(3, numbered(limits)) == (1, 2)
    assert core(2, numbered([Before(0, 1)]), [20, 5]) == ()
    assert core(2, numbered([Before(0, 1)]), [20, 4]) is None


def test_violated_core_names_one_sentence() -> None:
    asked = [
        Stated(Before(0, 1), (4,)),
        Stated(Before(2, 3), (2, 6)),
        Stated(Before(1, 3), (5,)),
        Stated(TimeLimit(1, "before", 9), (3,)),
        Stated(Before(3, 2), ()),
    ]
    places = [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert violated_core(asked, places) == ()  # the only violated one has no number
    assert violated_core(asked, [(1, 2), (0, 1), (2, 3), (3, 4)]) == (4,)
    assert violated_core(asked, [(1, 2), (0, 1), (3, 4), (2, 3)]) == (2,)
    assert violated_core(asked, [(1, 2), (1, 2), (2, 3), (3, 4)]) == (4,)
    assert violated_core(asked, [(1, 2), None, (2, 3), (3, 4)]) == ()
    assert violated_core(asked, places, [None, (9, 10), None, None]) == (3,)
    assert violated_core(asked, places, [None, (8, 9), None, None]) == ()


def test_an_unknown_is_an_error() -> None:
    """Fourteen actions of an hour in thirteen hours: too many pigeons for the time given."""
    n = 14
    hard: list[Constraint] = [TimeLimit(i, "before", n - 1) for i in range(n)]
    with pytest.raises(Undecided):
        Smt(n, durations=[1] * n, timeout=0.05).allows(hard)
    with pytest.raises(Undecided):
        core(n, numbered(hard), [1] * n, timeout=0.05)


def test_usable_after_an_unknown() -> None:
    n = 14
    solver = Smt(n, durations=[1] * n, timeout=0.05)
    with pytest.raises(Undecided):
        solver.add([TimeLimit(i, "before", n - 1) for i in range(n)])
    assert not solver.allows([Before(0, 1), Before(1, 0)])


def test_refusals() -> None:
    with pytest.raises(ValueError, match="actions 0 to 1"):
        Smt(2).allows([Before(0, 2)])
    with pytest.raises(ValueError, match="contradicts"):
        Smt(2, [Before(0, 1), Before(1, 0)])
    with pytest.raises(ValueError, match="2 durations"):
        Smt(2, durations=[1])
    with pytest.raises(ValueError, match="at least 1 hour"):
        Smt(1, durations=[0])
    thirty = Smt(30, [Before(0, 29)])
    with pytest.raises(ValueError, match="30 actions"):
        thirty.allows([TimeLimit(0, "before", 9)])
    assert thirty.allows([Before(1, 2)])


def test_the_graph_answers_where_it_can() -> None:
    solver = Timed(4, [6, 6, 6, 6])
    solver.add([Before(0, 1), Before(1, 2)])
    assert solver.implies(Before(0, 2))
    assert not solver.implies(Before(0, 3))
    assert not solver.allows([Before(2, 0)])
    assert solver.calls == 0
    assert solver.implies(TimeLimit(2, "after", 12))
    assert not solver.allows([TimeLimit(0, "after", 7)])
    assert solver.calls > 0


def test_threads_do_not_disturb_each_other() -> None:
    def decide(seed: int) -> list[bool]:
        solver = Smt(4, [Before(seed % 3, 3)], durations=[1 + seed % 5, 6, 6, 6])
        return [solver.allows([Before(a, b)]) for a, b in product(range(4), repeat=2)]

    alone = [decide(seed) for seed in range(40)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(decide, range(40))) == alone


def test_memory_does_not_grow_with_the_cases() -> None:
    import z3

    def cases(count: int) -> int:
        for _ in range(count):
            Smt(4, [Before(0, 1), TimeLimit(1, "before", 9)], durations=[1, 2, 3, 4])
        return int(z3.Z3_get_estimated_alloc_size())

    before = cases(100)
    assert cases(300) - before < 100_000  # less than a third of a kilobyte each


def test_import_is_cheap() -> None:
    line = (
        "import sys, agenteval.evaluators.planning.checker, "
        "agenteval.evaluators.planning.solver.choose as c; "
        "c.solver_for(3).allows([]); assert 'z3' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", line], check=True)
