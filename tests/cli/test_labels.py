"""docs/labels.md line by line, its rules, and samples that cannot be used."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/labels.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
    for line in block.splitlines()
]


@pytest.fixture
def math(cli: Cli, tmp_path: Path) -> Cli:
    """A folder that sees the project's tasks and criteria."""
    for name in ("tasks", "criteria"):
        (tmp_path / name).symlink_to(ROOT / name)
    return cli


@pytest.mark.slow
def test_every_line_of_the_page(math: Cli, tmp_path: Path) -> None:
    assert len(COMMANDS) >= 6
    for line in COMMANDS:
        words = shlex.split(line, comments=True)
        assert words[0] == "agenteval"
        result = math(*words[1:])
        assert result.code == 0, (line, result.err)
    page = (tmp_path / "agreement.html").read_text()
    assert "both: corrected" in page
    assert "Reliability of recorded, labels of A" in page


def filled(
    path: Path, label: str, *, most: int = 10_000, changes: dict[str, str] | None = None
) -> Path:
    """The sheet with rater A's label in its first rows, and what else is changed in every row."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows):
        row.update({"label": label, "rater": "A"} if number < most else {})
        row.update(changes or {})
    copy = path.with_name("filled.csv")
    with copy.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return copy


@pytest.fixture
def sheet(math: Cli, project: Path) -> Path:
    rows = [
        {
            "run": f"r{i}",
            "case": f"c{i}",
            "criterion": "clarity",
            "label": ("unclear", "partly clear", "clear")[i % 3],
        }
        for i in range(60)
    ]
    (project / "judge.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return project / "judge.jsonl"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "my.json").write_text(
        json.dumps(
            [
                {
                    "name": "Clarity",
                    "description": "Is it easy to follow?",
                    "accepted_values": ["unclear", "partly clear", "clear"],
                }
            ]
        )
    )
    return tmp_path


def drawn(cli: Cli, sheet: Path, n: int = 30) -> Path:
    out = sheet.with_name("labels.csv")
    done = cli("agree", "sample", "--n", n, "--scores", sheet, "--criteria", "my.json", "-o", out)
    assert done.code == 0, done.err
    return out


def agree(cli: Cli, labels: Path, sheet: Path, *more: str) -> Any:
    return cli("agree", "--labels", labels, "--scores", sheet, "--criteria", "my.json", *more)


def means(result: Any) -> Any:
    return result.json["tables"]["means"]


def test_a_filled_sheet_corrects_the_mean(math: Cli, sheet: Path) -> None:
    labels = filled(drawn(math, sheet), "clear", most=25)
    result = agree(math, labels, sheet, "--json")
    assert result.code == 0, result.err
    (row,) = means(result)["rows"]
    assert (row["labelled"], row["n"]) == (25, 60)
    assert row["judge_mean"]["value"] == pytest.approx(0.5)
    assert row["people_mean"]["value"] == pytest.approx(1.0)
    assert "Clarity: 5 runs of the sample without a label yet" in means(result)["notes"]


def test_labels_that_were_picked_by_hand(math: Cli, sheet: Path, project: Path) -> None:
    rows = [{"run": f"r{i}", "criterion": "clarity", "label": "clear"} for i in range(30)]
    picked = project / "picked.jsonl"
    picked.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = agree(math, picked, sheet, "--json")
    assert means(result)["rows"] == []
    note = "Clarity: not corrected: 30 of 60 runs, not drawn by `agree sample`"
    assert means(result)["notes"] == [note]
    declared = agree(math, picked, sheet, "--json", "--random-labels")
    assert means(declared)["rows"][0]["labelled"] == 30


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"weight": "7.0"}, "the sample was edited, or rows are missing"),
        ({"label": "lucid"}, "'lucid' is not an accepted value of clarity"),
        ({"criterion": "charm"}, "criterion 'charm' is not among the criteria"),
        ({"weight": "none"}, "weight 'none' is not a number of at least 1"),
    ],
)
def test_sheets_that_cannot_be_used(
    math: Cli, sheet: Path, changes: dict[str, str], said: str
) -> None:
    labels = filled(drawn(math, sheet), "clear", changes=changes)
    result = agree(math, labels, sheet, "-o", "page.html")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert said in result.err
    assert not Path("page.html").exists()


def test_a_sheet_that_nobody_has_filled_in(math: Cli, sheet: Path) -> None:
    result = agree(math, drawn(math, sheet), sheet)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "no row has a label yet" in result.err


def test_three_people_and_a_judge(math: Cli, sheet: Path, project: Path) -> None:
    levels = ("unclear", "partly clear", "clear")
    rows = [
        {
            "run": f"r{i}",
            "criterion": "clarity",
            "rater": rater,
            "label": levels[(i + (i % 10 == 9 - k)) % 3],
        }
        for k, rater in enumerate("ABC")
        for i in range(60)
    ]
    (project / "people.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = agree(math, project / "people.jsonl", sheet, "--alt-test", "--json")
    (row,) = result.json["tables"]["alternative"]["rows"]
    assert (row["verdict"], row["winning_rate"]) == ("yes", 1.0)
    assert row["raters"] == "A 60, B 60, C 60"
