"""agenteval flow report: what the stored trials of workflows tell, as tables and one HTML page."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, note, warn
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.results import SessionResult, TurnResult
    from agenteval.store.experiments import Unfinished


def report(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="HTML page to write.")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Comparison of formats by domain, as PNG, SVG or PDF by its ending."),
    ] = None,
    role: Annotated[list[str] | None, typer.Option(help="Only these roles.")] = None,
    most: Annotated[
        int, typer.Option("--sessions", help="Sessions on the page at most.", min=0)
    ] = 100,
    whole: Annotated[
        bool,
        typer.Option("--all", help="Print tables by group as well where there is -o or -q."),
    ] = False,
    store: options.StorePath = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Tables of all systems tried; with -o a self-contained page with figures and sessions."""
    from agenteval.cli import begun
    from agenteval.cli.flow_show import show
    from agenteval.evaluators.workflows.counted import Counted

    Verbosity.level = -1 if quiet else Verbosity.level
    _check_files(output, figure)
    for path in (output, figure):
        refuse_input(path, store=store)
    sessions, turns, unfinished = _stored(store, role or ())
    begun.say(unfinished, aside=as_json)
    _say_versions(sessions, turns)
    counted = Counted(sessions, turns)
    brief = (output is not None or quiet) and not whole
    open_ = begun.as_json(unfinished)
    show(sessions, turns, as_json=as_json, brief=brief, counted=counted, more={"unfinished": open_})
    if figure is not None:
        from agenteval.figures.flows import save_formats

        save_formats(sessions, turns, figure, counted=counted)
        note(f"written: {figure}")
    if output is not None:
        from agenteval.files import write_atomically
        from agenteval.report.flows import flows_page

        lines = [one.line for one in unfinished]
        page = flows_page(sessions, turns, most_sessions=most, counted=counted, unfinished=lines)
        write_atomically(output, page)
        note(f"written: {output}")


def _check_files(output: Path | None, figure: Path | None) -> None:
    """Raises InputError for what can be known not to be writable before anything is written."""
    if figure is not None:
        from agenteval.figures.flows import check_ending

        check_ending(figure)
    for path in (output, figure):
        if path is None:
            continue
        folder = path.resolve().parent
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent  # what is missing will be made
        if path.is_dir():
            raise InputError("cannot write (it is a folder)", str(path))
        if not folder.is_dir():
            raise InputError(f"cannot write ({folder} is no folder)", str(path))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"cannot write (no right to write in {folder})", str(path))


def _stored(
    store: Path | None, roles: Sequence[str]
) -> tuple[list[SessionResult], list[TurnResult], list[Unfinished]]:
    """The stored trials of these roles, of all without any, and what of any is not finished.

    Raises InputError without a trial.
    """
    from agenteval.cli import begun
    from agenteval.evaluators.workflows.stored import EVALUATORS, load_sessions, load_turns
    from agenteval.store import Store, default_path
    from agenteval.store.connect import store_path
    from agenteval.store.experiments import unfinished_trials

    path = store_path(store or default_path())
    first = "run `agenteval flow session` or `agenteval flow turn` first"
    if not path.is_file():  # the store itself would name another command
        raise InputError(f"there is no store here yet; {first}", str(path))
    with Store(path, create=False) as opened, opened.snapshot():
        unfinished = unfinished_trials(opened, EVALUATORS.values())
        sessions, turns = load_sessions(opened), load_turns(opened)
    if not (sessions or turns):
        begun.say(unfinished, aside=True)
        raise InputError(f"no trial of a workflow is stored here yet; {first}")
    known = {r.case.role for r in sessions} | {r.case.role for r in turns}
    for name in roles:
        if name not in known:
            told = ", ".join(sorted(known))
            raise InputError(f"no trial of a role {name!r}; there are some of: {told}", "--role")
    chosen = set(roles) or known
    return ([r for r in sessions if r.case.role in chosen],
            [r for r in turns if r.case.role in chosen], unfinished)  # fmt: skip


def _say_versions(sessions: Sequence[SessionResult], turns: Sequence[TurnResult]) -> None:
    """Results of a role before and after it was changed stand side by side: say so."""
    found = {(r.case.role, r.case.task.partition(" [")[0], r.case.version) for r in sessions}
    found |= {(r.case.role, r.case.task.partition(" [")[0], r.case.version) for r in turns}
    often = Counter((role, task) for role, task, _ in found)
    changed = sorted({role for (role, _), n in often.items() if n > 1})
    if changed:
        warn(
            f"several versions of {', '.join(changed)} are stored; each counts as tasks of its own "
            "(`flow session` and `flow turn` show the present one)"
        )
