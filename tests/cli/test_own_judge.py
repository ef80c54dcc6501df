"""`--judge python:MODULE:NAME`, and the example of docs/python.md."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support import scorers

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs/python.md").read_text("utf-8").partition("## Scorers of other")[2]


@pytest.fixture(autouse=True)
def own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test imports from its folder is forgotten after it, and before what another left."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("judges", "mine"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    for name in ("judges", "mine"):
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_the_example_of_the_page(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in scorers.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("tasks", "criteria"):
        (tmp_path / name).symlink_to(ROOT / name)
    (code,) = re.findall(r"^```python\n# judges.py\n(.*?)^```$", SECTION, re.M | re.S)
    (line,) = re.findall(r"^```sh\n(.*?)\n```$", SECTION, re.M | re.S)
    (tmp_path / "judges.py").write_text(code)
    output = tmp_path / "verified.json"
    shown = cli(*shlex.split(line)[1:], "--json", "-q", "-o", output).json
    assert shown["judge"]["verdict"] == "not trustworthy"
    assert "length only" in shown["judge"]["reasons"][0]


def judge(cli: Cli, project: Path, *more: object) -> tuple[int, str, int]:
    """Exit code, last line of the errors, and how often the function was called."""
    calls = project / "calls.txt"
    calls.write_text("")
    sys.modules.pop("mine", None)
    result = cli("quantify", project / "runs.jsonl", "--judge", "python:mine:long", *more)
    return result.code, result.err.strip().splitlines()[-1], len(calls.read_text())


MINE = """
def long(run, criterion):
    with open("calls.txt", "a") as calls:
        calls.write("x")
    return min(1, len(run.output) / 2000)
"""


def test_budget_resume_and_an_edited_function(cli: Cli, project: Path) -> None:
    (project / "mine.py").write_text(MINE)
    dry = cli("quantify", project / "runs.jsonl", "--judge", "python:mine:long", "--dry-run")
    assert "6 at most" in dry.out
    code, said, calls = judge(cli, project, "--max-calls", 2)
    assert (code, calls) == (3, 4)  # two texts, two criteria
    assert "the cap of 2 calls is reached" in said
    assert judge(cli, project)[::2] == (0, 8)  # the four texts that were left
    assert judge(cli, project)[::2] == (0, 0)
    (project / "mine.py").write_text(MINE.replace("2000", "1000"))
    assert judge(cli, project)[::2] == (0, 12)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["python:nowhere:long"], "--model: there is no module 'nowhere'"),
        (["python:mine:log"], "--model: mine has no 'log'; did you mean long?"),
        (["python:mine:NUMBER"], "judge: int is not a judge"),
        (["python:mine:long", "--max-cost", 1], "--max-cost: "),
        (["python:mine:long", "--base-url", "http://127.0.0.1:1/v1"], "--base-url: "),
    ],
)
def test_what_cannot_be_is_one_line(
    cli: Cli, project: Path, arguments: list[object], said: str
) -> None:
    (project / "mine.py").write_text(f"{MINE}\nNUMBER = 3\n")
    result = cli("quantify", project / "runs.jsonl", "--judge", *arguments)
    assert result.code == 2
    assert said in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert not (project / "agenteval.db").exists()
