"""Schedules by trying everything: the reference for Z3 and for the search."""

from collections.abc import Iterator, Sequence
from itertools import product

from hypothesis import strategies as st

from agenteval.evaluators.planning.case import Before, Constraint, TimeLimit

Times = tuple[tuple[int, int], ...]  # start and end of each action


def kept(constraint: Constraint, times: Times | dict[int, tuple[int, int]]) -> bool:
    match constraint:
        case Before(first, second):
            return times[second][0] >= times[first][1]
        case TimeLimit(action, "before", hour):
            return not times[action][1] > hour
        case TimeLimit(action, "after", hour):
            return not times[action][0] < hour
    raise AssertionError(constraint)


def schedules(durations: Sequence[int], constraints: Sequence[Constraint] = ()) -> list[Times]:
    """All schedules in whole hours of one day that keep the constraints."""
    starts = product(*(range(25 - hours) for hours in durations))
    every = (tuple((s, s + d) for s, d in zip(of, durations, strict=True)) for of in starts)
    return [t for t in every if apart(t) and all(kept(c, t) for c in constraints)]


def free_schedules(n: int) -> Iterator[Times]:
    """All schedules in whole hours of one day with any durations."""
    one = [(start, end) for start in range(24) for end in range(start + 1, 25)]
    return (times for times in product(one, repeat=n) if apart(times))


def apart(times: Times) -> bool:
    busy = [hour for start, end in times for hour in range(start, end)]
    return len(busy) == len(set(busy))


def constraints(n: int) -> st.SearchStrategy[Constraint]:
    action = st.integers(0, n - 1)
    limit = st.builds(TimeLimit, action, st.sampled_from(["before", "after"]), st.integers(0, 24))
    return st.one_of(st.builds(Before, action, action), limit)


@st.composite
def problems(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Constraint]]:
    """Durations so long that everything can be tried, and constraints."""
    durations = draw(
        st.one_of(
            st.tuples(st.integers(1, 24)),
            st.tuples(st.integers(2, 12), st.integers(2, 12)),
            st.tuples(st.integers(5, 8), st.integers(5, 8), st.integers(5, 8)),
        )
    )
    return durations, draw(st.lists(constraints(len(durations)), max_size=5))
