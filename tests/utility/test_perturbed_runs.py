"""verify through the real quantifier, client, pipeline and store, by simulated judges."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from agenteval.engine import Experiment
from agenteval.models.client import Client
from agenteval.readers import make_view
from agenteval.records.verification import VerifiedSet
from agenteval.stats.scores import score_table
from agenteval.store import Store
from agenteval.testing.scripted import ScriptedTransport
from agenteval.utility.evaluator import Item
from agenteval.utility.perturbed_runs import (
    DEFAULT_OPERATORS,
    VerificationData,
    make_copies,
    with_drift_warning,
)
from agenteval.utility.quantifier import Quantifier
from agenteval.utility.verify import VerifyOptions, verify_table
from tests.support.judges import Answers, SimulatedJudge, length_only, perfect
from tests.support.world import TASK, criteria, make_runs

CASES, REPEATS = 30, 2
OPTIONS = VerifyOptions(resamples=200, draws=1000)


@pytest.fixture(scope="module")
def material() -> VerificationData:
    runs = make_runs(CASES, np.random.default_rng(5))
    items: list[Item] = [(run, make_view(run)) for run in runs]
    copies = make_copies(items, DEFAULT_OPERATORS, share=0.25, seed=0)
    return VerificationData(tuple(items), tuple(copies), criteria(), REPEATS)


def judged(
    judge: SimulatedJudge,
    material: VerificationData,
    path: Path,
) -> tuple[VerifiedSet, int]:
    """The verdicts, and how many requests they took."""
    transport = ScriptedTransport(Answers(judge, seed=1))
    with Store(path) as store:
        quantifier = Quantifier(Client(transport, cache=store), TASK)
        rated = material.rated_by(quantifier)
        ended = asyncio.run(Experiment(rated, store, concurrency=8).run())
        assert ended.stopped is None
        key = quantifier.source.sha256
        table = material.ratings(store, key)
        verified = verify_table(table, material.criteria, OPTIONS, copies=material.facts)
        result = with_drift_warning(verified, store.models(key))
    return result, len(transport.requests)


def test_a_perfect_judge(material: VerificationData, tmp_path: Path) -> None:
    result, asked = judged(perfect(), material, tmp_path / "s.db")
    assert asked == material.texts * REPEATS
    assert result.judge.verdict == "trustworthy", result.judge
    assert result.judge.warnings == () or all("end" not in w for w in result.judge.warnings)
    again, nothing = judged(perfect(), material, tmp_path / "s.db")
    assert (again, nothing) == (result, 0)


def test_a_judge_that_counts_characters(material: VerificationData, tmp_path: Path) -> None:
    originals = [view.trajectory for _, view in material.items]
    result, _ = judged(length_only(originals), material, tmp_path / "s.db")
    assert result.judge.verdict == "not trustworthy"
    completeness = next(v for v in result.criteria if v.criterion_id == "completeness")
    drop = next(e for e in completeness.effects if e.operator == "drop_sentences")
    assert (drop.outcome, drop.shorter) == ("pass", 1.0)  # it passes the published test


def test_drift_needs_two_names() -> None:
    result = verify_table(score_table([]), [])
    assert with_drift_warning(result, {}) == with_drift_warning(result, {"m": 7}) == result
    warned = with_drift_warning(result, {"m": 7, "n": 1}).judge.warnings[0]
    assert "m (7 calls) and n (1 calls)" in warned


def test_copies_are_the_same_for_a_seed_and_name_their_original(material: VerificationData) -> None:
    items = material.items
    again = make_copies(items, DEFAULT_OPERATORS, share=0.25, seed=0)
    assert again == list(material.copies)
    other = make_copies(items, ("drop_sentences",), share=0.25, seed=1)[0]
    same = next(c for c in material.copies if c.variant.startswith("drop_sentences"))
    assert other.variant != same.variant
    assert other.items != same.items
    originals = {view.sha256 for _, view in items}
    assert all(view.origin in originals for c in again for _, view in c.items)


def test_a_copy_that_equals_its_original_is_left_out_with_the_reason() -> None:
    run = make_runs(2, np.random.default_rng(1))[0]
    run = run.model_copy(update={"output": "Seven, I think", "messages": ()})
    copies = make_copies([(run, make_view(run))], ("swap_numbers",), share=0.25, seed=0)[0]
    assert copies.items == ()
    assert list(copies.unchanged) == [run.id]
    assert copies.unchanged[run.id]
