"""Find task folders and read task.yaml."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from agenteval.errors import InputError
from agenteval.readers.problems import first_problem
from agenteval.readers.strict_yaml import read_yaml
from agenteval.records import Task
from agenteval.text import did_you_mean

TASK_FILE = "task.yaml"


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """A task and its folder."""

    task: Task
    path: Path

    @property
    def runs(self) -> Path | None:
        """Its runs.jsonl, or None."""
        runs = self.path / "runs.jsonl"
        return runs if runs.is_file() else None


def data_folders(kind: str) -> list[Path]:
    """Return the folders that may contain `tasks` or `criteria`, nearest first.

    The working folder, the folder named by AGENTEVAL_TASKS (or AGENTEVAL_CRITERIA), the installed
    package, and the checkout when run from one.
    """
    package = Path(str(files("agenteval")))
    configured = os.environ.get(f"AGENTEVAL_{kind.upper()}")
    candidates = [
        Path(kind),
        *([Path(configured).expanduser()] if configured else []),
        package / "_data" / kind,
        package.parent / kind,
    ]
    return [c for c in candidates if c.is_dir()]


def task_names() -> list[str]:
    """Return the names of all available tasks."""
    folders = {
        path.parent.name
        for folder in data_folders("tasks")
        for path in folder.glob(f"*/{TASK_FILE}")
    }
    return sorted(folders)


def find_task(name: str) -> TaskFolder:
    """Return the nearest task folder with this name, or the folder itself if `name` is a path.

    Raises InputError, with similar names, if there is none.
    """
    path = Path(name).expanduser()
    if (path / TASK_FILE).is_file():
        return TaskFolder(load_task(path / TASK_FILE), path)
    for folder in data_folders("tasks"):
        if Path(name).name == name and (folder / name / TASK_FILE).is_file():
            return TaskFolder(load_task(folder / name / TASK_FILE), folder / name)
    names = task_names()
    hint = did_you_mean(name, names, most=3, cutoff=0.4) or f"known: {', '.join(names) or 'none'}"
    raise InputError(f"no task {name!r}; {hint}", "--task")


def mapping_of(task: str, runs: Path) -> dict[str, str]:
    """Return the column of each field, from the task or the task.yaml next to the runs."""
    if task and ((Path(task) / TASK_FILE).is_file() or Path(task).name in task_names()):
        return dict(find_task(task).task.map)
    task_file = (runs if runs.is_dir() else runs.parent) / TASK_FILE
    return dict(load_task(task_file).map) if task_file.is_file() else {}


def recording_of(task: str, kind: str) -> Path:
    """Return the file of recorded replies of a task's `judge` or `critic`. Raises InputError if
    there is none."""
    path = find_task(task).path / "recorded" / f"{kind}.jsonl"
    if path.is_file():
        return path
    names = [n for n in task_names() if (find_task(n).path / "recorded" / path.name).is_file()]
    raise InputError(
        f"no {kind} is recorded for the task {task}; there is one for {', '.join(names) or 'none'}",
        "--model recorded",
    )


def load_task(path: Path) -> Task:
    """Read a task.yaml. Raises InputError with line or key."""
    data = read_yaml(path)
    if not isinstance(data, dict):
        raise InputError("a task is a mapping with name, description and examples", str(path))
    try:
        return Task.model_validate({"name": path.parent.name, **data})
    except ValidationError as error:
        raise InputError(first_problem(error), str(path)) from error
