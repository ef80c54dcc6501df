"""The ladder against texts made to break it: properties, and work in proportion to the length."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import agenteval.models
from agenteval.errors import ReplyError
from agenteval.models.reply import meant_as_json, parse_reply
from tests.support.steps import count_steps
from tests.thorough import often

FOLDER = Path(agenteval.models.__file__).parent
FILES = [FOLDER / f"{name}.py" for name in ("reply", "jsonish")]
PIECES = st.sampled_from(
    [
        *"{}[]()\"':,\\1-#\n \ufeff\ud800\x00é",
        *[
            "\\ud800",
            ".5",
            "1e999",
            "True",
            "null",
            "range(1,5)",
            "list(",
            "//",
            "/*",
            "*/",
            "```",
            "NaN",
            "<think>",
            "</think>",
            "{a:",
        ],
        *("```json\n", '"a"', '"a": ', '{"a": 1}', "{'b': 'c'}"),
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60)


@settings(max_examples=often(150, 5000), deadline=None)
@given(TEXTS, st.booleans())
@example('"{\\"a\\": 1}"', True)
@example('{"a":1}' * 3 + "{", True)
@example("[" * 600 + '"\\ud800"' + "]" * 600, True)
@example("[[1,]", False)
def test_a_value_that_can_be_stored_and_is_its_own_json_or_an_error(
    text: str, last_counts: bool
) -> None:
    try:
        value = parse_reply(text, last_counts=last_counts).value
    except ReplyError:
        return
    for ascii_only in (True, False):
        written = json.dumps(value, allow_nan=False, ensure_ascii=ascii_only)
        written.encode("utf-8")
        again = parse_reply(written)
        assert (repr(again.value), again.rung) == (repr(value), "json")


FAMILIES: dict[str, Callable[[int], str]] = {
    piece: lambda n, piece=piece: piece * (n // len(piece))
    for piece in (
        "{",
        "[",
        '"',
        "'",
        "\\",
        "```json\n",
        " ",
        "range(",
        "list(",
        '{"a":',
        "[{",
        '{"a": 1} ',
        '{"a" ',
        "<think>",
        "</think>",
        "//",
        "#",
        "/*",
        "{/*",
        "{a: ",
        "(",
        '{"a": NaN}',
        "['",
        "1,",
        '<think>{"a": 1}</think>',
        '"\\',
    )
} | {
    "deep, then long": lambda n: "[" * 64 + "1," * (n // 2) + "x]",
    "one open string": lambda n: '{"a": "' + "x{" * (n // 2),
    "a long object": lambda n: "{" + ", ".join(f'"{i}": 1' for i in range(n // 8)) + ", x}",
    "answers after a broken one": lambda n: '{"a": oops}' + '\n{"a": 1}' * (n // 9),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_twice_the_length_takes_about_twice_the_steps(family: str) -> None:
    def steps(length: int) -> int:
        text = FAMILIES[family](length)
        return count_steps(lambda: tried(text), FILES)

    short, long = steps(1500), steps(3000)
    assert long <= 2.2 * short + 200
    assert long <= 60 * 3000


def tried(text: str) -> Any:
    try:
        return parse_reply(text)
    except ReplyError:
        return None


GOOD, POOR = '{"clarity": "good"}', '{"clarity": "poor"}'


@pytest.mark.parametrize(
    "broken",
    [
        '{"clarity": oops}',
        "{// note\n'clarity': oops}",
        '{"clarity": NaN}',
        "{clarity: good}",
        '{"clarity": "good", "clarity": "poor"}',
        '{"clarity": "good"]',
        '[{"clarity": "good"}; ]',
        '{"clarity": ' + "9" * 5000 + "}",
        '{"clarity": ' + "[" * 70 + "]" * 70 + "}",
    ],
)
def test_a_draft_is_not_taken_for_the_broken_answer_behind_it(broken: str) -> None:
    with pytest.raises(ReplyError):
        parse_reply(f"{POOR}\nNo: {broken}")
    assert parse_reply(f"{POOR}\nNo: {broken}", last_counts=False).value == {"clarity": "poor"}
    assert parse_reply(f"{broken}\nNo: {GOOD}").value == {"clarity": "good"}


def test_json_as_text_in_json_is_read_once() -> None:
    assert parse_reply(json.dumps(GOOD)).rung == "loose"
    assert parse_reply(json.dumps(GOOD)).value == {"clarity": "good"}
    assert parse_reply(json.dumps('{"clarity": "good",}')).value == {"clarity": "good"}
    assert parse_reply(json.dumps('{"clarity": "good", "depth": "f')).rung == "salvaged"
    for text in (json.dumps(json.dumps(GOOD)), '"good"', '"{"', json.dumps("say: " + GOOD)):
        with pytest.raises(ReplyError):
            parse_reply(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (GOOD, True),
        ("{a: 1", True),
        ("[{", True),
        ("['", True),
        ("{x | x > 0}", False),
        ("[1] and (2)", False),
        ("clarity: good", False),
        ("", False),
    ],
)
def test_what_was_meant_as_json(text: str, meant: bool) -> None:
    assert meant_as_json(text) is meant
