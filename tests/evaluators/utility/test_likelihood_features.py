"""Statistics of token log-probabilities, against values worked out by hand or by plain loops."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.evaluators.utility.likelihood_features import (
    INSTRUCTIONS,
    Features,
    conciseness,
    features,
    prompt,
)
from agenteval.evaluators.utility.sentences import split_sentences


@dataclass
class Values:
    logprobs: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


def scored(text: str, logprobs: list[float] | None = None) -> Features:
    """Tokens are words with the blank before them, as a language model has them."""
    spans = [m.span() for m in re.finditer(r"\s?\S+|\s", text)]
    values = logprobs or [-(i % 7) / 4 for i in range(len(spans))]
    assert len(values) == len(spans)
    starts, ends = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    return features(Values(np.array(values, dtype=np.float64), starts, ends), text)


def test_statistics_by_hand() -> None:
    text = "We add two numbers. It gives 12 now."
    found = scored(text, [-1, -2, -3, -4, -2, -1, -6, -1]).statistics()
    assert found == {
        "mean": pytest.approx(-20 / 8),
        "start": pytest.approx(-(1 + 2 + 3 + 2 + 1 + 6) / 6),
        "mean+start": pytest.approx(-2.5),
        "worst": pytest.approx(-(6 + 4) / 2),
        "numbers": pytest.approx(-6),
        "answer": pytest.approx(-10 / 4),
        "tokens": pytest.approx(-math.log(8)),
    }


def test_only_the_systems_prose_counts() -> None:
    prose = "We ask. It is 5."
    text = (
        "[user]\nBe quick. 7.\n\n[assistant]\nWe ask.\n[tool call] add 2 3\n\n[tool: add]\n5\n\n"
        "[assistant]\n```\nx = 9\n```\nIt is 5."
    )
    words = {"We": -1.0, "ask.": -2.0, "It": -3.0, "is": -4.0, "5.": -5.0}
    tokens = [m.group().strip() for m in re.finditer(r"\s?\S+|\s", text)]
    found = scored(text, [words.get(t, -50.0) for t in tokens])
    assert found.sentences == 2
    assert found.statistics() == pytest.approx(scored(prose, [-1, -2, -3, -4, -5]).statistics())


def test_a_blank_token_inside_a_sentence_counts_and_one_between_does_not() -> None:
    text = "Add 12. Go."
    spans = [(0, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 11)]
    starts, ends = np.array(spans, dtype=np.int64).T
    found = features(Values(np.array([-1.0, -2, -3, -4, -5, -60, -7]), starts, ends), text)
    assert found.logprobs.tolist() == [-1, -2, -3, -4, -5, -7]
    assert found.sentence.tolist() == [0, 0, 0, 0, 0, 1]
    assert found.start.tolist() == [True, True, True, False, False, True]
    assert found.number.tolist() == [False, False, True, True, False, False]


def test_texts_without_prose_or_numbers() -> None:
    assert scored("").statistics() == {}
    assert scored("```\nx = 1\n```").statistics() == {}
    assert scored("```\nx = 1\n```").sentences == 0
    assert "numbers" not in scored("No digit here.").statistics()


@given(
    st.lists(st.lists(st.integers(-9, 0), min_size=1, max_size=6), min_size=1, max_size=5),
    st.lists(st.integers(0, 4), max_size=8),
)
def test_resampled_statistics_agree_with_plain_loops(
    sentences: list[list[int]], picks: list[int]
) -> None:
    text = " ".join(
        " ".join(f"{'N1' if v % 2 else 'Aw'}" for v in s[:-1]) + " End." for s in sentences
    ).strip()
    flat = [float(v) for s in sentences for v in s]
    found = scored(text.replace("  ", " "), flat)
    assert found.sentences == len(sentences) == len(split_sentences(text))
    chosen = [p % len(sentences) for p in picks]
    got = found.statistics(chosen)
    if not chosen:
        assert got == {}
        return
    drawn = [v for i in chosen for v in sentences[i]]
    starts = [v for i in chosen for v in sentences[i][:3]]
    worst = sorted(drawn)[: max(1, math.ceil(len(drawn) / 4))]
    assert got["mean"] == pytest.approx(sum(drawn) / len(drawn))
    assert got["start"] == pytest.approx(sum(starts) / len(starts))
    assert got["worst"] == pytest.approx(sum(worst) / len(worst))
    size = len(drawn) / len(chosen) * len(sentences)
    assert got["tokens"] == pytest.approx(-math.log(size))
    assert got["answer"] == pytest.approx(sum(sentences[-1]) / len(sentences[-1]))


def test_draws_are_poisson_and_belong_to_the_wording() -> None:
    one = scored("We add 12. They stop. So it is.")
    two = scored("So it is. Nobody sleeps. We  add 75.")
    counts = np.array([np.bincount(one.draw(3, r), minlength=3) for r in range(2000)])
    other = np.array([np.bincount(two.draw(3, r), minlength=3) for r in range(2000)])
    drawn = (counts.sum(axis=1) > 0) & (other.sum(axis=1) > 0)
    assert counts.mean() == pytest.approx(1, abs=0.05)
    assert counts.var() == pytest.approx(1, abs=0.12)
    assert np.corrcoef(counts.T)[0, 1] == pytest.approx(0, abs=0.08)
    # a sentence that two texts share is weighed alike in a repeat, digits aside
    alike = (counts[:, 0] == other[:, 2]) & (counts[:, 2] == other[:, 0])
    assert alike[counts.sum(axis=1) != 3].mean() > 0.9
    assert drawn.all()
    assert one.draw(3, 5).tolist() == one.draw(3, 5).tolist()
    assert any(one.draw(4, r).tolist() != one.draw(3, r).tolist() for r in range(9))


def test_a_draw_without_any_sentence_counts_all_once() -> None:
    found = scored("Alone here.")
    draws = [found.draw(0, r).tolist() for r in range(50)]
    assert all(draws)
    assert [0] in draws
    assert [0, 0] in draws


def test_prompts() -> None:
    shown = [prompt("Add {2} and 3.", p) for p in range(len(INSTRUCTIONS) + 1)]
    assert len(set(shown)) == len(INSTRUCTIONS)
    assert shown[0] == shown[-1]
    assert all("Add {2} and 3." in text for text in shown)
    assert all(text.endswith("<|im_start|>assistant\n") for text in shown)


def test_conciseness_grows_with_the_problem_and_falls_with_the_text() -> None:
    assert conciseness(-math.log(100), 49, 0.5) == pytest.approx(0.5 * math.log(50) - math.log(100))
    assert conciseness(-math.log(100), 49, 0.5) > conciseness(-math.log(101), 49, 0.5)
