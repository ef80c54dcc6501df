"""Labels: exact, tolerant, or off the scale; expectations written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.evaluators.utility.labels import fold, read_label

CLEAR = ("not at all clear", "slightly clear", "moderately clear", "very clear", "completely clear")
EFFICIENT = (
    "not at all efficient",
    "slightly efficient",
    "moderately efficient",
    "very efficient",
    "extremely efficient",
)
CORRECT = ("completely incorrect", "mostly incorrect", "mostly correct", "completely correct")
NUMBERED = (
    "0 - Incorrect",
    "1 - Partially correct",
    "2 - Mostly correct",
    "3 - Completely correct",
)


@pytest.mark.parametrize(
    ("raw", "accepted", "value", "match"),
    [
        ("very clear", CLEAR, "very clear", "exact"),
        ("Very  Clear.", CLEAR, "very clear", "tolerant"),
        ("very_clear", CLEAR, "very clear", "tolerant"),
        ("`completely clear`", CLEAR, "completely clear", "tolerant"),
        ("moderatly efficient", EFFICIENT, "moderately efficient", "tolerant"),
        ("extremly efficient", EFFICIENT, "extremely efficient", "tolerant"),
        ("moderately eficient", EFFICIENT, "moderately efficient", "tolerant"),
        ("completely incorect", CORRECT, "completely incorrect", "tolerant"),
        ("3 - Completely correct", NUMBERED, "3 - Completely correct", "exact"),
        ("Completely correct", NUMBERED, "3 - Completely correct", "tolerant"),
        ("3", NUMBERED, "3 - Completely correct", "tolerant"),
        (3, NUMBERED, "3 - Completely correct", "tolerant"),
        (2.0, ("1", "2", "3"), "2", "tolerant"),
        (True, ("false", "true"), "true", "exact"),
        ("excelent", ("poor", "excellent"), "excellent", "tolerant"),
        ("Three stars", ("2 stars", "3 stars"), "3 stars", "tolerant"),
        ("a four out of five", ("1", "2", "3", "4", "5"), "4", "tolerant"),
        ("4/5", ("1 star", "4 stars", "5 stars"), "4 stars", "tolerant"),
        ("incorect", NUMBERED, "0 - Incorrect", "tolerant"),
        ("ｖｅｒｙ　ｃｌｅａｒ", CLEAR, "very clear", "tolerant"),
        ("very clear\u200b", CLEAR, "very clear", "tolerant"),
        ("“very clear”", CLEAR, "very clear", "tolerant"),
        (
            "Partialy respected",
            ("Ignored", "Partially respected"),
            "Partially respected",
            "tolerant",
        ),
    ],
)
def test_read(raw: object, accepted: tuple[str, ...], value: str, match: str) -> None:
    label = read_label(raw, accepted)
    assert label is not None
    assert (label.value, label.match) == (value, match)


@pytest.mark.parametrize(
    ("raw", "accepted"),
    [
        ("mostly efficient", EFFICIENT),
        ("mostly clear", CLEAR),
        ("clear", CLEAR),
        ("efficient", EFFICIENT),
        ("unclear", ("clear", "very clear")),
        ("completely unclear", ("completely clear", "slightly clear")),
        ("incorrect", ("correct", "wrong")),
        ("inadequate", ("adequate", "good")),
        ("2 - Completely correct", NUMBERED),  # number and words contradict each other
        (4, NUMBERED),
        (True, NUMBERED),
        (True, ("1", "2")),
        (None, CLEAR),
        (["very clear"], CLEAR),
        ("very clear or completely clear", CLEAR),
        ("", CLEAR),
        ("not applicable", CLEAR),
        ("clean", ("clear", "unclear")),
        ("more efficient", ("less efficient", "most efficient")),
        ("4/10", ("1", "2", "3", "4", "5")),
        ("80%", ("1", "2", "3", "4", "5")),
        ("four", CLEAR),
        ("three points", ("2 stars", "3 stars")),
        ("1 - incorect", NUMBERED),
        ("٤", ("1", "2", "3", "4", "5")),
        ("direkk", ("direct", "winding")),  # two slips in a short word
        ("arational", ("rational", "mixed")),
    ],
)
def test_off_scale(raw: object, accepted: tuple[str, ...]) -> None:
    assert read_label(raw, accepted) is None


@pytest.mark.parametrize("raw", ["not applicable", "N/A", "n/a", "Not_Applicable", "NA"])
def test_not_applicable_only_where_allowed(raw: str) -> None:
    allowed = read_label(raw, CLEAR, allow_na=True)
    assert allowed is not None
    assert allowed.not_applicable
    assert allowed.value is None
    assert read_label(raw, CLEAR) is None


def test_an_accepted_value_called_none_is_not_taken_for_not_applicable() -> None:
    label = read_label("none", ("none", "some"), allow_na=True)
    assert label is not None
    assert label.value == "none"


@given(st.sampled_from(CLEAR), st.booleans(), st.sampled_from(["", " ", ".", "!", "  "]))
def test_case_and_space_never_change_the_level(label: str, upper: bool, tail: str) -> None:
    written = (label.upper() if upper else label).replace(" ", "  ") + tail
    read = read_label(written, CLEAR)
    assert read is not None
    assert read.value == label


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    read = read_label(text, CLEAR, allow_na=True)
    assert read is None or read.value in CLEAR or read.not_applicable
    assert fold(fold(text)) == fold(text)
