"""docs/panels.md: its files, its commands and the tables that it shows."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

PAGE = (Path(__file__).parents[2] / "docs/panels.md").read_text("utf-8")
FILES = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.M | re.S))
COMMANDS = re.findall(r"^```sh\nagenteval (.*?)\n```$", PAGE, re.M)
TABLES = re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.fixture
def example(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """A folder with the files of the page."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    runpy.run_path(str(tmp_path / "data.py"))
    yield cli
    sys.modules.pop("judges", None)


@pytest.mark.slow
def test_the_commands_print_the_tables_of_the_page(example: Cli) -> None:
    assert len(COMMANDS) == len(TABLES) == 2
    for command, table in zip(COMMANDS, TABLES, strict=True):
        shown = example(*shlex.split(command))
        assert shown.code == 0, shown.err
        printed = [line.rstrip() for line in shown.out.splitlines()]
        assert [line for line in table.splitlines() if line not in printed] == []
    line = example("show", "--json").json
    assert line["usage"]["requests"] == 4640


def test_an_evaluation_file_has_a_panel(example: Cli, tmp_path: Path) -> None:
    text = {
        "task": {"name": "sums", "description": "Add."},
        "runs": "runs.jsonl",
        "criteria": {"file": "criteria.json"},
        "judge": {"model": ["python:judges:kind", "python:judges:polite"], "panel": "veto"},
    }
    (tmp_path / "evaluation.yaml").write_text(json.dumps(text))
    ran = example("run", "evaluation.yaml", "-q")
    assert ran.code == 0, ran.err
    shown = example("show", "--json").json
    assert shown["source"]["model"] == "veto:1 of kind, polite"
    text["judge"]["panel"] = "auto"
    (tmp_path / "evaluation.yaml").write_text(json.dumps(text))
    refused = example("run", "evaluation.yaml", "-q")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "--panel-rule: auto needs labels" in refused.err
