"""Cells as people read them, and the same table as JSON and as flat rows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from agenteval.records.table import Column, Estimate, Form, Table, column, shown, table_of
from agenteval.stats import Interval, mean_interval


@pytest.mark.parametrize(
    ("cell", "form", "text"),
    [
        (0.5, "number", "0.50"),
        (-0.25, "signed", "−0.25"),
        (0.25, "signed", "+0.25"),
        (-0.001, "signed", "0.00"),
        (0.996, "share", "99.6%"),
        (1.0, "share", "100%"),
        (0.0004, "share", "0.040%"),
        (0, "share", "0%"),
        (12345, "count", "12,345"),
        (0.0001, "p", "< .001"),
        (0.0123, "p", "0.012"),
        (1.5, "money", "1.5000"),
        (None, "number", "–"),
        (True, "text", "yes"),
        (Estimate(0.5, 0.25, 0.75), "number", "0.50 [0.25, 0.75]"),
        (Estimate(0.5, mark="failed"), "number", "0.50 ✗"),
        (Estimate(None, mark="unknown"), "number", "– ?"),
    ],
)
def test_shown(cell: float | Estimate | None, form: Form, text: str) -> None:
    assert shown(cell, form) == text


def test_json_and_flat_rows() -> None:
    table = Table(
        "t",
        "Title",
        (Column("name", "name"), Column("mean", "mean\nof all", "number")),
        ({"name": "a", "mean": Estimate.of(mean_interval([0.0, 1.0, 1.0, 0.0]))}, {"name": "b"}),
    )
    first, second = table.to_json()["rows"]
    assert table.to_json()["columns"] == {"name": "name", "mean": "mean of all"}
    assert first["mean"]["value"] == 0.5
    assert first["mean"]["n"] == 4
    assert first["mean"]["low"] < 0.5 < first["mean"]["high"]
    assert second == {"name": "b", "mean": None}
    assert table.records()[1] == {
        "name": "b",
        "mean": None,
        "mean_low": None,
        "mean_high": None,
        "mean_n": None,
    }


def test_an_interval_without_width_is_no_certainty() -> None:
    assert shown(Estimate.of(mean_interval([1.0, 1.0])), "number") == "1.00"


def test_a_row_with_a_key_of_no_column_is_refused() -> None:
    with pytest.raises(ValueError, match="no such column"):
        Table("t", "", (Column("a", "a"),), ({"b": 1},))


@dataclass(frozen=True)
class Rate:
    system: str = column("system")
    success: Interval = column("success", "share", "share of right plans")
    note: str | None = column("note", default=None)
    weight: float = 1.0  # no column


def test_the_fields_of_a_row_are_the_columns_of_its_table():
    half = Interval(0.5, 0.2, 0.8, None, 10, 4, "wilson", None)
    table = table_of(
        Rate, "rates", "Rates", [Rate("a", half), Rate("b", half)], drop_empty=["note"]
    )
    assert table.columns == (
        Column("system", "system"),
        Column("success", "success", "share", "share of right plans"),
    )
    assert table.rows[1] == {"system": "b", "success": Estimate(0.5, 0.2, 0.8, 10, "", "", 4)}
    assert table_of(Rate, "rates", "Rates", [Rate("a", half, "late")]).columns[2].key == "note"
