"""Conditions: how they are read, and when they hold."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.workflows.conditions import (
    Comparison,
    Condition,
    ConditionError,
    holds,
    read_condition,
    split_label,
    written,
)


def one(text: str) -> Comparison:
    ((found,),) = read_condition(text).alternatives
    return found


@pytest.mark.parametrize(
    ("text", "field", "op", "value"),
    [
        ("free = 3", "free", "=", 3.0),
        ("free==3", "free", "=", 3.0),
        ("free >= -1.5", "free", ">=", -1.5),
        ("free ≤ 2", "free", "<=", 2.0),
        ("is_in is true", "is_in", "=", True),
        ("is_in IS NOT False", "is_in", "!=", False),
        ("state != on hold", "state", "!=", "on hold"),
        ('state = "on hold"', "state", "=", "on hold"),
        ('number = "3"', "number", "=", "3"),
        ('state = "this or that"', "state", "=", "this or that"),
        ("day < 2031-04-09", "day", "<", "2031-04-09"),
        ("größe = klein", "größe", "=", "klein"),
    ],
)
def test_comparisons(text: str, field: str, op: str, value: Any) -> None:
    found = one(text)
    assert (found.field, found.op, found.value, found.tool) == (field, op, value, None)
    assert type(found.value) is type(value)


def test_the_tool_may_be_said() -> None:
    assert one("find_book.is_in = true") == Comparison(
        tool="find_book", field="is_in", op="=", value=True
    )


def test_and_binds_tighter_than_or() -> None:
    a, b, c = (Comparison(field=name, op="=", value=1.0) for name in "abc")
    assert read_condition("a = 1 or b = 1 and c = 1").alternatives == ((a,), (b, c))
    assert read_condition("a = 1 AND b = 1 OR c = 1").alternatives == ((a, b), (c,))


@pytest.mark.parametrize(
    ("label", "intent"),
    [
        ("Seats are left (free >= 1)", "Seats are left"),
        ("Seats (of any class) are left (free >= 1)", "Seats (of any class) are left"),
        ("(free >= 1)", ""),
        ('Named ) so (name = "a) b")', "Named ) so"),
    ],
)
def test_labels_with_a_condition(label: str, intent: str) -> None:
    found, condition = split_label(label)
    assert found == intent
    assert condition is not None


@pytest.mark.parametrize(
    "label",
    ["", "Pay", "Pay (by card)", "Pay (now) ", "Older (> 18)", "Pay :)", "(", ")", "A (B -> C)",
     "Any (he is, she is)", "free >= 1", "Go on (a => b)", "x (free = 1) y"],
)  # fmt: skip
def test_labels_without_one_are_all_intent(label: str) -> None:
    assert split_label(label) == (label.strip(), None)


@pytest.mark.parametrize(
    ("inside", "what"),
    [
        ("free >= ", "`free >=` is no comparison; allowed is `field op value`"),
        ("free >= 1 and ", "`` is no comparison"),
        ("free = 1 or 2", "`2` is no comparison"),
        ("free = 1 or b", "`b` is no comparison"),
        ("free = 1 x=2", "`free = 1 x=2` is no comparison"),
        ("3 = 4 and a = 1", "`3 = 4`"),
        ("a.b.c = 1", "`a.b.c = 1`"),
        ("free = (1)", "`free = (1)`"),
        ("free = 1" + "0" * 400, "too large"),
        ('free = "1" 2', '`free = "1" 2`'),
        ("a = 1 and free is not", "`free is not`"),
    ],
)
def test_what_looks_like_a_condition_and_is_none(inside: str, what: str) -> None:
    with pytest.raises(ConditionError, match=re.escape(what)):
        split_label(f"Left ({inside})")


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("f = true", True, True), ("f = true", "true", True), ("f = true", "True", True),
        ("f = true", False, False), ("f != true", "no", True), ("f = true", 1, False),
        ("f = 3", 3, True), ("f = 3", "3", True), ("f = 3", "3.0", True), ("f = 3", 4, False),
        ('f = "3"', 3, True), ("f > 2", "10", True), ("f > 2", 2, False), ("f >= 2", 2.0, True),
        ("f < 2", "few", None), ("f < few", 2, None), ("f < 2", True, None), ("f < 2", None, None),
        ("f = ready", "READY", True), ("f = on hold", " On  hold", True), ("f = a", None, False),
        ("f != a", None, True), ("f = a", ["a"], False), ("f = a", {"a": 1}, False),
        ("f < 2031-04-09", "2031-04-08", True), ("f < 2031-04-09", "2031-10-01", False),
        ("f >= 2031-04-09", "2031-04-09T10:00", True), ("f < 2031-04-09", "soon", None),
        ("f < 10:30", "09:00", True), ("f < 10:30", "2031-04-09", None),
        ("f = 1", float("inf"), False), ("f < 1", float("nan"), None), ("f = 1", 10**400, False),
    ],
)  # fmt: skip
def test_when_a_comparison_holds(text: str, value: Any, expected: bool | None) -> None:
    assert holds(read_condition(text), [("t", {"f": value})]) is expected


def test_the_latest_value_counts_and_the_tool_if_it_is_said() -> None:
    returned = [("a", {"x": 1}), ("b", {"x": 2}), ("a", {"y": 3})]
    assert holds(read_condition("x = 2"), returned) is True
    assert holds(read_condition("a.x = 1"), returned) is True
    assert holds(read_condition("b.y = 3"), returned) is None
    assert holds(read_condition("x = 2"), [*returned, ("b", {"x": 5})]) is False


TABLE = {True: 2, None: 1, False: 0}


@pytest.mark.parametrize("values", list(itertools.product([True, False, None], repeat=4)))
def test_unknown_values_as_in_kleenes_logic(values: tuple[bool | None, ...]) -> None:
    """Kleene: and is the minimum, or the maximum of false < unknown < true."""
    condition = read_condition("a = true and b = true or c = true and d = true")
    returned = [
        ("t", {name: value})
        for name, value in zip("abcd", values, strict=True)
        if value is not None
    ]
    a, b, c, d = (TABLE[v] for v in values)
    found = holds(condition, returned)
    assert TABLE[found] == max(min(a, b), min(c, d))


values = st.one_of(
    st.booleans(),
    st.floats(-1e6, 1e6).map(lambda x: round(x, 3)),
    st.text(alphabet='ab orandis=<>()!."3é'.replace('"', ""), max_size=8),
)
comparisons = st.builds(
    Comparison,
    field=st.sampled_from(["free", "is_in", "größe"]),
    tool=st.sampled_from([None, "look_up"]),
    op=st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    value=values,
)
conditions = st.builds(
    Condition,
    alternatives=st.lists(
        st.lists(comparisons, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3
    ).map(tuple),
)


@given(conditions, st.sampled_from(["Go on", "", "a) b (c"]))
def test_a_condition_is_read_as_it_was_written(condition: Condition, intent: str) -> None:
    assert read_condition(written(condition)) == condition
    label = f"{intent} ({written(condition)})"
    assert split_label(label) == (intent, condition)
