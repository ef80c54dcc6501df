"""agenteval export: every result with its run, as JSONL, CSV or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, note
from agenteval.cli.outputs import refuse_input


def export(
    file: Annotated[Path, typer.Argument(help="Target; .jsonl, .csv or .parquet.")],
    source: Annotated[
        str | None, typer.Option(help="Start of a source's hash; default: all.")
    ] = None,
    all_ways: Annotated[
        bool,
        typer.Option("--all-ways", help="With what `verify --probes` asked; see the column `way`."),
    ] = False,
    with_copies: Annotated[
        bool,
        typer.Option(
            "--with-copies", help="With those on perturbed copies; see the column `variant`."
        ),
    ] = False,
    store: options.StorePath = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the stored results on the runs to a file, one row per result; it appears whole or not.

    Results on perturbed copies, and those of probes, are left out: a mean of them says nothing.
    """
    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(file, store=store)
    from agenteval.cli import begun
    from agenteval.cli.show import pick_source
    from agenteval.store import Store, default_path
    from agenteval.store.experiments import unfinished_of
    from agenteval.store.export import export_cells, results_on_copies
    from agenteval.store.ways import is_probe, way_of
    from agenteval.text import plural

    with Store(store or default_path(), create=False) as opened, opened.snapshot():
        known = opened.sources(trials=True)
        key = None if source is None else pick_source(known, source)[0]
        own = [k for k, one in known if key in (None, k) and (key or all_ways or not is_probe(one))]
        unfinished = unfinished_of(opened, own)
        rows = export_cells(opened, file, source_key=key, probes=all_ways, copies=with_copies)
        copies = 0 if with_copies else results_on_copies(opened, own)
    begun.say(unfinished, aside=True)
    note(f"{rows} results written to {file}")
    if copies:
        note(f"left out: {copies} results on perturbed copies; --with-copies adds them")
    ways = [way_of(one) for _, one in known if is_probe(one)]
    if ways and key is None and not all_ways:
        note(
            f"left out: {plural(len(ways), 'source')} that `verify --probes` asked in other ways "
            f"({', '.join(dict.fromkeys(ways))}); --all-ways adds them"
        )
