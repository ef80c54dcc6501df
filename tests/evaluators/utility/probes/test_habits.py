"""Length, use of the scale, and kinship of names, on made tables."""

from __future__ import annotations

import numpy as np
import pytest

from agenteval.evaluators.utility.probes.habits import families, kinship, scale_use, verbosity
from agenteval.evaluators.utility.probes.result import Probe, ProbeOptions, settle
from agenteval.evaluators.utility.verify.evidence import Lengths
from agenteval.records import Criterion, Run, Span
from tests.evaluators.utility.verify.making import Rate, criterion, table

OPTIONS = ProbeOptions(resamples=200, draws=2000)
A = criterion("a", pad="none")


def lengths(cases: int, per_case: int = 10) -> Lengths:
    return {(f"run-{c:03}", "original"): 1000 + per_case * c for c in range(cases)}


def verbose(rate: Rate, *, cases: int = 40, success: object = None, **how: object) -> Probe:
    ratings = table({"a": rate}, cases=cases, **how)  # type: ignore[arg-type]
    (probe,) = settle([verbosity(ratings, [A], lengths(cases), OPTIONS)], OPTIONS)
    return probe


def test_length_alone_is_no_proof_and_success_stands_beside() -> None:
    probe = verbose(lambda case, r, v, rng: case // 10 / 4, success=lambda case: case >= 20)
    padding, length = probe.checks
    assert probe.outcome == "unknown"
    assert length.estimate is not None
    assert length.estimate > 0.9
    assert "by itself no proof" in length.reason
    assert padding.reason == "no padded copies were judged; ask for --perturb pad"


def test_length_and_success_are_correlated_where_known() -> None:
    ratings = table({"a": lambda c, r, v, rng: 0.5}, cases=4, success=lambda c: c >= 2)
    found = verbosity(ratings, [A], lengths(4), OPTIONS)
    # ranks 1 2 3 4 against 1.5 1.5 3.5 3.5: 4 / sqrt(5 * 4)
    assert found.detail is not None
    assert found.detail["rho_success"] == pytest.approx(4 / 20**0.5)


def test_padding_that_pays_fails_and_padding_that_costs_does_not() -> None:
    def paid(by: float) -> Rate:
        return lambda case, r, v, rng: (
            0.25 + 0.25 * (case % 3 == 0) + (by if v.startswith("pad") else 0.0)
        )

    variants = ("original", "pad:0.25:0")
    risen = verbose(paid(0.25), variants=variants).checks[0]
    assert (risen.outcome, risen.n) == ("fail", 40)
    assert risen.estimate == pytest.approx(0.25)
    fallen = verbose(paid(-0.25), variants=variants).checks[0]
    assert fallen.outcome == "pass"
    assert fallen.estimate == pytest.approx(-0.25)


def test_a_criterion_that_padding_should_raise_is_left_out() -> None:
    asked = criterion("a", pad="higher")
    ratings = table(
        {"a": lambda c, r, v, rng: 1.0 if v.startswith("pad") else 0.0},
        cases=30, variants=("original", "pad:0.25:0"),
    )  # fmt: skip
    found = verbosity(ratings, [asked], lengths(30), OPTIONS)
    assert found.measured[0].interval is None


def test_no_length_and_no_variation_are_said() -> None:
    ratings = table({"a": lambda c, r, v, rng: 0.5}, cases=30)
    unknown = verbosity(ratings, [A], {}, OPTIONS).settled[0]
    assert unknown.reason == "no length is known"
    flat = verbosity(ratings, [A], lengths(30), OPTIONS).settled[0]
    assert (flat.estimate, flat.outcome) == (None, "unknown")


@pytest.mark.parametrize(
    ("levels", "cases", "outcome"), [(2, 30, "fail"), (3, 30, "pass"), (2, 10, "unknown")]
)
def test_fewer_than_three_of_five_levels_is_a_warning(
    levels: int, cases: int, outcome: str
) -> None:
    ratings = table({"a": lambda c, r, v, rng: c % levels / 4}, cases=cases)
    (probe,) = settle([scale_use(ratings, [A], OPTIONS)], OPTIONS)
    assert (probe.outcome, probe.checks[0].estimate) == (outcome, levels)
    assert f"a: {levels} of 5 levels" in probe.reason


def test_the_share_at_one_level_and_short_scales() -> None:
    ratings = table({"a": lambda c, r, v, rng: 0.0 if c == 0 else 0.75}, cases=20, repeats=1)
    found = scale_use(ratings, [A], OPTIONS)
    assert found.detail == {"a": {"used": 2, "levels": 5, "commonest": 0.95}}
    between = table({"a": lambda c, r, v, rng: c / 20}, cases=20)
    assert "graded in its levels" in (scale_use(between, [A], OPTIONS).absent or "")
    short = Criterion(name="A", accepted_values=("no", "some", "yes"))
    assert scale_use(ratings, [short], OPTIONS).absent is not None


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gpt-4o-2024-08-06", {"GPT"}), ("o1-mini", {"GPT"}), ("o3", {"GPT"}),
        ("claude-3-5-sonnet", {"Claude"}), ("Meta-Llama-3.1-8B-Instruct", {"Llama"}),
        ("deepseek-r1-distill-qwen-7b", {"DeepSeek", "Qwen"}), ("mixtral-8x7b", {"Mistral"}),
        ("phi-4", {"Phi"}), ("phi3:mini", {"Phi"}), ("autogen-team", set()), ("graphite", set()),
        ("two-step", set()), ("ledger", set()),
    ],
)  # fmt: skip
def test_families_by_name(name: str, family: set[str]) -> None:
    assert families(name) == family


def outcome(judge: str, *runs: Run) -> str:
    return kinship([judge], runs).settled[0].outcome


def test_kin_is_found_in_systems_metadata_and_spans() -> None:
    plain = Run(id="r", system="autogen")
    assert outcome("gpt-4o", Run(id="r", system="gpt-3.5-agent")) == "fail"
    assert outcome("gpt-4o", plain.model_copy(update={"metadata": {"model": "gpt-4"}})) == "fail"
    span = Span(id="s", attributes={"gen_ai.request.model": "o1-mini"})
    assert outcome("gpt-4o", plain.model_copy(update={"spans": (span,)})) == "fail"
    assert outcome("claude-3-opus", plain.model_copy(update={"spans": (span,)})) == "pass"
    assert outcome("gpt-4o", plain) == "unknown"
    assert outcome("house-model", plain) == "unknown"
    assert outcome("house-model", Run(id="r", system="House-Model")) == "fail"


def test_random_lengths_are_rarely_called_a_worry() -> None:
    rng = np.random.default_rng(1)
    probe = verbose(lambda c, r, v, _: float(rng.integers(5)) / 4, cases=200, repeats=1)
    assert probe.checks[1].outcome == "pass"
