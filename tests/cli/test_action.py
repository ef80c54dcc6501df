"""The action for pull requests: its script, run as a runner would, and the example of the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Et

import pytest
import yaml

import agenteval

ROOT = Path(__file__).parents[2]
FILE = ROOT / ".github/actions/agenteval/action.yml"
ACTION = yaml.safe_load(FILE.read_text("utf-8"))
LEVELS = agenteval.Criterion(name="Accuracy", accepted_values=("wrong", "right"), scale="binary")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with main.db, and new.db in which all of 30 answers are worse."""
    folder = tmp_path_factory.mktemp("stores")

    def rated(run: agenteval.Run, criterion: agenteval.Criterion) -> float:
        return float("good" in run.output)

    for name, word in (("main", "good"), ("new", "bad")):
        runs = [agenteval.Run(id=f"r{i}", input=f"case {i}", output=word) for i in range(30)]
        agenteval.quantify(runs, [LEVELS], judge=rated, store=folder / f"{name}.db")
    return folder


def act(folder: Path, **inputs: str) -> tuple[int, str, dict[str, Any]]:
    """Exit code, output of the step that compares, and what it leaves behind."""
    step = next(s for s in ACTION["runs"]["steps"] if s.get("id") == "compare")
    values = {k: i.get("default", "") for k, i in ACTION["inputs"].items()} | inputs
    assert values.keys() == ACTION["inputs"].keys()

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: values[m[1]], text)

    assert "${{" not in step["run"]  # an input in the script would be run
    left = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for path in left.values():
        path.write_text("")
    bin_ = folder / "bin"
    bin_.mkdir(exist_ok=True)
    command = bin_ / "agenteval"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agenteval "$@"\n')
    command.chmod(0o755)
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("AGENTEVAL")},
        **{k: filled(v) for k, v in step["env"].items()},
        **{k: str(v) for k, v in left.items()},
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr, {k: p.read_text() for k, p in left.items()}


BOTH = "--store\nmain.db\n--with\nnew.db\n"


@pytest.mark.slow
def test_a_version_that_is_worse_fails_the_step(stores: Path) -> None:
    code, said, left = act(stores, arguments=BOTH, junit="gates.xml")
    assert code == 1, said
    assert left["GITHUB_OUTPUT"] == "exit-code=1\n"
    assert "    gate regression 0.05 of accuracy: missed" in left["GITHUB_STEP_SUMMARY"]
    assert Et.parse(stores / "gates.xml").getroot().attrib["failures"] == "1"


def test_an_evaluation_file_is_run_and_its_gates_decide(stores: Path) -> None:
    suite = ROOT / "tests/golden/data/suite.jsonl"
    gate = f"plan: {{suite: {suite}, agent: 'scripted:perfect', gate: 0.9}}\nstore: plans.db\n"
    (stores / "-eval.yaml").write_text(gate)
    code, said, left = act(stores, file="-eval.yaml")
    assert (code, left["GITHUB_OUTPUT"]) == (0, "exit-code=0\n"), said
    assert left["GITHUB_STEP_SUMMARY"].startswith("## agenteval run\n")
    (stores / "-eval.yaml").write_text(gate.replace("perfect", "random"))
    code, said, left = act(stores, file="-eval.yaml")
    assert (code, left["GITHUB_OUTPUT"]) == (1, "exit-code=1\n"), said


def test_an_input_is_an_argument_and_never_a_command(stores: Path) -> None:
    code, said, left = act(stores, arguments="$(touch run)\n; touch run\n`touch run`")
    assert code == 2, said
    assert left["GITHUB_OUTPUT"] == "exit-code=2\n"
    assert not (stores / "run").exists()


def test_the_example_of_the_page_names_the_action_and_its_inputs() -> None:
    page = (ROOT / "docs/pytest.md").read_text("utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S)
    steps = yaml.safe_load(text)["jobs"]["judge"]["steps"]
    (step,) = [s for s in steps if s.get("uses", "").endswith("/agenteval")]
    assert (ROOT / step["uses"] / "action.yml").is_file()
    assert step["with"].keys() <= ACTION["inputs"].keys()
    words = page.partition("Inputs: ")[2]
    assert all(f"`{name}`" in words for name in ACTION["inputs"])
