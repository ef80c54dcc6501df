"""agenteval init: a new task, empty to fill in, or from a file of runs up to the first page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import arguments as options
from agenteval.cli.command import grouped
from agenteval.cli.console import clean, note, notify, out, warn
from agenteval.cli.options import read_columns
from agenteval.errors import AgentevalError, InputError
from agenteval.text import plural, public_url, redacted

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

_FIRST = 10  # runs that are judged at once


@grouped
def init(
    name: Annotated[
        str,
        typer.Argument(help="Name of the task (letters, digits, hyphens), or the file of runs."),
    ],
    runs: Annotated[
        Path | None,
        typer.Argument(help="Runs of the system: a table, JSON, JSON lines, a log, or a folder."),
    ] = None,
    *,
    model: options.ModelOptions,
    limits: options.LimitOptions,
    folder: Annotated[Path, typer.Option(help="Folder of tasks.")] = Path("tasks"),
    columns: options.Columns = None,
    description: Annotated[
        str | None, typer.Option(help="What the system does, in two or three sentences.")
    ] = None,
    no_run: Annotated[
        bool, typer.Option("--no-run", help="Only write the task, without calling a model.")
    ] = False,
    store: options.StorePath = None,
) -> None:
    """Create a task, and a first report page from a file of runs.

    Writes task.yaml and an evaluation file, proposes criteria, judges ten runs, and writes a page.
    """
    from agenteval.files import write_atomically
    from agenteval.models.factory import choose_model

    if runs is None and Path(name).is_file():
        name, runs = re.sub("[^A-Za-z0-9]+", "-", Path(name).stem).strip("-"), Path(name)
    _check_name(name)
    target, criteria = folder / name, Path("criteria") / f"{name}.json"
    if target.exists():
        raise InputError("this folder exists already; nothing was changed", str(target))
    if runs is None:
        _empty_task(target)
        return
    if not no_run and criteria.exists():
        raise InputError("these criteria exist already; nothing was changed", str(criteria))
    if not no_run:  # report a missing key or a wrong URL before anything is written
        choose_model(model.model, model.base_url)
    mapping, read = _mapping(runs, read_columns(columns))
    if not description:
        raise InputError("describe in two or three sentences what the system does", "--description")
    write_atomically(target / "task.yaml", _task_yaml(name, description, mapping, read))
    out().print(f"written: {target}/task.yaml; if a column is wrong, use --map FIELD=COLUMN,...")
    file = Path(f"{name}.eval.yaml")
    if not file.exists():
        write_atomically(file, _evaluation_yaml(target, runs, criteria, model, store))
        out().print(f"written: {file}, for `agenteval run {file}`")
    if no_run:
        out().print(f"next: agenteval criteria --task {target}")
        return
    try:
        _first_page(target, runs, criteria, model, limits, store)
    except AgentevalError:
        note(f"{target} is written and kept; continue with the last command above, then the next")
        raise


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
        raise InputError("use letters, digits, hyphens and underscores, at most 64", "NAME")


def _empty_task(target: Path) -> None:
    from agenteval.files import write_atomically

    write_atomically(target / "task.yaml", _TASK.format(name=target.name))
    write_atomically(target / "runs.jsonl", _RUN)
    after = f"then `agenteval criteria --task {target.name}`"
    out().print(f"{target}: fill in task.yaml and runs.jsonl, {after}")


def _mapping(runs: Path, columns_given: dict[str, str] | None) -> tuple[dict[str, str], list[Run]]:
    """Return the column of each field, and the runs; print them with two values of each column.

    Raises InputError where the columns cannot be guessed.
    """
    from agenteval.readers import read_runs
    from agenteval.readers.fields import field_of
    from agenteval.readers.runs import first_records
    from agenteval.readers.source_files import find
    from agenteval.readers.table_files import guess_mapping

    files = find(runs).files
    records = first_records(files[0]) if files else []
    try:
        mapping = guess_mapping(records, columns_given) if records else columns_given or {}
    except InputError as error:
        raise InputError(str(error), str(runs)) from None
    result = read_runs(runs, mapping=mapping)
    for skipped in result.skipped:
        note(f"skipped {skipped.path}: {skipped.reason}")
    for line in result.warnings:
        warn(line)
    out().print(f"{plural(len(result.runs), 'run')} in {clean(runs)}; columns are read as:")
    columns = dict.fromkeys(key for record in records for key in record)
    unmapped = [key for key in columns if key not in mapping.values() and not field_of(key)]
    for field, column in [*mapping.items(), *(("", key) for key in unmapped)]:
        values = [str(r[column]) for r in records if r.get(column) is not None][:2]
        shown = clean(" | ".join(" ".join(v.split())[:40] for v in values))
        out().print(f"  {field or '(aside)':9} = {clean(column)}   [dim]{shown}[/dim]")
    success = [r.success for r in result.runs]
    out().print(
        f"  {success.count(True)} succeeded, {success.count(False)} failed, "
        f"{success.count(None)} without a success label"
    )
    return mapping, result.runs


def _task_yaml(name: str, description: str, mapping: dict[str, str], runs: list[Run]) -> str:
    """Return the task file, with a success and a failure as examples where both are known."""
    from agenteval.readers import make_view

    task: dict[str, object] = {"name": name, "description": description}
    if renamed := {field: column for field, column in mapping.items() if field != column}:
        task["map"] = renamed
    examples = {}
    for kind, success in (("success", True), ("failed", False)):
        if (run := next((r for r in runs if r.success is success), None)) is not None:
            examples[kind] = [{"input": run.input, "output": make_view(run).trajectory}]
    if len(examples) == 2:
        task["examples"] = examples
    return _yaml(task)


def _yaml(values: dict[str, object]) -> str:
    import yaml

    text: str = yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=100)
    return text


def _evaluation_yaml(
    target: Path, runs: Path, criteria: Path, model: options.ModelOptions, store: str | None
) -> str:
    """Return the evaluation file for the task with the options of the command."""
    judge = {
        "model": model.model,
        "base_url": model.base_url and public_url(model.base_url),  # keys stay in the environment
        "parameters": model.parameters() or None,
    }
    evaluation: dict[str, object] = {
        "task": str(target),
        "runs": str(runs),
        "criteria": {"file": str(criteria)},
        "judge": {name: value for name, value in judge.items() if value is not None},
        "verify": {"sample": 40},
        "report": "report.html",
        "store": store,
    }
    return _yaml({name: value for name, value in evaluation.items() if value not in (None, {})})


def _first_page(
    target: Path,
    runs: Path,
    criteria: Path,
    model: options.ModelOptions,
    limits: options.LimitOptions,
    store: str | None,
) -> None:
    """Propose criteria, price all runs, judge ten, write the page; print the command of each step.

    Raises Exit with the exit code of the judging where that is not 0.
    """
    from agenteval.app import stored
    from agenteval.utility import api as utility

    how: dict[str, Any] = {"base_url": model.base_url, "temperature": model.temperature}
    how |= {"store": store, "limits": limits.limits(), "task": str(target)}
    chosen = {"--model": model.model, "--base-url": model.base_url, "--store": store}
    flags = [word for name, value in chosen.items() if value for word in (name, value)]
    for header in model.header or ():
        flags += ["--header", f"{header.partition('=')[0]}=..."]
    of_runs = [str(runs), "--task", str(target), *flags]

    _step("criteria", "--task", str(target), *flags)
    utility.propose(model=model.model, output=criteria, notify=notify, **how).print(console=out())
    _step("quantify", *of_runs, "--dry-run")
    how["judge"] = model.model
    utility.quantify(runs, criteria, **how, dry_run=True).print(console=out())
    _step("quantify", *of_runs, "--limit", str(_FIRST))
    judged = utility.quantify(runs, criteria, **how, limit=_FIRST, notify=notify)
    judged.print(console=out())
    _step("report", "-o", "report.html", *(["--store", store] if store else []))
    stored.page(Path("report.html"), store=store).print(console=out())
    if judged.source.model.startswith("embedded"):
        out().print(
            "next: choose a judge that can rate these criteria (--model openai:gpt-4o, "
            f"--base-url URL, or a function, see docs/first-run.md); then review {criteria}"
        )
    else:
        out().print(f"next: read {criteria}; can this judge be trusted?")
        _step("verify", *of_runs)
    if judged.exit_code:
        raise typer.Exit(judged.exit_code)


def _step(*words: str) -> None:
    command = shlex.join(("agenteval", *words))
    out().print(f"[dim]$ {clean(redacted(command))}[/dim]", soft_wrap=True)
