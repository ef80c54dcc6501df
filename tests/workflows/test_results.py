"""What a trial came to, as a word for the store and as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.workflows.results import SessionVerdict, TurnJudged
from agenteval.workflows.scores import TurnVerdict


def session(**more: Any) -> SessionVerdict:
    base = {
        "success": None,
        "decided_by": None,
        "progress": None,
        "right": 0,
        "gold": 0,
        "generated": 0,
        "conforms": True,
    }
    return SessionVerdict.model_validate({**base, **more})


def test_outcomes_of_sessions() -> None:
    assert [session(success=s).outcome for s in (True, False, None)] == [
        "success",
        "failure",
        "undecided",
    ]


@pytest.mark.parametrize(
    ("form", "due", "call", "word"),
    [
        ("call", True, "right", "right"),
        ("call", True, "wrong", "wrong"),
        ("call", True, "undecided", "undecided"),
        ("reply", True, None, "missed"),
        ("unreadable", True, None, "unreadable"),
        ("reply", False, None, "replied"),
        ("call", False, "wrong", "spurious"),
        ("unreadable", False, None, "unreadable"),
    ],
)
def test_outcomes_of_turns(form: Any, due: bool, call: Any, word: str) -> None:
    verdict = TurnVerdict(session="s", turn=1, form=form, gold_call=due, call=call)
    assert TurnJudged(turn=verdict).outcome == word
