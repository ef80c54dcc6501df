"""agenteval export: every result with its run, as JSONL, CSV or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import note


def export(
    file: Annotated[Path, typer.Argument(help="Target; .jsonl, .csv or .parquet.")],
    source: Annotated[
        str | None, typer.Option(help="Start of a source's hash; default: all.")
    ] = None,
    store: options.StorePath = None,
) -> None:
    """Write all stored results to a file, one row per result; the file appears whole or not."""
    from agenteval.cli.show import pick_source
    from agenteval.store import Store, default_path
    from agenteval.store.export import export_cells

    with Store(store or default_path(), create=False) as opened:
        key = None if source is None else pick_source(opened.sources(), source)[0]
        rows = export_cells(opened, file, source_key=key)
    note(f"{rows} results written to {file}")
