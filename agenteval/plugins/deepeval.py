"""Metrics of deepeval: subclasses of `BaseMetric`, of single test cases (read: 4.3.1)."""

from __future__ import annotations

import asyncio
import copy
import inspect
from typing import Any

from agenteval.records import Run
from agenteval.utility.scorers import Scorer, ScorerGrade, reference_of, refuse


def adapt(judge: Any) -> Scorer:
    """The scorer; InputError for metrics of conversations or arenas.

    A metric keeps its result in itself, so each run is measured by a copy. `settings` are its
    values that bear names of the constructors' parameters, as in deepeval's own copies.
    """
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase

    if not isinstance(judge, BaseMetric):
        refuse(judge, "BaseMetric of deepeval")

    async def score(run: Run) -> list[ScorerGrade]:
        metric = copy.copy(judge)
        metric.score = metric.reason = metric.error = None
        case = LLMTestCase(input=run.input, actual_output=run.output, expected_output=run.reference)
        if run.reference is None:  # past the check of its type
            object.__setattr__(case, "expected_output", reference_of(run))
        if metric.async_mode:
            returned = await metric.a_measure(case, **_quiet(metric.a_measure))
        else:
            returned = await asyncio.to_thread(metric.measure, case, **_quiet(metric.measure))
        value = returned if metric.score is None else metric.score
        return [ScorerGrade(None if metric.skipped else value, metric.reason, error=metric.error)]

    kinds: tuple[Any, ...] = type(judge).__mro__
    names = {name for kind in kinds for name in inspect.signature(kind.__init__).parameters}
    settings = {name: value for name, value in vars(judge).items() if name in names}
    return Scorer(type(judge).__qualname__, "deepeval", score, type(judge), settings)


def _quiet(measure: Any) -> dict[str, bool]:
    """Return the option that hides the progress indicator of deepeval's metrics, if the metric has
    it."""
    accepts = "_show_indicator" in inspect.signature(measure).parameters
    return {"_show_indicator": False} if accepts else {}
