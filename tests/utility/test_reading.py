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


@pytest.mark.parametrize(
    ("text", "finish", "status", "why"),
    [
        ("", "stop", "parse", "the reply is empty"),
        ("I cannot help with that.", "stop", "refusal", "the reply declines to answer"),
        ('{"clarity": {"explanation": "It', "length", "parse", "(cut off by the length limit)"),
        ("I cannot help with", "length", "parse", "(cut off by the length limit)"),
        ("<think>Is it clear?", "length", "parse", "thinking"),
        ("so\n" * 3000 + "Clarity: fair\nAccuracy: right", "stop", "parse", ""),
    ],
)
def test_why_nothing_could_be_read(text: str, finish: str, status: str, why: str) -> None:
    answers, rung = read_text(text, BOTH, finish)
    for answer in answers.by_path.values():
        assert isinstance(answer, NoAnswer)
        assert (answer.status, why in answer.message) == (f"unscored:{status}", True)
    assert rung is None


def test_a_line_that_may_be_cut_is_not_read() -> None:
    """ "partly" may have become "partly right"."""
    scale = Criterion(name="Accuracy", accepted_values=("partly", "partly right"))
    for text in ("Accuracy: partly", "partly"):
        assert read_text(text, (scale,), "stop")[1] == "labelled"
        assert read_text(text, (scale,), "length")[1] is None


def test_every_reply_of_the_corpus_gives_what_was_decided() -> None:
    """Some 770 replies written by hand, each with the label or status of every leaf."""
    for row in corpus():
        assert read(row.reply, row.criteria, row.finish) == (row.expect, row.rung), row.id


@settings(max_examples=often(100, 3000), deadline=None)
@given(st.text(max_size=80), st.sampled_from(["stop", "length", "unknown"]))
def test_any_text_gives_an_accepted_value_or_a_status(text: str, finish: str) -> None:
    answers, _ = read_text(text, BOTH, finish)
    assert list(answers.by_path) == ["clarity", "accuracy"]
    for criterion, answer in zip(BOTH, answers.by_path.values(), strict=True):
        assert isinstance(answer, NoAnswer) or answer.label in (*criterion.accepted_values, None)
        assert isinstance(answer, LevelAnswer | NoAnswer)
