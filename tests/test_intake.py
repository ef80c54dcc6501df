"""Files are opened without waiting, read within bounds, and decoded as UTF-8 or refused."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.files import read_bytes, read_text, text_lines

TEXT = "eins\nzwö\u2028drei\n"


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_text_is_given_as_it_is_without_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for data in (TEXT.encode(), b"\xef\xbb\xbf" + TEXT.encode()):
        path.write_bytes(data)
        assert read_text(path) == TEXT
        assert list(text_lines(path)) == [(1, "eins\n"), (2, "zwö\u2028drei\n")]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (TEXT.encode("utf-16"), "a.txt: this is UTF-16; save the file as UTF-8"),
        (TEXT.encode("utf-32"), "a.txt: this is UTF-32; save the file as UTF-8"),
        (TEXT.encode("utf-16-be"), "a.txt: this is UTF-16, UTF-32 or not text"),
        (TEXT.encode("utf-16-le"), "a.txt: this is UTF-16, UTF-32 or not text"),
        (TEXT.encode("utf-32-be"), "a.txt: this is UTF-16, UTF-32 or not text"),
        (b"ein\ncaf\xe9\n", "a.txt:2: not UTF-8 at byte offset 7"),
        (b"\xef\xbb\xbfein\ncaf\xe9\n", "a.txt:2: not UTF-8 at byte offset 10"),
        (b"ein\n\n\xc0\xaf", "a.txt:3: not UTF-8 at byte offset 5"),
        (b"\xed\xa0\x80", "a.txt:1: not UTF-8 at byte offset 0"),
        (b"eins\nzwei\0\n", "a.txt:2: a NUL character"),
        (gzip.compress(b"x", mtime=0), "a.txt: this is a gzip archive; archives are not read"),
        (bz2.compress(b"x"), "a.txt: this is a bzip2 archive"),
        (lzma.compress(b"x"), "a.txt: this is an xz archive"),
        (b"PK\x03\x04x", "a.txt: this is a zip archive"),
    ],
)
def test_other_encodings_and_archives(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    assert says in refused(lambda: read_text(path))
    assert says in refused(lambda: list(text_lines(path)))


def test_sizes(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc\nabcdef\n")
    assert read_bytes(path, 11) == b"abc\nabcdef\n"
    assert "larger than 10 bytes" in refused(lambda: read_bytes(path, 10))
    assert [n for n, _ in text_lines(path, most_line=7)] == [1, 2]
    told = refused(lambda: list(text_lines(path, most_line=6)))
    assert told.endswith("a.txt:2: line longer than 6 bytes")
    assert "larger than 10 bytes" in refused(lambda: list(text_lines(path, most=10)))


def test_what_is_no_file(tmp_path: Path) -> None:
    pipe, circle = tmp_path / "pipe", tmp_path / "circle"
    os.mkfifo(pipe)
    circle.symlink_to(circle)
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    device = "this is no file but a pipe or a device"
    for path, says in (
        (tmp_path, "this is no file but a folder"),
        (pipe, device),
        (Path("/dev/zero"), device),
        (Path("/dev/null"), device),
        (circle, "cannot read"),
        (tmp_path / "gone", "cannot read"),
        (tmp_path / "none", "cannot read"),
        (tmp_path / "a\0b", "NUL"),
        (tmp_path / ("x" * 5000), "cannot read"),
    ):
        assert says in refused(lambda path=path: read_text(path))  # type: ignore[misc]
        assert says in refused(lambda path=path: list(text_lines(path)))  # type: ignore[misc]


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    """It grows above the limit, or shrinks: an error or what was there, never a wait."""
    path = tmp_path / "log"
    path.write_bytes(b"line\n" * 1000)
    lines = text_lines(path, most=6000)
    assert next(lines) == (1, "line\n")
    with path.open("ab") as more:
        more.write(b"line\n" * 100_000)
    assert "larger than 6,000 bytes" in refused(lambda: list(lines))
    path.write_bytes(b"line\n" * 100_000)
    lines = text_lines(path)
    next(lines)
    os.truncate(path, 7)
    assert all("line\n".startswith(text) for _, text in lines)
