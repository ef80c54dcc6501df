"""Shrinking finds the planted word or form alone, keeps cases valid, and says how it ended."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.agents import System, Toolbox
from agenteval.errors import InputError, Transient
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.dsl.derive import constraints_of
from agenteval.evaluators.planning.dsl.fill import forms_in, words_in
from agenteval.evaluators.planning.dsl.lexicon import built_in
from agenteval.evaluators.planning.dsl.parse import parse
from agenteval.evaluators.planning.dsl.render import render
from agenteval.evaluators.planning.run import run_case
from agenteval.evaluators.planning.scripted import scripted
from agenteval.evaluators.planning.shrink import ShrinkOptions, Shrunk, shrink
from agenteval.evaluators.planning.simplify import mentioned, simpler
from agenteval.evaluators.planning.solver.graph import Graph
from agenteval.evaluators.planning.substitute import base_of
from agenteval.evaluators.planning.suite import case_line, contradiction, read_case
from agenteval.evaluators.planning.synthesis.generate import Generator, Shape


def system(agent: str) -> System:
    return System(agent, scripted(agent), {})


async def shrunk(agent: str, count: int, *, extended: bool = False) -> list[Shrunk]:
    """The first failing cases of an agent, shrunk; each is checked to be a valid case."""
    generator = Generator(Shape(actions=(3, 6), extended=extended), seed=41)
    tested, number = system(agent), 0
    found: list[Shrunk] = []
    while len(found) < count:
        case = generator.case(number)
        number += 1
        _, verdict = await run_case(case, tested.make(), explain=False)
        assert verdict is not None
        if verdict.passed:
            continue
        small = await shrink(case, tested)
        assert small.ended == "minimal"
        assert small.original == case.id
        assert read_case(case_line(small.case), "line", built_in()) == small.case
        assert {r for rule in small.case.constraints for r in _names(rule)} == {
            a.tool for a in small.case.actions
        }
        _, verdict = await run_case(small.case, tested.make(), explain=False)
        assert verdict is not None
        assert not verdict.passed
        found.append(small)
    return found


def _names(rule: object) -> list[str]:
    values = (getattr(rule, name, None) for name in ("first", "second", "tool"))
    return [value for value in values if value]


async def test_the_planted_word_is_left_alone() -> None:
    word = [w.singular for w in built_in().words["P_prec"]].index("prior to")
    for small in await shrunk("wrong-word=P_prec/prior to", 6):
        tree = base_of(small.case).tree
        assert words_in(tree) == [("VP_none", 0), ("P_prec", word)]
        assert small.case.n == 2
        assert small.case.text.endswith(f"happens prior to {small.case.actions[1].phrase}.") or (
            small.case.text.endswith(f"happens prior to {small.case.actions[0].phrase}.")
        )


@pytest.mark.parametrize(
    ("form", "left", "n"),
    [
        ("fronted pair succ", {"fronted pair succ"}, {2}),
        ("preposition succ", {"preposition succ"}, {2}),
        ("verb succ", {"verb succ"}, {2}),
        ("relative prec", {"relative prec", "verb prec"}, {3}),
        ("plural", {"plural", "verb prec"}, {3}),
        ("conjunction", {"conjunction", "verb prec"}, {2, 3, 4}),
    ],
)
async def test_the_planted_form_is_left_alone(form: str, left: set[str], n: set[int]) -> None:
    for small in await shrunk(f"wrong-form={form}", 3):
        assert forms_in(base_of(small.case).tree) == left
        assert small.case.n in n


async def test_the_planted_pattern_is_left_alone() -> None:
    for small in await shrunk("wrong-pattern=fan-in", 4):
        (first, second) = small.case.stated  # two orders with one end, in three actions
        assert first.constraint.second == second.constraint.second  # type: ignore[union-attr]
        assert small.case.n == 3


async def test_extended_cases_stay_feasible_with_their_durations() -> None:
    for small in await shrunk("wrong-pattern=limit", 4, extended=True):
        assert small.case.n == 1
        assert len(small.case.constraints) == 1
        assert small.case.durations is not None
        assert {tool.name for tool in small.case.tools} == {
            small.case.actions[0].tool, "restart_plan",
        }  # fmt: skip


async def test_what_always_fails_comes_down_to_one_order() -> None:
    for small in await shrunk("reversed", 3):
        assert small.case.n == 2
        assert " precedes " in small.case.text
        assert small.steps[-1].text == small.case.text
        assert small.runs >= 2 * (1 + len(small.steps))  # each kept step failed twice


class Told:
    """Fails where `rule(request)` is true; an exception it returns is raised."""

    def __init__(self, rule: Callable[[str], bool | Exception]) -> None:
        self.rule, self.runs = rule, 0

    def system(self) -> System:
        return System("told", lambda: self, {})

    async def run(self, request: str, tools: Toolbox) -> str:
        self.runs += 1
        fails = self.rule(request)
        if isinstance(fails, Exception):
            raise fails
        return await scripted("reversed" if fails else "perfect")().run(request, tools)


def a_case() -> Case:
    return next(Generator(Shape(actions=(5, 5)), seed=6).cases(1))


async def test_a_case_that_passes_is_not_shrunk() -> None:
    case = a_case()
    found = await shrink(case, system("perfect"))
    assert (found.ended, found.steps, found.case, found.runs) == ("not failing", (), case, 1)
    found = await shrink(case, Told(lambda _: Transient("down")).system())
    assert (found.ended, found.unknown) == ("not failing", 1)


async def test_every_try_must_fail() -> None:
    """An agent that fails the original only by chance: what passed once is not taken."""
    case = a_case()
    flaky: Told = Told(lambda request: case.text in request or flaky.runs % 2 == 0)
    found = await shrink(case, flaky.system(), ShrinkOptions(tries=2))
    assert (found.ended, found.case, found.steps) == ("minimal", case, ())


async def test_without_a_verdict_a_request_is_not_taken() -> None:
    case = a_case()
    found = await shrink(
        case, Told(lambda request: case.text in request or Transient("down")).system()
    )
    assert (found.ended, found.case) == ("unknown", case)
    assert found.unknown == found.requests - 1 > 0


async def test_the_budget_is_kept() -> None:
    told = Told(lambda _: True)
    found = await shrink(a_case(), told.system(), ShrinkOptions(budget=5))
    assert (found.ended, found.runs, told.runs) == ("budget", 4, 4)  # no room for two more
    assert len(found.steps) == 1
    with pytest.raises(InputError):
        ShrinkOptions(tries=3, budget=2)


async def test_actions_that_are_never_mentioned_go_first() -> None:
    line = '{"id": "h", "actions": ["tea", "soup", "cake"], "text": "Tea precedes soup."}'
    case = read_case(line, "h", built_in())
    found = await shrink(case, system("reversed"))
    assert found.steps[0].change == "actions never mentioned removed"
    assert [action.phrase for action in found.case.actions] == ["tea", "soup"]


def test_a_clause_is_not_turned_round_into_one_that_could_be_misread() -> None:
    text = "After soup and cake, which follow bread, tea, which follows wine, occurs."
    phrases = ["soup", "cake", "bread", "tea", "wine"]
    steps = dict(simpler(parse(text, phrases, built_in()), built_in()))
    assert "put in order" in steps  # after which it can be turned round
    assert "turned round" not in steps
    for tree in steps.values():
        render(tree, phrases, built_in())


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2000), st.booleans())
def test_steps_are_simpler_trees_of_the_language_and_never_ask_for_more(
    number: int, extended: bool
) -> None:
    case = Generator(Shape(actions=(2, 6), extended=extended), seed=7).case(number)
    tree = base_of(case).tree
    phrases = [action.phrase for action in case.actions]
    before = {entry.constraint for entry in constraints_of(tree)}
    for change, smaller in simpler(tree, built_in()):
        assert smaller != tree, change
        assert parse(render(smaller, phrases, built_in()), phrases, built_in()) == smaller
        after = {entry.constraint for entry in constraints_of(smaller)}
        assert after, change
        assert after <= before, change
        assert mentioned(smaller) <= set(range(case.n))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 500), st.randoms(use_true_random=False))
def test_any_row_of_steps_ends_at_one_plain_sub_sentence(number: int, luck: random.Random) -> None:
    case = Generator(Shape(actions=(2, 4)), seed=7).case(number)
    tree = base_of(case).tree
    for _ in range(400):
        steps = list(simpler(tree, built_in()))
        if not steps:
            break
        tree = luck.choice(steps)[1]
    assert forms_in(tree) == {"verb prec"}
    assert [word for _, word in words_in(tree)] == [0]
    assert len(mentioned(tree)) == 2
    assert Graph(case.n).allows([e.constraint for e in constraints_of(tree)])


async def test_a_shrunk_case_has_no_contradiction() -> None:
    found = await shrink(a_case(), system("reversed"))
    assert contradiction(found.case) == ()
    assert found.case.valid_plans == 1  # one order of two actions
