"""What a command writes must not be what it reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
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


def check_record(
    record: Path | None,
    inputs: Iterable[str | Path | None],
    sources: Iterable[str | Path | None] = (),
    model: str | None = None,
    *,
    store: str | None = None,
) -> None:
    """What --record names may be written to, told before anything is asked.

    Raises InputError when it is one of the `inputs` or the file of the model, the store or another
    database, when it is or would be among what is read of a source (a file, folder or pattern),
    and when it exists and is no recording.
    """
    if record is None:
        return
    kind, _, file = (model or "").removeprefix("decisions:").partition(":")
    refuse_input(record, [*inputs, file if kind in ("replay", "autogen") else None], store=store)
    for source in sources:
        if source is not None and str(source) != "-":
            _refuse_within(record, str(source))
    if record.is_file():
        from agenteval.models.replay import recorded

        recorded(record)


def _refuse_within(record: Path, source: str) -> None:
    from agenteval.readers.runs import SUFFIXES, find

    try:
        files = [entry.path for entry in find(source).files]
    except InputError:
        return  # the source cannot be read, which is told when it is
    if any(_same(file, record) for file in files):
        raise InputError(_READ, str(record))
    parts = Path(os.path.abspath(record)).parts
    pattern = Path(os.path.abspath(source)).parts
    if Path(source).is_dir():
        pattern = (*pattern, "**", "[!.]*")
    if record.suffix.lower() in SUFFIXES and not record.exists() and _fits(parts, pattern):
        reason = f"{source} is read, and the next time this file would be as well"
        raise InputError(f"{reason}; name one elsewhere", str(record))


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path fits a pattern, part by part; ** is any folders that are not hidden."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        visible = next((i for i, part in enumerate(parts) if part.startswith(".")), len(parts))
        return any(_fits(parts[i:], pattern[1:]) for i in range(visible + 1))
    return (
        bool(parts)
        and (parts[0] == pattern[0] or fnmatchcase(parts[0], pattern[0]))
        and _fits(parts[1:], pattern[1:])
    )


def write_runs(path: Path, runs: Sequence[Run], trials: int, noun: str) -> None:
    """Write runs as JSON lines, and say how many of the trials are none."""
    from agenteval.cli.console import note
    from agenteval.files import write_atomically

    write_atomically(path, "".join(r.model_dump_json(exclude_none=True) + "\n" for r in runs))
    left = trials - len(runs)
    more = f", {plural(left, noun)} without verdict left out" if left else ""
    note(f"{plural(len(runs), 'run')} written to {path}{more}")
