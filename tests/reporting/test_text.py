"""Texts in short: what is cut is counted, perturbations have names."""

from __future__ import annotations

import pytest

from agenteval.reporting.text import variant_label


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("drop_sentences:0.25:7", "drop sentences 25%"),
        ("shuffle_sentences:-:0", "shuffle sentences"),
        ("odd:<b>:1", "odd:<b>:1"),
        ("original", "original"),
    ],
)
def test_variants_have_names_for_people(name: str, label: str) -> None:
    assert variant_label(name) == label


def test_seeds_tell_twins_apart() -> None:
    names = ["pad:0.25:1", "pad:0.25:2", "pad:0.5:1"]
    assert [variant_label(n, names) for n in names] == [
        "pad 25%, seed 1",
        "pad 25%, seed 2",
        "pad 50%",
    ]
