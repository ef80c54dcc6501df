"""Scorers of inspect: what a function decorated with `@scorer` returns (read: 0.3.285)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from agenteval.errors import InputError
from agenteval.records import Run
from agenteval.utility.scorers import Scorer, ScorerGrade, reference_of, refuse

_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer


def adapt(judge: Any) -> Scorer:
    """The scorer; the decorated function itself is called without arguments first.

    The state has the problem and the answer as messages and the answer as `output`. Raises
    InputError for solvers and similar objects, and for a function that needs arguments.
    """
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelName, ModelOutput
    from inspect_ai.scorer import Target
    from inspect_ai.solver import TaskState

    info = getattr(judge, "__registry_info__", None)
    if info is None or info.type != "scorer":
        refuse(judge, "@scorer of inspect_ai")
    if not hasattr(judge, "__registry_params__"):
        try:
            judge = judge()
        except TypeError as error:
            raise InputError(
                f"{info.name} needs arguments ({error}): call it and pass the result", "judge"
            ) from error

    async def score(run: Run) -> list[ScorerGrade]:
        target = Target(run.reference or "")
        if run.reference is None:
            target.target = reference_of(run)
        state = TaskState(
            model=ModelName("agenteval/stored"),
            sample_id=run.id,
            epoch=1,
            input=run.input,
            messages=[ChatMessageUser(content=run.input), ChatMessageAssistant(content=run.output)],
            target=target,
            output=ModelOutput.from_content("agenteval/stored", run.output),
            completed=True,
        )
        result = await judge(state, target)
        if result is None:
            return []
        if isinstance(result.value, Mapping):
            return [
                ScorerGrade(_number(value), result.explanation, name)
                for name, value in result.value.items()
            ]
        return [ScorerGrade(_number(result.value), result.explanation)]

    definition = judge if inspect.isfunction(judge) else type(judge)
    return Scorer(info.name, "inspect_ai", score, definition, judge.__registry_params__)


def _number(value: Any) -> Any:
    return _VALUES.get(value, value) if isinstance(value, str) else value
