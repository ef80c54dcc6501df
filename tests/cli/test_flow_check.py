"""agenteval flow check: what is shown, and the exit code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from agenteval.cli.console import out
from agenteval.workflows import commands as flow_commands
from tests.workflows.boats import replaced

DESK = Path(__file__).parents[1] / "workflows/library_desk"
Check = Callable[..., Result]


def table(done: Result, key: str) -> list[dict[str, Any]]:
    """The rows of a table in the JSON of the command."""
    rows: list[dict[str, Any]] = json.loads(done.stdout)["tables"][key]["rows"]
    return rows


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Check:
    """The command in a small application, in an empty folder."""
    app = typer.Typer()
    app.command()(flow_commands.check)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTEVAL_TASKS", str(tmp_path))

    def run(*arguments: object) -> Result:
        out.cache_clear()
        return CliRunner().invoke(app, [str(a) for a in arguments])

    return run


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A copy that a test may change, found by its name."""
    return Path(shutil.copytree(DESK, tmp_path / "flows/library_desk"))


def change(path: Path, old: str, new: str) -> None:
    path.write_text(replaced(path.read_text(), old, new))


def test_a_sound_role(check: Check, desk: Path) -> None:
    done = check("library_desk")
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines() if "library_desk" in line]
    assert rows == [
        ["library_desk", "lend_book", "7", "9", "2", "0", "0"],
        ["library_desk", "return_book", "4", "3", "0", "0", "0"],
        ["library_desk", "cross", "–", "–", "–", "0", "0"],
        ["library_desk", "backend", "–", "–", "–", "0", "0"],
    ]
    assert check("library_desk", "--scenario", "return_book").exit_code == 0
    assert check(desk).exit_code == 0


def test_planted_defects_are_named(check: Check, desk: Path) -> None:
    change(desk / "lend_book/workflow.mmd", "call find_book", "call find_boks")
    change(
        desk / "backend.py", "def return_book(self, title: str)", "def return_it(self, title: str)"
    )
    done = check("library_desk")
    assert done.exit_code == 1
    shown = flat(done.stdout)
    assert "library_desk/lend_book error 2 no_tool LB001 LB001" in shown
    assert "did you mean find_book?" in shown
    assert "the backend has no method return_book" in shown
    only = check("library_desk", "--scenario", "lend_book", "--json")
    checked = table(only, "checked")
    assert [row["scenario"] for row in checked] == ["lend_book", "backend"]
    assert checked[0]["errors"] > 0
    assert table(only, "defects")[0]["place"] == "LB001"
    assert checked[1]["errors"] == 0  # return_book was not asked for


def test_users_recorded_calls_and_the_state_are_checked(check: Check, desk: Path) -> None:
    change(desk / "cross/profiles.yaml", "{title: Dune, reader_id: R-17}", "{title: Dune}")
    change(desk / "lend_book/sessions/hana.yaml", "reader_id: R-20}", "reader_id: 20}")
    change(desk / "backend.py", "self.state: dict[str, Any] = {", "self.books = {")
    done = check("library_desk", "--json")
    assert done.exit_code == 1
    rows = table(done, "defects")
    assert [(r["severity"], r["where"].split("/")[1], r["kind"]) for r in rows] == [
        ("error", "lend_book", "profile"),
        ("error", "cross", "profile"),
        ("error", "backend", "backend"),
    ]
    for row, part in zip(rows, ("hana_dune, turn 6", "profile jan", "no `state`"), strict=True):
        assert part in row["message"]


def test_input_that_cannot_be_read(check: Check, desk: Path) -> None:
    done = check("library_desc", "library_desk", "--json")
    assert done.exit_code == 2
    told = json.loads(done.stdout)
    assert "did you mean library_desk" in told["unreadable"][0]
    assert len(table(done, "checked")) == 4
    assert check("library_desk", "--scenario", "lend").exit_code == 2
