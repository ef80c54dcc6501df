"""Use a Python function of a run and a criterion, or another framework's scorer, as a judge."""

from __future__ import annotations

import inspect
import math
import sys
import textwrap
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import JsonValue

from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, cell_key
from agenteval.errors import AgentevalError, InputError
from agenteval.models.limits import Budget
from agenteval.readers import degenerate
from agenteval.records import CallRecord, Criterion, Run, Source, content_hash
from agenteval.text import raised_at, redacted
from agenteval.utility.answers import (
    LevelAnswer,
    NoAnswer,
    answer_of,
    from_probabilities,
    result_of,
    to_result,
)
from agenteval.utility.computed import last_turn
from agenteval.utility.quantifier import RULE, degenerate_outcome
from agenteval.utility.scorers import NEEDS_VERSION, Scorer, grade_for

JudgeFunction = Callable[[Run, Criterion], Any | Awaitable[Any]]

EXPECTED = "a level, a number in [0, 1], a distribution over levels, or (one of them, explanation)"


class FunctionJudge:
    """Calls a plain or async function once per run, criterion and repeat.

    The function gets the run as every judge sees it: `input` is the problem and `output` the whole
    trajectory as text (perturbed in a perturbed copy), without `success`, `metadata` and, unless
    requested, `reference`. `messages` and `spans` are those of the run; perturbations do not change
    them. The function returns one of

    - a level: one of the accepted values of the criterion,
    - a number in [0, 1], the value; the score has no label,
    - a mapping from levels to probabilities: the value is the expectation,
    - a pair of one of these and an explanation.

    None and NaN are `unscored:missing`. Anything else is `unscored:off_scale`; the message shows
    the value. An exception is a Failure (`error:judge`) that names file, line and source line.
    Errors of this package, for example of a `Client` used by the function, are treated as for any
    judge. Plain functions are called one at a time, async ones concurrently within the limits.

    For a rubric, the function is called for each item, whose `description` is the statement.

    A `Scorer` is called once per run and repeat, without a criterion, and its result is used for
    each criterion (see `grade_for`). It gets the last turn of the trajectory as `output`. `budget`
    counts each run and repeat as one request.

    Scores are stored under the function's qualified name and the hash of its source text. The
    module does not matter, so a function is the same judge in a script, a notebook and a module.
    With `version`, the judge is identified by version, name and the last part of its module's name
    instead; change it when the function's dependencies or state change. Raises InputError without
    `version` if there is no source text: for built-in functions, callable objects,
    `functools.partial`, and functions typed into a plain shell.
    """

    def __init__(
        self,
        function: JudgeFunction | Scorer,
        *,
        version: str | None = None,
        seed: int = 0,
        budget: Budget | None = None,
    ) -> None:
        self.function = function
        self.budget = budget or Budget()
        parameters: dict[str, JsonValue] = {"version": version}
        if isinstance(function, Scorer):
            model = f"{function.framework}:{function.name}"
            parameters = parameters if version is not None else function.parameters
            parameters = {"framework": f"{function.framework} {function.version}", **parameters}
        else:
            model = getattr(function, "__qualname__", type(function).__qualname__)
            if version is None:
                parameters = {"code": content_hash(textwrap.dedent(_source_text(function)))}
            elif module := _module_of(function):
                model = f"{module}.{model}"
        self.source = Source(
            evaluator="utility.function",
            version=1,
            model=model,
            parameters={**parameters, "guard": RULE},
            seed=seed,
        )

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return all criteria in one batch; the function is called once per criterion."""
        return [tuple(criteria)] if criteria else []

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return one result per criterion; an empty answer or an echo gets the worst level by rule.

        Raises only errors of this package.
        """
        if reason := degenerate(unit.run):
            return degenerate_outcome(unit, self.source.sha256, reason)
        usage = await self.budget.charge()
        leaves = [
            leaf for c in unit.criteria for leaf in (c.leaves() if c.is_rubric else [(c.id, c)])
        ]
        grades = await self._answers(replace(unit, criteria=tuple(leaf for _, leaf in leaves)))
        answers: dict[str, LevelAnswer | NoAnswer] = {}
        for (path, _), answer in zip(leaves, grades, strict=True):
            if isinstance(answer, NoAnswer):
                answer = replace(answer, message=redacted(answer.message)[:500])
            answers[path] = answer
        results = []
        for criterion in unit.criteria:
            key = cell_key(unit, criterion, self.source.sha256)
            if criterion.is_rubric:
                results.append(to_result(criterion, key, answers, None))
            else:
                results.append(result_of(criterion, key, answers[criterion.id]))
        shown = tuple(c.id for c in unit.criteria)
        return Outcome(tuple(results), CallRecord(shown=shown, attempts=1, usage=usage))

    async def _answers(self, unit: JudgeUnit) -> list[LevelAnswer | NoAnswer]:
        view = unit.view
        shown = {"input": view.problem, "output": view.trajectory, "reference": view.reference}
        run = unit.run.model_copy(update={**shown, "success": None, "metadata": {}})
        if isinstance(self.function, Scorer):
            answer = last_turn(run.output) if unit.run.output.strip() else ""
            run = run.model_copy(update={"output": answer})
            grades = await self._called(self.function.score, run)
            if isinstance(grades, NoAnswer):
                return [grades] * len(unit.criteria)
            returned = []
            for criterion in unit.criteria:
                grade = grade_for(grades, criterion)
                explanation = None if grade.explanation is None else str(grade.explanation)
                failed = grade.error is not None and NoAnswer("error:judge", grade.error)
                returned.append(failed or (grade.value, explanation))
        else:
            returned = [await self._called(self.function, run, c) for c in unit.criteria]
        return [
            value if isinstance(value, NoAnswer) else read_judgement(value, criterion)
            for value, criterion in zip(returned, unit.criteria, strict=True)
        ]

    async def _called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the user's function; its exceptions become a NoAnswer."""
        try:
            returned = function(*arguments)
            return await returned if inspect.isawaitable(returned) else returned
        except AgentevalError:
            raise
        except Exception as error:  # noqa: BLE001  user code may raise anything
            code = getattr(inspect.unwrap(function), "__code__", None)
            place = raised_at(error, code.co_filename if code else None)
            return NoAnswer("error:judge", f"{type(error).__name__}: {error}{place}")


def read_judgement(returned: Any, criterion: Criterion) -> LevelAnswer | NoAnswer:
    """Convert a function's return value to an answer; see `FunctionJudge`."""
    value, explanation = returned, None
    if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], str | None):
        value, explanation = returned
    if value is None or (isinstance(value, Real) and math.isnan(value)):
        why = f": {explanation}" if explanation else ""
        return NoAnswer("unscored:missing", f"the judge gave no value ({value}){why}")
    if isinstance(value, str):
        return answer_of(value, criterion, explanation)
    if isinstance(value, Mapping):
        masses = {k: float(v) if isinstance(v, np.number) else v for k, v in value.items()}
        return from_probabilities(masses, criterion, explanation)
    if not isinstance(value, Real | np.bool_):
        shown = f"{repr(returned)[:80]} ({type(returned).__name__})"
        why = f"{shown}, not {EXPECTED}"
    elif not 0 <= (number := float(value)) <= 1:
        why = f"{number:g}, not in [0, 1]"
    elif not criterion.ordered:
        why = f"the number {number:g}, and the levels have no order"
    else:
        return LevelAnswer(None, number, "exact", explanation)
    return NoAnswer("unscored:off_scale", f"the judge returned {why}")


def _module_of(function: JudgeFunction) -> str:
    """Return the last part of the module's name, a script's file name, or "" in a notebook."""
    name: str = getattr(function, "__module__", None) or type(function).__module__
    if name == "__main__":
        name = Path(getattr(sys.modules["__main__"], "__file__", None) or "").stem
    return name.rpartition(".")[2]


def _source_text(function: JudgeFunction) -> str:
    try:
        if not inspect.isroutine(function):
            raise TypeError
        return inspect.getsource(function)
    except (OSError, TypeError) as error:
        why = f"the source text of this judge cannot be read: {NEEDS_VERSION}"
        raise InputError(why, f"judge {function!r}"[:200]) from error
