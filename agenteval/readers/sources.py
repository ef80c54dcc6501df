"""From what the user names (file, folder, pattern, "-") to the files to read."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.errors import InputError

SUFFIXES = (".json", ".jsonl", ".ndjson")
_MAGIC = "*?["


@dataclass(frozen=True)
class Skipped:
    """A file that was found and not read."""

    path: str
    reason: str


@dataclass(frozen=True)
class SourceFile:
    """A file to read. `name` is the relative path without suffix (or the stem): ids start so."""

    path: Path
    name: str


@dataclass
class Found:
    """Files in order; `single` when the user named one file, which then must be readable."""

    files: list[SourceFile] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    single: bool = False


def find(source: str | Path) -> Found:
    """The files behind a path or glob pattern, sorted by path.

    Hidden files and folders are left out, links that leave the folder are listed as skipped.
    Raises InputError when nothing is there.
    """
    text = os.fspath(source)
    if "\0" in text or not text:
        raise InputError("an empty path or one with a NUL character names no file")
    path = Path(text)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if any(c in text for c in _MAGIC):
            return _from_pattern(text)
        raise InputError("no such file or folder", text) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", text) from None
    if stat.S_ISDIR(mode):
        return _from_folder(path)
    return Found([SourceFile(path, path.stem)], single=True)


def _from_folder(root: Path) -> Found:
    found = Found()
    for path in _walk(root, found.skipped):
        _sort_in(path, root, found)
    return found


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


def _from_pattern(pattern: str) -> Found:
    parts = Path(pattern).parts
    fixed = next(i for i, part in enumerate(parts) if any(c in part for c in _MAGIC))
    root = Path(*parts[:fixed]) if fixed else Path()
    found = Found()
    hits = sorted(glob.glob(pattern, recursive=True))
    if not hits:
        raise InputError("the pattern matches no file", pattern)
    for hit in hits:
        if not os.path.isdir(hit):
            _sort_in(Path(hit), root, found)
        elif "**" not in pattern:  # ** walks into folders by itself
            found.skipped.append(Skipped(hit, "a folder"))
    return found


def _sort_in(path: Path, root: Path, found: Found) -> None:
    """Put one file of a folder among the files to read or the skipped ones."""
    reason = _why_not(path, root)
    if reason:
        found.skipped.append(Skipped(str(path), reason))
    else:
        name = path.relative_to(root).with_suffix("").as_posix()
        found.files.append(SourceFile(path, name))


def _why_not(path: Path, root: Path) -> str | None:
    if path.suffix.lower() not in SUFFIXES:
        return f"not one of {', '.join(SUFFIXES)}"
    try:
        if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
            return "a link that leaves the folder"
        path.stat()
    except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return "a broken link"
    return None
