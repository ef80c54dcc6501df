"""Reading agents' texts: the two templates, what is let pass, what is not, and anything at all."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.workflows.reply_text import read_actions, read_object, read_reply, thought_items

THOUGHT = (
    "Thought: [Step: Recall]: 'last_node=SK000'. [Step: Analyze the current intent]: 'The current "
    "intent intent=Book a flight'. [Step: Locate]: 'current_node=SK001'. Next, I need to ask."
)


def called(text: str) -> tuple[str, Any]:
    found = read_reply(text)
    assert found.form == "call"
    assert found.raw == text
    return found.tool, found.arguments


def test_a_reply_with_its_thought() -> None:
    found = read_reply(f"{THOUGHT}\nResponse: Which flight?\n\nI can also look one up.")
    assert (found.form, found.tool, found.arguments) == ("reply", "", None)
    assert found.response == "Which flight?\n\nI can also look one up."
    assert (found.node, found.intent) == ("SK001", "Book a flight")
    assert found.thought.startswith("[Step: Recall]")
    assert found.thought.endswith("I need to ask.")


@pytest.mark.parametrize(
    "text",
    [
        'Thought: t\nAction: book\nAction Input: {"n": 2}',
        'Thought: t\nAction: book \nAction Input:{"n":2}  ',
        'Thought: t\nAction: functions.book\nAction Input: {"n": 2}',
        'Thought: t\nAction: book Action Input: {"n": 2}',
        'Thought: t\nAction: book\nAction Input: {\n  "n": 2\n}',
        'Thought: t\nAction: book\nAction Input:\n```json\n{"n": 2}\n```',
        '```\nThought: t\nAction: book\nAction Input: {"n": 2}\n```',
        '**Thought:** t\n**Action:** `book`\n**Action Input:** `{"n": 2}`',
        'Thought: t\nAction: book.\nAction Input: {"n": 2} and now I wait',
        'thought: t\naction: "book"\naction input: {"n": 2}',
        'Action: book\nAction Input: {"n": 2}',
        'Thought: t\nResponse: One moment.\nAction: book\nAction Input: {"n": 2}',
    ],
)
def test_ways_to_write_one_call(text: str) -> None:
    assert called(text) == ("book", {"n": 2})


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ('{"o": {"a": [1, {"b": "}"}]}}', {"o": {"a": [1, {"b": "}"}]}}),
        ("{}", {}),
        ('{"a": "\\ud800", "\\udfff": ["\\ud83d\\ude00"]}', {"a": "\ufffd", "\ufffd": ["😀"]}),
        ("{'n': 2}", "{'n': 2}"),
        ('{"n": 2', '{"n": 2'),
        ("[1, 2]", "[1, 2]"),
        ("two rooms", "two rooms"),
        ("", ""),
        ('{"n": NaN}', '{"n": NaN}'),
        ('{"n": 1e999}', '{"n": 1e999}'),
        ('{"n": 1, "n": 2}', '{"n": 1, "n": 2}'),
        ('{"a":' * 70 + "1" + "}" * 70, '{"a":' * 70 + "1" + "}" * 70),
    ],
)
def test_what_is_no_strict_object_stays_raw(given: str, read: Any) -> None:
    assert called(f"Thought: t\nAction: book\nAction Input: {given}") == ("book", read)


def test_actions_without_an_input() -> None:
    assert called("Thought: t\nAction: book") == ("book", None)
    for text in (
        "Thought: t\nAction: None\nAction Input: {}\nResponse: Hi",
        "Thought: t\nResponse: Hi\nAction: book",
    ):
        found = read_reply(text)
        assert (found.form, found.response) == ("reply", "Hi")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello, how can I help?",
        "Thought: I should ask.",
        "Thought: t\nResponse:",
        "Thought: t\nAction: I will book a room\nAction Input: {}",
        "Thought: t\nAction: None",
        "Thought: t\nAction Input: {}",
        'The line "Action: book" stands within a sentence',
    ],
)
def test_neither_form_is_unreadable(text: str) -> None:
    found = read_reply(text)
    assert (found.form, found.tool, found.response, found.raw) == ("unreadable", "", "", text)


@pytest.mark.parametrize(
    ("thought", "expected"),
    [
        ("current_node=SK001", ("SK001", None)),
        ("last_node = SK000, intent = UNK, current_node = 'SK002'", ("SK002", "UNK")),
        ("intent='User doesn't rebook'. Next", (None, "User doesn't rebook")),
        (
            "intent=Book a flight OR Change a seat; current_node=[AB012]",
            ("AB012", "Book a flight OR Change a seat"),
        ),
        ("current_node=None intent=", (None, None)),
        ("intent=A\nthen intent=B", (None, "B")),
        (
            "Current node=SK003. The intent intent=Flight is available.",
            ("SK003", "Flight is available"),
        ),
        ("nothing of the kind, but an intent and a node", (None, None)),
    ],
)
def test_items_of_a_thought(thought: str, expected: tuple[str | None, str | None]) -> None:
    assert thought_items(thought) == expected


def test_actions_of_a_whole_dialogue() -> None:
    text = (
        'assistant:\nThought: t\nAction: a\nAction Input: {"x": {"y": 1}}\n\nfunction: {"ok": true}'
        "\n\nassistant:\nThought: t\nResponse: done\n\nassistant:\nAction: b\nAction Input: oops"
    )
    assert [(c.tool, c.arguments) for c in read_actions(text)] == [
        ("a", {"x": {"y": 1}}),
        ("b", "oops"),
    ]
    assert read_actions("no labels at all") == ()


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=4), st.sampled_from([None, 2]))
def test_every_object_that_json_can_write_is_read_back(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert called(f"Thought: t\nAction: book\nAction Input: {text}\n")[1] == value
    assert read_object(f"```json\n{json.dumps(value)}\n```") == value or "```" in text


PIECES = st.sampled_from(
    [
        "Thought:",
        "Action:",
        "Action Input:",
        "Response:",
        "\n",
        " ",
        "{",
        "}",
        '"',
        "'",
        "book",
        "functions.",
        "```",
        "**",
        "intent=",
        "current_node=",
        "\ud800",
        '{"a": "\\ud800"}',
        "：",
        "\x00",
        "\u2028",
        "[",
        "1e999",
        ",",
        "\\",
    ]
)


@given(st.lists(PIECES | st.text(max_size=4), max_size=40).map("".join))
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = read_reply(text)
    assert found.form in ("call", "reply", "unreadable")
    assert (found.form == "call") == bool(found.tool)
    assert json.loads(found.model_dump_json())["form"] == found.form


@pytest.mark.parametrize(
    "piece",
    [
        "Action: a\n",
        "Action Input: {",
        '{"a":',
        "intent='",
        "current_node=",
        "\n" + " " * 9,
        "```",
        'Action: a Action Input: {"a": "',
        "**",
        "'a",
    ],
)
def test_long_texts_take_no_square_of_time(piece: str) -> None:
    # some 10 ms; a quadratic pass over that many characters takes minutes
    began = time.process_time()
    for head in ("", "Thought: ", "Action: a\nAction Input: "):
        read_reply(head + piece * (60_000 // len(piece)))
    assert time.process_time() - began < 30
