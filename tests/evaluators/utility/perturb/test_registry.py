"""Names, seeds, variant names, the check that inputs changed, and bad input."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.evaluators.utility.critic_reply import OPERATORS
from agenteval.evaluators.utility.perturb import (
    BANK_OPERATORS,
    parse_variant,
    perturb,
    rng_for,
    variant_name,
)
from tests.evaluators.utility.perturb.cases import PROSE, do, plain, run_id

CONTROLS = {"whitespace", "formatting", "paraphrase"}
WITH_SHARE = {"drop_sentences", "drop_words", "truncate", "swap_numbers", "pad"}


def test_the_registry() -> None:
    assert set(BANK_OPERATORS) == {*OPERATORS, *CONTROLS}
    assert {n for n, o in BANK_OPERATORS.items() if o.kind == "invariant"} == CONTROLS
    assert {n for n, o in BANK_OPERATORS.items() if o.takes_share} == WITH_SHARE
    assert all(o.name == n and o.description for n, o in BANK_OPERATORS.items())


@pytest.mark.parametrize("operator", sorted(set(BANK_OPERATORS) - {"truncate", "drop_answer"}))
def test_seeds_differ_and_runs_do_not_share_them(operator: str) -> None:
    view = run_id("math", "math-15-stepwise")
    texts = {do(view, operator, seed=seed).view.trajectory for seed in range(12)}
    assert len(texts) > 1
    assert rng_for(1, operator, view).random() != rng_for(2, operator, view).random()
    other = run_id("math", "math-15-coder")
    assert rng_for(1, operator, view).random() != rng_for(1, operator, other).random()


def test_the_generator_is_fixed() -> None:
    """A change of these numbers would orphan every stored perturbed score."""
    view = plain("One. Two.")
    text = f"7|pad|{view.sha256}"
    seed = int(hashlib.sha256(text.encode()).hexdigest(), 16)
    assert rng_for(7, "pad", view).random() == np.random.default_rng(seed).random()


@given(st.sampled_from(sorted(BANK_OPERATORS)), st.floats(1e-9, 1), st.integers(-5, 2**40))
def test_variant_names_read_back(operator: str, share: float, seed: int) -> None:
    name = variant_name(operator, share, seed)
    got = parse_variant(name)
    assert (got.operator, got.seed) == (operator, seed)
    assert got.share == (share if operator in WITH_SHARE else None)


def test_variant_names() -> None:
    assert variant_name("drop_sentences", 0.25, 7) == "drop_sentences:0.25:7"
    assert variant_name("shuffle_sentences", None, 7) == "shuffle_sentences:-:7"
    assert variant_name("shuffle_sentences", 0.25, 7) == "shuffle_sentences:-:7"


@pytest.mark.parametrize(
    "name",
    ["original", "", "drop_sentences:0.25", "drop_sentences:0.250:7", "drop_sentences:-:7",
     "drop_all:0.25:7", "pad:2.0:1", "pad:1..0:1", "whitespace:0.25:1", "pad:0.25:07", "pad:nan:1"],
)  # fmt: skip
def test_no_variant(name: str) -> None:
    with pytest.raises(InputError, match="names no perturbation"):
        parse_variant(name)


@pytest.mark.parametrize("share", [0, -1, 1.5, math.nan, math.inf])
def test_impossible_shares(share: float) -> None:
    view = plain(PROSE)
    with pytest.raises(InputError, match="share is"):
        perturb(view, "pad", share=share, rng=rng_for(0, "pad", view))
    with pytest.raises(InputError, match="share is"):
        variant_name("pad", share, 0)


def test_bad_input_names_the_way_out() -> None:
    view = plain(PROSE)
    with pytest.raises(InputError, match=r"unknown operator 'drop'; known are drop_sentences"):
        do(view, "drop")
    with pytest.raises(InputError, match="needs a share"):
        variant_name("pad", None, 0)
