"""Equalities found in a text, and what is passed over because a word may change it."""

from __future__ import annotations

import pytest

from agenteval.evaluators.utility.equalities import claims, normalise


def found(text: str) -> list[str]:
    return [claim.excerpt for claim in claims(normalise(text))]


def test_a_chain_gives_each_pair_of_neighbours() -> None:
    some = list(claims("2 + 3 = 5 = 4 + 1."))
    assert [one.excerpt for one in some] == ["2 + 3 = 5", "5 = 4 + 1"]
    assert [one.chained for one in some] == [True, False]
    assert [(one.left.compound, one.right.compound) for one in some] == [
        (True, False),
        (False, True),
    ]


def test_units_stand_beside_their_numbers() -> None:
    (one,) = claims("3 eggs * 4 = 12 eggs")
    assert [token.text for token in one.left.tokens] == ["3", "*", "4"]
    assert one.left.units == ("egg", "")
    assert one.right.tail == "eggs"


@pytest.mark.parametrize(
    "text",
    [
        "half of 6 + 4 = 7",  # half of the sum or of the first
        "17 / 5 = 3 remainder 2",
        "x + 2 = 5",
        "it took 10-15 = 5",  # a range
        "if a >= 3 or b == 4",
        "`6 + 1 = 9`",
    ],
)
def test_what_is_doubtful_is_passed_over(text: str) -> None:
    assert found(text) == []


def test_latex_is_made_plain() -> None:
    assert found(r"\( \frac{6}{3} \times 4 = 8 \)") == ["((6)/(3)) * 4 = 8"]
    assert found(r"$14 \cdot 12 = 168$") == ["14 * 12 = 168"]


def test_an_approximate_sign_is_told_from_an_exact_one() -> None:
    assert [one.sign for one in claims("22 / 7 ≈ 3.14, 6 / 2 = 3")] == ["≈", "="]
