"""Direction of scales: every expectation was set by hand before the code was run on it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.evaluators.utility.bank import load_bank
from agenteval.evaluators.utility.scale_order import more_is, order_of

UP, DOWN, UNCLEAR, NOMINAL = "worst_to_best", "best_to_worst", "unclear", "nominal"

# Labels separated by " | ", worst first as a person would say. Also read backwards.
ASCENDING = [
    "poor | fair | good | excellent",
    "terrible | bad | average | good | great",
    "unacceptable | acceptable | exemplary",
    "inadequate | adequate | outstanding",
    "weak | satisfactory | strong",
    "insufficient | sufficient",
    "novice | intermediate | expert",
    "worst | best",
    "not clear | somewhat clear | mostly clear | very clear",
    "unclear | fairly clear | clear | extremely clear",
    "very unclear | unclear | clear | very clear",
    "incorrect | partially correct | mostly correct | completely correct",
    "completely wrong | mostly wrong | mostly right | completely right",
    "wrong | right",
    "False | True",
    "No | Yes",
    "No | Partially | Yes",
    "no | mostly | yes",
    "incomplete | partially complete | complete",
    "missing | partial | complete",
    "not addressed | partially addressed | well addressed",
    "not at all | somewhat | completely",
    "irrelevant | slightly relevant | relevant | highly relevant",
    "illogical | mostly logical | fully logical",
    "inconsistent | mostly consistent | entirely consistent",
    "incoherent | coherent",
    "disorganized | organized",
    "unsafe | safe",
    "unhelpful | somewhat helpful | very helpful",
    "rude | neutral | polite",
    "verbose | somewhat verbose | concise",
    "very verbose | fairly concise | very concise",
    "redundant | efficient",
    "confusing | understandable | crystal clear",
    "misleading | vague | precise",
    "major errors | minor errors | no errors",
    "many mistakes | some mistakes | few mistakes | no mistakes",
    "severe flaws | slight flaws | flawless",
    "several contradictions | one contradiction | no contradictions",
    "critical omissions | minor omissions | nothing missing",
    "full of errors | free of errors",
    "biased | free of bias",
    "without justification | partly justified | fully justified",
    "lacks clarity | adequate clarity | excellent clarity",
    "low quality | medium quality | high quality",
    "poorly structured | well structured",
    "hardly readable | readable | very readable",
    "never correct | sometimes correct | usually correct | always correct",
    "rarely accurate | often accurate | always accurate",
    "never | rarely | sometimes | often | always",
    "none | some | most | all",
    "no cases | some cases | all cases",
    "0 - Incorrect | 1 - Partially correct | 2 - Correct",
    "1: Poor | 2: Fair | 3: Good",
    "1 (poor) | 2 (average) | 3 (excellent)",
    "1 | 2 | 3 | 4 | 5",
    "level 1 | level 2 | level 3",
    "0% | 25% | 50% | 100%",
    "5+ errors | 3-4 errors | 1-2 errors | 0 errors",
    "more than 10 minutes | 5 to 10 minutes | less than 5 minutes",
    "F | D | C | B | A",
    "slow | moderate | fast",
    "not_useful | somewhat_useful | very_useful",
    "Not_Applicable | Inefficient | Efficient",
    "ineffective | suboptimal | optimal",
    "overly wordy | acceptable | perfectly concise",
]

NEITHER = [
    ("correct | incorrect | partially correct", UNCLEAR),  # the middle stands last
    ("good | poor | excellent", UNCLEAR),
    ("too short | too long | overly long and underspecified", UNCLEAR),
    ("underused | well used | overused", UNCLEAR),  # the best stands in the middle
    ("very repetitious-ish | frobnicated", UNCLEAR),
    ("low | medium | high", UNCLEAR),  # of what?
    ("1 step | 2 steps | many-ish", UNCLEAR),
    ("excellent | outstanding", UNCLEAR),
    ("clear | fluffy", UNCLEAR),
    ("algebra | geometry | number theory", NOMINAL),
    ("Python | Java | Rust | other", NOMINAL),
    ("1 - algebra | 2 - geometry | 3 - calculus", NOMINAL),
    ("formal | informal | casual", NOMINAL),
    ("table | prose", NOMINAL),
    ("by substitution | by elimination | by drawing", NOMINAL),
    ("monday | tuesday", NOMINAL),
    ("good", UNCLEAR),
    ("good | not applicable", UNCLEAR),
]


def split(text: str) -> list[str]:
    return [part.strip() for part in text.split("|")]


def test_enough_scales_are_tried() -> None:
    assert len(ASCENDING) + len(NEITHER) >= 60
    assert len({*ASCENDING, *(t for t, _ in NEITHER)}) == len(ASCENDING) + len(NEITHER)


@pytest.mark.parametrize("text", ASCENDING)
def test_worst_first_is_told_and_so_is_its_reverse(text: str) -> None:
    labels = split(text)
    assert order_of(labels)[0] == UP
    assert order_of(labels[::-1])[0] == DOWN


@pytest.mark.parametrize(("text", "expected"), NEITHER)
def test_what_cannot_be_told_is_not_guessed(text: str, expected: str) -> None:
    verdict, reason = order_of(split(text))
    assert verdict == expected
    assert reason


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Clarity", UP),
        ("Redundancy", DOWN),
        ("Number of errors", DOWN),
        ("Error handling", UP),
        ("Absence of contradictions", UP),
        ("Blueness", UNCLEAR),
    ],
)
def test_bare_degrees_are_settled_by_the_name(name: str, expected: str) -> None:
    assert order_of(["low", "medium", "high"], name)[0] == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Response time", "worse"), ("Calculation errors", "worse"), ("Verbosity", "worse"),
        ("Accuracy", "better"), ("Loop avoidance", "better"), ("Error analysis", "better"),
        ("Colour", None),
    ],
)  # fmt: skip
def test_more_is_better_or_worse(name: str, expected: str | None) -> None:
    assert more_is(name) == expected


def test_not_applicable_is_no_level() -> None:
    labels = ["very good", "good", "poor", "not_applicable"]
    assert order_of(labels)[0] == DOWN


def test_no_scale_of_the_bank_reads_as_best_first() -> None:
    """All of them were written worst first; many are phrases the lexicon need not know."""
    verdicts = {c.id: order_of(c.record["accepted_values"])[0] for c in load_bank()}
    assert len(verdicts) >= 40
    assert [i for i, v in verdicts.items() if v == DOWN] == []


@given(st.lists(st.text(max_size=20), max_size=8))
def test_reversal_reverses_and_nothing_raises(labels: list[str]) -> None:
    opposite = {UP: DOWN, DOWN: UP, UNCLEAR: UNCLEAR, NOMINAL: NOMINAL}
    assert order_of(labels[::-1])[0] == opposite[order_of(labels)[0]]
