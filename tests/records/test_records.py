"""Records: frozen, strict, hashed by content, never NaN."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agenteval.records import (
    CellKey,
    CriteriaSet,
    Criterion,
    Failure,
    Provenance,
    Run,
    Score,
    Source,
    Usage,
    View,
    canonical_json,
    content_hash,
    slug,
)

KEY = CellKey(run="r", criterion="c", source="s", repeat=0)
LEVELS = ("bad", "fair", "good")


def test_a_score_outside_0_to_1_or_not_a_number_is_refused() -> None:
    for bad in (-0.1, 1.1, math.nan, math.inf):
        with pytest.raises(ValidationError):
            Score(key=KEY, criterion_id="c", value=bad)


def test_a_failure_cannot_carry_a_value() -> None:
    with pytest.raises(ValidationError):
        Failure.model_validate(
            {"key": KEY, "criterion_id": "c", "status": "unscored:parse", "value": 0.0}
        )


def test_records_are_frozen_and_closed() -> None:
    run = Run(id="a")
    with pytest.raises(ValidationError):
        run.id = "b"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Run.model_validate({"id": "a", "outptu": "x"})
    with pytest.raises(ValidationError):
        Run(id="a\x1b[2J")


def test_a_changed_copy_does_not_change_what_other_records_were_given() -> None:
    first, second = Run(id="a", output="x"), Run(id="b", output="y")
    changed = first.model_copy(update={"input": "?"})
    assert changed.model_dump(exclude_unset=True) == {"id": "a", "output": "x", "input": "?"}
    assert second.model_dump(exclude_unset=True) == {"id": "b", "output": "y"}


@pytest.mark.parametrize("levels", [(), ("only",), ("a", "A "), ("a", " "), ("a", "b", "a")])
def test_a_scale_needs_two_different_levels(levels: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        Criterion(name="X", accepted_values=levels)


def test_value_is_rank_over_levels_minus_one() -> None:
    criterion = Criterion(name="X", accepted_values=LEVELS)
    assert [criterion.value_of(v) for v in LEVELS] == [0.0, 0.5, 1.0]
    with pytest.raises(ValueError, match=r"tuple\.index"):
        criterion.value_of("great")
    nominal = Criterion(name="X", accepted_values=LEVELS, scale="nominal")
    assert nominal.value_of("good") is None


def test_the_hash_of_a_criterion_holds_what_a_judge_sees_and_no_more() -> None:
    base = Criterion(name="X", description="d", accepted_values=LEVELS)
    same = base.model_copy(update={"expect": {"pad": "none"}, "provenance": Provenance(seeds=(1,))})
    assert same.sha256 == base.sha256
    for change in (
        {"name": "Y"},
        {"description": "e"},
        {"accepted_values": LEVELS[1:]},
        {"allow_na": True},
        {"hint": "h"},
        {"sub_criteria": (base,)},
    ):
        assert base.model_copy(update=change).sha256 != base.sha256


NUMBERS, LETTERS = ("1", "2", "3"), ("C", "B", "A")


@pytest.mark.parametrize(
    ("levels", "other", "same"),
    [
        # a label that carries words means the same wherever it stands
        (LEVELS, LEVELS[::-1], True),
        (LEVELS, (LEVELS[1], LEVELS[0], LEVELS[2]), True),
        (("1 - bad", "2 - good"), ("2 - good", "1 - bad"), True),
        (("<5 seconds", ">5 seconds"), (">5 seconds", "<5 seconds"), True),
        # a bare number or letter is what the prompt says of it
        (NUMBERS, NUMBERS[::-1], False),
        (LETTERS, LETTERS[::-1], False),
        (("0%", "50%", "100%"), ("100%", "50%", "0%"), False),
        (("0-25%", "26-100%"), ("26-100%", "0-25%"), False),
        (("level 1", "level 2"), ("level 2", "level 1"), False),
        (("1 star", "2 stars"), ("2 stars", "1 star"), False),
    ],
)
def test_the_order_of_the_levels_enters_the_hash_of_bare_numbers_against_nature_only(
    levels: tuple[str, ...], other: tuple[str, ...], same: bool
) -> None:
    first, second = (Criterion(name="X", accepted_values=v) for v in (levels, other))
    assert (first.sha256 == second.sha256) is same
    for criterion in (first, second):  # where no direction was stated, the natural one is taken
        unclear = criterion.model_copy(update={"order": "unclear", "order_reason": "why"})
        assert unclear.sha256 == first.sha256


def test_ids_are_unique_in_a_set() -> None:
    one = Criterion(name="X", accepted_values=LEVELS)
    with pytest.raises(ValidationError, match="two criteria have the id 'x'"):
        CriteriaSet(criteria=(one, one))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Problem Interpretation", "problem-interpretation"),
        ("  Use of_TERMINATE! ", "use-of-terminate"),
        ("Économie", "economie"),
        ("x" * 200, "x" * 80),
    ],
)
def test_slug(name: str, expected: str) -> None:
    assert slug(name) == expected


def test_slug_of_a_name_without_latin_letters_is_stable_and_distinct() -> None:
    assert slug("正确性") == slug("正确性") != slug("清晰")
    assert slug("正确性").startswith("criterion-")


@given(st.dictionaries(st.text(), st.one_of(st.none(), st.booleans(), st.integers(), st.text())))
def test_the_hash_ignores_the_order_of_keys(value: dict[str, object]) -> None:
    turned = dict(reversed(list(value.items())))
    assert content_hash(turned) == content_hash(value)
    assert json.loads(canonical_json(value)) == value


def test_nan_has_no_hash() -> None:
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        content_hash({"x": math.nan})


def test_views_of_two_runs_differ_though_they_show_the_same() -> None:
    assert View(run_id="a", problem="p", trajectory="t").sha256 != (
        View(run_id="b", problem="p", trajectory="t").sha256
    )


def test_source_seed_and_parameters_are_part_of_the_hash() -> None:
    base = Source(evaluator="e", version=1, model="m")
    assert base.model_copy(update={"seed": 1}).sha256 != base.sha256
    assert base.model_copy(update={"parameters": {"t": 1}}).sha256 != base.sha256


def test_usage_adds_and_unknown_stays_unknown() -> None:
    total = Usage(requests=1, prompt_tokens=5) + Usage(requests=2, prompt_tokens=7)
    assert total == Usage(requests=3, prompt_tokens=12)
    assert (total.completion_tokens, total.cost) == (None, None)
