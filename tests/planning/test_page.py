"""The page of planning trials: what it says, limits, escapes and marks."""

from __future__ import annotations

import re

import pytest

from agenteval.agents import AgentFailure
from agenteval.planning import page
from agenteval.planning.case import Case
from agenteval.planning.evaluator import Attempt
from agenteval.planning.page import marked_request, planning_page, wrong_plans
from agenteval.planning.rates import CaseLabel
from tests.planning.campaigns import attempt, campaign, case, failure
from tests.reporting.making import Seen, assert_harmless

RIGHT, WRONG = "ab", "ba"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m$x$&amp;"


@pytest.fixture(scope="module")
def mixed() -> list[Attempt]:
    return list(campaign({2: 12, 3: 12, 4: 12}, {"one": 0.8, "two": 0.4}))


@pytest.mark.slow
def test_the_head_has_rates_guessing_errors_and_failures() -> None:
    """3 of 4 right, one failure; random orders of two actions are right in half the cases."""
    trials = [attempt(case(f"c{i}"), RIGHT if i else WRONG) for i in range(4)]
    words = Seen(planning_page([*trials, failure(case("x"))])).words
    assert "s plans correctly in 75% (95% interval 30 to 95%) of 4 cases" in words
    assert "random orders would in 50%" in words
    assert "1 of 1 errors are of type order error" in words
    assert "1 trial without a verdict, excluded from rates" in words
    assert "connection <refused>" in words


def test_without_a_verdict_or_a_trial_there_is_a_page_too() -> None:
    words = Seen(planning_page([failure(case("x"))])).words
    assert "s: no verdict (1 trial without a verdict)" in words
    assert "there are no verdicts to plot" in words
    assert "There are no trials." in Seen(planning_page([])).words


def test_wrong_plans_are_limited_and_counted(
    mixed: list[Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = [a for a in mixed if a.verdict is not None and a.outcome != "pass"]
    listed = wrong_plans(mixed)
    assert len(listed) == len(wrong)
    assert [a.system for a in listed[:6]] == ["one", "two"] * 3
    for system in ("one", "two"):
        sizes = [a.case.n for a in listed if a.system == system]
        assert sizes == sorted(sizes)
    monkeypatch.setattr(page, "MAX_WRONG", 6)
    html = planning_page(mixed)
    assert html.count('<details class="plan">') == 6
    assert f"6 of {len(wrong)} wrong plans" in Seen(html).words


def marked(tested: Case, numbers: set[int]) -> list[str]:
    return [p.text for p in marked_request(tested, numbers) if p.note]


def test_every_sub_sentence_is_marked_in_the_request() -> None:
    """Sub-sentences and what joins them are the whole text."""
    for trial in campaign({3: 10, 5: 10, 7: 5}, {"s": 1.0}):
        tested = trial.case
        assert tested.size is not None
        parts = marked(tested, set(range(tested.size.sub_sentences)))
        assert len(parts) == tested.size.sub_sentences
        remaining = tested.text
        for part in parts:
            before, _, remaining = remaining.partition(part)
            assert re.fullmatch(r"(\. |; |, (and|but|yet|while|whereas) )?", before)
        assert remaining == "."
        pieces = marked_request(tested, {0})
        assert "".join(p.text for p in pieces) == tested.request
    by_hand = case("k").model_copy(
        update={"text": "First b, then a.", "request": "First b, then a."}
    )
    assert [p.text for p in marked_request(by_hand, {0})] == ["First b, then a."]


def test_a_wrong_plan_says_why(mixed: list[Attempt]) -> None:
    trial = next(a for a in mixed if a.outcome == "order_error" and a.case.n == 4)
    words = Seen(planning_page([trial])).words
    for violation in trial.verdict.violated:
        assert violation.why in words


def test_hostile_words_stay_words() -> None:
    bad = case("k", topic=HOSTILE).model_copy(update={"id": HOSTILE, "request": HOSTILE})
    gone = AgentFailure(status="error:infrastructure", message=HOSTILE)
    trials = [
        attempt(bad, WRONG, system=HOSTILE, output=HOSTILE),
        Attempt(bad, HOSTILE, 1, gone, None),
        attempt(case("l"), RIGHT, system="other"),
    ]
    assert_harmless(planning_page(trials, [CaseLabel(HOSTILE, HOSTILE, HOSTILE)]))
