"""The schedule nearest to what an agent did, exactly, over the sets of actions already done."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.evaluators.planning.case import DAY, Constraint, TimeLimit, limits, orders
from agenteval.evaluators.planning.solver.graph import Graph

MAX_ACTIONS = 14  # some 16,000 sets of done actions: a second or two


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
