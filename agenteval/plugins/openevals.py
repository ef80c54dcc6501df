"""Evaluators of openevals: its functions, and those that its `create_...` make (read: 0.2.2)."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from agenteval.records import Run
from agenteval.utility.scorers import Scorer, ScorerGrade, refuse


def adapt(judge: Any) -> Scorer:
    """The scorer, which gets `inputs`, `outputs` and, if it may be shown, `reference_outputs`."""
    names = inspect.signature(judge).parameters if inspect.isfunction(judge) else {}
    if "outputs" not in names:
        refuse(judge, "evaluator of openevals, a function of outputs")

    async def score(run: Run) -> list[ScorerGrade]:
        arguments = {"outputs": run.output}
        if "inputs" in names:
            arguments["inputs"] = run.input
        if run.reference is not None:
            arguments["reference_outputs"] = run.reference
        if inspect.iscoroutinefunction(judge):
            returned = await judge(**arguments)
        else:
            returned = await asyncio.to_thread(judge, **arguments)
        results = returned if isinstance(returned, list) else [returned]
        return [
            ScorerGrade(result["score"], result.get("comment"), result["key"]) for result in results
        ]

    return Scorer(judge.__qualname__.partition(".")[0], "openevals", score, judge, {})
