"""What a command writes must not be what it reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.errors import InputError
from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.records import Run

_READ = "this file is read; name another one to write"
_STORE = "this is the store; name another file to write"
_DATABASE = "this is a database; name another file to write"


def refuse_input(
    output: Path | None, inputs: Iterable[str | Path | None] = (), *, store: str | None = None
) -> None:
    """Raise InputError when the file to write is one of those that are read, by any name.

    So it is for the store that was given, or else is meant by default, also when it is still to be
    made, and for any other database. To be called before anything is paid for.
    """
    if output is None:
        return
    if any(source is not None and _same(source, output) for source in inputs):
        raise InputError(_READ, str(output))
    _refuse_store(output, store)


def check_writable(path: Path | None) -> None:
    """Raises InputError for what can be known not to be writable before anything is written."""
    if path is None:
        return
    folder = path.resolve().parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent  # what is missing will be made
    if path.is_dir():
        raise InputError("cannot write (it is a folder)", str(path))
    if not folder.is_dir():
        raise InputError(f"cannot write ({folder} is no folder)", str(path))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write (no right to write in {folder})", str(path))


def _same(other: str | Path, output: Path) -> bool:
    try:
        return Path(other).samefile(output)
    except FileNotFoundError:  # both may be still to be made
        return os.path.realpath(other) == os.path.realpath(output)
    except (OSError, ValueError):  # what is no file is told later
        return False


def _refuse_store(output: Path, store: str | None) -> None:
    from agenteval.files import is_database, refused
    from agenteval.store import default_path
    from agenteval.store.connect import store_place

    kept = store_place(store or default_path())
    if isinstance(kept, Path) and _same(kept, output):
        raise InputError(_STORE, str(output))
    try:
        database = is_database(output)
    except OSError as error:
        raise refused(error, output) from error
    except ValueError as error:
        raise InputError(f"cannot write ({' '.join(str(error).split())})", str(output)) from error
    if database:
        raise InputError(_DATABASE, str(output))


def write_runs(path: Path, runs: Sequence[Run], trials: int, noun: str) -> None:
    """Write runs as JSON lines, and say how many of the trials are none."""
    from agenteval.cli.console import note
    from agenteval.files import write_atomically

    write_atomically(path, "".join(r.model_dump_json(exclude_none=True) + "\n" for r in runs))
    left = trials - len(runs)
    more = f", {plural(left, noun)} without verdict left out" if left else ""
    note(f"{plural(len(runs), 'run')} written to {path}{more}")
