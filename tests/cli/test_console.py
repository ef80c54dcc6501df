"""Text of others on the terminal: it is seen, and it acts on nothing."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from agenteval.cli import console
from agenteval.cli.console import clean, clean_lines, json_text, print_json
from tests.support.payloads import hidden_in, payloads


def printed(text: str) -> str:
    plain = Console(width=100_000, highlight=False, emoji=False, force_terminal=False)
    with plain.capture() as captured:
        plain.print(text, soft_wrap=True)
    return captured.get()


@pytest.mark.parametrize("name", sorted(payloads()))
def test_payloads_are_text_on_one_line(name: str) -> None:
    text = payloads()[name]
    shown = printed(f"[bold]{clean(text)}[/bold]")
    assert not hidden_in(shown)
    assert shown.count("\n") == 1
    assert shown.encode()
    if text.isascii() and text.isprintable():
        assert shown == text + "\n"  # markup, emoji codes and formulas as they are


def test_several_lines() -> None:
    assert clean_lines("a\nb\x1b[red]") == "a\nb[U+001B]\\[red]"
    assert clean("a\nb\r\nc\td") == "a ⏎ b ⏎ c d"


def test_json_is_the_same_value_and_acts_on_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    value = {text: [text] for text in payloads().values()}
    print_json(value)
    out = capsys.readouterr().out
    assert json.loads(out) == value
    assert not hidden_in(out)
    assert json_text('"\U000e0041"') == '"\\udb40\\udc41"\n'


def test_a_note_is_for_whom_wants_it_and_a_warning_for_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for level, shown in ((0, "a note\na warning\n"), (-1, "a warning\n")):
        monkeypatch.setattr(console.Verbosity, "level", level)
        console.err.cache_clear()
        console.note("a note")
        console.warn("a warning")
        assert capsys.readouterr().err == shown
