"""Generated scales: the truth is known by construction, and no form may be read upside down."""

from __future__ import annotations

from collections import Counter

from benchmarks.scales import generate, outcome


def test_no_generated_scale_is_inverted_and_few_are_unclear() -> None:
    scales = generate()
    assert len(scales) > 25_000
    counts = Counter(outcome(scale) for scale in scales[::5])
    assert counts["inverted"] == 0
    assert counts["unclear"] <= 0.05 * counts.total()
