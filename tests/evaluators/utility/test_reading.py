"""Whole replies: what they give and why not. The corpus in tests/data/malformed has the rest."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.evaluators.utility.answers import Answer, NoAnswer
from agenteval.evaluators.utility.reading import read_text
from agenteval.evaluators.utility.stated_number import Stated, stated_number
from agenteval.records import Criterion
from tests.thorough import often

CLARITY = Criterion(name="Clarity", accepted_values=("unclear", "fair", "clear"))
ACCURACY = Criterion(name="Accuracy", accepted_values=("wrong", "right"), allow_na=True)
BOTH = (CLARITY, ACCURACY)


def failed(text: str, finish: str = "stop") -> tuple[str, str]:
    answers, rung = read_text(text, BOTH, finish)
    first, second = answers.by_path.values()
    assert isinstance(first, NoAnswer)
    assert rung is None
    assert first == second
    return first.status, first.message


def test_why_nothing_could_be_read() -> None:
    assert failed("") == ("unscored:parse", "the reply is empty")
    assert failed("I cannot help with that.") == (
        "unscored:refusal",
        "the reply declines to answer",
    )
    status, message = failed('{"clarity": {"explanation": "It', "length")
    assert status == "unscored:parse"
    assert message.endswith("(cut off by the length limit)")
    assert failed("I cannot help with", "length")[0] == "unscored:parse"
    assert "thinking" in failed("<think>Is it clear?", "length")[1]


@pytest.mark.parametrize(
    ("text", "finish"),
    [("Clarity: fair\nAccuracy: right", "stop"), ("Clarity: fair\nAccuracy: right\n", "length"),
     ("So:\n- **Clarity:** Fair.\n- `Accuracy` = right", "stop")],
)  # fmt: skip
def test_lines_are_read_where_the_form_is_plain(text: str, finish: str) -> None:
    answers, rung = read_text(text, BOTH, finish)
    labels = [a.label for a in answers.by_path.values() if isinstance(a, Answer)]
    assert (labels, rung) == (["fair", "right"], "labelled")


@pytest.mark.parametrize(
    "text",
    [
        "Clarity: fair",  # one is missing
        "Clarity: fair\nAccuracy: right\nClarity: clear",
        "Clarity: fair\nAccuracy: right\nThat is what the text claims.",  # it was a quotation
        "Clarity: fair\nAccuracy: mostly right",
        '{"clarity": "unclear" "accuracy": oops}\nClarity: fair\nAccuracy: right',
        "so\n" * 3000 + "Clarity: fair\nAccuracy: right",
    ],
)
def test_lines_in_doubt_are_not_read(text: str) -> None:
    assert failed(text)[0] == "unscored:parse"


def test_a_line_that_may_be_cut_is_not_read() -> None:
    """ "partly" may have become "partly right"."""
    scale = Criterion(name="Accuracy", accepted_values=("partly", "partly right"))
    for text in ("Accuracy: partly", "partly"):
        assert read_text(text, (scale,), "stop")[1] == "labelled"
        assert read_text(text, (scale,), "length")[1] is None


@pytest.mark.parametrize(
    ("text", "stated"),
    [("4", Stated(4)), ("four", Stated(4)), ("3.5", Stated(3.5)), ("-2", Stated(-2)),
     ("three stars", Stated(3, None, "star")), ("4/5", Stated(4, 5)), ("4 / 5", Stated(4, 5)),
     ("a four out of five", Stated(4, 5)), ("4 of 5 points", Stated(4, 5, "point")),
     ("80%", Stated(80, 100)), ("0", Stated(0)), ("1 point", Stated(1, None, "point"))],
)  # fmt: skip
def test_a_number_stated(text: str, stated: Stated) -> None:
    assert stated_number(text) == stated


@pytest.mark.parametrize(
    "text",
    ["", "four or five", "4-5", "about 4", "4 apples", "1_0", "1e3", "007", "4/", "/5", "4/5/6",
     "80% of 5", "eleven", "a", "stars", "4 4", "nan", "inf", "1" * 61, "0x4", "٤"],
)  # fmt: skip
def test_no_number_stated(text: str) -> None:
    assert stated_number(text) is None


@settings(max_examples=often(100, 3000), deadline=None)
@given(st.text(max_size=80), st.sampled_from(["stop", "length", "unknown"]))
def test_any_text_gives_an_accepted_value_or_a_status(text: str, finish: str) -> None:
    answers, _ = read_text(text, BOTH, finish)
    assert list(answers.by_path) == ["clarity", "accuracy"]
    for criterion, one in zip(BOTH, answers.by_path.values(), strict=True):
        assert isinstance(one, NoAnswer) or one.label in (*criterion.accepted_values, None)
