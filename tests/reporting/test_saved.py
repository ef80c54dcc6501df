"""A report in a file: the same rows whatever the form, and nothing that a spreadsheet runs."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from agenteval.records.table import Column, Estimate, Table
from agenteval.reporting.report import Report

REPORT = Report(
    title="t",
    tables=(
        Table(
            "rows",
            "",
            (
                Column("name", "name"),
                Column("n", "n", "count"),
                Column("mean", "mean", "number"),
                Column("fine", "fine"),
            ),
            (
                {"name": "=1+1", "n": 3, "mean": Estimate(0.5, 0.25, 0.75, 3), "fine": True},
                {"name": "half \ud83d", "n": None, "fine": False},
            ),
        ),
    ),
)
ROWS = [
    {
        "name": "=1+1",
        "n": 3,
        "mean": 0.5,
        "mean_low": 0.25,
        "mean_high": 0.75,
        "mean_n": 3,
        "fine": True,
    },
    {
        "name": "half \ud83d",
        "n": None,
        "mean": None,
        "mean_low": None,
        "mean_high": None,
        "mean_n": None,
        "fine": False,
    },
]


def test_csv_holds_no_formula(tmp_path: Path) -> None:
    with REPORT.save(tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        first, second = csv.DictReader(file)
    assert (first["name"], first["mean_low"], second["mean"]) == ("'=1+1", "0.25", "")


def test_parquet_has_types(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(REPORT.save(tmp_path / "a.parquet"))
    assert [str(field.type) for field in table.schema] == [
        "string",
        "int64",
        "double",
        "double",
        "double",
        "int64",
        "bool",
    ]
    assert table.to_pylist()[0] == ROWS[0]
