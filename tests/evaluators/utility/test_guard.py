"""An empty answer gets the worst level by rule, where it is known which level is the worst."""

from __future__ import annotations

import pytest

from agenteval.evaluators.base import Unit
from agenteval.evaluators.utility.guard import Guarded
from agenteval.readers import make_view
from agenteval.records import Criterion, Run, Score
from tests.store.making import ScriptedJudge

RUN = Run(id="r", task="t", input="2 + 2?", output="")
LEVELS = ("bad", "good")


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        (Criterion(name="X", accepted_values=LEVELS), ("bad", 0.0)),
        (Criterion(name="X", accepted_values=LEVELS, order="unclear"), (None, None)),
        (Criterion(name="X", accepted_values=LEVELS, scale="nominal"), (None, None)),
        (Criterion(name="X", scale="numeric", numeric_range=(0, 9)), (None, 0.0)),
        (Criterion(name="X", scale="numeric", numeric_range=(0, 9), order="unclear"), (None, None)),
    ],
)
async def test_the_worst_level_where_one_is_known(
    criterion: Criterion, expected: tuple[str | None, float | None]
) -> None:
    outcome = await Guarded(ScriptedJudge()).evaluate(Unit(RUN, make_view(RUN), (criterion,)))
    (score,) = outcome.results
    assert isinstance(score, Score)
    assert (score.status, score.label, score.value) == ("degenerate", *expected)
