"""Reads files within bounds as UTF-8, and replaces files in one step.

SQLite alone opens databases. `readers.strict_json` and `readers.strict_yaml` read the values.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import re
import secrets
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from agenteval.errors import AgentevalError, InputError, StoreError

if TYPE_CHECKING:
    import sqlite3

_NO_SPACE = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_OF_THE_DISK = {*_NO_SPACE, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_DATABASE = b"SQLite format 3\0"
_LONGEST = 200  # bytes of a name that gets a suffix or a token: systems allow 255
_FORBIDDEN = re.compile(
    r'[/\\:*?"<>|\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]'
)


def write_atomically(path: Path, text: str) -> None:
    """Write UTF-8 to a temporary file in the same folder, sync it, and rename it to `path`.

    Raises InputError when the path cannot be written or the text is not Unicode, StoreError when
    the disk is full or fails. A reader finds the old or the new file, never a part of one.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside `path`, which replaces it at the end of the block.

    The mode of an existing file and a symbolic link at `path` are kept; a database, a pipe or a
    device is never replaced. When the block raises, the old file stays as it is and the temporary
    one is removed. Raises as `write_atomically`.
    """
    temporary: Path | None = None
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file() and not target.is_dir():
            raise InputError("cannot write (this is a pipe or a device, not a file)", str(path))
        if target.is_file() and _first_bytes(target).startswith(_DATABASE):
            raise InputError("cannot write over a database; name another file", str(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        name = os.fsencode(target.name)[:_LONGEST].decode("utf-8", "ignore")
        temporary = target.with_name(f".{name}.{secrets.token_hex(6)}.partial")
        temporary.touch(exist_ok=False)
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        yield temporary
        _sync(temporary, os.O_RDWR)
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
            with contextlib.suppress(OSError):  # the first error is the one to report
                temporary.unlink(missing_ok=True)


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(len(_DATABASE))


def refused(error: OSError, path: Path) -> AgentevalError:
    """Return the error for a failed write: StoreError if the disk is full or fails, else
    InputError."""
    reason = f"cannot write ({error.strerror or error})"
    if error.errno not in _OF_THE_DISK:
        return InputError(reason, str(path))
    more = "; free some space and run the command again" if error.errno in _NO_SPACE else ""
    return StoreError(f"{path}: {reason}{more}")


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ---- ids as file names: only safe ones, and one id per file --------------------------------------


def file_in(folder: Path, id: str, suffix: str, used_names: set[str]) -> Path:
    """Return the file for `id` in `folder`, and nowhere else; adds its name to `used_names`.

    Raises InputError for an id that is empty, above 200 bytes, has separators or control
    characters, begins with a dot or ends with one or a space; for one that differs from an earlier
    one only in case or in the composition of its characters (one file on many systems); and for a
    path that is a link.
    """
    harmless = id.strip() == id and id[:1] not in ("", ".") and id[-1] != "."
    size = len(id.encode("utf-8", "surrogatepass"))
    if not harmless or _FORBIDDEN.search(id) or size > _LONGEST:
        shown = ascii(id if len(id) <= 80 else id[:77] + "...")
        raise InputError(
            f"the trace id {shown} cannot name a file: it must have 1 to {_LONGEST} bytes, no "
            "control or separating character, and no dot or space at its ends",
            str(folder),
        )
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", id).casefold())
    if folded in used_names:
        problem = f"the id {id!r} names the same file as another one on many systems"
        raise InputError(problem, str(folder))
    used_names.add(folded)
    path = folder / f"{id}{suffix}"
    if path.is_symlink():
        raise InputError("a symbolic link is at this path", str(path))
    return path


def same_file(a: Path, b: Path) -> bool:
    """Return whether both paths name one file, which need not exist."""
    try:
        return os.path.samefile(a, b)
    except OSError:
        return os.path.realpath(a) == os.path.realpath(b)
    except ValueError:  # a NUL character, which opening the file reports
        return False


@contextmanager
def looking(path: Path, *, timeout: float = 0.0) -> Iterator[sqlite3.Connection]:
    """Yield a connection to an existing database that changes neither its bytes nor its log.

    `timeout` is how long it waits for a writer, in seconds. Raises sqlite3.Error. Never look with
    `open`: closing any descriptor of a file gives up all POSIX locks of the process on it
    (sqlite.org/howtocorrupt.html, section 2.2).
    """
    import sqlite3

    # Read-only, SQLite leaves the log of a killed process beside the file; else it would bring it
    # into the file at the end. Where there is no log, only a writer removes what it makes.
    mode = "ro" if has_log(path) else sqlite_mode(path)
    uri = f"{path.as_uri()}?mode={mode}"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=timeout)) as database:
        yield database


def sqlite_mode(path: Path) -> str:
    """Return SQLite's `mode` for a database that is there: `rw`, or read-only without a lock where
    its folder cannot be written and no process has a log there."""
    fixed = not os.access(path.parent, os.W_OK) and not os.path.exists(f"{path}-wal")
    return "ro&immutable=1" if fixed else "rw"


def has_log(path: Path) -> bool:
    """Whether the database has a write-ahead log with something in it."""
    try:
        return os.stat(f"{path}-wal").st_size > 0
    except FileNotFoundError:
        return False


# -- reading -------------------------------------------------------------------------------------

SMALL = 4 * 2**20  # bytes of files that people write
LARGE = 64 * 2**20  # bytes of files that programs write, read into memory
LINES = 512 * 2**20  # bytes of files read line by line
LINE = 16 * 2**20  # bytes of one line

# Beginnings of files that are not UTF-8 text, longest first: UTF-32-LE begins like UTF-16-LE.
_MAGIC = (
    *(
        (mark, "this is UTF-32; save the file as UTF-8")
        for mark in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
    ),
    *(
        (mark, "this is UTF-16; save the file as UTF-8")
        for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    ),
    *(
        (start, f"this is {kind} archive; archives are not read, unpack it first")
        for start, kind in (
            (b"\x1f\x8b", "a gzip"),
            (b"PK\x03\x04", "a zip"),
            (b"BZh", "a bzip2"),
            (b"\xfd7zXZ", "an xz"),
            (b"\x28\xb5\x2f\xfd", "a zstd"),
        )
    ),
    (_DATABASE, "this is a database, not a text"),
    (b"%PDF-", "this is a PDF, not a text"),
)


@contextmanager
def opened(path: Path, name: str = "", most: int = LINES) -> Iterator[BinaryIO]:
    """The file at `path`, open for reading bytes; a link is followed. `name` is for messages.

    Raises InputError for a folder, a pipe or a device (a pipe would be waited for), a file above
    `most` bytes, and whatever the system refuses, also while it is read.
    """
    name = name or str(path)
    if "\0" in str(path):
        raise InputError("a path cannot contain a NUL character", name)
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # a pipe could be read only once, and is waited for
            kind = "a folder" if stat.S_ISDIR(about.st_mode) else "a pipe or a device"
            raise InputError(f"this is no file but {kind}", name)
        if about.st_size > most:
            raise InputError(f"larger than {most:,} bytes", name)
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise InputError(f"cannot read ({error.strerror or error})", name) from error


def read_bytes(path: Path, most: int = LARGE) -> bytes:
    """Return the bytes of a file. Raises InputError as `opened`, also for a file that grows above
    `most` while it is read."""
    with opened(path, most=most) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise InputError(f"larger than {most:,} bytes", str(path))
    return data


def read_text(path: Path, most: int = SMALL) -> str:
    """Return the text of a UTF-8 file without its byte order mark; line ends are unchanged.

    Raises InputError as `opened` and `decoded`, and for a NUL character.
    """
    text = decoded(read_bytes(path, most), str(path))
    _refuse_nul(text, str(path))
    return text


def decoded(data: bytes, name: str, *, line: int = 1, offset: int = 0) -> str:
    """The text of UTF-8 bytes; a byte order mark at the beginning of the file is left out.

    `line` and `offset` say where in the file the bytes begin. Raises InputError with line and byte
    offset for other encodings and archives. NUL characters pass: JSON and YAML refuse them.
    """
    if offset == 0:
        refuse_other_kinds(data, name)
        if data.startswith(codecs.BOM_UTF8):
            data, offset = data[len(codecs.BOM_UTF8) :], len(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        row = line + data.count(b"\n", 0, error.start)
        message = f"not UTF-8 at byte offset {offset + error.start}; save the file as UTF-8"
        raise InputError(message, f"{name}:{row}") from None


def refuse_other_kinds(data: bytes, name: str) -> None:
    """Raise InputError if these first bytes show that a file is not UTF-8 text."""
    for start, problem in _MAGIC:
        if data.startswith(start):
            raise InputError(problem, name)
    if 0 in data[:4]:
        raise InputError("this is UTF-16, UTF-32 or not text; save the file as UTF-8", name)


def _refuse_nul(text: str, name: str, line: int = 1) -> None:
    at = text.find("\0")
    if at >= 0:
        row = line + text.count("\n", 0, at)
        raise InputError("a NUL character, which is not allowed in text", f"{name}:{row}")


def text_lines(
    path: Path, *, most_line: int = LINE, most: int = LINES
) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of every line, with its end; only a line feed ends a line.

    Holds one line in memory. Raises InputError as `opened` and `decoded`, and for a longer line.
    """
    name = str(path)
    with opened(path, most=most) as stream:
        for number, offset, data in byte_lines(stream, name, most_line, most):
            if len(data) > most_line:
                raise InputError(f"line longer than {most_line:,} bytes", f"{name}:{number}")
            text = decoded(data, name, line=number, offset=offset)
            _refuse_nul(text, name, number)
            yield number, text


def byte_lines(
    stream: BinaryIO, name: str, most_line: int, most: int
) -> Iterator[tuple[int, int, bytes]]:
    """Number (from 1), byte offset and bytes of every line, without a byte order mark.

    A longer line is returned cut to `most_line` + 1 bytes, for the caller to handle.
    Raises InputError for archives, other encodings, and above `most` bytes in all.
    """
    number = end = 0
    while data := stream.readline(most_line + 1):
        number, offset, end = number + 1, end, end + len(data)
        if end > most:
            raise InputError(f"larger than {most:,} bytes", name)
        if offset == 0:
            refuse_other_kinds(data, name)
            if data.startswith(codecs.BOM_UTF8):
                data, offset = data[len(codecs.BOM_UTF8) :], len(codecs.BOM_UTF8)
        yield number, offset, data
