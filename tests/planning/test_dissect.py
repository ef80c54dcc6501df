"""Algorithm 2: the label as a function, the stages as they are run, planted causes found."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agenteval.agents import Agent, Dialogue, System, Toolbox
from agenteval.engine import Experiment
from agenteval.errors import BudgetExceeded, InputError, Transient
from agenteval.planning.case import Case
from agenteval.planning.dissect import (
    Dissection,
    DissectionEvaluator,
    DissectOptions,
    dissect,
    label,
)
from agenteval.planning.evaluator import run_case
from agenteval.planning.scripted import ScriptedAgent, scripted
from agenteval.planning.synthesis import Generator, Shape
from agenteval.planning.words import choose_topics
from agenteval.records import Usage
from agenteval.store import Store
from tests.golden.files import published
from tests.support.wrong_planners import wrong_planner

GOLDEN: list[Any] = published("planning_cases")["dissection_K3"]


def given(golden: dict[str, Any]) -> dict[Any, list[bool | None]]:
    keys = {"original": "orig", "terminal": "terminal", "topic": "topic", "structure": "structure"}
    return {stage: [bool(x) for x in golden[key]] for stage, key in keys.items() if key in golden}


def test_golden_labels() -> None:
    assert len(GOLDEN) == 5
    for golden in GOLDEN:
        default = golden.get("expect", golden.get("expect_K3"))
        literal = golden.get("expect", golden.get("expect_paper_literal_first_iteration"))
        assert label(given(golden)) == default
        assert label(given(golden), paper_literal=True) == literal


NO = [False, False, False]


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ({"original": [None, True, False]}, "Probability"),  # the unknown one changes nothing
        ({"original": [None, False, False], "terminal": [True]}, "undecided"),
        ({"original": NO}, "undecided"),  # nothing further was run
        ({}, "undecided"),
        ({"original": NO, "terminal": NO, "topic": [False, None, False]}, "undecided"),
        ({"original": NO, "terminal": NO, "topic": NO, "structure": [False, None]}, "undecided"),
        ({"original": NO, "terminal": NO, "topic": NO, "structure": [None, True]}, "Structure"),
    ],
)
def test_labels_without_a_verdict(outcomes: Any, expected: str) -> None:
    assert label(outcomes) == expected


class Told(ScriptedAgent):
    """A system that passes or fails as `rule(request, number of this run)` says."""

    def __init__(self, rule: Any, together: int = 1) -> None:
        """The first runs wait until `together` of them are under way."""
        self.rule, self.runs, self.now, self.most = rule, 0, 0, 0
        self.together, self.met = together, asyncio.Event()
        self.right, self.wrong = scripted("perfect"), wrong_planner("reversed")

    def system(self) -> System:
        return System("told", lambda: self, {})

    def on(self, case: Case) -> Agent:
        return Bound(self, case)

    async def play(self, case: Case, dialogue: Dialogue, tools: Toolbox) -> str:
        self.runs += 1
        number = self.runs
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.now >= self.together:
                self.met.set()
            await asyncio.wait_for(self.met.wait(), 60)
            passes = self.rule(dialogue.messages[-1].content, number)
            if isinstance(passes, Exception):
                raise passes
            agent = (self.right() if passes else self.wrong()).on(case)
            return await agent.run(dialogue, tools)
        finally:
            self.now -= 1


@dataclass(frozen=True)
class Bound:
    """The system at one case."""

    told: Told
    case: Case

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        return await self.told.play(self.case, dialogue, tools)


class Spending(Told):
    """A request for every run, and always wrong; a cap after so many requests."""

    def __init__(self, cap: int) -> None:
        super().__init__(lambda _, __: False)
        self.cap = cap

    async def play(self, case: Case, dialogue: Dialogue, tools: Toolbox) -> str:
        if self.runs >= self.cap:
            raise BudgetExceeded("the cap is reached")
        tools.spend(Usage(requests=1))
        return await super().play(case, dialogue, tools)


def a_case(seed: int = 1, *, extended: bool = False) -> Case:
    return next(Generator(Shape(actions=(4, 4), extended=extended), seed=seed).cases(1))


def tried(found: Dissection) -> dict[str, list[bool | None]]:
    return {stage.name: [one.passed for one in stage.tries] for stage in found.stages}


async def test_begun_stages_are_run_in_full_and_no_further_one() -> None:
    case = a_case()
    told = Told(lambda request, number: number == 5)
    found = await dissect(case, told.system())
    assert tried(found) == {"original": NO, "terminal": [False, True, False]}
    assert (found.label, found.labels, found.runs) == ("Terminal", ("Terminal",), 6)


async def test_full_runs_all_stages_and_tells_several_causes() -> None:
    case = a_case()
    told = Told(lambda request, number: case.text not in request)
    found = await dissect(case, told.system(), DissectOptions(full=True, tries=2))
    assert tried(found) == {
        "original": NO,
        "terminal": [True] * 2,
        "topic": [True] * 2,
        "structure": [True] * 2,
    }
    assert found.label == "Terminal"
    assert found.labels == ("Terminal", "Topic", "Structure")
    assert Dissection.model_validate_json(found.model_dump_json()) == found


async def test_paper_literal_stops_at_the_first_success_and_decides_structure_at_once() -> None:
    options = DissectOptions(paper_literal=True)
    told = Told(lambda request, number: number == 2)
    found = await dissect(a_case(), told.system(), options)
    assert tried(found) == {"original": [False, True]}
    assert found.stages[0].stopped
    told = Told(lambda request, number: number > 10)  # the second structure would pass
    found = await dissect(a_case(), told.system(), options)
    assert tried(found)["structure"] == [False]
    assert (found.label, found.runs) == ("Constraint", 10)


async def test_failures_of_the_endpoint_are_repeated_and_never_count() -> None:
    case = a_case()
    found = await dissect(
        case, Told(lambda _, number: Transient("down") if number <= 4 else number > 8).system()
    )
    assert sum(one.runs for one in found.stages[0].tries) == 4 + 3
    assert found.label == "Terminal"
    assert found.unknown == 0
    dead = Told(lambda _, __: Transient("down"))
    found = await dissect(case, dead.system(), DissectOptions(retries=1))
    assert (found.label, found.unknown, found.runs) == ("undecided", 3, 6)
    (stage,) = found.stages  # what follows could decide nothing
    assert {one.outcome for one in stage.tries} == {"error:infrastructure"}
    assert all("down" in one.message for one in stage.tries)


@pytest.mark.parametrize("full", [False, True])
async def test_what_was_spent_is_known_at_the_end_and_at_the_cap(full: bool) -> None:
    options = DissectOptions(full=full)
    found = await dissect(a_case(), Spending(100).system(), options)
    assert (found.runs, found.usage.requests) == (12, 12)
    spending = Spending(5)
    with pytest.raises(BudgetExceeded) as stopped:
        await dissect(a_case(), spending.system(), options)
    assert stopped.value.spent == Usage(requests=5)


async def test_a_case_that_cannot_be_read_is_refused_before_anything_runs() -> None:
    told = Told(lambda _, __: False)
    case = a_case().model_copy(update={"text": "Do what you like."})
    with pytest.raises(InputError, match="`tree` and its `text` differ"):
        await dissect(case, told.system())
    assert told.runs == 0


@pytest.mark.parametrize(
    "bad", [{"tries": 0}, {"retries": -1}, {"full": True, "paper_literal": True}]
)
def test_bad_options(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        DissectOptions(**bad)


async def found_causes(agent: str, count: int, *, extended: bool = False) -> Counter[str]:
    topics = choose_topics(["Nurse", "Chef", "Electrician"])
    generator = Generator(Shape(extended=extended), seed=21, topics=topics)
    system = System(agent, wrong_planner(agent), {})
    found: Counter[str] = Counter()
    number = 0
    while sum(found.values()) < count:
        case = generator.case(number)
        number += 1
        _, verdict = await run_case(case, system.make())
        assert verdict is not None
        if not verdict.passed:
            found[(await dissect(case, system)).label] += 1
    return found


@pytest.mark.parametrize(
    ("agent", "cause", "extended"),
    [
        ("wrong-word=P_prec/before", "Terminal", False),
        ("wrong-word=P_prec/before", "Terminal", True),
        ("wrong-topic=Nurse", "Topic", False),
        ("wrong-topic=Nurse", "Topic", True),
        ("wrong-form=fronted pair prec", "Structure", False),
        ("wrong-form=relative succ", "Structure", False),
        ("wrong-pattern=chain3", "Constraint", False),
        ("wrong-pattern=limit", "Constraint", True),
        ("reversed", "Constraint", False),
    ],
)
async def test_planted_causes_are_found(agent: str, cause: str, extended: bool) -> None:
    """All but one in eight: a word or form may come back in all three substitutes."""
    found = await found_causes(agent, 8, extended=extended)
    assert found[cause] >= 7


class Idle:
    """Fails every try, once `go` is set."""

    def __init__(self, begun: asyncio.Event, go: asyncio.Event) -> None:
        self.begun, self.go = begun, go

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        self.begun.set()
        await self.go.wait()
        return "done"


@pytest.mark.parametrize("in_time", [True, False])
def test_an_interrupt_stores_what_is_running_and_begins_nothing(
    tmp_path: Path, in_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = list(Generator(Shape((2, 2)), seed=4).cases(2))
    lines: list[str] = []

    async def work(store: Store) -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        def notify(line: str) -> None:
            lines.append(line)
            if in_time:
                go.set()

        options = DissectOptions(tries=1, original=1)
        system = System("idle", lambda: Idle(begun, go), {})
        evaluator = DissectionEvaluator.of(system, cases, options, concurrency=1)
        if not in_time:
            monkeypatch.setattr(DissectionEvaluator, "grace", 0.0)
        experiment = Experiment(evaluator, store, concurrency=1, notify=notify, announce=False)
        running = asyncio.create_task(experiment.run())
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        missing = [unit.content for unit in experiment.pending().units]
        assert missing == (cases[1:] if in_time else cases)

    with Store(tmp_path / "s.db") as store:
        asyncio.run(work(store))
    assert lines[0].startswith("interrupted: finishing 1 dissection in progress")
    assert len(lines) == (1 if in_time else 2)
