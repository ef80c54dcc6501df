"""System calls of SQLite that fail in this process, through SQLite's own interface for tests.

`sqlite3_vfs.xSetSystemCall` (sqlite.org/c3ref/vfs.html) replaces the calls that SQLite's unix layer
makes; what fails is mapped by SQLite itself, as after a true failure. `fsync` is not among them: a
second VFS, a copy of the first, hands out files whose `xSync` is counted. Everything goes to the
very library that Python's `sqlite3` uses.
"""

from __future__ import annotations

import _sqlite3
import contextlib
import ctypes
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from ctypes import c_char_p, c_int, c_longlong, c_size_t, c_ssize_t, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.faulty import NthCall, Verdict

_IOERR_FSYNC = 10 | (4 << 8)  # SQLITE_IOERR_FSYNC
_OK = 0
_FAILED = -1


def _c(result: Any, *arguments: Any) -> Any:
    return ctypes.CFUNCTYPE(result, *arguments, use_errno=True)


_WRITE = _c(c_ssize_t, c_int, c_void_p, c_size_t)
_PWRITE = _c(c_ssize_t, c_int, c_void_p, c_size_t, c_longlong)
# kind: the names that SQLite has for it, with their C types
_TABLE: Mapping[str, Mapping[str, Any]] = {
    "open": {"open": _c(c_int, c_void_p, c_int, c_int)},
    "read": {"read": _WRITE, "pread": _PWRITE, "pread64": _PWRITE},
    "write": {"write": _WRITE, "pwrite": _PWRITE, "pwrite64": _PWRITE},
    "truncate": {"ftruncate": _c(c_int, c_int, c_longlong)},
    "unlink": {"unlink": _c(c_int, c_void_p)},
    "mmap": {"mmap": _c(c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, c_longlong)},
}
KINDS = (*_TABLE, "fsync")

_X_OPEN = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_X_SYNC = ctypes.CFUNCTYPE(c_int, c_void_p, c_int)
_X_SET = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p)
_X_GET = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_char_p)


class _Vfs(ctypes.Structure):
    """sqlite3_vfs, version 3."""

    _fields_ = [
        ("iVersion", c_int),
        ("szOsFile", c_int),
        ("mxPathname", c_int),
        ("pNext", c_void_p),
        ("zName", c_char_p),
        ("pAppData", c_void_p),
        ("xOpen", c_void_p),
        *(
            (name, c_void_p)
            for name in (
                "xDelete",
                "xAccess",
                "xFullPathname",
                "xDlOpen",
                "xDlError",
                "xDlSym",
                "xDlClose",
                "xRandomness",
                "xSleep",
                "xCurrentTime",
                "xGetLastError",
                "xCurrentTimeInt64",
                "xSetSystemCall",
                "xGetSystemCall",
                "xNextSystemCall",
            )
        ),
    ]


class _Methods(ctypes.Structure):
    """sqlite3_io_methods, version 3."""

    _fields_ = [
        ("iVersion", c_int),
        *(
            (name, c_void_p)
            for name in (
                "xClose",
                "xRead",
                "xWrite",
                "xTruncate",
                "xSync",
                "xFileSize",
                "xLock",
                "xUnlock",
                "xCheckReservedLock",
                "xFileControl",
                "xSectorSize",
                "xDeviceCharacteristics",
                "xShmMap",
                "xShmLock",
                "xShmBarrier",
                "xShmUnmap",
                "xFetch",
                "xUnfetch",
            )
        ),
    ]


class _File(ctypes.Structure):
    """sqlite3_file; what follows in memory is the unix layer's own."""

    _fields_ = [("pMethods", ctypes.POINTER(_Methods))]


class _Sqlite:
    """The library with our functions put under it. Nothing of it is ever freed: a connection made
    under a fault may outlive it."""

    def __init__(self) -> None:
        library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        self._find = library.sqlite3_vfs_find
        self._find.restype = ctypes.POINTER(_Vfs)
        self._register = library.sqlite3_vfs_register
        self._register.argtypes = [ctypes.POINTER(_Vfs), c_int]
        self._vfs = self._find(None)
        if not self._vfs or self._vfs.contents.iVersion < 3:
            raise OSError("SQLite's VFS has no table of system calls")
        if not self._vfs.contents.zName.startswith(b"unix"):
            raise OSError(f"SQLite's VFS is {self._vfs.contents.zName.decode()}, not unix")
        self._set = _X_SET(self._vfs.contents.xSetSystemCall)
        self._get = _X_GET(self._vfs.contents.xGetSystemCall)
        self._faults: dict[str, NthCall] = {}
        self._gate = threading.Lock()
        self._calls = {kind: dict(self._wrapped(kind)) for kind in _TABLE}
        self._tables: dict[int, tuple[_Methods, Any]] = {}
        self._open = _X_OPEN(self._vfs.contents.xOpen)
        self._shim = self._copied()

    # -- system calls ----------------------------------------------------------------------------

    def _wrapped(self, kind: str) -> Iterator[tuple[bytes, Any]]:
        for name, form in _TABLE[kind].items():
            address = self._get(self._vfs, name.encode())
            if address:  # some are not compiled in
                yield name.encode(), form(self._counted(kind, form(address)))

    def _counted(self, kind: str, real: Callable[..., int]) -> Callable[..., int]:
        def call(*arguments: int) -> int:
            fault = self._faults.get(kind)
            verdict = fault.next() if fault else Verdict.CARRY_OUT
            if fault is None or verdict is Verdict.CARRY_OUT:
                return real(*arguments)
            if verdict is Verdict.HALF and kind == "write" and arguments[2] > 1:
                descriptor, data, size, *offset = arguments
                return real(descriptor, data, size // 2, *offset)
            ctypes.set_errno(fault.error)
            return _FAILED

        return call

    # -- fsync -----------------------------------------------------------------------------------

    def _copied(self) -> _Vfs:
        shim = _Vfs()
        ctypes.pointer(shim)[0] = self._vfs.contents
        shim.pNext, shim.zName = None, b"agenteval-faulty"
        self._shim_open = _X_OPEN(self._opened)
        shim.xOpen = ctypes.cast(self._shim_open, c_void_p)
        return shim

    def _opened(self, _: int, name: int, file: int, flags: int, out: int) -> int:
        """xOpen: the real one, whose file then gets a table of methods with our xSync."""
        code: int = self._open(ctypes.addressof(self._vfs.contents), name, file, flags, out)
        opened = ctypes.cast(file, ctypes.POINTER(_File)).contents
        if code == _OK and opened.pMethods:
            table, _ = self._table(opened.pMethods)
            opened.pMethods = ctypes.pointer(table)
        return code

    def _table(self, methods: Any) -> tuple[_Methods, Any]:
        address = ctypes.addressof(methods.contents)
        with self._gate:
            if address not in self._tables:
                table = _Methods()
                # a table of an older version is shorter than ours
                known = {1: 13, 2: 17}.get(methods.contents.iVersion, 19)
                size = known * ctypes.sizeof(c_void_p)  # the version takes one place, padded
                ctypes.memmove(ctypes.byref(table), methods, size)
                real = _X_SYNC(table.xSync)
                ours = _X_SYNC(lambda file, flags: self._synced(real, file, flags))
                table.xSync = ctypes.cast(ours, c_void_p)
                self._tables[address] = (table, ours)
            return self._tables[address]

    def _synced(self, real: Callable[[int, int], int], file: int, flags: int) -> int:
        fault = self._faults.get("fsync")
        if fault is None or fault.next() is Verdict.CARRY_OUT:
            return real(file, flags)
        return _IOERR_FSYNC

    # -- on and off ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def failing(self, faults: Mapping[str, NthCall]) -> Iterator[None]:
        if self._faults:
            raise RuntimeError("calls of SQLite are made to fail already")
        self._faults = dict(faults)
        try:
            for kind in faults.keys() - {"fsync"}:
                for name, call in self._calls[kind].items():
                    self._set(self._vfs, name, ctypes.cast(call, c_void_p))
            if "fsync" in faults:
                self._register(ctypes.byref(self._shim), 1)
            yield
        finally:
            for name in (n for kind in self._calls for n in self._calls[kind]):
                self._set(self._vfs, name, None)  # SQLite's own again
            self._register(self._vfs, 1)
            self._faults = {}


@cache
def _library() -> _Sqlite | str:
    """The library, or why it cannot be had: a line."""
    try:
        sqlite = _Sqlite()
        # Another copy of SQLite could have been found: only a call that arrives proves it.
        seen = {"open": NthCall(0), "write": NthCall(0), "fsync": NthCall(0)}
        with tempfile.TemporaryDirectory() as folder, sqlite.failing(seen):
            db = sqlite3.connect(Path(folder) / "probe.db")
            db.execute("CREATE TABLE t (x)")
            db.close()
    except (OSError, AttributeError, ValueError, TypeError) as error:
        return f"the SQLite of this Python cannot be reached ({error})"
    if not all(one.seen for one in seen.values()):
        return "the SQLite of this Python makes its calls elsewhere"
    return sqlite


def unavailable() -> str | None:
    """Why calls of SQLite cannot be made to fail here, in one line; None when they can."""
    library = _library()
    return library if isinstance(library, str) else None


@contextlib.contextmanager
def failing(faults: Mapping[str, NthCall]) -> Iterator[None]:
    """Calls that SQLite makes within the block fail as told, by kind: see KINDS.

    `fsync` counts on files opened within the block, the other kinds on all. A read or a call that
    opens may be repeated by SQLite. Raises RuntimeError where it is unavailable or nested,
    ValueError for an unknown kind.
    """
    library = _library()
    if isinstance(library, str):
        raise RuntimeError(library)
    if unknown := set(faults) - set(KINDS):
        raise ValueError(f"no kinds of call: {', '.join(sorted(unknown))}; there are {KINDS}")
    with library.failing(faults):
        yield
