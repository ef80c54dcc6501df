"""The files behind a path, a folder or a pattern, and what comes of reading them."""

from __future__ import annotations

import gc
import glob
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.table_files import SUFFIXES as TABLES
from agenteval.records import Run

SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", *TABLES, ".eval")
MOST_RUNS = 1_000_000
_WILD = "*?["


@dataclass(frozen=True)
class Skipped:
    """A file that was found and not read."""

    path: str
    reason: str


@dataclass(frozen=True)
class ReadResult:
    """Runs in the order of the files, files that were passed over, and warnings, one line each."""

    runs: list[Run]
    skipped: list[Skipped]
    warnings: list[str]


@dataclass(frozen=True)
class SourceFile:
    """A file to read. `name` is the relative path without suffix (or the stem): ids start so."""

    path: Path
    name: str


@dataclass(frozen=True)
class SourceFiles:
    """Files in order; `single` when the user named one file, which then must be readable."""

    files: list[SourceFile]
    skipped: list[Skipped]
    single: bool = False


def find(source: str | Path) -> SourceFiles:
    """The files behind a path or glob pattern, sorted by path.

    Hidden files and folders are left out, links that leave the folder are listed as skipped.
    Raises InputError when nothing is there.
    """
    text = os.fspath(source)
    if "\0" in text or not text:
        raise InputError("an empty path or one with a NUL character names no file")
    path = Path(text)
    sources = SourceFiles([], [])
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if not any(c in text for c in _WILD):
            raise InputError("no such file or folder", text) from None
        _match(text, sources)
        return sources
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", text) from None
    if not stat.S_ISDIR(mode):
        return SourceFiles([SourceFile(path, path.stem)], [], single=True)
    for inside in _walk(path, sources.skipped):
        _sort_in(inside, path, sources)
    return sources


def _match(pattern: str, found: SourceFiles) -> None:
    parts = Path(pattern).parts
    fixed = next(i for i, part in enumerate(parts) if any(c in part for c in _WILD))
    hits = sorted(glob.glob(pattern, recursive=True))
    if not hits:
        raise InputError("the pattern matches no file", pattern)
    for hit in hits:
        if not os.path.isdir(hit):
            _sort_in(Path(hit), Path(*parts[:fixed]), found)
        elif "**" not in pattern:  # ** walks into folders by itself
            found.skipped.append(Skipped(hit, "a folder"))


def _walk(folder: Path, skipped: list[Skipped]) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(folder)) from None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_symlink() and os.path.isdir(entry.path):  # False for a loop of links
            skipped.append(Skipped(entry.path, "a link to a folder"))
        elif entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), skipped)
        else:
            yield Path(entry.path)


def _sort_in(path: Path, root: Path, found: SourceFiles) -> None:
    """Put one file of a folder among the files to read or the skipped ones."""
    reason = ""
    if path.suffix.lower() not in SUFFIXES:
        reason = f"not one of {', '.join(SUFFIXES)}"
    else:
        try:
            if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
                reason = "a link that leaves the folder"
            path.stat()
        except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
            reason = "a broken link"
    if reason:
        found.skipped.append(Skipped(str(path), reason))
    else:
        name = path.relative_to(root).with_suffix("").as_posix()
        found.files.append(SourceFile(path, name))


@contextmanager
def collector_paused() -> Iterator[None]:
    """Runs hold no cycles; looking for them again and again costs a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def described(value: Any) -> str:
    """What a JSON value is at its top, for messages."""
    if isinstance(value, dict):
        keys = ", ".join(repr(k[:40]) for k in list(value)[:8])
        return f"an object with the keys {keys or '(none)'}"
    if isinstance(value, list) and value:
        return (
            f"an array, first {described(value[0])}"
            if not isinstance(value[0], list)
            else "an array"
        )
    names = {list: "an empty array", str: "a text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
