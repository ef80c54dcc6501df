"""Scorers of mlflow: `@scorer` functions, `Scorer` objects, its judges (read: 3.17.2)."""

from __future__ import annotations

import asyncio
from typing import Any

from agenteval.records import Run
from agenteval.utility.scorers import Scorer, ScorerGrade, refuse


def adapt(judge: Any) -> Scorer:
    """The scorer; InputError for scorers of whole sessions.

    It gets `inputs={"input": ...}`, the answer as `outputs` and, if it may be shown, the reference
    as `expectations={"expected_response": ...}`; no trace.
    """
    from mlflow.exceptions import MlflowException
    from mlflow.genai.scorers import Scorer as MlflowScorer

    if not isinstance(judge, MlflowScorer) or judge.is_session_level_scorer:
        refuse(judge, "mlflow Scorer of single answers")

    async def score(run: Run) -> list[ScorerGrade]:
        expectations = None if run.reference is None else {"expected_response": run.reference}
        returned = await asyncio.to_thread(
            judge.run, inputs={"input": run.input}, outputs=run.output, expectations=expectations
        )
        return [
            _grade(feedback)
            for feedback in (returned if isinstance(returned, list) else [returned])
        ]

    try:
        settings = judge.model_dump()
    except MlflowException:  # of a custom class, which mlflow cannot serialise
        settings = vars(judge)
    function = getattr(judge, "_original_func", None)  # the function decorated with @scorer
    return Scorer(judge.name, "mlflow", score, function or type(judge), settings)


def _grade(result: Any) -> ScorerGrade:
    from mlflow.entities import Feedback

    if not isinstance(result, Feedback):
        return ScorerGrade(result)
    error = None if result.error is None else str(result.error.error_message)
    return ScorerGrade(result.value, result.rationale, result.name, error)
