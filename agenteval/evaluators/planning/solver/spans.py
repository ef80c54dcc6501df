"""Where actions lie, in a sequence or in a day, and whether a constraint holds there."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.evaluators.planning.constraints import Before, Constraint

DAY = 24  # hours

Span = tuple[int, int]  # from, until; position p of a sequence is (p, p + 1)


def actions(constraint: Constraint) -> tuple[int, ...]:
    """The actions a constraint is about."""
    if isinstance(constraint, Before):
        return (constraint.first, constraint.second)
    return (constraint.action,)


def holds(constraint: Constraint, spans: Sequence[Span]) -> bool:
    """Does the constraint hold where action i lasts from `spans[i][0]` until `spans[i][1]`?"""
    if isinstance(constraint, Before):
        return spans[constraint.first][1] <= spans[constraint.second][0]
    start, end = spans[constraint.action]
    return end <= constraint.hour if constraint.side == "before" else start >= constraint.hour
