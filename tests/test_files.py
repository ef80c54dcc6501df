"""Whole files: the old one or the new one, never half, and no litter."""

from __future__ import annotations

import errno
import os
import resource
import stat
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from agenteval.errors import InputError, StoreError
from agenteval.files import replacing, same_file, write_atomically
from agenteval.store import Store
from tests.store.making import FORK


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_writes_bytes_as_given_and_makes_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "a.json"
    write_atomically(path, "é\r\n\nend")
    assert path.read_bytes() == "é\r\n\nend".encode()
    assert names(path.parent) == ["a.json"]


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_keeps_mode_and_link_and_honours_the_umask(tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(real)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "fresh.json", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh.json").stat().st_mode) == 0o640


@pytest.mark.parametrize("error", [RuntimeError("mine"), KeyboardInterrupt()])
def test_an_exception_inside_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half of the ne")
            raise error

    with pytest.raises(type(error)):
        interrupted()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_what_the_system_refuses_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for target in ("file/below.txt", "folder"):
        with pytest.raises(InputError, match="cannot write") as caught:
            write_atomically(tmp_path / target, "x")
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="surrogates"):
        write_atomically(tmp_path / "a.txt", "\ud83d")
    assert names(tmp_path) == ["file", "folder"]


def test_a_long_name_has_room_for_the_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    write_atomically(path, "x")
    assert names(tmp_path) == ["n" * 250]


def _limited(path: Path, pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        write_atomically(path, "n" * 5000)
    except StoreError as error:
        pipe.send(str(error))


@pytest.mark.skipif(sys.platform == "win32", reason="no RLIMIT_FSIZE")
def test_no_room_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_limited, args=(path, theirs))
    child.start()
    theirs.close()
    assert "free some space and run the command again" in ours.recv()
    child.join(20)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def _write_for_ever(path: Path, pipe: Connection) -> None:
    pipe.send("ready")
    n = 0
    while True:
        n += 1
        write_atomically(path, f"{n}\n" * 20_000)


def test_kill_9_leaves_one_version_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for i in range(20):
        ours, theirs = FORK.Pipe(duplex=False)
        child = FORK.Process(target=_write_for_ever, args=(path, theirs))
        child.start()
        theirs.close()
        ours.recv()
        time.sleep(0.003 + 0.0013 * i)
        child.kill()
        child.join(20)
        if path.exists():
            lines = path.read_text().split("\n")
            assert len(lines) == 20_001
            assert len(set(lines[:-1])) == 1
    assert any(name != "a.txt" for name in names(tmp_path))  # some were killed within a write


@pytest.mark.parametrize("name", ["open", "fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_call_that_fails_leaves_one_version_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def failing(*arguments: object, **named: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, name, failing)
        with pytest.raises(StoreError, match=os.strerror(number)) as caught:
            write_atomically(path, "new")
    assert ("free some space" in str(caught.value)) is (number == errno.ENOSPC)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


# ---- one comparison of paths ---------------------------------------------------------------------


def test_one_file_by_several_names(tmp_path: Path) -> None:
    file, link = tmp_path / "a.txt", tmp_path / "b.txt"
    file.write_text("x")
    link.symlink_to(file)
    assert same_file(file, link)
    assert same_file(tmp_path / "." / "new", tmp_path / "new")  # neither exists
    assert not same_file(file, tmp_path / "c.txt")
    assert not same_file(file, Path("a\0b"))


def test_a_database_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Store(path).close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="database"):
        write_atomically(path, "x")
    assert path.read_bytes() == before
