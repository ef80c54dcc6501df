"""Thinking is no answer: which part of a reply it is, with tags missing, quoted and nested."""

from __future__ import annotations

import pytest

from agenteval.errors import ReplyError
from agenteval.models.reply import behind_thinking, parse_reply, thinking_in, within

GOOD, POOR = '{"clarity": "good"}', '{"clarity": "poor"}'


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{POOR}</think>{GOOD}",
        f"<think>\n{POOR}\n</think>\n\n{GOOD}",
        f"<THINKING>{POOR}</THINKING>{GOOD}",
        f"<reasoning>{POOR}</reasoning>{GOOD}",
        f"{POOR}\n</think>\n{GOOD}",  # the opening tag stood in the prompt
        f"Well. <think>{POOR}</think>{GOOD}",
        f"{GOOD}\n<think>or {POOR}?</think>",
        f"{GOOD}\n<think>or {POOR}",
        f"<think>a</think> b <think>{POOR}</think> {GOOD}",
        f"<think>{POOR}</think>{POOR}</think>{GOOD}",
        f"[THINK]{POOR}[/THINK]{GOOD}",
        f"◁think▷{POOR}◁/think▷{GOOD}",
        f'<think>{{"clarity": </think>{GOOD}',
        GOOD,
    ],
)
def test_the_answer_is_what_stands_outside(text: str) -> None:
    assert parse_reply(text).value == {"clarity": "good"}


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{POOR}",
        f"<think>{POOR}</think>",
        f"{POOR}</think>",
        f"{POOR}</think> I pass.",
        f"Well. <think>{POOR}",
        "<think>",
        f"<think>{POOR} <think> {POOR}",
        f"<think>{POOR}</think> so <think>{POOR}</think>",
    ],
)
def test_a_draft_alone_is_no_answer(text: str) -> None:
    with pytest.raises(ReplyError):
        parse_reply(text)


def test_a_tag_in_an_answer_is_quoted() -> None:
    quoted = '{"clarity": "good", "note": "it writes </think> and <think>"}'
    for text in (quoted, f"So: {quoted}.", f"<think>{POOR}</think>```json\n{quoted}\n```"):
        assert parse_reply(text).value["clarity"] == "good"
    assert parse_reply(f"[analysis] as follows: {GOOD}").value == {"clarity": "good"}


def test_offsets() -> None:
    assert thinking_in("a<think>b</think>c", []) == [(1, 17)]
    assert thinking_in("b</think>c", []) == [(0, 9)]
    assert thinking_in("a<think>b", []) == [(1, 9)]
    assert thinking_in("<think>a</think>b<think>c</think>", []) == [(0, 16), (17, 33)]
    assert thinking_in("a<think>b</think>c", [(0, 9)]) == [(0, 17)]  # the opening one is quoted
    assert [within(at, [(1, 3), (5, 6)]) for at in range(7)] == [
        False,
        True,
        True,
        False,
        False,
        True,
        False,
    ]
    assert behind_thinking("<think>a</think>b") == "b"
    assert behind_thinking("a</think>b") == "a</think>b"
