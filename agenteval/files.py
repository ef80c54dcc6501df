"""Whole files are replaced in one step: a reader sees the old text or the new, never half."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from agenteval.errors import InputError


def write_atomically(path: Path, text: str) -> None:
    """Write through a temporary file in the same folder, durable before it gets its name.

    Raises InputError when the folder cannot be written; the old file is untouched then.
    """
    target = path.resolve()
    temporary: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        temporary = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
        temporary = None
        _sync_folder(target.parent)
    except OSError as error:
        raise InputError(f"cannot write ({error.strerror or error})", str(path)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current


def _sync_folder(folder: Path) -> None:
    """The new name must survive a power cut as well. Windows cannot and need not do this."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
