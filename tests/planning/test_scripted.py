"""Scripted agents do what their names say: verdicts, rates over many cases, names and values."""

from __future__ import annotations

import math
from collections import Counter
from math import factorial

import pytest

from agenteval.agents import AgentFailure
from agenteval.agents.spec import system
from agenteval.errors import InputError
from agenteval.planning.case import Case
from agenteval.planning.evaluator import run_case
from agenteval.planning.scripted import NAMES, SCRIPTED, Factory, scripted
from agenteval.planning.synthesis import Generator, Shape
from tests.support.english import written
from tests.thorough import often


async def outcome(case: Case, factory: Factory) -> str:
    log, verdict = await run_case(case, factory())
    return log.status if isinstance(log, AgentFailure) else verdict.outcome


async def outcomes(agent: str, cases: list[Case]) -> Counter[str]:
    factory = scripted(agent)
    return Counter([await outcome(case, factory) for case in cases])


@pytest.mark.parametrize(
    ("agent", "shape", "expected"),
    [
        ("perfect", Shape(actions=(2, 8)), "pass"),
        ("perfect", Shape(actions=(2, 6), times=(1, 3), extended=True), "pass"),
        ("chance=0", Shape(), "order_error"),
        ("crash", Shape(), "error:infrastructure"),
    ],
)
async def test_agents_without_chance(agent: str, shape: Shape, expected: str) -> None:
    cases = list(Generator(shape, seed=11).cases(50))
    assert await outcomes(agent, cases) == {expected: 50}


@pytest.mark.slow
async def test_random_succeeds_as_often_as_valid_orders_occur() -> None:
    """Independent trials of known shares: normal interval of their sum, 95%."""
    cases = list(Generator(Shape(actions=(2, 5)), seed=13).cases(often(600, 2000)))
    passed = (await outcomes("random", cases))["pass"]
    shares = [case.valid_plans / factorial(case.n) for case in cases]
    sd = math.sqrt(sum(p * (1 - p) for p in shares))
    assert abs(passed - sum(shares)) <= 1.96 * sd


@pytest.mark.parametrize("p", [0.2, 0.7])
@pytest.mark.parametrize(("extended", "count"), [(False, 200), (True, 60)])
async def test_chance_is_right_with_its_probability(p: float, extended: bool, count: int) -> None:
    cases = list(Generator(Shape(extended=extended), seed=14).cases(count))
    passed = (await outcomes(f"chance={p}", cases))["pass"]
    assert abs(passed - p * count) <= 3.3 * math.sqrt(count * p * (1 - p))


@pytest.mark.parametrize(
    "text",
    [
        "Tea happens before 10:00. Soup is done before 23:00.",
        "Tea happens after 12:00. Soup is done after 03:00.",
    ],
)
async def test_a_time_limit_is_violated_where_there_is_no_order(text: str) -> None:
    case = written(text, ["tea", "soup"], durations={"tea": 2, "soup": 3})
    assert await outcome(case, scripted("chance=1")) == "pass"
    assert await outcomes("chance=0", [case] * 5) == {"order_error": 5}


async def test_tries_of_one_request_differ_and_can_be_repeated() -> None:
    case, other = Generator(Shape(actions=(5, 5)), seed=3).cases(2)

    async def sequences(agent: str, *, between: bool = False) -> list[tuple[str, ...]]:
        factory, made = scripted(agent), []
        for _ in range(6):
            log, _ = await run_case(case, factory())
            made.append(tuple(event.name for event in log.events))
            if between:
                await run_case(other, factory())
        return made

    alone = await sequences("random")
    assert len(set(alone)) > 3  # of 120 orders
    assert await sequences("random", between=True) == alone
    assert await sequences("random,seed=1") != alone


def test_names() -> None:
    assert set(SCRIPTED) == set(NAMES)
    assert "random,seed=3" in SCRIPTED
    assert "nobody" not in SCRIPTED
    agent = system("scripted:chance=0.3,seed=2", scripted=SCRIPTED)
    assert agent.parameters["script"] == "chance=0.3,seed=2"
    assert agent.make() is not agent.make()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("perfekt", "did you mean perfect"),
        ("nobody", "known: perfect, random, crash, chance=P"),
        ("perfect=1", "no such scripted agent"),
        ("chance=2", "must be a probability"),
        ("chance=nan", "must be a probability"),
        ("random,seed=x", "must be an integer"),
    ],
)
def test_bad_names(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        scripted(spec)
    with pytest.raises(InputError):
        system(f"scripted:{spec}", scripted=SCRIPTED)


async def test_attempts_have_draws_of_their_own() -> None:
    """Attempt 1000 of a new factory, as a dissection makes it, does not repeat attempt 0."""
    (case,) = Generator(Shape(actions=(5, 5)), seed=3).cases(1)

    async def orders(*trials: int) -> list[tuple[str, ...]]:
        made, factory = [], scripted("random")
        for trial in trials:
            log, _ = await run_case(case, factory(), trial=trial)
            made.append(tuple(event.name for event in log.events))
        return made

    tested = await orders(0, 1, 2)
    assert await orders(2, 1) == tested[:0:-1]  # whatever ran before
    assert not set(tested) & set(await orders(1000, 1003, 1006))
