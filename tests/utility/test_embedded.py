"""The embedded judge: length, levels, draws, and reasons, against values worked out by hand."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, spearmanr

from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, judge
from agenteval.readers import make_view, read_runs
from agenteval.records import Criterion, Failure, Provenance, Run, Score
from agenteval.utility.bank import load_bank
from agenteval.utility.embedded import (
    EmbeddedJudge,
    level_of,
    load_kinds,
    named_concept,
    read_prose,
)

ROOT = Path(__file__).parents[2]
DEVSET = ROOT / "benchmarks" / "devset" / "problems.jsonl"
LEVELS = ("bad", "fair", "good", "best")
TEXT = "We add the numbers first. That makes 12 in all. Then we halve it. So it is 6."
CONSTANTS = json.loads(
    files("agenteval.utility").joinpath("data/embedded_judge.json").read_text("utf-8")
)


def criterion(name: str, concept: str | None = None, **more: object) -> Criterion:
    fields = {"accepted_values": LEVELS, "provenance": Provenance(concept=concept), **more}
    return Criterion.model_validate({"name": name, **fields})


SHORT = criterion("Short", "conciseness")


def unit(
    text: str = TEXT, repeat: int = 0, criteria: tuple[Criterion, ...] = (SHORT,), run_id: str = "r"
) -> JudgeUnit:
    run = Run(id=run_id, input="Add and halve.", output=text)
    return JudgeUnit(run=run, view=make_view(run), criteria=criteria, repeat=repeat)


def evaluate(asked: JudgeUnit, seed: int = 0) -> Outcome:
    return asyncio.run(EmbeddedJudge(seed=seed).evaluate(asked))


def value(text: str, repeat: int = 0, seed: int = 0) -> float:
    (score,) = evaluate(unit(text, repeat), seed).results
    assert isinstance(score, Score)
    assert score.value is not None
    return score.value


@given(st.floats(0, 1), st.integers(2, 9))
def test_the_level_is_the_nearest(number: float, n: int) -> None:
    accepted = [f"level {i}" for i in range(n)]
    rank = accepted.index(level_of(number, accepted))
    distances = [abs(number - i / (n - 1)) for i in range(n)]
    assert distances[rank] <= min(distances) + 1e-9


def test_only_the_words_of_the_systems_prose_count() -> None:
    turns = (
        "[user]\nBe quick. Please.\n\n[assistant]\nWe ask.\n[tool call] add 2 3\n\n"
        "[tool: add]\n5\n\n[assistant]\n```\nx = 9\n```\nIt is 5."
    )
    for text, words in (
        ("Don't stop at 3.5 or 1,000.", [6]),
        ("A state-of-the-art answer. Done!", [3, 1]),
        (turns, [2, 3]),
        ("```\na = 1\n```", []),
    ):
        assert read_prose(text).words.tolist() == words
    prose = read_prose("We add two numbers. It gives 12 now, surely so.")
    assert prose.words.tolist() == [4, 6]
    assert prose.shortness() == pytest.approx(-math.log(10))
    # the second sentence three times, the first not: 6 words a sentence, and there are two
    assert prose.shortness(np.array([0, 3])) == pytest.approx(-math.log(12))


def test_a_text_of_equal_sentences_has_a_known_value() -> None:
    """Drawing among equal sentences changes nothing, so the value follows from the constants."""
    center, scale = (CONSTANTS["kinds"]["conciseness"][k] for k in ("center", "scale"))
    text = "Aa bbb cc. " * 40  # 120 words
    expected = 1 / (1 + math.exp(-1.702 * (-math.log(120) - center) / scale))
    assert expected == pytest.approx(norm.cdf(-math.log(120), center, scale), abs=0.01)
    assert value(text) == pytest.approx(expected, abs=1e-6)
    assert value(text, repeat=3, seed=5) == pytest.approx(expected, abs=1e-6)


def test_draws_are_poisson_and_belong_to_the_wording() -> None:
    one = read_prose("We add 12. They stop. So it is.")
    two = read_prose("So it is. Nobody sleeps. We  add 75.")
    counts = np.array([one.draw(3, r) for r in range(2000)])
    other = np.array([two.draw(3, r) for r in range(2000)])
    assert counts.mean() == pytest.approx(1, abs=0.05)
    assert counts.var() == pytest.approx(1, abs=0.12)
    assert np.corrcoef(counts.T)[0, 1] == pytest.approx(0, abs=0.08)
    # a sentence that two texts share is weighed alike in a repeat, digits aside
    alike = (counts[:, 0] == other[:, 2]) & (counts[:, 2] == other[:, 0])
    assert alike[counts.sum(axis=1) != 3].mean() > 0.9
    # a Poisson(1) count is 0 with probability .37; without any sentence all count once
    draws = [int(read_prose("Alone here.").draw(0, r)[0]) for r in range(50)]
    assert min(draws) == 1 < max(draws)


def of_concept(**more: object) -> Criterion:
    return criterion("c", "conciseness", **more)


@pytest.mark.parametrize(
    ("asked", "text", "why"),
    [
        (criterion("Accuracy", "calculation-accuracy"), TEXT, "conciseness"),
        (criterion("Conciseness", "empathy"), TEXT, "conciseness"),  # known to be another
        (criterion("Conciseness of style"), TEXT, "conciseness"),
        (of_concept(scale="nominal"), TEXT, "ordered levels"),
        (of_concept(order="unclear"), TEXT, "ordered levels"),
        (of_concept(scale="numeric", numeric_range=(0, 9)), TEXT, "ordered levels"),
        (SHORT, "Only one.", "1 sentence"),
        (SHORT, "```\na = 1\nb = 2\n```", "0 sentence"),
        (criterion("x", sub_criteria=(SHORT, criterion("Empathy"))), TEXT, "empathy: "),
    ],
)
def test_unsupported_never_has_a_value(asked: Criterion, text: str, why: str) -> None:
    (result,) = asyncio.run(judge(EmbeddedJudge(), unit(text, criteria=(asked,)))).results
    assert isinstance(result, Failure)
    assert result.status == "unscored:unsupported"
    assert result.message.startswith("unsupported by this judge: ")
    assert why in result.message


def test_sub_criteria_are_aggregated() -> None:
    two = (SHORT, criterion("Other", "conciseness", accepted_values=("no", "yes")))
    (result,) = evaluate(unit(criteria=(criterion("x", sub_criteria=two),))).results
    assert isinstance(result, Score)
    assert (result.value, result.label) == (value(TEXT), None)


def test_a_concept_is_known_by_its_exact_name() -> None:
    concepts = {
        "Conciseness": "conciseness",
        "no-wasted  WORDS": "conciseness",
        "Order and flow of the text": "coherence",
        "Conciseness of style": None,
    }
    assert {name: named_concept(criterion(name)) for name in concepts} == concepts


def test_the_packaged_constants_belong_to_this_development_set() -> None:
    assert CONSTANTS["devset_sha256"] == hashlib.sha256(DEVSET.read_bytes()).hexdigest()
    assert set(load_kinds()) <= {concept.id for concept in load_bank()}
    supported = [(k.name, k.statistic) for k in load_kinds().values() if k.supported]
    assert supported == [("conciseness", "words")]


def test_length_agrees_with_a_reader_of_the_math_runs() -> None:
    """Shorter runs are those that a person who knew nothing of this judge called more concise."""
    criteria = json.loads((ROOT / "criteria" / "math.reviewed.json").read_text())["criteria"]
    levels = next(c["accepted_values"] for c in criteria if c["name"] == "Conciseness")
    ratings = map(json.loads, (ROOT / "tasks/math/ratings.jsonl").read_text().splitlines())
    reader = {
        r["run"]: levels.index(r["label"])
        for r in ratings
        if (r["rater"], r["criterion"]) == ("A", "conciseness")
    }
    runs = read_runs(ROOT / "tasks" / "math" / "runs.jsonl").runs
    prose = {r.id: read_prose(make_view(r).trajectory) for r in runs}
    pairs = [(p.shortness(), reader[i]) for i, p in prose.items() if len(p.words)]
    assert spearmanr(*zip(*pairs, strict=True)).statistic > 0.3
