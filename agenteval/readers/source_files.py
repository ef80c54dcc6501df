"""Find the files for a path, folder or pattern, and hold the result of reading them."""

from __future__ import annotations

import gc
import glob
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.table_files import SUFFIXES as TABLES
from agenteval.records import Run

SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", *TABLES, ".eval")
_WILD = "*?["


@dataclass(frozen=True)
class Skipped:
    """A file that was not read, with the reason."""

    path: str
    reason: str


@dataclass(frozen=True)
class ReadResult:
    """Runs in file order, skipped files, and warnings of one line each."""

    runs: list[Run]
    skipped: list[Skipped]
    warnings: list[str]


@dataclass(frozen=True)
class SourceFile:
    """A file to read. `name`, the relative path without suffix (or the stem), starts the ids."""

    path: Path
    name: str


@dataclass(frozen=True)
class RunDefaults:
    """Default id, task and system for the runs of a file."""

    id: str
    task: str = ""
    system: str = ""


@dataclass(frozen=True)
class SourceFiles:
    """Files in order; `single` if the user named one file, which must be readable."""

    files: list[SourceFile]
    skipped: list[Skipped]
    single: bool = False


def find(source: str | Path) -> SourceFiles:
    """Return the files of a path or glob pattern, sorted by path.

    Hidden files and folders are ignored; links that leave the folder are listed as skipped. Raises
    InputError if nothing is found.
    """
    text = os.fspath(source)
    if "\0" in text or not text:
        raise InputError("a path must not be empty or contain a NUL character")
    path = Path(text)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        wild = [i for i, part in enumerate(path.parts) if any(c in part for c in _WILD)]
        if not wild:
            raise InputError("no such file or folder", text) from None
        return _sorted_out(_matches(text), Path(*path.parts[: wild[0]]))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", text) from None
    if stat.S_ISDIR(mode):
        return _sorted_out(_walk(path), path)
    return SourceFiles([SourceFile(path, path.stem)], [], single=True)


def _matches(pattern: str) -> Iterator[Path | Skipped]:
    hits = sorted(glob.glob(pattern, recursive=True))
    if not hits:
        raise InputError("the pattern matches no file", pattern)
    for hit in hits:
        if not os.path.isdir(hit):
            yield Path(hit)
        elif "**" not in pattern:  # ** descends into folders itself
            yield Skipped(hit, "a folder")


def _walk(folder: Path) -> Iterator[Path | Skipped]:
    try:
        entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(folder)) from None
    for path in entries:
        if os.path.isdir(path):  # False for a loop of links
            links = path.is_symlink()
            yield from [Skipped(str(path), "a link to a folder")] if links else _walk(path)
        else:
            yield path


def _sorted_out(entries: Iterable[Path | Skipped], root: Path) -> SourceFiles:
    sources = SourceFiles([], [])
    for entry in entries:
        if isinstance(entry, Skipped):
            sources.skipped.append(entry)
        elif reason := _why_not(entry, root):
            sources.skipped.append(Skipped(str(entry), reason))
        else:
            name = entry.relative_to(root).with_suffix("").as_posix()
            sources.files.append(SourceFile(entry, name))
    return sources


def _why_not(path: Path, root: Path) -> str:
    if path.suffix.lower() not in SUFFIXES:
        return f"not one of {', '.join(SUFFIXES)}"
    try:
        path.stat()
        leaves = path.is_symlink() and not path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return "a broken link"
    return "a link that leaves the folder" if leaves else ""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause garbage collection: runs have no cycles, and it takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def described(value: Any) -> str:
    """Describe a JSON value for messages."""
    if isinstance(value, dict):
        keys = ", ".join(repr(k[:40]) for k in list(value)[:8])
        return f"an object with the keys {keys or '(none)'}"
    if isinstance(value, list) and value:
        first = "" if isinstance(value[0], list) else f", first {described(value[0])}"
        return f"an array{first}"
    names = {list: "an empty array", str: "a text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
