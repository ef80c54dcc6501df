"""The one interface behind which orders are decided on the graph and times by Z3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agenteval.evaluators.planning.case import Constraint


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
