"""The code of a procedure: what is read, what is refused, and that it is read as Python runs it."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from agenteval.evaluators.workflows.chart.follow import (
    END,
    ChartProcedure,
    comparisons_of,
    relation,
)
from agenteval.evaluators.workflows.chart.parse import parse_chart
from agenteval.evaluators.workflows.chart.world import make_world
from agenteval.evaluators.workflows.code_reader import CodeProcedure, read_code
from tests.evaluators.workflows.chart.boats import CHART, CODE, TOOLS, replaced, tool

LOOK = tool("look", {"ok": {"type": "boolean"}, "n": {"type": "integer"},
                     "kind": {"type": "string", "enum": ["a", "b", "c"]}}, ("id",))  # fmt: skip
ACT, UNDO = tool("act", {"done": {"type": "boolean"}}), tool("undo", {})
KIT = (LOOK, ACT, UNDO)
# In this chart the user may say yes or no after a call of look.
WISHES = parse_chart(
    "flowchart TD\nA(s)-->B>call look]\nB--yes-->C>call act]\nB--no-->D>call undo]\nC & D-->E[end]"
)


def function(body: str) -> str:
    return "def procedure():\n" + "".join(f"    {line}\n" for line in body.split("\n"))


def follows(body: str) -> dict[tuple[str, tuple[Any, ...]], set[str]]:
    """(last call, values of look's tested fields) → next calls."""
    code = read_code(function(body), KIT)
    assert [d.message for d in code.defects if d.severity == "error"] == []
    world = make_world(KIT, code.comparisons)
    walk = ChartProcedure(WISHES, [t.name for t in KIT], world)
    relation(walk, world)
    found = relation(CodeProcedure(code, world, walk), world)
    return {
        (last, tuple(world.name(i, v) for i, v in enumerate(state))): {to for _, to in nexts}
        for (last, state), nexts in found.follows.items()
    }


def after_look(test: str) -> dict[str, set[str]]:
    """What follows for each value of the one field that the test looks at."""
    body = f"x = look(id='1')\nif {test}:\n    act()\nelse:\n    undo()"
    return {values[0]: to for (last, values), to in follows(body).items() if last == "look"}


YES, NO = {"act"}, {"undo"}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("x.ok == True", {"true": YES, "false": NO}),
        ("x.ok", {"true": YES, "false": NO}),
        ("not x.ok", {"true": NO, "false": YES}),
        ("x.ok is False", {"true": NO, "false": YES}),
        ("x['ok'] != True", {"true": NO, "false": YES}),
        ("x.kind == 'a'", {"a": YES, "b": NO}),
        ("x.kind in ('a', 'b')", {"a": YES, "b": YES, "c": NO}),
        ("x.kind not in ['a', 'b']", {"a": NO, "b": NO, "c": YES}),
        ("x.n > 0", {"-1": NO, "1": YES}),
        ("0 < x.n", {"-1": NO, "1": YES}),
        ("0 <= x.n < 2", {"-1": NO, "0": YES, "2": NO}),
        ("x.n", {"-1": YES, "0": NO}),
        ("x.n == -1", {"-2": NO, "-1": YES}),
        ("x.ok == True or True", {"true": YES, "false": YES}),
        ("x.ok == True and not False", {"true": YES, "false": NO}),
    ],
)
def test_tests_of_returned_values(test: str, expected: dict[str, set[str]]) -> None:
    found = after_look(test)
    # integers stand for all that the test does not tell apart, so one of each kind is there
    for value, nexts in expected.items():
        assert found.get(value, nexts) == nexts, found
    assert {frozenset(v) for v in found.values()} == {frozenset(v) for v in expected.values()}


@pytest.mark.parametrize(
    "body",
    [
        "if look(id='1').ok:\n    act()\nelse:\n    undo()",
        "x = look(id='1')\ngood = x.ok\nif good:\n    act()\nelse:\n    undo()",
        "x = look(id='1')\ny = x\nif y.ok == True:\n    return act()\nreturn undo()",
        "x = look(id='1')\nwhile x.ok == False:\n    undo()\n    return\nact()",
        "x: object = look(id='1')\nfor _ in range(3):\n    pass\n"
        "if x.ok:\n    act()\nif not x.ok:\n    undo()",
    ],
)
def test_ways_of_writing_the_same(body: str) -> None:
    found = follows(body)
    assert {k: v for k, v in found.items() if k[0] == "look"} == {
        ("look", ("true",)): YES, ("look", ("false",)): NO,
    }  # fmt: skip


def test_counters_may_go_either_way() -> None:
    body = "tries = 0\nwhile tries < 3:\n    x = look(id='1')\n    tries += 1\nundo()"
    assert follows(body) == {
        ("the start", ()): {"look", "undo"}, ("look", ()): {"look", "undo"}, ("undo", ()): {END},
    }  # fmt: skip


def test_a_loop_of_so_many_rounds_may_end_after_any() -> None:
    body = "for _ in range(2):\n    x = look(id='1')\n    if x.ok:\n        break\n    undo()"
    found = follows(body)
    assert found["look", ("true",)] == {END}
    assert found["look", ("false",)] == {"undo"}
    assert found["undo", ("false",)] == {"look", END}


def test_what_the_user_says_holds_until_the_agent_speaks() -> None:
    once = "look(id='1')\nif user_says('yes'):\n    act()\nelif user_says('no'):\n    undo()"
    assert follows(once)["look", ()] == {"act", "undo"}  # one of the two, never neither
    apart = (
        "look(id='1')\nif user_says('yes'):\n    act()\n    return\nif user_says('no'):\n    undo()"
    )
    assert follows(apart)["look", ()] == {"act", "undo"}
    again = (
        "look(id='1')\nif user_says('yes'):\n    reply('sure?')\n"
        "    if user_says('no'):\n        undo()"
    )
    assert follows(again)["look", ()] == {"undo", END}


@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        ("lok(id='1')", "unknown_tool", "line 2 of the code: lok is no tool; is look meant?"),
        ("x = look(id='1')\nif x.okay:\n    act()", "unknown_field", "is ok meant?"),
        ("x = look(id='1')\nif x.kind == 'd':\n    act()", "bad_value", "one of a, b, c"),
        ("look(name='1')", "parameter", "look has no parameter name"),
        ("look()", "parameter", "look is called without id"),
        ("import os", "outside_dialect", "`import` cannot be followed"),
        ("try:\n    act()\nexcept ValueError:\n    pass", "outside_dialect", "`try`"),
        ("def inner():\n    act()", "outside_dialect", "`functiondef`"),
        ("break", "outside_dialect", "`break` cannot"),
        ("x = [act() for _ in range(3)]", "outside_dialect", "may not be evaluated"),
        ("x = act() if look(id='1').ok else undo()", "outside_dialect", "may not be evaluated"),
        ("wants = user_says('yes')", "outside_dialect", "only in conditions"),
        ("wish = 'yes'\nif user_says(wish):\n    act()", "outside_dialect", "needs the intent"),
        ("while look(id='1').ok:\n    act()\nelse:\n    undo()", "outside_dialect", "with else"),
    ],
)
def test_what_is_refused(body: str, kind: str, told: str) -> None:
    errors = [d for d in read_code(function(body), KIT).defects if d.severity == "error"]
    assert kind in [d.kind for d in errors]
    assert any(told in d.message for d in errors), errors


def test_warnings() -> None:
    limit = function("a = ask('limit')\nx = look(id='1')\nif x.n > a:\n    act()")
    assert [(d.kind, d.severity) for d in read_code(limit, KIT).defects] == [
        ("parameter", "warning"), ("outside_dialect", "warning"),
    ]  # fmt: skip
    assert [d.kind for d in read_code(limit, KIT, ["limit"]).defects] == ["outside_dialect"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "IF the user wants a boat THEN\n  call check_boat\nEND IF",
        "1. ask for the boat\n2. check_boat(boat)",
        "def f(:\n",
        "\x00",
        "def f():\n" + "".join(" " * (i + 1) + "if a:\n" for i in range(300)),
        "if a:\n  pass\n" + "elif b:\n  pass\n" * 3000,
        "x = " + "(" * 5000,
        "x = " + "-" * 20_000 + "1",
        "x" * 1_000_001,
        '"\ud800"',
    ],
    ids=range(11),
)
def test_text_that_is_no_code_is_a_defect_and_never_an_exception(text: str) -> None:
    code = read_code(text, TOOLS)
    assert code.tools == ()
    if text and not text.startswith(("if a", "x = -")):
        assert [(d.kind, d.severity) for d in code.defects] == [("unreadable", "error")]


def test_nothing_is_run() -> None:
    body = "print(1/0)\nact(x=open('/nowhere'))"
    assert read_code(function(body), KIT).tools == ("act",)


class Over(Exception):
    """Enough calls."""


def run(
    code: str, results: Callable[[str], dict[str, Any]], says: Callable[[str], bool]
) -> list[str]:
    """The calls of the code, run by Python itself; at most six."""
    calls: list[str] = []

    def called(name: str) -> Callable[..., SimpleNamespace]:
        def call(**_: Any) -> SimpleNamespace:
            if len(calls) == 6:
                raise Over
            calls.append(name)
            return SimpleNamespace(**results(name))

        return call

    names: dict[str, Any] = {t.name: called(t.name) for t in TOOLS}
    names |= {"ask": lambda _: "", "reply": lambda _: None, "user_says": says}
    exec(code, names)
    try:
        names["hire_a_boat"]()
    except Over:
        return calls
    return [*calls, END]


VARIANTS = (
    CODE,
    replaced(CODE, "found.is_free == True", "found.is_free == False"),
    replaced(CODE, 'hire.state == "hired"', 'hire.state in ("refused", "too_late")'),
    replaced(CODE, "            break\n", "            return reply('Bye')\n"),
    replaced(CODE, 'if user_says("Wants', 'if hire.state == "hired" or user_says("Wants'),
)  # fmt: skip


@pytest.mark.parametrize("code", VARIANTS, ids=range(len(VARIANTS)))
def test_the_relation_is_what_running_the_code_shows(code: str) -> None:
    """Python runs the code many times with random results and answers; each pair of calls that is
    seen is in the relation, and all pairs of the relation are seen."""
    read, chart = read_code(code, TOOLS), parse_chart(CHART)
    world = make_world(TOOLS, [*read.comparisons, *comparisons_of(chart)])
    walk = ChartProcedure(chart, [t.name for t in TOOLS], world)
    relation(walk, world)
    pairs = relation(CodeProcedure(read, world, walk), world).pairs()
    rng = random.Random(7)

    def results(name: str) -> dict[str, Any]:
        if name == "check_boat":
            return {"is_free": rng.random() < 0.5}
        return {"state": rng.choice(["hired", "refused", "too_late"]), "jetty": "N"}

    seen: set[tuple[str, str]] = set()
    for _ in range(300):
        calls = ["the start", *run(code, results, lambda _: rng.random() < 0.5)]
        seen.update(pairwise(calls))
    assert seen == pairs


def test_code_that_is_too_long_to_read() -> None:
    (defect,) = read_code("f()\n" * 60_000, ()).defects
    assert (defect.kind, "longer than 200,000 characters" in defect.message) == ("unreadable", True)
