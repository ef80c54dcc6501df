"""Algorithm 2: the label as a function, the stages as they are run, planted causes found."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from agenteval.agents import Dialogue, System, Toolbox
from agenteval.errors import BudgetExceeded, InputError, Transient
from agenteval.planning.case import Case
from agenteval.planning.dissect import (
    Dissection,
    DissectOptions,
    dissect,
    label,
)
from agenteval.planning.evaluator import run_case
from agenteval.planning.oracle import PlanStep
from agenteval.planning.scripted import Factory, perfect, wrong
from agenteval.planning.synthesis import Dice, Generator, Shape
from agenteval.planning.words import choose_topics
from agenteval.records import Usage
from tests.golden.files import published
from tests.support.wrong_planners import wrong_planner

GOLDEN: list[Any] = published("planning_cases")["dissection_K3"]
CASE = Generator(Shape(actions=(4, 4)), seed=1).case(0)
NO = [False, False, False]
FAILED = {"original": NO, "terminal": NO, "topic": NO}


def test_golden_labels() -> None:
    assert len(GOLDEN) == 5
    keys = {"original": "orig", "terminal": "terminal", "topic": "topic", "structure": "structure"}
    for golden in GOLDEN:
        tries = {name: [bool(x) for x in golden[k]] for name, k in keys.items() if k in golden}
        default = golden.get("expect", golden.get("expect_K3"))
        literal = golden.get("expect", golden.get("expect_paper_literal_first_iteration"))
        assert label(tries) == default
        assert label(tries, paper_literal=True) == literal


@pytest.mark.parametrize(
    ("outcomes", "literal", "expected"),
    [
        ({"original": [None, True, False]}, False, "Probability"),  # the unknown changes nothing
        ({"original": [None, False, False], "terminal": [True]}, False, "undecided"),
        ({"original": NO}, False, "undecided"),  # nothing further was run
        ({}, False, "undecided"),
        ({"original": NO, "terminal": NO, "topic": [False, None]}, False, "undecided"),
        (FAILED | {"structure": [None]}, False, "undecided"),
        (
            {"original": NO, "terminal": NO, "topic": NO, "structure": [None, True]},
            False,
            "Structure",
        ),
        (
            {"original": NO, "terminal": NO, "topic": NO, "structure": [None, True]},
            True,
            "undecided",
        ),
    ],
)
def test_labels_without_a_verdict(outcomes: Any, literal: bool, expected: str) -> None:
    assert label(outcomes, paper_literal=literal) == expected


def system(rule: Callable[[Case, int], bool | Exception]) -> System:
    """A system that passes, fails or raises as `rule(case, number of the run)` says."""
    runs = count(1)

    def script(case: Case, dice: Dice) -> list[PlanStep]:
        passes = rule(case, next(runs))
        if isinstance(passes, Exception):
            raise passes
        return perfect(case, dice) if passes else wrong(case, dice)

    return System("scripted", Factory(script), {})


def passed(dissection: Dissection) -> dict[str, list[bool | None]]:
    return {stage.name: [t.passed for t in stage.tries] for stage in dissection.stages}


async def test_begun_stages_are_completed_and_no_further_one_is_run() -> None:
    dissection = await dissect(CASE, system(lambda _, number: number == 5))
    assert passed(dissection) == {"original": NO, "terminal": [False, True, False]}
    assert (dissection.label, dissection.labels, dissection.runs) == ("Terminal", ("Terminal",), 6)


async def test_full_runs_all_stages_and_reports_several_causes() -> None:
    options = DissectOptions(full=True, tries=2)
    dissection = await dissect(CASE, system(lambda case, _: case.text != CASE.text), options)
    others = {name: [True, True] for name in ("terminal", "topic", "structure")}
    assert passed(dissection) == {"original": NO, **others}
    assert dissection.label == "Terminal"
    assert dissection.labels == ("Terminal", "Topic", "Structure")
    assert Dissection.model_validate_json(dissection.model_dump_json()) == dissection


async def test_paper_literal_stops_at_a_success_and_decides_structure_at_its_first_try() -> None:
    options = DissectOptions(paper_literal=True)
    dissection = await dissect(CASE, system(lambda _, number: number == 2), options)
    assert passed(dissection) == {"original": [False, True]}
    assert dissection.stages[0].stopped
    dissection = await dissect(CASE, system(lambda _, number: number > 10), options)
    assert passed(dissection)["structure"] == [False]  # a second one would pass
    assert (dissection.label, dissection.runs) == ("Constraint", 10)


async def test_failures_of_the_endpoint_are_repeated_and_never_count() -> None:
    down = Transient("down")
    dissection = await dissect(CASE, system(lambda _, n: down if n <= 4 else n > 8))
    assert sum(t.runs for t in dissection.stages[0].tries) == 4 + 3
    assert (dissection.label, dissection.unknown) == ("Terminal", 0)
    dissection = await dissect(CASE, system(lambda *_: down))
    assert (dissection.label, dissection.unknown, dissection.runs) == ("undecided", 3, 9)
    (stage,) = dissection.stages  # further ones could not decide anything
    assert {t.outcome for t in stage.tries} == {"error:infrastructure"}
    assert all("down" in t.message for t in stage.tries)


class Spending:
    """Sends one request in each run and calls no tool; a budget after `cap` requests."""

    def __init__(self, cap: int) -> None:
        self.cap, self.runs, self.running, self.most = cap, 0, 0, 0

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        if self.runs >= self.cap:
            raise BudgetExceeded("the cap is reached")
        tools.spend(Usage(requests=1))
        self.runs += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.01)
        self.running -= 1
        return "done"


@pytest.mark.parametrize("full", [False, True])
async def test_usage_is_known_at_the_end_and_at_the_cap(full: bool) -> None:
    options, agent = DissectOptions(full=full), Spending(100)
    slots = asyncio.Semaphore(2)
    dissection = await dissect(CASE, System("s", lambda: agent, {}), options, slots=slots)
    assert (dissection.runs, dissection.usage.requests, agent.most) == (12, 12, 2)
    capped = Spending(5)
    with pytest.raises(BudgetExceeded) as stopped:
        await dissect(CASE, System("s", lambda: capped, {}), options)
    assert stopped.value.spent == Usage(requests=5)


async def test_a_case_that_cannot_be_dissected_is_refused_before_anything_runs() -> None:
    agent = Spending(100)
    case = CASE.model_copy(update={"text": "Do what you like."})
    with pytest.raises(InputError, match="`tree` and its `text` differ"):
        await dissect(case, System("s", lambda: agent, {}))
    assert agent.runs == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "cause", "extended"),
    [
        ("wrong-word=P_prec/before", "Terminal", False),
        ("wrong-word=P_prec/before", "Terminal", True),
        ("wrong-topic=Nurse", "Topic", False),
        ("wrong-form=fronted pair prec", "Structure", False),
        ("wrong-form=relative succ", "Structure", False),
        ("wrong-pattern=chain3", "Constraint", False),
        ("wrong-pattern=limit", "Constraint", True),
        ("chance=0.8", "Probability", False),
    ],
)
async def test_planted_causes_are_found(agent: str, cause: str, extended: bool) -> None:
    """All but one in eight: a word or form may occur again in all three substitutes."""
    topics = choose_topics(["Nurse", "Chef", "Electrician"])
    planner = System(agent, wrong_planner(agent), {})
    causes: Counter[str] = Counter()
    for case in Generator(Shape(extended=extended), seed=21, topics=topics).cases(1000):
        _, verdict = await run_case(case, planner.make())
        if not verdict.passed:
            causes[(await dissect(case, planner)).label] += 1
        if sum(causes.values()) == 8:
            break
    assert causes[cause] >= 7
