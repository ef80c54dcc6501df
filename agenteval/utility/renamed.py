"""A judge under another name: its source has further parameters, so its scores are separate."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, RunJudge, cell_key
from agenteval.records import Criterion


class Renamed:
    """Wraps a judge and adds parameters to its source; its requests are the inner judge's."""

    def __init__(self, inner: RunJudge, **parameters: str) -> None:
        self.inner = inner
        combined = {**inner.source.parameters, **parameters}
        self.source = inner.source.model_copy(update={"parameters": combined})

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return the batches of the inner judge."""
        return self.inner.batches(criteria)

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return the inner judge's results under the keys of this one; raises what it raises."""
        outcome = await self.inner.evaluate(unit)
        results = tuple(
            type(r)(**{**vars(r), "key": cell_key(unit, c, self.source.sha256)})
            for c, r in zip(unit.criteria, outcome.results, strict=True)
        )
        return Outcome(results, outcome.call)
