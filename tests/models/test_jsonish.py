"""The reader beneath parse_reply: where a value ends, and what was read leniently."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.models.jsonish import JsonDialect, NotJsonish, number, scan


@pytest.mark.parametrize(
    ("text", "start", "value", "end"),
    [
        ('x {"a": 1} y', 2, {"a": 1}, 10),
        ("[1][2]", 0, [1], 3),
        ("[1][2]", 3, [2], 6),
        ('{"a": [1, {"b": "}"}]}}', 0, {"a": [1, {"b": "}"}]}, 22),
        ("[] tail", 0, [], 2),
    ],
)
def test_a_value_ends_behind_its_bracket(text: str, start: int, value: Any, end: int) -> None:
    read = scan(text, start)
    assert (read.value, read.end, read.cut, read.loose) == (value, end, False, False)


@pytest.mark.parametrize(
    "text",
    [
        "{'a': 1}",
        "{a: 1}",
        "{“a”: 1}",
        '{"a": True}',
        "[(1, 2)]",
        "[range(3)]",
        "[1,]",
        '{"a": 1,}',
        "[1 // one\n]",
        '["a\nb"]',
        '["\\("]',
        '["\\u12x"]',
        "[.5]",
        "[1\u00a0]",
    ],
)
def test_what_json_does_not_allow_is_loose(text: str) -> None:
    assert scan(text, 0).loose


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("[x]", 1),
        ("[1 2]", 3),
        ('{"a" 1}', 5),
        ("{1: 2}", 1),
        ("[1}", 2),
        ('{"a": 1]', 7),
        ("[1,,2]", 3),
        ("[,1]", 1),
        ('{"a": 1, "a": 2} x', 16),
    ],
)
def test_what_is_no_value_says_where(text: str, at: int) -> None:
    with pytest.raises(NotJsonish) as raised:
        scan(text, 0)
    assert raised.value.at == at


def test_another_dialect_keeps_what_is_complete_and_says_why_it_ended() -> None:
    dialect = JsonDialect(dict, math.inf, finite=False, keep=lambda key, _: key == "spans")
    text = '{"spans": [{"id": 1, "n": NaN}, {"id": 2, "x": oops}]}'
    read = scan(text, 0, dialect)
    assert (read.value, read.nulls) == ({"spans": [{"id": 1, "n": None}]}, 1)
    assert (read.broken, read.end) == ("not a value", text.index("oops"))
    assert scan('{"spans": {"id": ', 0, dialect).value == {"spans": {}}
    assert scan('{"other": [{"id": ', 0, dialect).value is None
    assert scan("[" * 5000 + "]" * 5000, 0, dialect).end == 10_000


@pytest.mark.parametrize("text", ["1e999", "-1e999", "1" + "0" * 309, "9" * 5000, "x"])
def test_numbers_that_no_float_holds(text: str) -> None:
    with pytest.raises(NotJsonish):
        number(text)


STRICT = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(st.lists(STRICT, max_size=3), st.text(max_size=5), st.booleans())
def test_it_reads_json_as_json_loads_does(value: Any, tail: str, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    read = scan(text + tail, 0)
    assert repr(read.value) == repr(json.loads(text))
    assert (read.end, read.cut, read.loose) == (len(text), False, False)
