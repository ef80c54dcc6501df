"""agenteval plan report: what the stored planning trials tell, as tables and one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options, plan_job
from agenteval.cli.console import Verbosity, note, print_json
from agenteval.cli.outputs import refuse_input
from agenteval.cli.plan_run import Lexicon
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.planning.dissect import Dissection


def report(
    suite: Annotated[
        Path | None, typer.Argument(help="Only the cases of this suite. Default: all stored.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="HTML page to write.")
    ] = None,
    runs: plan_job.RunsFile = None,
    strict: plan_job.Strict = False,
    lexicon: Lexicon = None,
    store: options.StorePath = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Tables of all systems tried; with -o a self-contained page with figures and failures."""
    from agenteval.cli import begun
    from agenteval.cli.plan_run import show, write_runs
    from agenteval.cli.plan_synth import read_lexicon
    from agenteval.cli.plan_table import attempts_json, causes_of
    from agenteval.evaluators.planning.dissections import load_dissections
    from agenteval.evaluators.planning.suite import read_suite
    from agenteval.evaluators.planning.trials import EVALUATOR, load_attempts
    from agenteval.store import Store, default_path
    from agenteval.store.experiments import unfinished_trials

    Verbosity.level = -1 if quiet else Verbosity.level
    for path in (output, runs):
        refuse_input(path, [suite, lexicon], store=store)
    rules = plan_job.make_rules(180.0, 50, strict=strict).check
    words = read_lexicon(lexicon)[0]
    keys = None if suite is None else [case.sha256 for case in read_suite(suite, words)]
    with Store(store or default_path(), create=False) as opened, opened.snapshot():
        unfinished = unfinished_trials(opened, [EVALUATOR], keys)
        attempts = load_attempts(opened, rules, cases=keys)
        dissected = load_dissections(opened, cases=keys)
    begun.say(unfinished, aside=as_json or not attempts)
    if not attempts:
        raise InputError("no planning trial is stored here yet; run `agenteval plan test` first")
    chosen = _dissection(dissected)
    causes = causes_of(dissected[chosen]) if chosen else []
    if as_json:
        rows = attempts_json(attempts)
        print_json([{**row, "unfinished": begun.as_json(unfinished)} for row in rows])
    else:
        show(attempts, causes, words, as_json=False, brief=False)
    if runs is not None:
        write_runs(runs, attempts)
    if output is not None:
        from agenteval.files import write_atomically
        from agenteval.report.planning import planning_page

        lines = [one.line for one in unfinished]
        page = planning_page(attempts, causes, lexicon=words, unfinished=lines)
        write_atomically(output, page)
        note(f"written: {output}")


def _dissection(found: dict[str, list[Dissection]]) -> str | None:
    """The options under which most cases were dissected; the others are named, not mixed in."""
    if not found:
        return None
    chosen = max(sorted(found), key=lambda name: len(found[name]))
    for name in sorted(found):
        if name != chosen:
            note(f"{len(found[name])} dissections by other options are left out: {name}")
    return chosen
