"""The code of a procedure: what it names, what is refused, and that nothing of it is run."""

from __future__ import annotations

import pytest

from agenteval.evaluators.workflows.consistency import read_code
from tests.evaluators.workflows.boats import CODE, TOOLS, tool

LOOK = tool("look", {"ok": {"type": "boolean"}, "n": {"type": "integer"},
                     "kind": {"type": "string", "enum": ["a", "b", "c"]}}, ("id",))  # fmt: skip
ACT, UNDO = tool("act", {"done": {"type": "boolean"}}), tool("undo", {})
KIT = (LOOK, ACT, UNDO)


def function(body: str) -> str:
    return "def procedure():\n" + "".join(f"    {line}\n" for line in body.split("\n"))


def test_what_is_named() -> None:
    code = read_code(CODE, TOOLS)
    assert code.tools == ("check_boat", "book_boat")
    assert code.intents == ("Wants no more",)
    assert code.fields == {"is_free", "state"}
    assert code.defects == ()


@pytest.mark.parametrize(
    "body",
    [
        "if look(id='1').ok:\n    act()\nelse:\n    undo()",
        "good = look('1')['ok']\nwhile not good:\n    undo()\nact()",
        "x = look(id='1')\nrows = []\nrows.append(x.ok)\nif rows:\n    return act()\nundo()",
        "x = look(**known)\ny = act() if x.ok else undo()",
    ],
)
def test_ways_of_writing(body: str) -> None:
    code = read_code(function(body), KIT)
    assert code.defects == ()
    assert set(code.tools) == {"look", "act", "undo"}
    assert code.fields == {"ok"}


@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        ("lok(id='1')", "unknown_tool", "line 2 of the code: lok is no tool; is look meant?"),
        ("x = look(id='1')\nif x.okay:\n    act()", "unknown_field", "is ok meant?"),
        ("if look(id='1')['kin'] == 'a':\n    act()", "unknown_field", "is kind meant?"),
        ("look(name='1')", "parameter", "look has no parameter name"),
        ("look()", "parameter", "look is called without id"),
        ("wish = 'yes'\nif user_says(wish):\n    act()", "unknown_intent", "needs the intent"),
    ],
)
def test_what_is_refused(body: str, kind: str, told: str) -> None:
    errors = [d for d in read_code(function(body), KIT).defects if d.severity == "error"]
    assert kind in [d.kind for d in errors]
    assert any(told in d.message for d in errors), errors


def test_warnings() -> None:
    limit = function("a = ask('limit')\nx = look(id='1')\nif x.n > a:\n    act()")
    assert [(d.kind, d.severity) for d in read_code(limit, KIT).defects] == [
        ("parameter", "warning")
    ]
    assert read_code(limit, KIT, ["limit"]).defects == ()


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


def test_code_that_is_too_long_to_read() -> None:
    (defect,) = read_code("f()\n" * 60_000, ()).defects
    assert (defect.kind, "longer than 200,000 characters" in defect.message) == ("unreadable", True)
