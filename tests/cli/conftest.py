"""Run the command line in this process, in a folder of its own."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agenteval.app.main import main
from agenteval.cli.console import Verbosity

ENVIRONMENT = (
    "AGENTEVAL_MODEL",
    "AGENTEVAL_BASE_URL",
    "AGENTEVAL_API_KEY",
    "AGENTEVAL_STORE",
    "AGENTEVAL_TASKS",
    "AGENTEVAL_CRITERIA",
    "OPENAI_API_KEY",
    "AGENTEVAL_PARAMETERS",
)


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Result]


@pytest.fixture
def cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cli]:
    """Call `cli("quantify runs.jsonl", ...)` in tmp_path, without any AGENTEVAL variable set.

    The first argument may be several words; the others are one word each.
    """
    monkeypatch.chdir(tmp_path)
    for name in ENVIRONMENT:
        monkeypatch.setenv(name, "")  # so that what a command sets is undone as well
        monkeypatch.delenv(name)

    def run(*arguments: object) -> Result:
        Verbosity.level = 0
        first = shlex.split(str(arguments[0])) if arguments else []
        words = [*first, *(str(a) for a in arguments[1:])]
        with pytest.raises(SystemExit) as ended:
            main(words)
        captured = capsys.readouterr()
        code = ended.value.code
        return Result(code if isinstance(code, int) else 0, captured.out, captured.err)

    yield run
    assert os.getcwd() == str(tmp_path)


TASK = "name: sums\ndescription: Add the numbers and explain the result.\n"
CRITERIA = [
    {
        "name": "Clarity",
        "description": "Is it easy to follow?",
        "accepted_values": ["unclear", "partly clear", "clear"],
    },
    {
        "name": "Accuracy",
        "description": "Is the result right?",
        "accepted_values": ["incorrect", "partially correct", "correct"],
    },
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a task, criteria and six runs of two systems."""
    task = tmp_path / "tasks" / "sums"
    task.mkdir(parents=True)
    (task / "task.yaml").write_text(TASK)
    (tmp_path / "criteria").mkdir()
    (tmp_path / "criteria" / "sums.json").write_text(json.dumps(CRITERIA))
    lines = [
        {
            "id": f"{system}-{i}",
            "task": "sums",
            "system": system,
            "input": f"What is {i} + {i}?",
            "output": f"The sum of {i} and {i} is {2 * i}, by adding {system}.",
            "success": i != 2,
        }
        for system in ("alpha", "beta")
        for i in (1, 2, 3)
    ]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    return tmp_path
