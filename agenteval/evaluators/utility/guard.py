"""Degenerate answers are the system's failure: they get the worst level by rule, not by a judge.

An empty answer or an echo of the question can win praise from a judge (arXiv 2507.08794), so no
judge is asked. The status `degenerate` keeps these scores apart, so that means can be shown with
and without them.
"""

from __future__ import annotations

from agenteval.evaluators.base import Evaluator, Outcome, Unit, cell_key
from agenteval.evaluators.renamed import Renamed
from agenteval.readers import degenerate
from agenteval.records import CallRecord, Criterion, Score

RULE = "degenerate-answer/1"


class Guarded(Renamed):
    """An evaluator behind the rule; its source names the rule."""

    def __init__(self, inner: Evaluator) -> None:
        super().__init__(inner, guard=RULE)

    async def evaluate(self, unit: Unit) -> Outcome:
        """The worst level for a degenerate run, else what the inner evaluator says."""
        reason = degenerate(unit.run)
        if reason is None:
            return await super().evaluate(unit)
        scores = tuple(self._worst(unit, c, reason) for c in unit.criteria)
        return Outcome(scores, CallRecord(shown=tuple(c.id for c in unit.criteria)))

    def _worst(self, unit: Unit, criterion: Criterion, reason: str) -> Score:
        levels = criterion.ordered and criterion.accepted_values
        return Score(
            key=cell_key(unit, criterion, self._source_key),
            criterion_id=criterion.id,
            status="degenerate",
            label=criterion.accepted_values[0] if levels else None,
            value=0.0 if criterion.ordered else None,
            evidence={"rule": RULE, "reason": reason},
        )
