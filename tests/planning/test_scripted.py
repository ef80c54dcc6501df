"""Scripted agents do what their names say: verdicts, rates over many cases, names and values."""

import math
from collections import Counter
from itertools import permutations

import pytest

from agenteval.agents import AgentFailure, AgentLimits
from agenteval.agents.spec import system
from agenteval.errors import InputError
from agenteval.planning.case import Case, OrderRule
from agenteval.planning.evaluator import run_case
from agenteval.planning.scripted import NAMES, SCRIPTED, Factory, scripted
from agenteval.planning.synthesis import Generator, Shape
from tests.support.english import written
from tests.thorough import often

CHAIN = "Tea precedes soup. Soup precedes cake."


def chain(**more: object) -> Case:
    return written(CHAIN, ["cake", "tea", "soup"], **more)


async def outcome(case: Case, factory: Factory, limits: AgentLimits | None = None) -> str:
    log, verdict = await run_case(case, factory(), limits)
    return log.status if isinstance(log, AgentFailure) else verdict.outcome  # type: ignore[union-attr]


async def outcomes(agent: str, cases: list[Case]) -> Counter[str]:
    factory = scripted(agent)
    return Counter([await outcome(case, factory) for case in cases])


def share_of_orders(case: Case) -> float:
    """By trying every order, without the code that counts plans."""
    rules = [rule for rule in case.constraints if isinstance(rule, OrderRule)]
    orders = list(permutations(action.tool for action in case.actions))
    good = [o for o in orders if all(o.index(r.first) < o.index(r.second) for r in rules)]
    return len(good) / len(orders)


async def test_perfect_passes_every_base_case() -> None:
    cases = list(Generator(Shape(actions=(2, 8)), seed=11).cases(200))
    assert await outcomes("perfect", cases) == {"pass": 200}


async def test_random_succeeds_as_often_as_valid_orders_are_met() -> None:
    """Independent trials of known shares: normal interval of their sum, 95 %."""
    cases = list(Generator(Shape(actions=(2, 5)), seed=13).cases(often(600, 2000)))
    passed = (await outcomes("random", cases))["pass"]
    shares = [share_of_orders(case) for case in cases]
    sd = math.sqrt(sum(p * (1 - p) for p in shares))
    assert abs(passed - sum(shares)) <= 1.96 * sd


@pytest.mark.parametrize("p", [0.2, 0.7])
async def test_chance_is_right_with_its_probability(p: float) -> None:
    for extended, count in ((False, often(200, 400)), (True, often(60, 100))):
        cases = list(Generator(Shape(extended=extended), seed=14).cases(count))
        found = await outcomes(f"chance={p}", cases)
        assert sum(found.values()) == count
        assert abs(found["pass"] - p * count) <= 3.3 * math.sqrt(count * p * (1 - p))


async def calls(agent: str, case: Case, limits: AgentLimits | None = None) -> list[str]:
    log, _ = await run_case(case, scripted(agent)(), limits)
    return [event.name for event in log.events]


async def test_what_each_agent_calls() -> None:
    case = written("Soup happens before cake. Tea precedes soup.", ["cake", "soup", "tea"])
    assert await calls("perfect", case) == ["tea", "soup", "cake"]
    assert await calls("chance=0", case) == ["cake", "soup", "tea"]
    assert sorted(await calls("random", case)) == ["cake", "soup", "tea"]
    assert await outcome(case, scripted("crash")) == "error:infrastructure"


async def test_wrong_violates_a_time_limit_where_there_is_no_order() -> None:
    hours = {"tea": 2, "soup": 3}
    for text in (
        "Tea happens before 10:00. Soup is done before 23:00.",
        "Tea happens after 12:00. Soup is done after 03:00.",
    ):
        case = written(text, ["tea", "soup"], durations=hours)
        assert await outcome(case, scripted("chance=1")) == "pass"
        for _ in range(5):
            assert await outcome(case, scripted("chance=0")) == "order_error"


async def test_tries_of_one_request_differ_and_can_be_repeated() -> None:
    case = next(Generator(Shape(actions=(5, 5)), seed=3).cases(1))
    other = next(Generator(Shape(actions=(5, 5)), seed=4).cases(1))

    async def sequences(factory: Factory, between: bool) -> list[tuple[str, ...]]:
        found = []
        for _ in range(6):
            log, _ = await run_case(case, factory())
            found.append(tuple(event.name for event in log.events))
            if between:
                await run_case(other, factory())
        return found

    alone = await sequences(scripted("random"), False)
    assert len(set(alone)) > 3  # of 120 orders
    assert await sequences(scripted("random"), True) == alone
    assert await sequences(scripted("random,seed=1"), False) != alone


def test_names() -> None:
    assert set(SCRIPTED) == set(NAMES)
    assert len(SCRIPTED) == len(NAMES)
    assert "random,seed=3" in SCRIPTED
    assert "nobody" not in SCRIPTED
    found = system("scripted:chance=0.3,seed=2", scripted=SCRIPTED)
    assert found.parameters["script"] == "chance=0.3,seed=2"
    assert found.make() is not found.make()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("perfekt", "is 'perfect' meant"),
        ("reversed", "known: perfect, random, crash, chance=P"),
        ("nobody", "known: perfect, random, crash, chance=P"),
        ("perfect=1", "no such scripted agent"),
        ("chance=2", "must be a probability"),
        ("chance=nan", "must be a probability"),
        ("random,seed=x", "must be a whole number"),
    ],
)
def test_bad_names(spec: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        scripted(spec)
    with pytest.raises(InputError):
        system(f"scripted:{spec}", scripted=SCRIPTED)
