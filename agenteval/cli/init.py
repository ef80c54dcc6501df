"""agenteval init: a new task, empty to fill in, or from a file of runs up to the first page."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import options
from agenteval.cli.command import grouped
from agenteval.cli.console import clean, notify, out
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.records import Run

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

`task.yaml` describes the task; {where}. Say here where the runs come
from and under which licence they may be used. `success` is true, false, or null where nobody knows.

    agenteval criteria --task {name}
    agenteval quantify {runs} --task {name}
"""
_FIRST = 10  # runs that are judged at once


@grouped
def init(
    name: Annotated[str, typer.Argument(help="Name of the task: letters, digits, hyphens.")],
    runs: Annotated[
        Path | None,
        typer.Argument(help="Runs of the system: CSV, TSV, JSON, JSON lines, or a folder."),
    ] = None,
    *,
    model: options.ModelOptions,
    folder: Annotated[Path, typer.Option(help="Where tasks live.")] = Path("tasks"),
    columns: options.Columns = None,
    description: Annotated[
        str | None, typer.Option(help="What the system does, in two or three sentences.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Take what is guessed; ask nothing.")] = False,
    no_run: Annotated[
        bool, typer.Option("--no-run", help="Only write the task; ask no model.")
    ] = False,
    store: options.StorePath = None,
) -> None:
    """Make the folder of a new task; with a file of runs also criteria, and a first page."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
        raise InputError("use letters, digits, hyphens and underscores, at most 64", "NAME")
    target = folder / name
    if target.exists():
        raise InputError("this folder exists already; nothing was changed", str(target))
    if runs is None:
        _write(target, _TASK.format(name=name), _README.format(
            name=name, where="`runs.jsonl` holds one run per line", runs=f"{target}/runs.jsonl"
        ), _RUN)  # fmt: skip
        out().print(
            f"{target}: fill in task.yaml and runs.jsonl, then `agenteval criteria --task {name}`"
        )
        return
    asks = sys.stdin.isatty() and not yes
    mapping, read = _mapping(runs, options.read_columns(columns), asks=asks)
    if description is None and asks:
        description = typer.prompt("What does the system do? (two or three sentences)")
    if not description:
        raise InputError("say in two or three sentences what the system does", "--description")
    text = _task_yaml(name, description, mapping, read)
    readme = _README.format(name=name, where=f"the runs are in `{runs.name}`", runs=runs)
    _write(target, text, readme)
    out().print(f"written: {target}/task.yaml")
    if no_run:
        out().print(f"next: agenteval criteria --task {target}")
        return
    _first_page(name, target, runs, model, store, asks=asks)


def _write(target: Path, task: str, readme: str, runs: str | None = None) -> None:
    from agenteval.files import write_atomically

    files = {"README.md": readme, "task.yaml": task} | ({"runs.jsonl": runs} if runs else {})
    for file, text in files.items():
        write_atomically(target / file, text)


def _mapping(
    runs: Path, given: dict[str, str] | None, *, asks: bool
) -> tuple[dict[str, str], list[Run]]:
    """Which column is which field, shown with two values each, and the runs read so. Raises
    InputError where it cannot be told, and when the user says no."""
    from agenteval.readers import read_runs
    from agenteval.readers.runs import find, first_records
    from agenteval.readers.table_files import guess_mapping

    records = first_records(find(runs).files[0]) if find(runs).files else []
    mapping = given
    if mapping is None and records:
        try:
            mapping = guess_mapping(records)
        except InputError as error:
            raise InputError(str(error), str(runs)) from None
    read = read_runs(runs, mapping=mapping or {}).runs
    out().print(f"{len(read)} runs in {clean(runs)}; columns are read as:")
    for field, column in (mapping or {}).items():
        values = [str(r[column]) for r in records if r.get(column)][:2]
        shown = " | ".join(" ".join(v.split())[:40] for v in values)
        out().print(f"  {field:9} = {clean(column)}   [dim]{clean(shown)}[/dim]")
    known = [r.success for r in read if r.success is not None]
    out().print(f"  {sum(known)} succeeded, {len(known) - sum(known)} failed, "
                f"{len(read) - len(known)} without a word on success")  # fmt: skip
    if asks and not typer.confirm("Is that right?", default=True):
        raise InputError("say which column is which with --map FIELD=COLUMN,...", str(runs))
    return mapping or {}, read


def _task_yaml(name: str, description: str, mapping: dict[str, str], runs: list[Run]) -> str:
    """The task file, with one success and one failure as examples where both are known."""
    import yaml

    from agenteval.readers import make_view

    task: dict[str, object] = {"name": name, "description": description}
    renamed = {field: column for field, column in mapping.items() if field != column}
    if renamed:
        task["map"] = renamed
    first = {
        kind: next((r for r in runs if r.success is verdict), None)
        for kind, verdict in (("success", True), ("failed", False))
    }
    if all(first.values()):
        task["examples"] = {
            kind: [{"input": run.input, "output": make_view(run).trajectory}]
            for kind, run in first.items()
            if run is not None
        }
    return yaml.safe_dump(task, allow_unicode=True, sort_keys=False, width=100)


def _first_page(
    name: str, target: Path, runs: Path, model: options.ModelOptions, store: Path | None, *,
    asks: bool,
) -> None:  # fmt: skip
    """Criteria, the price of all runs, ten runs judged, the page. Each step says which command does
    it alone."""
    from agenteval.api import stored, utility

    how = f" --model {model.model}" if model.model else ""
    common: dict[str, Any] = {
        "model": model.model,
        "base_url": model.base_url,
        "temperature": model.sampling,
    }
    criteria = Path("criteria") / f"{name}.json"
    _step(f"agenteval criteria --task {target}{how}")
    utility.propose(
        target, **common, output=criteria, store=store, notify=notify
    ).print(console=out())  # fmt: skip
    judge: dict[str, Any] = {
        "judge": common.pop("model"),
        **common,
        "task": str(target),
        "store": store,
    }
    _step(f"agenteval quantify {runs} --task {target}{how} --dry-run")
    utility.quantify(runs, criteria, **judge, dry_run=True).print(console=out())
    if asks and not typer.confirm(f"Judge the first {_FIRST} runs now?", default=True):
        return
    _step(f"agenteval quantify {runs} --task {target}{how} --limit {_FIRST}")
    utility.quantify(runs, criteria, **judge, limit=_FIRST, notify=notify).print(console=out())
    _step("agenteval report -o report.html")
    stored.page(Path("report.html"), store=store).print(console=out())
    if model.model in (None, "embedded") and not model.base_url:
        out().print(
            "next: a judge that can rate these criteria: --model openai:gpt-4o, --base-url URL, or "
            f"a function (docs/python.md); then read and edit {criteria}"
        )
        return
    out().print(f"next: read {criteria}, then `agenteval verify {runs} --task {target}{how}`: "
                "can this judge be trusted?")  # fmt: skip


def _step(command: str) -> None:
    out().print(f"[dim]$ {clean(command)}[/dim]", soft_wrap=True)
