"""Whole files are replaced in one step: a reader sees the old text or the new, never half."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agenteval.databases import is_database
from agenteval.errors import AgentevalError, InputError, StoreError

if sys.platform != "win32":
    import fcntl

# What is wrong with the path given; anything else is wrong with the machine.
_OF_THE_PATH = {
    errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EROFS,
    errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.EEXIST, errno.ETXTBSY, errno.EXDEV,
}  # fmt: skip
_NO_SPACE = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_LONGEST = 200  # bytes of the name that a temporary one repeats: together at most 255
_TOKEN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{12}\.partial")


def write_atomically(path: Path, text: str) -> None:
    """Write UTF-8 through a temporary file in the same folder, durable before it gets its name.

    Raises InputError when the path cannot be written, is a database or the text is not Unicode,
    StoreError when the disk is full or fails. The old file is untouched then, unless the disk
    failed after the new one took its place whole.
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"cannot write ({error.reason} in the text)", str(path)) from error
    with replacing(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Path of a temporary file beside `path`; at the end of the block it takes its place.

    The mode of an existing file and a symbolic link at `path` are kept. When the block raises,
    the old file stays as it is and the temporary one is removed; what a killed process left of its
    own is removed first. Raises as `write_atomically`.
    """
    temporary: Path | None = None
    held: int | None = None
    try:
        target = _target(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target)
        temporary, held = _create(target)
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        yield temporary
        _sync(temporary, os.O_RDWR)
        _refuse_database(target, path)  # one that was made meanwhile
        temporary.replace(target)
        temporary = None
        if os.name == "posix":  # the new name must survive a power cut as well
            _sync(target.parent, os.O_RDONLY)
    except OSError as error:
        raise refused(error, path) from error
    except UnicodeEncodeError as error:
        raise InputError(f"cannot write ({error.reason} in the text)", str(path)) from error
    finally:
        if temporary is not None:
            # A disk that fails here too leaves it to the next writer; the first error is told.
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        if held is not None:
            os.close(held)


def _target(path: Path) -> Path:
    """The file that is to be replaced, links followed.

    Raises InputError for a circle of links, for a database, and for a pipe or a device: in the
    place of /dev/null would stand a file. Raises OSError for what cannot be looked at.
    """
    try:
        target = path.resolve()
    except (RuntimeError, ValueError) as error:  # a NUL character; before 3.13 also a circle
        raise InputError(f"names no file ({' '.join(str(error).split())})", str(path)) from error
    if target.exists() and not target.is_file() and not target.is_dir():
        raise InputError("cannot write (this is no file but a pipe or a device)", str(path))
    _refuse_database(target, path)
    return target


def _refuse_database(target: Path, path: Path) -> None:
    """Whole files are texts and pictures: nobody means to put one in the place of a store."""
    if is_database(target):
        raise InputError("cannot write (this is a database, perhaps a store)", str(path))


def refused(error: OSError, path: Path, what: str = "cannot write") -> AgentevalError:
    """What to raise when the system refuses a write.

    InputError when it is for the path that was given, StoreError when the disk is full or fails.
    """
    reason = f"{what} ({error.strerror or error})"
    if error.errno in _OF_THE_PATH:
        return InputError(reason, str(path))
    more = "; free some space and run the command again" if error.errno in _NO_SPACE else ""
    return StoreError(f"{path}: {reason}{more}")


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ---- temporary files and what killed processes leave of them -------------------------------------
#
# A writer holds a lock (flock) on its temporary file while it lives, and the system takes it away
# when the process dies in any way. So one that can be locked belongs to nobody. The name holds the
# host, since the locks of some network disks are not seen on other hosts.


def _create(target: Path) -> tuple[Path, int | None]:
    """A new file beside the target, and the descriptor that holds its lock (none on Windows)."""
    while True:
        name = f"{_prefix(target)}{_host()}-{secrets.token_hex(6)}.partial"
        path = target.with_name(name)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(path, flags, 0o666)  # the system applies the umask
        if sys.platform == "win32":  # an open file could not be renamed there
            os.close(descriptor)
            return path, None
        with contextlib.suppress(OSError):  # no locks on this disk: then nobody removes it either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)  # taken for a leftover before it was locked


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of this target whose writer on this host is dead.

    What cannot be listed, opened or removed is left: the write itself will tell if it matters.
    """
    if sys.platform == "win32":
        return
    prefix = f"{_prefix(target)}{_host()}-"
    start = len(prefix) - 9  # the token begins with the host
    left: list[str] = []
    with contextlib.suppress(OSError):
        left = [n for n in os.listdir(target.parent) if n.startswith(prefix)]
    for name in left:
        if _TOKEN.fullmatch(name, start):
            with contextlib.suppress(OSError):
                _remove_unlocked(target.with_name(name))


def _remove_unlocked(path: Path) -> None:
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: it is in use
        path.unlink(missing_ok=True)  # its name was never used before and is never used again
    finally:
        os.close(descriptor)


def _prefix(target: Path) -> str:
    """A hidden name that begins as the target's does."""
    short = os.fsencode(target.name)[:_LONGEST].decode("utf-8", "ignore")
    return f".{short}."


def _host() -> str:
    node = os.uname().nodename if sys.platform != "win32" else ""
    return hashlib.sha256(node.encode("utf-8", "surrogateescape")).hexdigest()[:8]
