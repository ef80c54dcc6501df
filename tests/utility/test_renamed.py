"""An evaluator under another name says the same of the same, under keys of its own."""

from __future__ import annotations

import pytest

from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit
from agenteval.utility.renamed import Renamed
from tests.store.making import ScriptedJudge, criteria, items


def unit() -> JudgeUnit:
    (run, view), *_ = items(1)
    return JudgeUnit(run, view, tuple(criteria(2)), repeat=3)


@pytest.mark.parametrize("one_per_call", [False, True])
async def test_only_the_keys_differ(one_per_call: bool) -> None:
    inner = ScriptedJudge(one_per_call=one_per_call)
    other = Renamed(inner, probe="x")
    assert other.source.parameters == {**inner.source.parameters, "probe": "x"}
    assert other.source.sha256 != inner.source.sha256
    assert other.batches(criteria(3)) == inner.batches(criteria(3))
    said, again = await inner.evaluate(unit()), await other.evaluate(unit())
    assert inner.seen == [unit(), unit()]  # the same question
    assert again.call == said.call
    assert {r.key.source for r in again.results} == {other.source.sha256}
    back = [
        r.model_copy(update={"key": r.key.model_copy(update={"source": inner.source.sha256})})
        for r in again.results
    ]
    assert back == list(said.results)


async def test_what_is_raised_is_raised() -> None:
    def fail(_: JudgeUnit) -> Outcome:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        await Renamed(ScriptedJudge(script=fail), probe="x").evaluate(unit())
