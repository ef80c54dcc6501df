"""Every command does what was frozen: values, n, intervals, statuses, verdicts, exit codes."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from agenteval.app.main import app
from agenteval.records.table import Table
from agenteval.reporting.report import Report
from agenteval.reporting.terminal import rich_tables
from tests.golden.cases import CASES, Case
from tests.golden.files import FROZEN
from tests.golden.freeze import differences, frozen, run

TEXTS = {"texts", "results"}  # of `show --run`: a run and what was said of it, in full
NOT_FROZEN = {
    "anchor": "each look has another seed; `tests/cli/test_anchor.py` runs it",
    "demo": "`tests/cli/test_recorded.py` runs it",
    "label": "`tests/view/test_offline.py` runs what it calls",
    "view": "serves until it is interrupted; `tests/view` asks for its pages",
    "doctor": "tells about the machine; its exit code for bad input is frozen",
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c.name, marks=[pytest.mark.local] if c.local else []) for c in CASES],
)
def test_frozen(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are those that were frozen, and tables fit a terminal of 80 columns."""
    tables: list[Table] = []
    to_json = Report.to_json
    monkeypatch.setattr(Report, "to_json", lambda r: tables.extend(r.tables) or to_json(r))
    if case.local and importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("needs the extra `local`")
    changed = list(differences(run(case, tmp_path), frozen(case)))
    again = f"python -m tests.golden.freeze {case.name}"
    assert not changed, "\n".join([*changed[:40], f"({len(changed)}; if it is meant: {again})"])
    heights = {
        table.key: _height(table) for table in tables if not table.detail and table.key not in TEXTS
    }
    assert {key: height for key, height in heights.items() if height > 3} == {}


def _height(table: Table) -> int:
    """Lines of the highest row on 80 columns; lines beyond the border count as many."""
    console = Console(file=(text := io.StringIO()), width=80)
    for part in rich_tables(table, console):
        part.show_lines, part.show_header = True, False
        console.print(part)
    lines = [line.rstrip() for line in text.getvalue().split("\n")]
    rows = "\n".join(lines).strip("\n").split("\n\n")
    return max(len(row.splitlines()) for row in rows) if max(map(len, lines)) <= 80 else 1000


def test_every_command_has_a_case() -> None:
    def commands(group: Any, before: str = "") -> Iterator[str]:
        for name in group.list_commands(None):
            command = group.get_command(None, name)
            if hasattr(command, "commands"):
                yield from commands(command, f"{before}{name} ")
            else:
                yield before + name

    lines = [step.line for case in CASES if case.name != "refused" for step in case.steps]
    every = commands(typer.main.get_command(app))
    left = {name for name in every if not any(line.startswith(f"{name} ") for line in lines)}
    assert {name.split()[0] for name in left} == set(NOT_FROZEN)


def test_no_frozen_file_is_left_over() -> None:
    assert {path.stem for path in FROZEN.glob("*.json")} == {case.name for case in CASES}


@pytest.mark.parametrize(
    ("new", "old", "count"),
    [
        ({"n": 20, "mean": 0.5}, {"n": 20, "mean": 0.5 + 1e-12}, 0),
        ({"n": 20, "mean": 0.5}, {"n": 20, "mean": 0.5 + 1e-6}, 1),
        ({"low~": 0.5}, {"low~": 0.54}, 0),
        ({"low~": 0.5}, {"low~": 0.58}, 1),
        ({"verdict": "keep"}, {"verdict": "drop"}, 1),
        ({"mean": None}, {"mean": 0.0}, 1),
        ({"mean": 0}, {"mean": False}, 1),
        ({"a": 1}, {"b": 1}, 2),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, 1),
    ],
)
def test_what_counts_as_a_difference(new: object, old: object, count: int) -> None:
    assert len(list(differences(new, old))) == count
