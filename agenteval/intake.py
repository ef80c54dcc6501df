"""Files that people name: opened, read within bounds, decoded as UTF-8 or refused.

Everything that reads a whole file of the user goes through here, so that a pipe without a writer, a
device, a folder, a file of gigabytes or one in another encoding ends in one line of error. Values
of JSON are the business of `readers.decode`, YAML of `readers.strict_yaml`.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from agenteval.errors import InputError

SMALL = 4 * 2**20  # bytes: what people write by hand
LARGE = 64 * 2**20  # bytes: what programs write, held as a whole
LINES = 512 * 2**20  # bytes: what is read line by line
LINE = 16 * 2**20  # bytes of one line

_BOM = b"\xef\xbb\xbf"
# Beginnings of files that are no text, longest first: UTF-32-LE begins like UTF-16-LE.
_MAGIC = (
    (b"\xff\xfe\0\0", "this is UTF-32; save the file as UTF-8"),
    (b"\0\0\xfe\xff", "this is UTF-32; save the file as UTF-8"),
    (b"\xff\xfe", "this is UTF-16; save the file as UTF-8"),
    (b"\xfe\xff", "this is UTF-16; save the file as UTF-8"),
    (b"\x1f\x8b", "this is a gzip archive; archives are not read, unpack it first"),
    (b"PK\x03\x04", "this is a zip archive; archives are not read, unpack it first"),
    (b"BZh", "this is a bzip2 archive; archives are not read, unpack it first"),
    (b"\xfd7zXZ", "this is an xz archive; archives are not read, unpack it first"),
    (b"\x28\xb5\x2f\xfd", "this is a zstd archive; archives are not read, unpack it first"),
    (b"SQLite format 3\0", "this is a database, not a text"),
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
        raise InputError("a path with a NUL character names no file", name)
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
    """All bytes of a file. Raises InputError as `opened`, also for a file that grows above `most`
    while it is read."""
    with opened(path, most=most) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise InputError(f"larger than {most:,} bytes", str(path))
    return data


def read_text(path: Path, most: int = SMALL) -> str:
    """The text of a UTF-8 file, its byte order mark left out, its line ends as they are.

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
        if data.startswith(_BOM):
            data, offset = data[len(_BOM) :], len(_BOM)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        row = line + data.count(b"\n", 0, error.start)
        told = f"not UTF-8 at byte offset {offset + error.start}; save the file as UTF-8"
        raise InputError(told, f"{name}:{row}") from None


def refuse_other_kinds(data: bytes, name: str) -> None:
    """Raise InputError when these first bytes of a file say that it is no UTF-8 text."""
    for start, problem in _MAGIC:
        if data.startswith(start):
            raise InputError(problem, name)
    if 0 in data[:4]:
        raise InputError("this is UTF-16, UTF-32 or no text; save the file as UTF-8", name)


def _refuse_nul(text: str, name: str, line: int = 1) -> None:
    at = text.find("\0")
    if at >= 0:
        row = line + text.count("\n", 0, at)
        raise InputError("a NUL character, which no text holds", f"{name}:{row}")


def text_lines(
    path: Path, *, most_line: int = LINE, most: int = LINES
) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of every line, with its end; only a line feed ends a line.

    Holds one line in memory. Raises InputError as `opened` and `decoded`, and for a longer line.
    """
    name = str(path)
    with opened(path, most=most) as stream:
        offset = 0
        number = 0
        while data := stream.readline(most_line + 1):
            number += 1
            if len(data) > most_line:
                raise InputError(f"line longer than {most_line:,} bytes", f"{name}:{number}")
            text = decoded(data, name, line=number, offset=offset)
            _refuse_nul(text, name, number)
            offset += len(data)
            if offset > most:
                raise InputError(f"larger than {most:,} bytes", name)
            yield number, text
