"""Labels: exact, tolerant, or off the scale; expectations written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.utility.labels import Label, StatedNumber, fold, read_label, stated_number

CLEAR = ("not at all clear", "slightly clear", "moderately clear", "very clear", "completely clear")
CORRECT = ("completely incorrect", "mostly incorrect", "mostly correct", "completely correct")
NUMBERED = ("0 - Incorrect", "1 - Partially correct", "2 - Mostly correct",
            "3 - Completely correct")  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "accepted", "value"),
    [
        ("Very  Clear.", CLEAR, "very clear"), ("very_clear", CLEAR, "very clear"),
        ("`completely clear`", CLEAR, "completely clear"),
        ("very clear\u200b", CLEAR, "very clear"),
        ("ｖｅｒｙ　ｃｌｅａｒ", CLEAR, "very clear"), ("“very clear”", CLEAR, "very clear"),
        ("moderatly clear", CLEAR, "moderately clear"),
        ("completely incorect", CORRECT, "completely incorrect"),
        ("Completely correct", NUMBERED, "3 - Completely correct"),
        ("3", NUMBERED, "3 - Completely correct"), (3, NUMBERED, "3 - Completely correct"),
        ("incorect", NUMBERED, "0 - Incorrect"), (2.0, ("1", "2", "3"), "2"),
        ("excelent", ("poor", "excellent"), "excellent"),
        ("Three stars", ("2 stars", "3 stars"), "3 stars"),
        ("a four out of five", ("1", "2", "3", "4", "5"), "4"),
        ("4/5", ("1 star", "4 stars", "5 stars"), "4 stars"),
    ],
)  # fmt: skip
def test_read_tolerantly(raw: object, accepted: tuple[str, ...], value: str) -> None:
    assert read_label(raw, accepted) == Label(value, "tolerant")
    assert read_label(value, accepted) == Label(value, "exact")
    assert read_label(True, ("false", "true")) == Label("true", "exact")


@pytest.mark.parametrize(
    ("raw", "accepted"),
    [
        ("mostly clear", CLEAR),
        ("clear", CLEAR),
        ("completely unclear", ("completely clear", "slightly clear")),
        ("incorrect", ("correct", "wrong")),
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
    assert read_label(raw, CLEAR, allow_na=True) == Label(None, "exact")
    assert read_label(raw, CLEAR) is None
    none = read_label("none", ("none", "some"), allow_na=True)  # a level of its own
    assert none == Label("none", "exact")


@given(st.sampled_from(CLEAR), st.booleans(), st.sampled_from(["", " ", ".", "!", "  "]))
def test_case_and_space_never_change_the_level(label: str, upper: bool, tail: str) -> None:
    written = (label.upper() if upper else label).replace(" ", "  ") + tail
    read = read_label(written, CLEAR)
    assert read is not None
    assert read.value == label


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    read = read_label(text, CLEAR, allow_na=True)
    assert read is None or read.value in (*CLEAR, None)
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("4", StatedNumber(4)),
        ("four", StatedNumber(4)),
        ("3.5", StatedNumber(3.5)),
        ("-2", StatedNumber(-2)),
        ("three stars", StatedNumber(3, None, "star")),
        ("4/5", StatedNumber(4, 5)),
        ("4 / 5", StatedNumber(4, 5)),
        ("a four out of five", StatedNumber(4, 5)),
        ("4 of 5 points", StatedNumber(4, 5, "point")),
        ("80%", StatedNumber(80, 100)),
        ("0", StatedNumber(0)),
        ("1 point", StatedNumber(1, None, "point")),
    ],
)
def test_a_number_stated(text: str, stated: StatedNumber) -> None:
    assert stated_number(text) == stated


@pytest.mark.parametrize(
    "text",
    ["", "four or five", "4-5", "about 4", "4 apples", "1_0", "1e3", "007", "4/", "/5", "4/5/6",
     "80% of 5", "eleven", "a", "stars", "4 4", "nan", "inf", "1" * 61, "0x4", "٤"],
)  # fmt: skip
def test_no_number_stated(text: str) -> None:
    assert stated_number(text) is None
