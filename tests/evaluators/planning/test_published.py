"""The published tables: what the paper prints as rates follows from the counts given here."""

from __future__ import annotations

import pytest

from agenteval.evaluators.planning import published
from agenteval.evaluators.planning.tallies import CAUSES, ERRORS


def test_error_rates_are_those_printed() -> None:
    printed = [61.57, 54.37, 54.74, 29.38, 22.22, 36.04]
    assert [100 * r.error_rate for r in published.TABLE_2] == pytest.approx(printed, abs=0.005)


def test_the_mean_reduction_is_the_one_printed() -> None:
    assert 100 * published.relative_reduction() == pytest.approx(48.53, abs=0.005)


def test_times_fit_the_window_of_an_hour() -> None:
    for row in published.TABLE_2:
        synthesis, z3, agent = row.seconds_per_case
        assert z3 < synthesis < agent
        assert 3480 < row.agent_seconds + row.synthesis_seconds < 3660
        assert 112 <= row.z3_calls / row.generated <= 123.5


@pytest.mark.parametrize(
    ("table", "labels", "rows"),
    [(published.TABLE_3, ERRORS, 6), (published.TABLE_4, CAUSES, 6), (published.TABLE_6, ERRORS, 6),
     (published.TABLE_7, CAUSES, 3)],
)  # fmt: skip
def test_shares_are_whole(
    table: tuple[published.Percentages, ...], labels: tuple[str, ...], rows: int
) -> None:
    assert len(table) == rows
    for row in table:
        if row.values is not None:
            assert set(row.values) <= set(labels)
            assert sum(row.values.values()) == pytest.approx(100, abs=0.011)
    assert sum(row.values is None for row in table) == (
        table is published.TABLE_6
    )  # one row of NaN


def test_topics_name_the_worst_first() -> None:
    for model, topics in published.TABLE_5.items():
        assert list(topics.values()) == sorted(topics.values(), reverse=True)
        assert len(topics) + published.TOPICS_WITHOUT_ERROR[model] <= 50
