"""The contract every evaluator must pass, whatever goes wrong inside it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, RunJudge, classify, judge
from agenteval.errors import (
    BadRequest,
    BudgetExceeded,
    Filtered,
    ReplyError,
    RequestTimeout,
    StoreError,
    StoreRefused,
    Transient,
    Unauthorized,
)
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.wire import Reply, Request
from agenteval.readers import make_view
from agenteval.records import Criterion, Failure, Message, Run, Score, Source, Task
from agenteval.testing.scripted import ScriptedTransport
from agenteval.utility.distributions import DistributionJudge, Kind
from agenteval.utility.pairwise.judge import PairQuantifier
from agenteval.utility.quantifier import Guarded, Quantifier, QuantifierOptions

CRITERIA = (
    Criterion(name="Clarity", accepted_values=("unclear", "fair", "clear")),
    Criterion(name="Accuracy", accepted_values=("wrong", "right"), allow_na=True),
    Criterion(name="Kind", accepted_values=("proof", "sum"), scale="nominal"),
)
ANSWER = "It is 4 because 2 and 2 make 4."
RUN = Run(
    id="r",
    task="t",
    input="2 + 2?",
    output=ANSWER,
    messages=(Message(role="assistant", content="4"), Message(role="assistant", content=ANSWER)),
    metadata={"degenerate": [None, None]},  # as a pair of responses
)
UNIT = JudgeUnit(RUN, make_view(RUN), CRITERIA)

Answer = Callable[[Request], str | Reply | Exception]


def _chat(answer: Answer, kind: type[Quantifier] = Quantifier) -> RunJudge:
    client = Client(ScriptedTransport(answer), retry=RetryPolicy(attempts=1))
    return kind(client, Task(name="t", description="d"), QuantifierOptions())


def _distributed(kind: Kind) -> Callable[[Answer], RunJudge]:
    """It has no text to read labels in, so no text of ANSWERS is a good reply."""

    def built(answer: Answer) -> RunJudge:
        client = Client(ScriptedTransport(answer), retry=RetryPolicy(attempts=1))
        return DistributionJudge(client, Task(name="t", description="d"), kind)

    return built


EVALUATORS: dict[str, Callable[[Answer], RunJudge]] = {
    "quantifier": _chat,
    "guarded quantifier": lambda answer: Guarded(_chat(answer)),
    "pairwise": lambda answer: _chat(answer, PairQuantifier),
}
DISTRIBUTIONS = {kind: _distributed(kind) for kind in ("decisions", "letters")}
GOOD = json.dumps({"clarity": "clear", "accuracy": "right", "kind": "sum"})

ANSWERS: dict[str, tuple[str | Reply | Exception, set[str]]] = {
    "good": (GOOD, {"scored"}),
    "prose": ("It is good.", {"unscored:parse"}),
    "empty": ("", {"unscored:parse"}),
    "null": ("null", {"unscored:parse"}),
    "empty object": ("{}", {"unscored:parse", "unscored:missing"}),
    "numbers": ('{"clarity": 1, "accuracy": 0, "kind": 2}', {"unscored:off_scale"}),
    "booleans": ('{"clarity": true, "accuracy": false, "kind": true}', {"unscored:off_scale"}),
    "another scale": (
        '{"clarity": "good", "accuracy": "good", "kind": "good"}',
        {"unscored:off_scale"},
    ),
    "refusal": (Reply(text="", refusal="no"), {"unscored:refusal"}),
    "filtered": (Filtered("no"), {"unscored:refusal"}),
    "timeout": (RequestTimeout("slow"), {"error:timeout"}),
    "server error": (Transient("500"), {"error:infrastructure"}),
    "bad request": (BadRequest("400"), {"error:infrastructure"}),
    "budget": (BudgetExceeded("cap"), {"error:budget"}),
    "reply error": (ReplyError("odd"), {"unscored:parse"}),
    "crash": (RuntimeError("bug"), {"error:infrastructure"}),
    "recursion": (RecursionError("deep"), {"error:infrastructure"}),
}


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize("name", EVALUATORS)
async def test_one_result_per_criterion_and_no_failure_has_a_value(name: str, case: str) -> None:
    answer, expected = ANSWERS[case]
    evaluator = EVALUATORS[name](lambda _: answer)
    outcome = await judge(evaluator, UNIT)
    check(evaluator, outcome)
    assert {r.status for r in outcome.results} <= expected


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize("kind", DISTRIBUTIONS)
async def test_no_text_is_a_distribution(kind: str, case: str) -> None:
    answer, expected = ANSWERS[case]
    evaluator = DISTRIBUTIONS[kind](lambda _: answer)
    outcome = await judge(evaluator, UNIT)
    check(evaluator, outcome)
    found = {r.status for r in outcome.results}
    text = isinstance(answer, str)
    assert found <= ({"unscored:parse", "unscored:missing"} if text else expected)


@pytest.mark.parametrize("name", [*EVALUATORS, *DISTRIBUTIONS])
async def test_a_refused_key_stops_everything(name: str) -> None:
    evaluator = {**EVALUATORS, **DISTRIBUTIONS}[name](lambda _: Unauthorized("401"))
    with pytest.raises(Unauthorized):
        await judge(evaluator, UNIT)


@pytest.mark.parametrize("name", EVALUATORS)
async def test_a_store_that_fails_stops_everything(name: str) -> None:
    """No answer was missing: the disk was."""
    evaluator = EVALUATORS[name](lambda _: StoreError("disk I/O error"))
    with pytest.raises(StoreError):
        await judge(evaluator, UNIT)


def test_a_store_that_fails_has_no_status() -> None:
    """Whoever turns exceptions into records, at whatever depth, gives it back."""
    with pytest.raises(StoreRefused):
        classify(StoreRefused("damaged"))


def check(evaluator: RunJudge, outcome: Outcome) -> None:
    """What must hold of every outcome."""
    assert isinstance(evaluator.source, Source)
    assert evaluator.source.sha256 == evaluator.source.sha256
    assert [r.criterion_id for r in outcome.results] == [c.id for c in UNIT.criteria]
    for criterion, result in zip(UNIT.criteria, outcome.results, strict=True):
        assert result.key.run == UNIT.view.sha256
        assert result.key.criterion == criterion.sha256
        assert result.key.source == evaluator.source.sha256
        assert result.key.repeat == UNIT.repeat
        if isinstance(result, Failure):
            assert ":" in result.status
            assert not hasattr(result, "value")
            assert result.message
        else:
            assert isinstance(result, Score)
            assert ":" not in result.status
            scored = result.status == "scored" and criterion.scale != "nominal"
            assert (result.value is not None) == scored or result.status == "degenerate"
    json.dumps([r.model_dump(mode="json") for r in outcome.results], allow_nan=False)


def test_batches_cover_every_criterion_once() -> None:
    for make in EVALUATORS.values():
        batches = make(lambda _: "").batches(CRITERIA)
        assert sorted(c.id for b in batches for c in b) == sorted(c.id for c in CRITERIA)
