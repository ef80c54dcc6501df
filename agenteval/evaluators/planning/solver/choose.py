"""Which solver decides what: the graph wherever orders alone decide, Z3 where times do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agenteval.evaluators.planning.case import Before, Constraint
from agenteval.evaluators.planning.solver.graph import Graph
from agenteval.evaluators.planning.solver.smt import Smt


class Solver(Protocol):
    """A growing, satisfiable set of constraints over n actions.

    Every action takes place exactly once, one at a time. With `durations` (hours by action) times
    are known: action i ends at start_i + durations[i], all within 0 to 24 and without overlap.
    """

    n: int

    def allows(self, constraints: Sequence[Constraint]) -> bool:
        """Would the set stay satisfiable with all of these added?"""
        ...

    def implies(self, constraint: Constraint) -> bool:
        """Does it follow from the set?"""
        ...

    def add(self, constraints: Sequence[Constraint]) -> None:
        """Add them; the set must stay satisfiable (ValueError if not, the set is as it was)."""
        ...


def solver_for(n: int, durations: Sequence[int] | None = None) -> Solver:
    """An empty set of constraints over n actions.

    Without durations a `Graph`, which refuses time limits with a TypeError; with durations a
    `Timed`. ValueError where the durations are too long for a day.
    """
    return Graph(n) if durations is None else Timed(n, durations)


class Timed:
    """Orders and time limits over actions whose durations are known.

    A cycle of orders is found on the graph. As long as there is no time limit the graph decides
    orders for good: actions that fit into the day fit into it in every order. Everything else is
    put to Z3. ValueError where the durations are too long for a day.
    """

    def __init__(self, n: int, durations: Sequence[int]) -> None:
        self.n = n
        self._graph = Graph(n)
        self._smt = Smt(n, durations=durations)
        self._waiting: list[Constraint] = []  # orders that Z3 has not been told yet
        self._limited = False

    @property
    def calls(self) -> int:
        """Number of questions that were put to Z3."""
        return self._smt.calls

    def allows(self, constraints: Sequence[Constraint]) -> bool:
        """Would the set stay satisfiable with all of these added? `Undecided` at Z3's timeout."""
        orders = [c for c in constraints if isinstance(c, Before)]
        if not self._graph.allows(orders):
            return False
        if not self._limited and len(orders) == len(constraints):
            return True
        return self._told().allows(constraints)

    def implies(self, constraint: Constraint) -> bool:
        """Does it follow from the set? `Undecided` at Z3's timeout."""
        if isinstance(constraint, Before):
            if self._graph.implies(constraint):
                return True
            if not self._limited:
                return False
        return self._told().implies(constraint)

    def add(self, constraints: Sequence[Constraint]) -> None:
        """Add them. ValueError if the set were unsatisfiable; it is then as it was."""
        orders = [c for c in constraints if isinstance(c, Before)]
        graph = self._graph.copy()
        graph.add(orders)
        if not self._limited and len(orders) == len(constraints):
            self._waiting += constraints
        else:
            self._told().add(constraints)
            self._limited = True
        self._graph = graph

    def _told(self) -> Smt:
        if self._waiting:
            self._smt.add(self._waiting)
            self._waiting = []
        return self._smt
