"""agenteval flow report: what the stored trials of workflows tell, as tables and one HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, note, warn
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.results import SessionResult, TurnResult


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
    store: options.StorePath = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Tables of all systems tried; with -o a self-contained page with figures and sessions."""
    from agenteval.cli.flow_show import show
    from agenteval.flows import load_sessions, load_turns
    from agenteval.store import Store, default_path

    Verbosity.level = -1 if quiet else Verbosity.level
    with Store(store or default_path(), create=False) as opened:
        sessions, turns = load_sessions(opened), load_turns(opened)
    if not (sessions or turns):
        raise InputError(
            "no trial of a workflow is stored here yet; run `agenteval flow session` or "
            "`agenteval flow turn` first"
        )
    known = {r.case.role for r in sessions} | {r.case.role for r in turns}
    for name in role or ():
        if name not in known:
            told = ", ".join(sorted(known))
            raise InputError(f"no trial of a role {name!r}; there are some of: {told}", "--role")
    if role:
        sessions = [r for r in sessions if r.case.role in role]
        turns = [r for r in turns if r.case.role in role]
    _say_versions(sessions, turns)
    show(sessions, turns, as_json=as_json, brief=False)
    if figure is not None:
        from agenteval.figures.flows import save_formats

        save_formats(sessions, turns, figure)
        note(f"written: {figure}")
    if output is not None:
        from agenteval.files import write_atomically
        from agenteval.report.flows import flows_page

        write_atomically(output, flows_page(sessions, turns, most_sessions=most))
        note(f"written: {output}")


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
