"""agree from end to end: files and the store, several judges, and one line for bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli

CLARITY = ("unclear", "partly clear", "clear")
ACCURACY = ("incorrect", "partially correct", "correct")


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def table(result: Any, key: str) -> list[dict[str, Any]]:
    """The rows of one of the tables of `--json`."""
    rows: list[dict[str, Any]] = result.json["tables"][key]["rows"]
    return rows


def rating(run: str, criterion: str, label: str | None, **more: Any) -> dict[str, Any]:
    if label is None:
        return {"run": run, "criterion": criterion, "status": "unscored:parse", **more}
    return {"run": run, "criterion": criterion, "label": label, **more}


def clarity(rater: str | None, *levels: int | None) -> list[dict[str, Any]]:
    more = {} if rater is None else {"rater": rater}
    return [
        rating(f"r{i}", "clarity", None if level is None else CLARITY[level], **more)
        for i, level in enumerate(levels)
    ]


def test_several_judges_make_a_panel(cli: Cli, project: Path) -> None:
    labels = lines(project / "labels.jsonl", *clarity(None, 0, 1, 2, 2))
    high = lines(project / "high.jsonl", *clarity(None, 1, 2, 2, 2))
    low = lines(project / "low.jsonl", *clarity(None, 0, 0, 1, 2))
    ask = ("agree", "--labels", labels, "--task", "sums", "--scores", high, "--scores", low)
    whole, *members = table(cli(*ask, "--json"), "panel")
    # errors of the mean: .25, 0, .25, 0; of high: .5, .5, 0, 0; of low: 0, .5, .5, 0
    assert whole["error"]["value"] == pytest.approx(0.125)
    assert [row["judge"] for row in members] == ["high", "low"]
    assert [row["change"]["value"] for row in members] == pytest.approx([0.125, 0.125])
    assert "panel against labels of labels" in cli(*ask, "--all").out
    only = cli(*ask, "--source", "low", "--json")
    assert [row["judge"] for row in table(only, "agreement")] == ["low"]
    assert "panel" not in only.json["tables"]


def test_audit_of_labels_in_the_runs_file(cli: Cli, project: Path) -> None:
    rows, runs = [], []
    for i in range(14):
        good, success = i < 7, i < 7 or i == 13
        good = good and i != 6
        rows += [rating(f"r{i}", "accuracy", ACCURACY[2 * good], repeat=k) for k in (0, 1)]
        runs.append({"id": f"r{i}", "input": f"problem {i}", "output": "x", "success": success})
    scores = lines(project / "s.jsonl", *rows)
    ask = ("agree", "--audit", "--task", "sums", "--scores", scores)
    unknown = cli(*ask)
    assert (unknown.code, unknown.err.count("\n")) == (2, 1)
    assert "success is unknown for every run" in unknown.err
    known = lines(project / "known.jsonl", *runs)
    result = cli(*ask, "--runs", known, "--json")
    assert result.code == 0, result.err
    suspects = table(result, "audit")
    assert sorted((s["run"], s["success"]) for s in suspects if s["against"]) == [
        ("r13", True),
        ("r6", True),
    ]
    assert "agreement" not in result.json["tables"]
    assert {(s["unanimous"], s["witnesses"]) for s in suspects if s["against"]} == {(1, 1)}
    shown = cli(*ask, "--runs", known)
    assert "label audit by s" in shown.out
    failed = [rating(f"r{i}", "accuracy", None) for i in range(14)]
    nothing = cli(*ask[:-1], lines(project / "f.jsonl", *failed), "--runs", known)
    assert (nothing.code, "the audit is not possible" in nothing.out) == (0, True)
