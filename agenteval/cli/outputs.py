"""Refuses to write a file that the command reads, and writes runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.errors import InputError
from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.cli.options import StorePath
    from agenteval.records import Run


def refuse_input(
    output: str | Path | None, inputs: Iterable[object] = (), *, store: StorePath = None
) -> None:
    """Raise InputError when the file to write is one of the `inputs`, or the store.

    The store is `store` or the default one, also when it does not exist yet. Call it before
    anything is paid for.
    """
    if output is None:
        return
    from agenteval.files import same_file
    from agenteval.store import default_path
    from agenteval.store.connect import store_place

    files = (Path(source) for source in inputs if isinstance(source, str | Path))
    if any(same_file(file, Path(output)) for file in files):
        raise InputError(
            "the command also reads this file; choose another output file", str(output)
        )
    place = store_place(default_path() if not isinstance(store, str | Path) else store)
    if isinstance(place, Path) and same_file(place, Path(output)):
        raise InputError("this file is the store; choose another output file", str(output))


def write_runs(path: Path, runs: Sequence[Run], trials: int, noun: str) -> None:
    """Write runs as JSON lines, and report how many of the trials have no verdict."""
    from agenteval.cli.console import note
    from agenteval.files import write_atomically

    write_atomically(path, "".join(r.model_dump_json(exclude_none=True) + "\n" for r in runs))
    omitted = trials - len(runs)
    more = f", {plural(omitted, noun)} without a verdict omitted" if omitted else ""
    note(f"{plural(len(runs), 'run')} written to {path}{more}")
