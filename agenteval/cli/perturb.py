"""agenteval perturb: runs and perturbed copies as texts, to be rated by any judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, note, warn_list
from agenteval.cli.outputs import refuse_input
from agenteval.cli.verify import PERTURB_HELP, warn_unchanged


def perturb(
    runs: Annotated[str, typer.Argument(help="File, folder, glob in quotes, or - for stdin.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the texts go, as JSONL.")],
    operators: Annotated[
        list[str] | None, typer.Option("--perturb", help=PERTURB_HELP, show_default=False)
    ] = None,
    drop: Annotated[
        float, typer.Option(help="Share of a text that a perturbation touches.", min=0.01, max=0.9)
    ] = 0.25,
    seed: options.Seed = 0,
    limit: Annotated[int | None, typer.Option(help="Only the first N runs.", min=1)] = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the text of every run and of perturbed copies; rate them, then verify --scores."""
    from agenteval.files import write_atomically
    from agenteval.readers import make_view, read_runs
    from agenteval.records.base import content_hash
    from agenteval.stats.scores import ORIGINAL
    from agenteval.trust.verification import DEFAULT_OPERATORS, make_copies

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(output, [runs])
    read = read_runs(runs)
    for skipped in read.skipped:
        note(f"skipped {skipped.path}: {skipped.reason}")
    warn_list("warnings while reading:", read.warnings)
    items = [(run, make_view(run)) for run in read.runs[:limit]]
    copies = make_copies(items, operators or DEFAULT_OPERATORS, share=drop, seed=seed)
    warn_unchanged(copies, len(items))
    texts = [(ORIGINAL, items), *((c.variant, c.items) for c in copies)]
    lines = [
        {
            "run": run.id, "variant": variant, "system": run.system,
            "case": content_hash(run.input or ["run", run.id]), "success": run.success,
            "problem": view.problem, "text": view.trajectory,
        }
        for variant, some in texts
        for run, view in some
    ]  # fmt: skip
    write_atomically(output, "".join(json.dumps(x, ensure_ascii=False) + "\n" for x in lines))
    note(f"{len(items)} originals and {len(lines) - len(items)} copies written to {output}")
