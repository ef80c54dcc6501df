"""Scorers of autoevals: instances of its `Scorer` classes (read: 0.4.1)."""

from __future__ import annotations

from typing import Any

from agenteval.records import Run
from agenteval.utility.scorers import Scorer, ScorerGrade, reference_of, refuse


def adapt(judge: Any) -> Scorer:
    """The scorer, which gets answer, reference and `input`."""
    from autoevals import Scorer as AutoevalsScorer

    if not isinstance(judge, AutoevalsScorer):
        refuse(judge, "Scorer of autoevals")

    async def score(run: Run) -> list[ScorerGrade]:
        result = await judge.eval_async(run.output, reference_of(run), input=run.input)
        error = None if result.error is None else str(result.error)
        return [ScorerGrade(result.score, result.metadata.get("rationale"), result.name, error)]

    return Scorer(type(judge).__qualname__, "autoevals", score, type(judge), vars(judge))
