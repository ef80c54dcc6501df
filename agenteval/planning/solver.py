"""Decide whether constraints are satisfiable: orders by their graph, times with Z3.

A set of orders is satisfiable iff its graph has no cycle, and implies exactly the orders of its
transitive closure. Masks are Python integers, bit i for action i. Valid plans are the linear
extensions of the closure. Every prefix of a plan is a *down-set*, a set of actions that contains
all actions its members need; plans are counted over the down-sets.

With durations, the model is that of arXiv 2404.17833, section 4.4: whole hours 0 <= start < end <=
24, no two actions overlap, an order requires end <= start, a time limit end <= hour or start >=
hour.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from math import comb
from operator import or_
from typing import Any

from agenteval.errors import AgentevalError, InputError
from agenteval.planning.case import DAY, Before, Constraint, Span, holds, limits, orders

MAX_DOWN_SETS = 1 << 16  # one or two seconds; 16 actions without orders
TIMEOUT = 10.0  # seconds per Z3 query; queries about nine actions take milliseconds
_local = threading.local()


class Undecided(AgentevalError):
    """Z3 found no answer within its time limit. It is never treated as an answer."""

    exit_code = 3


def solver_for(n: int, durations: Sequence[int] | None = None) -> Graph | Timed:
    """Return an empty set of constraints over n actions; with durations, it accepts time limits.

    Raises ValueError for durations too long for a day.
    """
    return Graph(n) if durations is None else Timed(n, durations)


class Graph:
    """A growing, satisfiable set of orders over n actions.

    `after[i]` and `before[i]` are the masks of all actions that must come after and before i,
    transitively closed. Raises ValueError for contradictory orders, TypeError for time limits.
    """

    __slots__ = ("after", "before", "n")

    def __init__(self, n: int, constraints: Iterable[Constraint] = ()) -> None:
        self.n = n
        self.after, self.before = [0] * n, [0] * n
        self.add(tuple(constraints))

    def allows(self, constraints: Sequence[Constraint]) -> bool:
        """Return whether adding all of these leaves the graph without a cycle."""
        try:
            self._closure(constraints)
        except ValueError:
            return False
        return True

    def implies(self, constraint: Constraint) -> bool:
        """Return whether the order is in the transitive closure."""
        order = _order(constraint)
        return bool(self.after[order.first] >> order.second & 1)

    def add(self, constraints: Sequence[Constraint]) -> None:
        """Add the orders. Raises ValueError, without adding any, for a cycle or an unknown
        action."""
        self.after, self.before = self._closure(constraints)

    def reduction(self) -> list[Before]:
        """Return the sorted transitive reduction: the fewest orders with the same valid plans."""
        after, before = self.after, self.before
        return [
            Before(a, b)
            for a in range(self.n)
            for b in _members(after[a])
            if not after[a] & before[b]
        ]

    def _closure(self, constraints: Sequence[Constraint]) -> tuple[list[int], list[int]]:
        after, before = self.after[:], self.before[:]
        for constraint in constraints:
            first, second = _order(constraint).first, _order(constraint).second
            if not (0 <= first < self.n and 0 <= second < self.n):
                raise ValueError(f"{constraint} is not about actions 0 to {self.n - 1}")
            if first == second or after[second] >> first & 1:
                raise ValueError(f"{constraint} contradicts earlier orders")
            sources, targets = before[first] | 1 << first, after[second] | 1 << second
            for i in _members(sources):
                after[i] |= targets
            for i in _members(targets):
                before[i] |= sources
        return after, before


def _order(constraint: Constraint) -> Before:
    if isinstance(constraint, Before):
        return constraint
    raise TypeError(f"the graph supports only orders, not {constraint}")


def _members(mask: int) -> list[int]:
    members = []
    while mask:
        low = mask & -mask
        members.append(low.bit_length() - 1)
        mask ^= low
    return members


def graph_of(n: int, constraints: Iterable[Constraint]) -> Graph | None:
    """Return the graph of these orders, or None if they contradict each other."""
    try:
        return Graph(n, constraints)
    except ValueError:
        return None


def count_plans(n: int, constraints: Iterable[Constraint]) -> int | None:
    """Return the exact number of valid plans (linear extensions); 0 for contradictory orders.

    Unconnected groups of actions are counted separately and interleaved by binomials. Returns None
    for a connected group with more than `MAX_DOWN_SETS` down-sets (never up to 16 actions).
    """
    graph = graph_of(n, constraints)
    if graph is None:
        return 0
    related = [a | b for a, b in zip(graph.after, graph.before, strict=True)]
    total, placed, remaining = 1, 0, (1 << n) - 1
    while remaining:
        group, grown = 0, remaining & -remaining
        while grown != group:
            group, grown = grown, reduce(or_, (related[i] for i in _members(grown)), grown)
        remaining &= ~group
        placed += group.bit_count()
        members = [(1 << i, graph.before[i]) for i in _members(group)]
        ways, visited = {0: 1}, 1  # ways to reach each down-set, smallest first
        for _ in members:
            following: dict[int, int] = {}
            for done, count in ways.items():
                for bit, needs in members:
                    if not done & bit and not needs & ~done:
                        following[done | bit] = following.get(done | bit, 0) + count
            ways, visited = following, visited + len(following)
            if visited > MAX_DOWN_SETS:
                return None
        total *= ways[group] * comb(placed, group.bit_count())
    return total


def plans(n: int, constraints: Iterable[Constraint]) -> Iterator[tuple[int, ...]]:
    """Yield all valid plans in lexicographic order; none for contradictory orders."""
    graph = graph_of(n, constraints)
    if graph is None:
        return iter(())
    before = graph.before

    def longer(plan: tuple[int, ...], done: int) -> Iterator[tuple[int, ...]]:
        if len(plan) == n:
            yield plan
        for i in range(n):
            if not done >> i & 1 and not before[i] & ~done:
                yield from longer((*plan, i), done | 1 << i)

    return longer((), 0)


class Timed:
    """A growing, satisfiable set of orders and time limits over actions with durations.

    Action i ends at start_i + durations[i], all within 0 to 24 and without overlap. The graph finds
    cycles of orders. Without time limits, the graph alone decides, because actions that fit into
    the day do so in any order. All other queries go to Z3, unless the last solution answers them.
    Raises ValueError if durations are not n positive numbers that fit into a day, and `Undecided`
    if Z3 gives up.
    """

    def __init__(self, n: int, durations: Sequence[int], timeout: float = TIMEOUT) -> None:
        if len(durations) != n or any(hours < 1 for hours in durations):
            raise ValueError(f"needs {n} durations of at least 1 hour, not {list(durations)}")
        if sum(durations) > DAY:
            raise ValueError(f"the actions take {sum(durations)} hours, a day has {DAY}")
        self.n, self._timeout, self._durations = n, timeout, durations
        self._graph = Graph(n)
        self._added: list[Constraint] = []
        self._solution: tuple[Span, ...] | None = None  # of the added constraints
        self._solver: Any = None

    def allows(self, constraints: Sequence[Constraint]) -> bool:
        """Return whether the set stays satisfiable if all of these are added."""
        if not self._graph.allows(orders(constraints)):
            return False
        if not limits([*self._added, *constraints]):
            return True
        if self._solution and all(holds(c, self._solution) for c in constraints):
            return True
        return self._satisfiable([self._formula(c) for c in constraints])

    def implies(self, constraint: Constraint) -> bool:
        """Return whether the constraint follows from the set."""
        if isinstance(constraint, Before):
            if self._graph.implies(constraint):
                return True
            if not limits(self._added):
                return False
        if self._solution and not holds(constraint, self._solution):
            return False
        formula = self._formula(constraint)
        import z3

        return not self._satisfiable([z3.Not(formula)])

    def add(self, constraints: Sequence[Constraint]) -> None:
        """Add the constraints. Raises ValueError, without adding any, if they are unsatisfiable."""
        if not self.allows(constraints):
            raise ValueError(f"{', '.join(map(str, constraints))}: contradicts earlier constraints")
        self._graph.add(orders(constraints))
        self._added += constraints
        if self._solver is not None:
            self._solver.add(*map(self._formula, constraints))
        if self._solution and not all(holds(c, self._solution) for c in constraints):
            self._solution = None

    def solution(self) -> tuple[Span, ...]:
        """Return one solution: start and end of each action in hours."""
        if self._solution is None:
            self._satisfiable([])
        assert self._solution is not None  # all added constraints are satisfiable together
        return self._solution

    def _formula(self, constraint: Constraint) -> Any:
        self._build()
        if isinstance(constraint, Before):
            return self._ends[constraint.first] <= self._starts[constraint.second]
        if constraint.side == "before":
            return self._ends[constraint.action] <= constraint.hour
        return self._starts[constraint.action] >= constraint.hour

    def _build(self) -> None:
        """Create the Z3 solver on first use."""
        if self._solver is not None:
            return
        try:
            import z3
        except ModuleNotFoundError:
            raise InputError("time limits need Z3: pip install 'agenteval[planning]'") from None

        # One context per thread, which isolates threads and stores names once.
        if not hasattr(_local, "context"):
            _local.context = z3.Context()
        self._solver = solver = z3.SimpleSolver(ctx=_local.context)
        solver.set("timeout", max(1, round(1000 * self._timeout)))
        self._starts = starts = [z3.Int(f"start{i}", _local.context) for i in range(self.n)]
        self._ends = ends = [s + d for s, d in zip(starts, self._durations, strict=True)]
        solver.add(*(z3.And(s >= 0, e <= DAY) for s, e in zip(starts, ends, strict=True)))
        for i in range(self.n):
            solver.add(*(z3.Or(ends[i] <= starts[j], ends[j] <= starts[i]) for j in range(i)))
        solver.add(*map(self._formula, self._added))

    def _satisfiable(self, formulas: Sequence[Any]) -> bool:
        self._build()
        import z3

        self._solver.push()
        try:
            self._solver.add(*formulas)
            answer = self._solver.check()
            if answer == z3.unknown:
                raise Undecided(f"Z3 gave no answer: {self._solver.reason_unknown()}")
            if answer == z3.unsat:
                return False
            model = self._solver.model()
            starts = [model.eval(s, model_completion=True).as_long() for s in self._starts]
            self._solution = tuple((s, s + d) for s, d in zip(starts, self._durations, strict=True))
            return True
        finally:
            self._solver.pop()


def schedule(
    n: int, constraints: Sequence[Constraint], durations: Sequence[int]
) -> tuple[int, ...] | None:
    """Return start hours that satisfy everything, or None. Raises `Undecided` on timeout."""
    try:
        solver = Timed(n, durations)
        solver.add(constraints)
    except ValueError:
        return None
    return tuple(start for start, _ in solver.solution())


def count_schedulable(n: int, constraints: Sequence[Constraint], durations: Sequence[int]) -> int:
    """Return the number of orders of all actions for which valid start hours exist."""
    release, deadline = [0] * n, [DAY] * n
    for limit in limits(constraints):
        i, hour = limit.action, limit.hour
        if limit.side == "before":
            deadline[i] = min(deadline[i], hour)
        else:
            release[i] = max(release[i], hour)

    def works(plan: Sequence[int]) -> bool:
        now = 0  # for a given order, the earliest starts are best
        for i in plan:
            now = max(now, release[i]) + durations[i]
            if now > deadline[i]:
                return False
        return True

    return sum(map(works, plans(n, orders(constraints))))


def contradiction(
    n: int, constraints: Sequence[Constraint], durations: Sequence[int] | None = None
) -> tuple[int, ...] | None:
    """Return a minimal contradictory set of the constraints, as ascending indices.

    Removing any of them makes the rest satisfiable; of several minimal sets, the one stated first
    is returned. Empty if the durations alone exceed a day; None if there is no contradiction.
    Raises `Undecided` on timeout, and TypeError for limits without durations.
    """
    if durations is not None and sum(durations) > DAY:
        return ()
    if solver_for(n, durations).allows(constraints):
        return None
    core = list(range(len(constraints)))
    for index in reversed(range(len(constraints))):
        fewer = [i for i in core if i != index]
        if not solver_for(n, durations).allows([constraints[i] for i in fewer]):
            core = fewer
    return tuple(core)
