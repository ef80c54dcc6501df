"""The page and the tables of a planning campaign: what they say, bound, escape and mark."""

from __future__ import annotations

import re

import pytest
from tests.support.browser import Open

from agenteval.agents import AgentFailure
from agenteval.planning.case import Case
from agenteval.planning.evaluator import Attempt
from agenteval.planning.page import chosen, pieces, planning_page, wrong_plan
from agenteval.planning.tallies import CaseLabel
from agenteval.planning.words import built_in
from tests.planning.campaigns import attempt, campaign, case, failure
from tests.reporting.making import Seen, assert_harmless

RIGHT, WRONG = "ab", "ba"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m$x$&amp;"


@pytest.fixture(scope="module")
def mixed() -> list[Attempt]:
    return list(campaign({2: 12, 3: 12, 4: 12}, {"one": 0.8, "two": 0.4}))


def test_the_head_says_what_was_found() -> None:
    """3 of 4 right, one failure; 2 of 2! orders by chance are right in half the cases."""
    trials = [attempt(case(f"c{i}"), RIGHT if i else WRONG) for i in range(4)]
    words = Seen(planning_page([*trials, failure(case("x"))], title="May")).words
    assert "s plans right in 75% (95% interval 30 to 95%) of 4 cases" in words
    assert "random orders would in 50%" in words
    assert "1 of 1 errors are of type order error" in words
    assert "1 trial without a verdict, in no rate" in words
    assert "connection <refused>" in words


def test_a_campaign_without_a_verdict_or_a_trial_is_a_page_too() -> None:
    words = Seen(planning_page([failure(case("x"))])).words
    assert "s: no verdict (1 trial without a verdict)" in words
    assert "there is no verdict to draw" in words
    assert "There is no trial." in Seen(planning_page([])).words


def test_the_same_trials_give_the_same_page(mixed: list[Attempt]) -> None:
    causes = [CaseLabel("n2-1-00000", "one", "Topic")]
    assert planning_page(mixed, causes) == planning_page(mixed, causes)


def test_wrong_plans_are_bounded_and_counted(mixed: list[Attempt]) -> None:
    wrong = [a for a in mixed if a.verdict is not None and a.outcome != "pass"]
    some, in_all = chosen(mixed, 6)
    assert in_all == len(wrong)
    assert [a.system for a in some] == ["one", "two"] * 3
    for system in ("one", "two"):
        sizes = [a.case.n for a in some if a.system == system]
        assert sizes == sorted(a.case.n for a in wrong if a.system == system)[:3]
    page = planning_page(mixed, most_wrong=6)
    seen = Seen(page)
    assert page.count('<details class="plan">') == 6
    assert f"6 of {in_all} wrong plans" in seen.words


def spoken(one: Case, numbers: set[int]) -> list[str]:
    return [p.text for p in pieces(one, frozenset(numbers), built_in()) if p.note]


def test_every_sub_sentence_is_found_in_the_request() -> None:
    """Sub-sentences with what joins them are the text; each one is marked where it stands."""
    for trial in campaign({3: 15, 5: 15, 7: 10}, {"s": 1.0}):
        one = trial.case
        assert one.size is not None
        marked = spoken(one, set(range(one.size.sub_sentences)))
        assert len(marked) == one.size.sub_sentences
        rest = one.text
        for part in marked:
            before, _, rest = rest.partition(part)
            assert re.fullmatch(r"(\. |; |, (and|but|yet|while|whereas) )?", before)
        assert rest == "."
        whole = "".join(p.text for p in pieces(one, frozenset({0}), built_in()))
        assert whole == one.request


def test_the_violated_clause_is_marked_and_said(mixed: list[Attempt]) -> None:
    trial = next(a for a in mixed if a.outcome == "order_error" and a.case.n == 4)
    assert trial.verdict is not None
    item = wrong_plan(trial, built_in())
    request, said, plan = item.blocks[:3]
    clauses = {s + 1 for v in trial.verdict.violated for s in v.rule.sentences}
    assert {int(p.note) for p in request.text if p.note} == clauses
    assert len(plan.lines) == 4
    for violation in trial.verdict.violated:
        assert any(violation.why in line for line in said.lines)
    assert wrong_plan(trial, built_in()).id == item.id


def test_a_text_outside_of_the_language_is_shown_whole() -> None:
    one = case("k").model_copy(update={"text": "First b, then a.", "request": "x First b, then a."})
    assert [p.text for p in pieces(one, frozenset({0}), built_in())] == ["x First b, then a."]


def test_hostile_words_stay_words() -> None:
    bad = case("k", topic=HOSTILE).model_copy(update={"id": HOSTILE, "request": HOSTILE})
    gone = AgentFailure(status="error:infrastructure", message=HOSTILE)
    trials = [
        attempt(bad, WRONG, system=HOSTILE, output=HOSTILE),
        Attempt(bad, HOSTILE, 1, gone, None),
        attempt(case("l"), RIGHT, system="other"),
    ]
    page = planning_page(
        trials, [CaseLabel(HOSTILE, HOSTILE, HOSTILE)], title=HOSTILE, facts=[(HOSTILE, HOSTILE)]
    )
    assert_harmless(page)


# In a browser


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_sticks_out_and_nobody_is_asked(
    open_page: Open, mixed: list[Attempt], width: int
) -> None:
    trials = [*mixed, attempt(case("k", topic="x" * 300), WRONG, system="y" * 300)]
    watched = open_page(planning_page(trials), width=width)
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.page.locator("#figures figure img").count() == 3
    assert watched.page.locator("nav").evaluate("e => getComputedStyle(e).position") == "sticky"
    assert watched.quiet, (watched.console, watched.requests)
