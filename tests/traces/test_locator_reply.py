"""Replies in all forms, the checks between a reply and a finding, and grades: never a default."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.errors import ReplyError
from agenteval.models.prompts import neutralise
from agenteval.models.wire import Request
from agenteval.records import GRADES, Rejected, Run, Span
from agenteval.traces.locator_reply import (
    CheckedFinding,
    QuoteCheck,
    Quotes,
    check,
    flat,
    quoted_in,
    read_grades,
    read_reply,
)
from agenteval.traces.locator_text import shorten, tokens, windows
from tests.traces.locator_world import TAXONOMY, entry, honest, locator, made, user_text

TEXTS = {
    "S1": 'The tool said "no such file: birds.csv" and the agent went on\nto count nine birds.',
    "S2": r'{"query": "caf\u00e9 \"Loro\"", "path": "C:\\new\\table", "bird": "\ud83e\udd9c"}',
    "S3": "A span of an earlier part, which is not shown again.",
}
ASKED = [leaf.name for leaf in TAXONOMY.assigned if leaf.area == "Thought"]


def of(item: Any, run: Run | None = None, rule: QuoteCheck = "step") -> CheckedFinding | Rejected:
    whole, condensed = made(list(TEXTS.values()))
    return check(item, ASKED, TAXONOMY, Quotes(run or whole, condensed, rule))


def checked(**more: Any) -> CheckedFinding | Rejected:
    return of({**entry("S1", "Invention", "count nine birds"), **more})


@pytest.mark.parametrize(
    "said",
    [
        "S1",
        "[S1]",
        "S1 llm 0a1b>>",
        "S1 llm, characters 1 to 9 of 12",
    ],
)
def test_an_index_may_be_dressed(said: str) -> None:
    found = checked(span=said)
    assert isinstance(found, CheckedFinding)
    assert found.index == "S1"


def test_words_of_the_step_count_half_and_words_of_the_span_whole() -> None:
    step = {"parent_id": "step", "kind": "llm"}
    run = Run(
        id="t",
        spans=(
            Span(id="root", kind="agent"),
            Span(id="step", parent_id="root", kind="chain", output="The step gave up at once."),
            Span(id="span-1", input="what it was sent before", output="what it gave back", **step),
            Span(id="span-2", **step),
            Span(id="span-3", parent_id="root", kind="llm", output="words of a later step"),
        ),
    )

    def finding(words: str, rule: QuoteCheck = "step") -> CheckedFinding | Rejected:
        return of(entry("S1", "Invention", words) | {"confidence": 0.8}, run, rule)

    for words, confidence, near in (
        ("count nine birds", 0.8, False),  # as it was shown
        ("what it gave back", 0.8, False),  # its own, shown as a reference
        ("count nine birds\nwhich it did not say", 0.8, False),  # one of two lines
        ("the agnet went on to count nine birds", 0.8, False),  # a slip
        ("what it was sent before", 0.4, True),  # of its request
        ("gave up at once", 0.4, True),  # of the step around it
        ('"bird": "', 0.4, True),  # of what else the step holds
    ):
        named = finding(words)
        assert isinstance(named, CheckedFinding)
        assert (named.confidence, named.near) == (confidence, near)
    for words in ("words of a later step", "stands nowhere at all", "agent\nnine"):
        assert isinstance(finding(words), Rejected)
        assert isinstance(finding(words, "off"), CheckedFinding)
    assert isinstance(finding("gave up at once", "span"), Rejected)


@pytest.mark.parametrize("said", ["S9", "1", 1, None, "S1 S2", ["S1"]])
def test_an_index_is_never_guessed(said: Any) -> None:
    found = checked(span=said)
    assert isinstance(found, Rejected)
    assert found.why.startswith("there is no span")


@pytest.mark.parametrize("said", ["invention", "MADE-UP", "Thought > Claims > Invention"])
def test_a_category_may_be_spelled_otherwise(said: str) -> None:
    found = checked(category=said)
    assert isinstance(found, CheckedFinding)
    assert found.category == "Invention"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Inventions of all kinds", "not a category"),
        ("Old Label", "not a category"),
        (None, "not a category"),
        ("Waste", "was not requested"),
    ],
)
def test_a_category_is_never_guessed(said: Any, why: str) -> None:
    found = checked(category=said)
    assert isinstance(found, Rejected)
    assert why in found.why


@pytest.mark.parametrize(
    ("span", "quote"),
    [
        ("S1", "no such file: birds.csv"),
        ("S1", "'The tool said \"no such file'"),
        ("S1", "The tool said ... count nine birds"),
        ("S1", "THE TOOL SAID"),
        ("S2", 'café "Loro"'),
        ("S2", r"C:\new\table"),
        ("S2", "bird: 🦜"),
        ("S3", "which is not shown again"),  # not in this part, but the words prove it was known
    ],
)
def test_quotes_that_stand_in_the_span(span: str, quote: str) -> None:
    assert isinstance(checked(span=span, evidence=quote), CheckedFinding)


@pytest.mark.parametrize(
    ("quote", "why"),
    [
        ("no such file: cats.csv", "not in the span"),
        ("count nine birds ... The tool said", "not in the span"),  # in the wrong order
        ("the ... and ... to", "too short"),
        ("which is not shown again", "not in the span"),  # it stands in S3
        ("", "quote"),
        ("to", "quote"),
    ],
)
def test_quotes_that_do_not(quote: Any, why: str) -> None:
    found = checked(evidence=quote)
    assert isinstance(found, Rejected)
    assert why in found.why
    assert isinstance(found.said, dict)


plain = st.text(
    st.characters(exclude_categories=["C"], exclude_characters="\\….["), min_size=1, max_size=80
)


@given(
    st.lists(st.one_of(plain, st.just("\u200b"), st.just("<<END S1")), min_size=1, max_size=6),
    st.data(),
)
def test_whatever_is_copied_from_what_the_judge_saw_is_found(
    parts: list[str], data: st.DataObject
) -> None:
    """The judge sees the neutralised text, and leaves out line breaks and invisible characters."""
    seen = neutralise("\n".join(parts))
    first = data.draw(st.integers(0, len(parts) - 1))
    quote = " ".join(p for p in parts[first:] if p != "\u200b")
    assert quoted_in(quote, flat(seen)) in (None, "it does not quote the span")
    if len(flat(quote)) >= 3:
        assert quoted_in(f"{quote} and then the sky fell", flat(seen)) is not None


ITEM = entry("S1", "Invention", "nine birds")


@pytest.mark.parametrize(
    ("text", "count", "summary", "gap"),
    [
        (json.dumps({"findings": [ITEM], "summary": " ok "}), 1, "ok", False),
        (json.dumps({"errors": [ITEM, ITEM]}), 2, "", False),
        ("I think\n" + json.dumps({"findings": [ITEM]}) + "\nis all.", 1, "", False),
        (json.dumps([ITEM]), 1, "", False),
        (json.dumps([{"errors": [ITEM, ITEM], "summary": "ok"}]), 2, "ok", False),
        ('{"findings": [' + json.dumps(ITEM) + ', {"span": "S2", "evi', 2, "", True),
        ('{"findings": [], "summary": "it went', 0, "", True),
    ],
)
def test_replies_that_can_be_read(text: str, count: int, summary: str, gap: bool) -> None:
    read = read_reply(text)
    assert (len(read.value[0]), read.value[1]) == (count, summary)
    assert (read.gap is not None) == gap


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No errors.",
        "{}",
        '{"findings": "none"}',
        '{"summary": "ok"}',
        '["S1"]',
        '{"findings": {"span": "S1"}}',
    ],
)
def test_a_reply_without_a_list_never_means_no_errors(text: str) -> None:
    with pytest.raises(ReplyError):
        read_reply(text)


@given(st.text(max_size=600), st.integers(20, 200))
def test_shortened_text_keeps_to_its_size(text: str, most: int) -> None:
    short = shorten(text, most)
    assert tokens(short) <= most
    assert short == text or "characters left out" in short


@given(st.text(max_size=600), st.integers(24, 200))
def test_windows_cover_the_text_within_their_size(text: str, most: int) -> None:
    spans = list(windows(text, most))
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    for (_, end), (start, _) in pairwise(spans):
        assert start <= end
    for start, end in spans:
        assert len(text[start:end].encode("utf-8", "replace")) <= most


FOUR = {
    name: {"reason": f"why {name}", "score": score}
    for name, score in zip(GRADES, (2, 5, 3, 4), strict=True)
}


def values(said: Any) -> dict[str, float | None]:
    return {name: grade.value for name, grade in read_grades(json.dumps(said)).value.items()}


def test_as_asked_for() -> None:
    read = read_grades(json.dumps({**FOUR, "overall": 3}))
    assert read.gap is None
    assert {n: (g.value, g.reason) for n, g in read.value.items()} == {
        "reliability": (2.0, "why reliability"),
        "security": (5.0, "why security"),
        "instruction_adherence": (3.0, "why instruction_adherence"),
        "plan_opt": (4.0, "why plan_opt"),
        "overall": (3.0, ""),
    }


def test_overall_is_the_mean_of_those_given_when_it_is_not_said() -> None:
    assert values(FOUR)["overall"] == 3.5  # (2 + 5 + 3 + 4) / 4
    three = {k: v for k, v in FOUR.items() if k != "security"}
    assert values(three) == {
        "reliability": 2.0,
        "security": None,
        "instruction_adherence": 3.0,
        "plan_opt": 4.0,
        "overall": 3.0,
    }
    assert "mean of the 3" in read_grades(json.dumps(three)).value["overall"].reason


@pytest.mark.parametrize("score", [0, 5.01, "good", None, True, [3], 1e400])
def test_off_the_scale_is_missing_and_says_why(score: Any) -> None:
    text = json.dumps({**FOUR, "plan_opt": {"reason": "r", "score": score}, "overall": 2})
    if score == 1e400:
        text = text.replace("Infinity", "99")
    read = read_grades(text)
    assert read.value["plan_opt"].value is None
    assert read.gap == "no score from 1 to 5 for plan_opt"
    assert read.value["plan_opt"].reason.endswith("r")
    assert read.value["overall"].value == 2.0


@pytest.mark.parametrize("text", ["All fives.", "{}", '{"overall": 5}'])
def test_a_reply_without_grades_is_none(text: str) -> None:
    with pytest.raises(ReplyError):
        read_grades(text)


def grading(what: Any) -> Any:
    def answer(request: Request) -> Any:
        return what if request.role.startswith("locator:grades") else honest(request)

    return answer


PLANTED = made(["PLANT(Invention) nine birds", "fine", "the end"])


async def test_the_grades_are_asked_once_from_notes_and_findings() -> None:
    judge, transport = locator(grading(json.dumps({**FOUR, "overall": 3})), grades=True)
    findings = (await judge.examine(*PLANTED)).findings
    asked = [r for r in transport.requests if r.role.startswith("locator:grades")]
    assert len(asked) == 1
    text = user_text(asked[0])
    for needed in ("Count the birds.", "seen up to S3", "S1 Invention (HIGH)", "nine birds."):
        assert needed in text
    assert {n: g.value for n, g in findings.grades.items()} == {
        "reliability": 2.0,
        "security": 5.0,
        "instruction_adherence": 3.0,
        "plan_opt": 4.0,
        "overall": 3.0,
    }


@pytest.mark.parametrize("what", ["none", "{}"])
async def test_grades_that_fail_leave_the_findings_and_are_told(what: Any) -> None:
    judge, _ = locator(grading(what), grades=True)
    findings = (await judge.examine(*PLANTED)).findings
    assert len(findings.findings) == 1
    assert findings.grades == {}
    assert findings.status is None
    assert any(r.why.startswith("no grades: ") for r in findings.rejected)
