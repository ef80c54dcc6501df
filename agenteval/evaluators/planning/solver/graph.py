"""Orders decided on the graph: transitive closure as bitmasks, plans as sets of done actions.

A set of orders is satisfiable iff its graph has no cycle, and implies exactly the orders of its
transitive closure. Masks are Python integers, bit i stands for action i. Valid plans are the
linear extensions of the closure; every prefix of one is a *down-set*, a set of actions that holds
all actions its members need, and what is said of plans here is found by going over the down-sets
instead of the plans. Time limits need Z3 and are refused with a TypeError; only `nearest_schedule`,
which goes over the same sets of actions, knows hours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import comb

from agenteval.evaluators.planning.case import DAY, Before, Constraint, TimeLimit, limits, orders

MAX_DOWN_SETS = 1 << 16  # a third of a second; 16 actions without any order among them
MAX_ACTIONS = 14  # some 16,000 sets of done actions: a second or two


class Graph:
    """Satisfiable orders over n actions, a `Solver` without times.

    `after[i]` and `before[i]` are the masks of all actions that must come after and before i,
    transitively closed at every moment.
    """

    __slots__ = ("after", "before", "n")

    def __init__(self, n: int, constraints: Sequence[Constraint] = ()) -> None:
        self.n = n
        self.after = [0] * n
        self.before = [0] * n
        self.add(constraints)

    def copy(self) -> Graph:
        """An independent Graph with the same orders."""
        other = Graph.__new__(Graph)
        other.n, other.after, other.before = self.n, self.after[:], self.before[:]
        return other

    def allows(self, constraints: Sequence[Constraint]) -> bool:
        """Would there be no cycle with all of these added?"""
        if len(constraints) == 1:
            order = _order(constraints[0])
            return not self._contradicts(order)
        trial = self.copy()
        return all(trial._link(_order(constraint)) for constraint in constraints)

    def implies(self, constraint: Constraint) -> bool:
        """Is the order in the transitive closure?"""
        order = _order(constraint)
        return bool(self.after[order.first] >> order.second & 1)

    def add(self, constraints: Sequence[Constraint]) -> None:
        """Add the orders. ValueError at a cycle or an unknown action; nothing is added then."""
        trial = self.copy()
        for constraint in constraints:
            order = _order(constraint)
            if not (0 <= order.first < self.n and 0 <= order.second < self.n):
                raise ValueError(f"{order} is not about actions 0 to {self.n - 1}")
            if not trial._link(order):
                raise ValueError(f"{order} contradicts the orders before it")
        self.after, self.before = trial.after, trial.before

    def _contradicts(self, order: Before) -> bool:
        return order.first == order.second or bool(
            self.after[order.second] >> order.first & 1,
        )

    def _link(self, order: Before) -> bool:
        """Add one order in place; False (and unchanged) at a cycle."""
        if self._contradicts(order):
            return False
        first, second = order.first, order.second
        after, before = self.after, self.before
        if after[first] >> second & 1:
            return True
        sources, targets = before[first] | 1 << first, after[second] | 1 << second
        for i in _members(sources):
            after[i] |= targets
        for i in _members(targets):
            before[i] |= sources
        return True


def closure(n: int, orders: Iterable[Constraint]) -> tuple[int, ...] | None:
    """For each action the mask of those after it, transitively closed; None if there is a cycle."""
    graph = _graph(n, orders)
    return None if graph is None else tuple(graph.after)


def equivalent(n: int, a: Iterable[Constraint], b: Iterable[Constraint]) -> bool:
    """Do both have the same valid plans? Two contradictory sets have the same: none."""
    return closure(n, a) == closure(n, b)


def reduction(n: int, orders: Iterable[Constraint]) -> list[Before]:
    """The transitive reduction, sorted: the fewest orders with the same valid plans.

    Raises ValueError for contradictory orders.
    """
    graph = _needed(n, orders)
    return [
        Before(a, b)
        for a in range(n)
        for b in _members(graph.after[a])
        if not graph.after[a] & graph.before[b]
    ]


def count_plans(n: int, orders: Iterable[Constraint]) -> int | None:
    """Number of valid plans (linear extensions), exact; 0 for contradictory orders.

    Actions without any order between them are counted apart and interleaved by binomials, so only
    a connected group with more than `MAX_DOWN_SETS` down-sets (none with up to 16 actions) is
    beyond the bound; it gives None.
    """
    graph = _graph(n, orders)
    if graph is None:
        return 0
    total, placed = 1, 0
    for group in _groups(graph):
        size = group.bit_count()
        placed += size
        if size > 1:
            extensions = _extensions(graph, group)
            if extensions is None:
                return None
            total *= extensions
        total *= comb(placed, size)
    return total


def plans(n: int, orders: Iterable[Constraint]) -> Iterator[tuple[int, ...]]:
    """All valid plans, lazily, in lexical order; none for contradictory orders."""
    graph = _graph(n, orders)
    if graph is None:
        return
    prefix: list[int] = []
    done, candidate = 0, 0
    while True:
        while candidate < n and (done >> candidate & 1 or graph.before[candidate] & ~done):
            candidate += 1
        if candidate < n:
            prefix.append(candidate)
            done |= 1 << candidate
            candidate = 0
            continue
        if len(prefix) == n:
            yield tuple(prefix)
        if not prefix:
            return
        last = prefix.pop()
        done ^= 1 << last
        candidate = last + 1


def nearest_plan(n: int, orders: Iterable[Constraint], sequence: Sequence[int]) -> tuple[int, ...]:
    """The valid plan with the fewest pairs swapped against the agent's sequence.

    The distance is Kendall's (Biometrika 30, 1938): pairs of actions in the other order. Of an
    action that was repeated its first call counts; a lost one swaps with nothing. Among equally
    near plans, the first by the agent's order, lost actions last by number. Exact up to
    `MAX_DOWN_SETS` down-sets; beyond, a valid plan by the greedy rule "always the earliest of the
    agent's actions that may come next", which need not be nearest. ValueError for contradictory
    orders.
    """
    graph = _needed(n, orders)
    ranking = list(dict.fromkeys(sequence))
    earlier, seen = [0] * n, 0
    for action in ranking:
        earlier[action] = seen
        seen |= 1 << action
    ranking += [i for i in range(n) if not seen >> i & 1]
    left = _swaps_left(graph, earlier)
    plan: list[int] = []
    done = 0
    while len(plan) < n:
        ready = [i for i in ranking if not done >> i & 1 and not graph.before[i] & ~done]
        best = ready[0]
        if left is not None:
            best = min(ready, key=lambda i: _swaps(earlier[i], done) + left[done | 1 << i])
        plan.append(best)
        done |= 1 << best
    return tuple(plan)


def _swaps(earlier: int, done: int) -> int:
    """Pairs swapped by placing now an action before which the agent had those in `earlier`."""
    return (earlier & ~done).bit_count()


def _swaps_left(graph: Graph, earlier: list[int]) -> dict[int, int] | None:
    """Fewest swaps from each down-set to a whole plan; None beyond the bound."""
    levels = _levels(graph, (1 << graph.n) - 1)
    if levels is None:
        return None
    left = dict.fromkeys(levels[-1], 0)
    for level in reversed(levels[:-1]):
        for mask, ready in level.items():
            left[mask] = min(
                _swaps(earlier[i], mask) + left[mask | 1 << i] for i in _members(ready)
            )
    return left


def _levels(graph: Graph, group: int) -> list[dict[int, int]] | None:
    """The group's down-sets by size, each with the mask of what may come next; None if too many."""
    levels: list[dict[int, int]] = [{0: _ready(graph, group, 0)}]
    total = 1
    for _ in range(group.bit_count()):
        following: dict[int, int] = {}
        for mask, ready in levels[-1].items():
            for i in _members(ready):
                larger = mask | 1 << i
                if larger not in following:
                    following[larger] = _ready(graph, group, larger)
        total += len(following)
        if total > MAX_DOWN_SETS:
            return None
        levels.append(following)
    return levels


def _ready(graph: Graph, group: int, done: int) -> int:
    ready = 0
    for i in _members(group & ~done):
        if not graph.before[i] & ~done:
            ready |= 1 << i
    return ready


def _extensions(graph: Graph, group: int) -> int | None:
    """Linear extensions of one connected group: ways to reach each down-set, smallest first."""
    members = [(1 << i, graph.before[i]) for i in _members(group)]
    ways, visited = {0: 1}, 1
    for _ in members:
        following: dict[int, int] = {}
        for done, count in ways.items():
            for bit, needs in members:
                if not done & bit and needs & done == needs:
                    following[done | bit] = following.get(done | bit, 0) + count
        ways, visited = following, visited + len(following)
        if visited > MAX_DOWN_SETS:
            return None
    return ways[group]


def _groups(graph: Graph) -> list[int]:
    """Masks of the weakly connected groups of actions."""
    groups: list[int] = []
    rest = (1 << graph.n) - 1
    while rest:
        group, new = 0, rest & -rest
        while new:
            group |= new
            near = 0
            for i in _members(new):
                near |= graph.after[i] | graph.before[i]
            new = near & ~group
        groups.append(group)
        rest &= ~group
    return groups


def _members(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _graph(n: int, orders: Iterable[Constraint]) -> Graph | None:
    graph = Graph(n)
    for order in orders:
        if not graph._link(_order(order)):
            return None
    return graph


def _needed(n: int, orders: Iterable[Constraint]) -> Graph:
    graph = _graph(n, orders)
    if graph is None:
        raise ValueError("the orders contradict each other")
    return graph


def _order(constraint: Constraint) -> Before:
    if isinstance(constraint, Before):
        return constraint
    raise TypeError(f"the graph decides orders only, not {constraint}")


def nearest_schedule(
    n: int,
    constraints: Sequence[Constraint],
    durations: Sequence[int],
    sequence: Sequence[int],
) -> tuple[tuple[int, int], ...] | None:
    """(action, start hour) in order of time: the feasible schedule nearest to the agent's sequence.

    Nearest means fewest pairs of actions in the other order (Kendall's distance; of a repeated
    action the first call counts, lost actions swap with nothing); among those the one whose last
    action ends first (of several such, one that favours the agent's order). Every action starts as
    early as it can in that order. None when no schedule is feasible. ValueError beyond
    `MAX_ACTIONS`.

    Exact: of two ways to get a set of actions done with as many swaps, the one that is over
    earlier is never worse, so for each set and number of swaps the earliest end suffices.
    """
    if n > MAX_ACTIONS:
        raise ValueError(f"the nearest schedule is sought for up to {MAX_ACTIONS} actions, not {n}")
    search = _Search(n, constraints, durations, sequence)
    return None if search.contradictory else search.best()


class _Search:
    def __init__(
        self,
        n: int,
        constraints: Sequence[Constraint],
        durations: Sequence[int],
        sequence: Sequence[int],
    ) -> None:
        self.n, self.durations = n, durations
        self.release, self.deadline = [0] * n, [DAY] * n
        for limit in limits(constraints):
            self._bound(limit)
        self.contradictory = False
        try:
            self.before = Graph(n, orders(constraints)).before
        except ValueError:
            self.contradictory = True
        self.ranking = list(dict.fromkeys(sequence))
        self.earlier, seen = [0] * n, 0
        for action in self.ranking:
            self.earlier[action] = seen
            seen |= 1 << action
        self.ranking += [i for i in range(n) if not seen >> i & 1]

    def best(self) -> tuple[tuple[int, int], ...] | None:
        """Forward over the sets by size; each keeps {swaps: (end, plan by rank, plan)}."""
        rank = {action: i for i, action in enumerate(self.ranking)}
        level: dict[int, dict[int, tuple[int, tuple[int, ...]]]] = {0: {0: (0, ())}}
        for _ in range(self.n):
            following: dict[int, dict[int, tuple[int, tuple[int, ...]]]] = {}
            for done, ways in level.items():
                for action in self._ready(done):
                    found = following.setdefault(done | 1 << action, {})
                    more = (self.earlier[action] & ~done).bit_count()
                    for swaps, (now, plan) in ways.items():
                        end = self._end(action, now)
                        if end is None:
                            continue
                        way = (end, (*plan, rank[action]))
                        if swaps + more not in found or way < found[swaps + more]:
                            found[swaps + more] = way
            level = {done: ways for done, ways in following.items() if ways}
        if not level:
            return None
        (ways,) = level.values()
        return self._started([self.ranking[i] for i in ways[min(ways)][1]])

    def _bound(self, limit: TimeLimit) -> None:
        if limit.side == "before":
            self.deadline[limit.action] = min(self.deadline[limit.action], limit.hour)
        else:
            self.release[limit.action] = max(self.release[limit.action], limit.hour)

    def _ready(self, done: int) -> list[int]:
        return [i for i in range(self.n) if not done >> i & 1 and not self.before[i] & ~done]

    def _end(self, action: int, now: int) -> int | None:
        """When the action is over if it comes next; None past its deadline."""
        end = max(now, self.release[action]) + self.durations[action]
        return end if end <= self.deadline[action] else None

    def _started(self, plan: list[int]) -> tuple[tuple[int, int], ...]:
        started, now = [], 0
        for action in plan:
            start = max(now, self.release[action])
            started.append((action, start))
            now = start + self.durations[action]
        return tuple(started)
