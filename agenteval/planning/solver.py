"""Deciding constraints: orders on their graph, times with Z3.

A set of orders is satisfiable iff its graph has no cycle, and implies exactly the orders of its
transitive closure. Masks are Python integers, bit i stands for action i. Valid plans are the
linear extensions of the closure; every prefix of one is a *down-set*, a set of actions that holds
all actions its members need, and what is said of plans here is found by going over the down-sets
instead of the plans.

With durations the model is that of arXiv 2404.17833, section 4.4: whole hours 0 <= start < end
<= 24, no two actions overlap, an order demands end <= start, a time limit end <= hour or start >=
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

MAX_DOWN_SETS = 1 << 16  # a second or two; 16 actions without any order among them
TIMEOUT = 10.0  # seconds for one question to Z3; those of nine actions take milliseconds
_local = threading.local()


class Undecided(AgentevalError):
    """Z3 found no answer within its time limit. It is never read as an answer."""

    exit_code = 3


def solver_for(n: int, durations: Sequence[int] | None = None) -> Graph | Timed:
    """An empty set of constraints over n actions: a `Graph`, which refuses time limits with a
    TypeError, or with durations a `Timed`. ValueError for durations too long for a day."""
    return Graph(n) if durations is None else Timed(n, durations)


class Graph:
    """A growing, satisfiable set of orders over n actions, each of which takes place once.

    `after[i]` and `before[i]` are the masks of all actions that must come after and before i,
    transitively closed at every moment. Raises ValueError for contradictory orders.
    """

    __slots__ = ("after", "before", "n")

    def __init__(self, n: int, constraints: Iterable[Constraint] = ()) -> None:
        self.n = n
        self.after, self.before = [0] * n, [0] * n
        self.add(tuple(constraints))

    def allows(self, constraints: Sequence[Constraint]) -> bool:
        """Would there be no cycle with all of these added?"""
        if len(constraints) == 1:
            return not self._contradicts(_order(constraints[0]))
        try:
            self._with(constraints)
        except ValueError:
            return False
        return True

    def implies(self, constraint: Constraint) -> bool:
        """Is the order in the transitive closure?"""
        order = _order(constraint)
        return bool(self.after[order.first] >> order.second & 1)

    def add(self, constraints: Sequence[Constraint]) -> None:
        """Add the orders. ValueError at a cycle or an unknown action; nothing is added then."""
        self.after, self.before = self._with(constraints)

    def reduction(self) -> list[Before]:
        """The transitive reduction, sorted: the fewest orders with the same valid plans."""
        after, before = self.after, self.before
        return [
            Before(a, b)
            for a in range(self.n)
            for b in _members(after[a])
            if not after[a] & before[b]
        ]

    def ready(self, done: int) -> list[int]:
        """The actions that may come next."""
        before = self.before
        return [i for i in range(self.n) if not done >> i & 1 and not before[i] & ~done]

    def _contradicts(self, order: Before) -> bool:
        return order.first == order.second or bool(self.after[order.second] >> order.first & 1)

    def _with(self, constraints: Sequence[Constraint]) -> tuple[list[int], list[int]]:
        after, before = self.after[:], self.before[:]
        for constraint in constraints:
            first, second = _order(constraint).first, _order(constraint).second
            if not (0 <= first < self.n and 0 <= second < self.n):
                raise ValueError(f"{constraint} is not about actions 0 to {self.n - 1}")
            if first == second or after[second] >> first & 1:
                raise ValueError(f"{constraint} contradicts the orders before it")
            sources, targets = before[first] | 1 << first, after[second] | 1 << second
            for i in _members(sources):
                after[i] |= targets
            for i in _members(targets):
                before[i] |= sources
        return after, before


def _order(constraint: Constraint) -> Before:
    if isinstance(constraint, Before):
        return constraint
    raise TypeError(f"the graph decides orders only, not {constraint}")


def _members(mask: int) -> list[int]:
    members = []
    while mask:
        low = mask & -mask
        members.append(low.bit_length() - 1)
        mask ^= low
    return members


def graph_of(n: int, orders: Iterable[Constraint]) -> Graph | None:
    """The graph of these orders; None if they contradict each other."""
    graph = Graph(n)
    constraints = tuple(orders)
    if not graph.allows(constraints):
        return None
    graph.add(constraints)
    return graph


def count_plans(n: int, orders: Iterable[Constraint]) -> int | None:
    """Number of valid plans (linear extensions), exact; 0 for contradictory orders.

    Actions without any order between them are counted apart and interleaved by binomials, so only
    a connected group with more than `MAX_DOWN_SETS` down-sets (none with up to 16 actions) is
    beyond the bound; it gives None.
    """
    graph = graph_of(n, orders)
    if graph is None:
        return 0
    near = [a | b for a, b in zip(graph.after, graph.before, strict=True)]
    total, placed, rest = 1, 0, (1 << n) - 1
    while rest:
        group, grown = 0, rest & -rest
        while grown != group:
            group, grown = grown, reduce(or_, (near[i] for i in _members(grown)), grown)
        rest &= ~group
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


def plans(n: int, orders: Iterable[Constraint]) -> Iterator[tuple[int, ...]]:
    """All valid plans, lazily, in lexical order; none for contradictory orders."""
    graph = graph_of(n, orders)

    def longer(graph: Graph, plan: tuple[int, ...], done: int) -> Iterator[tuple[int, ...]]:
        if len(plan) == n:
            yield plan
        for action in graph.ready(done):
            yield from longer(graph, (*plan, action), done | 1 << action)

    return iter(()) if graph is None else longer(graph, (), 0)


def windows(n: int, constraints: Iterable[Constraint]) -> tuple[list[int], list[int]]:
    """For each action the hour before which it may not start, and by which it must be over."""
    release, deadline = [0] * n, [DAY] * n
    for limit in limits(constraints):
        if limit.side == "before":
            deadline[limit.action] = min(deadline[limit.action], limit.hour)
        else:
            release[limit.action] = max(release[limit.action], limit.hour)
    return release, deadline


class Timed:
    """A growing, satisfiable set of orders and time limits over actions whose durations are known:
    action i ends at start_i + durations[i], all within 0 to 24 and without overlap.

    A cycle of orders is found on the graph. As long as there is no time limit the graph decides
    orders for good: actions that fit into the day fit into it in every order. Everything else is
    put to Z3, unless the last solution answers it. Raises ValueError for durations that are not n,
    not positive, or too long for a day, and `Undecided` where Z3 gives up.
    """

    def __init__(self, n: int, durations: Sequence[int], timeout: float = TIMEOUT) -> None:
        if len(durations) != n or any(hours < 1 for hours in durations):
            raise ValueError(f"needs {n} durations of at least 1 hour, not {list(durations)}")
        if sum(durations) > DAY:
            raise ValueError(f"the actions take {sum(durations)} hours, a day has {DAY}")
        self.n, self._timeout, self._durations = n, timeout, durations
        self._graph = Graph(n)
        self._added: list[Constraint] = []
        self._known: tuple[Span, ...] | None = None
        self._solver: Any = None

    def allows(self, constraints: Sequence[Constraint]) -> bool:
        """Would the set stay satisfiable with all of these added?"""
        if not self._graph.allows(orders(constraints)):
            return False
        if not limits([*self._added, *constraints]):
            return True
        if self._known and all(holds(c, self._known) for c in constraints):
            return True
        return self._satisfiable([self._formula(c) for c in constraints])

    def implies(self, constraint: Constraint) -> bool:
        """Does it follow from the set?"""
        if isinstance(constraint, Before):
            if self._graph.implies(constraint):
                return True
            if not limits(self._added):
                return False
        if self._known and not holds(constraint, self._known):
            return False
        formula = self._formula(constraint)
        import z3

        return not self._satisfiable([z3.Not(formula)])

    def add(self, constraints: Sequence[Constraint]) -> None:
        """Add them. ValueError if the set were unsatisfiable; it is then as it was."""
        if not self.allows(constraints):
            raise ValueError(f"{', '.join(map(str, constraints))}: contradicts what was there")
        self._graph.add(orders(constraints))
        self._added += constraints
        if self._solver is not None:
            self._solver.add(*map(self._formula, constraints))
        if self._known and not all(holds(c, self._known) for c in constraints):
            self._known = None

    def solution(self) -> tuple[Span, ...]:
        """One solution: the hours at which each action begins and ends."""
        if self._known is None:
            self._satisfiable([])
        assert self._known is not None  # what was added is satisfiable
        return self._known

    def _formula(self, constraint: Constraint) -> Any:
        self._model()
        if isinstance(constraint, Before):
            return self._ends[constraint.first] <= self._starts[constraint.second]
        if constraint.side == "before":
            return self._ends[constraint.action] <= constraint.hour
        return self._starts[constraint.action] >= constraint.hour

    def _model(self) -> None:
        if self._solver is not None:
            return
        try:
            import z3
        except ModuleNotFoundError:
            raise InputError("points of time need Z3: pip install 'agenteval[planning]'") from None

        # One context per thread: threads do not disturb each other, names are stored once.
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
        self._model()
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
            self._known = tuple((s, s + d) for s, d in zip(starts, self._durations, strict=True))
            return True
        finally:
            self._solver.pop()


def schedule(
    n: int, constraints: Sequence[Constraint], durations: Sequence[int]
) -> tuple[int, ...] | None:
    """Start hours that satisfy everything; None if there are none. `Undecided` at the timeout."""
    try:
        solver = Timed(n, durations)
        solver.add(constraints)
    except ValueError:
        return None
    return tuple(start for start, _ in solver.solution())


def contradiction(
    n: int, constraints: Sequence[Constraint], durations: Sequence[int] | None = None
) -> tuple[int, ...] | None:
    """Why the constraints contradict each other: a core of them, as indices, rising.

    Minimal: without any one of them the rest of the core can be satisfied; of several reasons the
    one given first remains. Empty when the durations alone are too long for a day; None when there
    is no contradiction. `Undecided` at the timeout, TypeError for limits without durations.
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
