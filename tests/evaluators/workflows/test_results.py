"""What a trial came to, as a word for the store and as JSON."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agenteval.evaluators.workflows.response_judge import ResponseVerdict
from agenteval.evaluators.workflows.results import CaseInfo, SessionVerdict, TurnJudged
from agenteval.evaluators.workflows.turn_score import TurnVerdict
from agenteval.records import Usage


def session(**more: Any) -> SessionVerdict:
    base = {"success": None, "decided_by": None, "progress": None, "right": 0, "gold": 0,
            "generated": 0, "conforms": True}  # fmt: skip
    return SessionVerdict.model_validate({**base, **more})


def test_outcomes_of_sessions() -> None:
    assert [session(success=s).outcome for s in (True, False, None)] == [
        "success", "failure", "undecided",
    ]  # fmt: skip


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


def test_they_come_back_from_json() -> None:
    turn = TurnVerdict(session="s", turn=1, form="reply", gold_call=False)
    judged = TurnJudged(
        turn=turn, grade=ResponseVerdict(score=3.5), failures=("error:timeout",),
        usage=Usage(requests=2),
    )  # fmt: skip
    assert TurnJudged.model_validate(judged.model_dump(mode="json")) == judged
    one = session(success=True, failures=("error:budget",), edges=(("a", "b"),))
    assert SessionVerdict.model_validate(one.model_dump(mode="json")) == one


def test_a_case_of_several_scenarios_crosses() -> None:
    def case(*scenarios: str) -> CaseInfo:
        return CaseInfo(
            level="session", id="i", task="t", role="r", domain="d", scenarios=scenarios
        )

    assert [case("a").cross, case("a", "b").cross] == [False, True]


@pytest.mark.parametrize("wrong", [{"progress": 1.1}, {"right": -1}, {"fitness": float("nan")}])
def test_impossible_figures_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        session(**wrong)
