"""What is said of a plan that was not done: how far it came, and no more than is true."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agenteval.api.running import why_stopped
from agenteval.cli.demo import next_steps
from agenteval.evaluators.utility.perturb import OPERATORS
from agenteval.experiment import Ended, Progress
from agenteval.testing import serve
from tests.cli.conftest import Cli
from tests.cli.test_quantify import answer


@pytest.mark.parametrize(
    ("left", "said"),
    [(0, "every call failed: no"), (7, "stopped, 7 calls not made: every call failed: no")],
)
def test_nothing_left_out_is_not_said_to_be(left: int, said: str) -> None:
    assert why_stopped(Ended(Progress(7), "every call failed: no", left), "calls not made") == said


def test_what_the_demo_says_next_works_where_it_is_pasted(cli: Cli, project: Path) -> None:
    folder = project / "a demo's"
    folder.mkdir()
    run = (project / "runs.jsonl").read_text().replace("alpha-1", "support-01-brief")
    (project / "runs.jsonl").write_text(run)
    with serve(answer) as server:
        cli("quantify", "runs.jsonl", "--model", "m", "--base-url", server.base_url,
            "--store", folder / "agenteval.db")  # fmt: skip
    title, *lines = next_steps(folder)
    assert title == "next:"
    line = f'set -e; agenteval() {{ {shlex.quote(sys.executable)} -m agenteval "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", line + "\n".join(lines)], cwd=project, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "support-01-brief" in done.stdout
    assert (folder / "scores.csv").is_file()


def test_the_help_names_every_perturbation(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    told = " ".join(cli("verify", "--help").out.split())
    listed = told.partition("given often: ")[2].partition(".")[0].split(", ")
    assert sorted(listed) == sorted(OPERATORS)
