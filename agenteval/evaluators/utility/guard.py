"""Degenerate answers are the system's failure: they get the worst level by rule, not by a judge.

A criterion without a known order has no worst level: there they get no value.

An empty answer or an echo of the question can win praise from a judge (arXiv 2507.08794), so no
judge is asked. The status `degenerate` keeps these scores apart, so that means can be shown with
and without them.
"""

from __future__ import annotations

from agenteval.evaluators.base import Evaluator, Outcome, Unit, cell_key
from agenteval.evaluators.renamed import Renamed
from agenteval.evaluators.utility.answers import leaves
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
        ordered = all(leaf.ordered for _, leaf in leaves(criterion))
        levels = criterion.accepted_values if ordered else ()
        return Score(
            key=cell_key(unit, criterion, self._source_key),
            criterion_id=criterion.id,
            status="degenerate",
            label=levels[0] if levels else None,
            value=0.0 if ordered else None,
            evidence={"rule": RULE, "reason": reason},
        )
