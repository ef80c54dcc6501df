"""Whole files are replaced in one step: a reader sees the old text or the new, never half."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agenteval.errors import InputError


def write_atomically(path: Path, text: str) -> None:
    """Write UTF-8 through a temporary file in the same folder, durable before it gets its name.

    Raises InputError when the folder cannot be written or the text is not Unicode; the old file
    is untouched then.
    """
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Path of a temporary file beside `path`; at the end of the block it takes its place.

    The mode of an existing file and a symbolic link at `path` are kept. When the block raises,
    the old file stays as it is and the temporary one is removed. Raises InputError for what the
    system refuses.
    """
    temporary: Path | None = None
    try:
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.partial")
        temporary.touch(mode=0o666, exist_ok=False)  # the system applies the umask
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        yield temporary
        _sync(temporary, os.O_RDWR)
        temporary.replace(target)
        temporary = None
        if os.name == "posix":  # the new name must survive a power cut as well
            _sync(target.parent, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"cannot write ({error.strerror or error})", str(path)) from error
    except UnicodeEncodeError as error:
        raise InputError(f"cannot write ({error.reason} in the text)", str(path)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
