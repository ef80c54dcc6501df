"""Labels: exact, tolerant, or off the scale; expectations written by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.utility.labels import Label, StatedNumber, fold, read_label, stated_number

TABLE = Path(__file__).parents[1] / "data" / "labels.jsonl"
CLEAR = ("not at all clear", "slightly clear", "moderately clear", "very clear", "completely clear")


def test_labels_of_the_table() -> None:
    """What is written, the accepted values, and the value that is meant (null: off the scale)."""
    for line in TABLE.read_text("utf-8").splitlines():
        row = json.loads(line)
        expected = row["value"] and Label(row["value"], "tolerant")
        assert read_label(row["raw"], tuple(row["accepted"])) == expected, line
    assert read_label(True, ("false", "true")) == Label("true", "exact")


def test_not_applicable_only_where_allowed() -> None:
    for raw in ("not applicable", "N/A", "Not_Applicable", "NA"):
        assert read_label(raw, CLEAR, na="not applicable") == Label(None, "exact")
        assert read_label(raw, CLEAR) is None
    none = read_label("none", ("none", "some"), na="not applicable")  # a level of its own
    assert none == Label("none", "exact")


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    read = read_label(text, CLEAR, na="not applicable")
    assert read is None or read.value in (*CLEAR, None)
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("four", StatedNumber(4)),
        ("-2", StatedNumber(-2)),
        ("three stars", StatedNumber(3, None, "star")),
        ("4 / 5", StatedNumber(4, 5)),
        ("a four out of five", StatedNumber(4, 5)),
        ("4 of 5 points", StatedNumber(4, 5, "point")),
        ("80%", StatedNumber(80, 100)),
    ],
)
def test_a_number_stated(text: str, stated: StatedNumber) -> None:
    assert stated_number(text) == stated


def test_no_number_stated() -> None:
    listed = "four or five|4-5|about 4|4 apples|1_0|1e3|007|4/|/5|4/5/6|80% of 5|eleven|a|stars|4 4"
    for text in ("", *listed.split("|"), "nan", "0x4", "٤", "1" * 61):
        assert stated_number(text) is None, text
