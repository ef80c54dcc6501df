"""Evaluators of pydantic-evals: subclasses of `Evaluator` (read: 2.62.0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.records import Run
from agenteval.utility.scorers import Scorer, ScorerGrade, Withheld, reference_of, refuse


def adapt(judge: Any) -> Scorer:
    """The scorer; InputError for evaluators of whole reports.

    The context has inputs and output as texts; neither spans nor the duration are known.
    """
    from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext
    from pydantic_evals.otel import SpanTreeRecordingError

    if not isinstance(judge, Evaluator):
        refuse(judge, "Evaluator of pydantic-evals")

    async def score(run: Run) -> list[ScorerGrade]:
        duration: Any = Withheld("the duration")
        context = EvaluatorContext(
            name=run.id,
            inputs=run.input,
            metadata=None,
            expected_output=reference_of(run),
            output=run.output,
            duration=duration,
            _span_tree=SpanTreeRecordingError("stored runs have no recorded spans"),
            attributes={},
            metrics={},
        )
        returned = await judge.evaluate_async(context)
        results = returned if isinstance(returned, Mapping) else {"": returned}
        return [
            ScorerGrade(result.value, result.reason, name)
            if isinstance(result, EvaluationReason)
            else ScorerGrade(result, None, name)
            for name, result in results.items()
        ]

    return Scorer(
        judge.get_default_evaluation_name(), "pydantic_evals", score, type(judge), vars(judge)
    )
