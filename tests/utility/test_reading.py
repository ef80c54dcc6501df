"""Whole replies: what they give and why not. The corpus in tests/data/malformed has the rest."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.records import Criterion
from agenteval.utility.answers import LevelAnswer, NoAnswer
from agenteval.utility.reading import read_text
from benchmarks.malformed.corpus import corpus, read
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
    [
        ("Clarity: fair\nAccuracy: right", "stop"),
        ("Clarity: fair\nAccuracy: right\n", "length"),
        ("So:\n- **Clarity:** Fair.\n- `Accuracy` = right", "stop"),
    ],
)
def test_lines_are_read_where_the_form_is_plain(text: str, finish: str) -> None:
    answers, rung = read_text(text, BOTH, finish)
    labels = [a.label for a in answers.by_path.values() if isinstance(a, LevelAnswer)]
    assert (labels, rung) == (["fair", "right"], "labelled")


@pytest.mark.parametrize(
    "text",
    [
        "Clarity: fair\nAccuracy: right\nThat is what the text claims.",  # it was a quotation
        '{"clarity": "unclear" "accuracy": oops}\nClarity: fair\nAccuracy: right',
        "so\n" * 3000 + "Clarity: fair\nAccuracy: right",
    ],
)
def test_lines_in_doubt_are_not_read(text: str) -> None:
    assert failed(text)[0] == "unscored:parse"


@pytest.mark.parametrize(
    ("text", "accuracy"),
    [
        ("Clarity: fair", "unscored:missing"),
        ("Clarity: fair\nAccuracy: mostly right", "unscored:off_scale"),
        ("Clarity: fair\nAccuracy: right\nAccuracy: wrong", "unscored:parse"),
    ],
)
def test_a_line_that_cannot_be_read_costs_only_its_own_criterion(text: str, accuracy: str) -> None:
    answers, rung = read_text(text, BOTH)
    first, second = answers.by_path.values()
    assert isinstance(first, LevelAnswer)
    assert isinstance(second, NoAnswer)
    assert (first.label, second.status, rung) == ("fair", accuracy, "labelled")


def test_a_line_that_may_be_cut_is_not_read() -> None:
    """ "partly" may have become "partly right"."""
    scale = Criterion(name="Accuracy", accepted_values=("partly", "partly right"))
    for text in ("Accuracy: partly", "partly"):
        assert read_text(text, (scale,), "stop")[1] == "labelled"
        assert read_text(text, (scale,), "length")[1] is None


@pytest.mark.slow
def test_every_reply_of_the_corpus_gives_what_was_decided() -> None:
    """Some 770 replies written by hand, each with the label or status of every leaf."""
    for row in corpus():
        assert read(row.reply, row.criteria, row.finish) == (row.expect, row.rung), row.id


@settings(max_examples=often(100, 3000), deadline=None)
@given(st.text(max_size=80), st.sampled_from(["stop", "length", "unknown"]))
def test_any_text_gives_an_accepted_value_or_a_status(text: str, finish: str) -> None:
    answers, _ = read_text(text, BOTH, finish)
    assert list(answers.by_path) == ["clarity", "accuracy"]
    for criterion, one in zip(BOTH, answers.by_path.values(), strict=True):
        assert isinstance(one, NoAnswer) or one.label in (*criterion.accepted_values, None)
