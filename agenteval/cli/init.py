"""agenteval init: a new task folder to fill in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli.console import out
from agenteval.errors import InputError

_TASK = """\
# What the system under evaluation does, in the words of somebody who depends on it.
name: {name}
description: >-
  Describe in two or three sentences what the system is given, what it must produce, and for whom.

# Solution-based criteria look at examples. Remove this block for task-based criteria.
examples:
  success:
    - input: A request that was served well.
      output: What the system did.
  failed:
    - input: A request that was served badly.
      output: What the system did.
"""

_RUN = (
    '{"id": "example-1", "system": "my-agent", "input": "the request", '
    '"output": "what the agent answered", "success": null, "reference": null}\n'
)

_README = """\
# {name}

`task.yaml` describes the task; `runs.jsonl` holds one run per line. Say here where the runs come
from and under which licence they may be used. `success` is true, false, or null where nobody knows.

    agenteval criteria --task {name}
    agenteval quantify tasks/{name}/runs.jsonl
"""


def init(
    name: Annotated[str, typer.Argument(help="Name of the task: letters, digits, hyphens.")],
    folder: Annotated[Path, typer.Option(help="Where tasks live.")] = Path("tasks"),
) -> None:
    """Make the folder of a new task: task.yaml, runs.jsonl and README.md to fill in."""
    from agenteval.files import write_atomically

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
        raise InputError("use letters, digits, hyphens and underscores, at most 64", "NAME")
    target = folder / name
    if target.exists():
        raise InputError("this folder exists already; nothing was changed", str(target))
    files = {"runs.jsonl": _RUN, "README.md": _README.format(name=name)}
    for file, text in {**files, "task.yaml": _TASK.format(name=name)}.items():
        write_atomically(target / file, text)
    out().print(
        f"{target}: fill in task.yaml and runs.jsonl, then `agenteval criteria --task {name}`"
    )
