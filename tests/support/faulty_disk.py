"""Calls by which Python writes files, failing in this process: at the door of the system.

The functions of `os` are replaced while a block runs, and `io.open` (so `open` of pathlib too)
gives files whose writes are counted. What C libraries write by themselves is not seen here; for
that there is `file_limit`, which the system itself enforces.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.faulty import NthCall, Verdict

# kind: functions of `os`
_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "open": ("open",),
    "write": ("write",),
    "fsync": ("fsync", "fdatasync"),
    "rename": ("rename", "replace"),
    "unlink": ("unlink", "remove"),
    "mkdir": ("mkdir",),
    "truncate": ("truncate", "ftruncate"),
    "chmod": ("chmod", "fchmod"),
    "list": ("listdir", "scandir"),
}
KINDS = tuple(_FUNCTIONS)


@contextlib.contextmanager
def failing(faults: Mapping[str, NthCall]) -> Iterator[None]:
    """Calls within the block fail as told, by kind (see KINDS), in all threads.

    `open` and `write` hold for `os.open`, `os.write` and for files opened for writing by `io.open`
    or pathlib; a file opened for reading is left alone, and so is the builtin `open`. Raises
    ValueError for an unknown kind.
    """
    if unknown := set(faults) - set(KINDS):
        raise ValueError(f"no kinds of call: {', '.join(sorted(unknown))}; there are {KINDS}")
    changed: list[tuple[Any, str, Any]] = []

    def put(module: Any, name: str, function: Any) -> None:
        changed.append((module, name, getattr(module, name)))
        setattr(module, name, function)

    try:
        for kind, fault in faults.items():
            for name in _FUNCTIONS[kind]:
                if hasattr(os, name):
                    put(os, name, _counted(getattr(os, name), fault, kind))
        if faults.keys() & {"open", "write", "truncate"}:
            put(io, "open", _opener(io.open, faults))
        yield
    finally:
        for module, name, function in reversed(changed):
            setattr(module, name, function)


def _counted(real: Callable[..., Any], fault: NthCall, kind: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        if kind == "write":
            return _written(fault, lambda part: real(arguments[0], part), arguments[1])
        fault.check()
        return real(*arguments, **named)

    return call


def _written(fault: NthCall, write: Callable[[Any], Any], data: Any) -> Any:
    """What a write returns: the number of bytes, half of them, or an error."""
    verdict = fault.next()
    if verdict is Verdict.FAIL:
        raise fault.exception()
    view = memoryview(data).cast("B")
    if verdict is Verdict.HALF and len(view) > 1:
        return write(view[: len(view) // 2])
    return write(data)


def _opener(real: Callable[..., Any], faults: Mapping[str, NthCall]) -> Callable[..., Any]:
    """`io.open`, whose files for writing count what they do."""

    class Raw(io.FileIO):
        def write(self, data: Any, /) -> int:
            one = faults.get("write")
            parent = super().write
            return int(_written(one, parent, data) if one else parent(data))

        def truncate(self, size: int | None = None, /) -> int:
            if one := faults.get("truncate"):
                one.check()
            return super().truncate(size)

    def opened(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **named: Any) -> Any:
        if not set(mode) & set("wax+") or isinstance(file, int):
            return real(file, mode, buffering, *rest, **named)
        if one := faults.get("open"):
            one.check()
        raw = Raw(file, "".join(c for c in mode if c not in "bt"))
        if buffering == 0:
            return raw
        buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *rest, **named)

    return opened


@contextlib.contextmanager
def file_limit(size: int) -> Iterator[None]:
    """No file of this process grows beyond `size` bytes within the block (RLIMIT_FSIZE).

    A write across it is cut short, one behind it fails with EFBIG, whoever makes it; Python has the
    signal SIGXFSZ ignored. POSIX only; the limit holds for the whole process, so also for what
    other threads write. Raises ValueError when a lower limit is set from outside.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
