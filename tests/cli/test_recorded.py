"""Recorded replies: the demo runs on them, and they answer for nothing else."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "tasks/math/runs.jsonl"
MATH = (
    "--task",
    ROOT / "tasks/math",
    "--criteria",
    ROOT / "criteria/math.reviewed.json",
    "--model",
    "recorded",
)


@pytest.mark.slow
def test_every_reply_is_read(cli: Cli, tmp_path: Path) -> None:
    kept = ("--store", tmp_path / "a.db", "-o", tmp_path / "v.json")
    done = cli("verify", RUNS, *MATH, *kept, "--json")
    assert done.code == 0, done.err
    assert "written offline" in done.err
    ratings = cli("export", tmp_path / "r.jsonl", "--with-copies", "--store", tmp_path / "a.db")
    assert ratings.code == 0, ratings.err
    rows = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert len(rows) == (60 + 20 * 5) * 9 * 2
    assert done.json["judge"]["verdict"] == "trustworthy"
    assert {row["status"] for row in rows} == {"scored"}


@pytest.mark.slow
@pytest.mark.parametrize(("task", "names"), [("math", 35), ("household", 33), ("support", 30)])
def test_the_critics_of_a_task(cli: Cli, tmp_path: Path, task: str, names: int) -> None:
    ask = (
        "criteria",
        "--task",
        ROOT / "tasks" / task,
        "--model",
        "recorded",
        "--store",
        tmp_path / "a.db",
        "-o",
        tmp_path / "c.json",
    )
    done = cli(*ask, "--json")
    assert done.code == 0, done.err
    assert done.json["seeds_answered"] == 5
    assert done.json["proposed"] >= names
    lines = (ROOT / "tasks" / task / "recorded/critic.jsonl").read_text("utf-8").splitlines()
    (said,) = [r["text"] for r in map(json.loads, lines) if r["role"] == "consolidate"]
    ideas = json.loads(said)["ideas"]
    assert {entry for idea in ideas for entry in idea["entries"]} == set(range(1, names + 1))
    assert len(done.json["criteria"]["criteria"]) == len(ideas)
    (tmp_path / "c.json").unlink()
    refused = cli(*ask, "--seeds", "11")
    assert (refused.code, "holds no reply" in refused.err) == (2, True)
    assert not (tmp_path / "c.json").exists()


HOUSEHOLD = (
    ROOT / "tasks/household/runs.jsonl",
    *("--task", ROOT / "tasks/household", "--model", "recorded"),
    *("--criteria", ROOT / "criteria/household.reviewed.json"),
)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (HOUSEHOLD, "holds no reply for run 'household-11-atlas'"),
        ((RUNS, *MATH, "--repeats", "3"), "repeat 2"),
        ((RUNS, *MATH, "--one-per-call"), "is about other criteria"),
    ],
)
def test_anything_else_is_one_line(
    cli: Cli, tmp_path: Path, arguments: tuple[object, ...], words: str
) -> None:
    store = tmp_path / "a.db"
    done = cli("quantify", *arguments, "--store", store)
    assert (done.code, words in done.err) == (2, True), done.err
    assert not store.exists()


def test_a_run_that_was_changed_is_another(cli: Cli, tmp_path: Path) -> None:
    changed = tmp_path / "runs.jsonl"
    changed.write_text(RUNS.read_text("utf-8").replace("36", "37"))
    done = cli("quantify", changed, *MATH, "--store", tmp_path / "a.db")
    assert (done.code, "the reply on 'math-01-coder' is about other text" in done.err) == (
        2,
        True,
    )
    done = cli("verify", RUNS, *MATH, "--probes", "--store", tmp_path / "a.db")
    assert (done.code, "only judgements of runs and their copies" in done.err) == (2, True)
    perturbed = ("--perturb", "truncate", "--store", tmp_path / "a.db")
    done = cli("verify", RUNS, *MATH, *perturbed)
    assert (done.code, "(truncate:0.25:0)" in done.err) == (2, True)


@pytest.mark.slow
def test_the_demo_and_what_it_says_next(tmp_path: Path) -> None:
    """It works in a folder of its own; its last lines work wherever they are pasted."""
    place = tmp_path / "a demo's"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTEVAL", "OPENAI"))}
    done = subprocess.run(
        [sys.executable, "-m", "agenteval", "demo", "--dir", str(place)],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "the judge: not trustworthy: scores fall with the length only" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == [place.name]
    words = " ".join(re.sub("<[^>]+>", " ", (place / "capable.html").read_text()).split())
    assert "The judge on these criteria trustworthy" in words  # as verify, of which half the runs
    assert "the judge trustworthy" in " ".join(done.stdout.split())  # have no copy
    *lines, viewer = done.stdout.partition("next:\n")[2].splitlines()
    assert len(lines) == 5
    assert "agenteval view --label" in viewer  # a server: not run here
    shell = f'set -e; agenteval() {{ {shlex.quote(sys.executable)} -m agenteval "$@"; }}\n'
    shown = subprocess.run(
        ["bash", "-c", shell + "\n".join(lines)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment | {"PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert "math-01-duo" in shown.stdout
    assert "accuracy" in shown.stdout.lower()
    assert (place / "report.html").is_file()  # of eval.yaml
    assert (place / "labels.csv").is_file()
    assert "at least" in shown.stdout  # the dry run
