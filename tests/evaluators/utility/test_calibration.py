"""From statistic to value and level, and from criterion to kind."""

from __future__ import annotations

import hashlib
import json
import math
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from agenteval.errors import InputError
from agenteval.evaluators.utility.bank import load_bank
from agenteval.evaluators.utility.calibration import (
    Kind,
    level_of,
    load_calibration,
    logistic,
)
from agenteval.evaluators.utility.likelihood_features import (
    INSTRUCTIONS,
    PROMPT_SHA256,
    STATISTICS,
)
from agenteval.models.weights import SMOLLM2
from agenteval.records import Criterion, Provenance

ROOT = Path(__file__).parents[3]
LEVELS = ("bad", "fair", "good", "best")
KIND = Kind("k", True, "", "start", center=-3.0, scale=0.5, offsets=(0.0, 0.25))


def criterion(name: str, concept: str | None = None) -> Criterion:
    return Criterion(name=name, accepted_values=LEVELS, provenance=Provenance(concept=concept))


@given(st.floats(-8, 2), st.floats(-8, 2))
def test_value_is_a_monotone_function_into_the_unit_interval(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert 0 <= KIND.value(low, 0) <= KIND.value(high, 0) <= 1


@given(st.floats(-6, 0))
def test_value_is_close_to_the_normal_distribution_function(raw: float) -> None:
    assert KIND.value(raw, 0) == pytest.approx(norm.cdf(raw, -3.0, 0.5), abs=0.01)
    assert KIND.value(raw + 0.25, 1) == pytest.approx(KIND.value(raw, 0), abs=1e-9)
    assert KIND.value(raw, 2) == KIND.value(raw, 0)


def test_logistic_does_not_overflow() -> None:
    assert logistic(-1e6) == 0.0
    assert logistic(1e6) == 1.0
    assert logistic(math.log(3)) == pytest.approx(0.75)


@given(st.floats(0, 1), st.integers(2, 9))
def test_the_level_is_the_nearest(value: float, n: int) -> None:
    accepted = [f"level {i}" for i in range(n)]
    rank = accepted.index(level_of(value, accepted))
    distances = [abs(value - i / (n - 1)) for i in range(n)]
    assert distances[rank] <= min(distances) + 1e-9


def test_levels_by_hand() -> None:
    found = [level_of(v, LEVELS) for v in (0, 0.16, 0.17, 0.49, 0.5, 0.83, 0.84, 1)]
    assert found == ["bad", "bad", "fair", "fair", "good", "good", "best", "best"]
    with pytest.raises(ValueError):
        level_of(1.01, LEVELS)


def test_kinds_of_criteria() -> None:
    calibration = load_calibration()
    coherence = calibration.kinds["coherence"]
    assert calibration.kind_of(criterion("Whatever", "coherence")) is coherence
    assert calibration.kind_of(criterion("order and  flow of the text")) is coherence
    assert calibration.kind_of(criterion("Coherence")) is coherence
    assert calibration.kind_of(criterion("Coherence of style")) is None
    assert calibration.kind_of(criterion("Coherence", "empathy")) is None
    resolved = calibration.kind_of(criterion("Good flow"), lambda c: "coherence")
    assert resolved is coherence
    assert calibration.kind_of(criterion("Good flow"), lambda c: None) is None
    # an exact match is not handed to the resolver
    assert calibration.kind_of(criterion("Coherence"), lambda c: "clarity") is coherence


def test_the_packaged_constants_belong_to_this_version() -> None:
    """Model, prompts and development set are those that the constants were measured with."""
    content = files("agenteval.data").joinpath("embedded_judge.json").read_bytes()
    record: dict[str, Any] = json.loads(content)
    calibration = load_calibration()
    assert calibration.sha256 == hashlib.sha256(content).hexdigest()
    assert calibration.model_sha256 == SMOLLM2.sha256
    assert calibration.prompt_sha256 == PROMPT_SHA256
    devset = ROOT / "benchmarks" / "devset" / "problems.jsonl"
    assert record["devset_sha256"] == hashlib.sha256(devset.read_bytes()).hexdigest()
    assert set(calibration.concepts) <= {concept.id for concept in load_bank()}
    for kind in calibration.kinds.values():
        assert kind.supported == bool(kind.statistic)
        if kind.supported and not kind.relative:
            assert kind.statistic in STATISTICS
            assert len(kind.offsets) == len(INSTRUCTIONS)
            assert kind.offsets[0] == 0


def test_the_packaged_choice_follows_the_stated_rule() -> None:
    """Supported only where the chosen statistic's lower bound is above .60 on each operator."""
    must = {
        "completeness": ("drop",),
        "coherence": ("shuffle",),
        "clarity": ("drop", "shuffle", "pad"),
        "calculation": ("swap", "slip"),
        "conciseness": ("pad",),
    }
    record = json.loads(files("agenteval.data").joinpath("embedded_judge.json").read_text("utf-8"))
    assert set(record["kinds"]) == set(must)
    for name, entry in record["kinds"].items():
        bounds = {
            statistic: min(figures[op]["low"] for op in must[name])
            for statistic, figures in entry["figures"].items()
        }
        if entry["supported"]:
            assert bounds[entry["chosen"]] > 0.60
        else:
            assert name == "completeness" or max(bounds.values()) <= 0.6005


@pytest.mark.parametrize(
    "damage",
    [
        lambda r: r.pop("kinds"),
        lambda r: r["kinds"]["coherence"].update(
            supported=True, relative=False, statistic="mean", center=0, scale=0, offsets=[0]
        ),
        lambda r: r["concepts"].update(tone="nothing"),
        lambda r: r["kinds"]["coherence"].pop("supported"),
    ],
)
def test_damaged_constants_are_refused(tmp_path: Path, damage: Any) -> None:
    record = json.loads(files("agenteval.data").joinpath("embedded_judge.json").read_text("utf-8"))
    damage(record)
    path = tmp_path / "judge.json"
    path.write_text(json.dumps(record), "utf-8")
    with pytest.raises(InputError, match=r"judge\.json"):
        load_calibration(path)


def test_missing_or_broken_constants_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        load_calibration(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{", "utf-8")
    with pytest.raises(InputError):
        load_calibration(broken)
