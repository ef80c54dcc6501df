"""Renamed: an evaluator whose scores stand apart, because its source says one thing more."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, RunJudge, cell_key
from agenteval.records import Criterion, Source


class Renamed:
    """The same evaluator under a source of its own, with further parameters.

    What it asks is the inner evaluator's, letter by letter.
    """

    def __init__(self, inner: RunJudge, **parameters: str) -> None:
        self.inner = inner
        source = inner.source
        self._source = source.model_copy(update={"parameters": {**source.parameters, **parameters}})
        self._source_key = self._source.sha256

    @property
    def source(self) -> Source:
        """The inner source with the further parameters."""
        return self._source

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """As the inner evaluator spreads them."""
        return self.inner.batches(criteria)

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """What the inner evaluator says, under the keys of this one; raises what it raises."""
        outcome = await self.inner.evaluate(unit)
        results = tuple(
            type(r)(**{**vars(r), "key": cell_key(unit, c, self._source_key)})
            for c, r in zip(unit.criteria, outcome.results, strict=True)
        )
        return Outcome(results, outcome.call)
