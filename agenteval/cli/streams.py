"""Standard output and error: pipes whose reader is gone, full disks."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import IO, Any


def drop(stream: IO[Any]) -> None:
    """What is written to the stream from now on, or waits in it, goes nowhere: Python would try it
    again at its end, and say so (docs.python.org, library/signal, "Note on SIGPIPE")."""
    with contextlib.suppress(OSError, ValueError):  # no file below it, as in tests
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def write_out(text: str) -> None:
    """Write to standard output. A pipe whose reader has seen enough is no error."""
    try:
        with naming("standard output"):
            sys.stdout.write(text)
            sys.stdout.flush()
    except BrokenPipeError:
        drop(sys.stdout)


@contextlib.contextmanager
def naming(stream: str) -> Iterator[None]:
    """An OSError of the block says which stream it is about; the system knows no name of it."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = stream
        raise


def write_err(text: str) -> None:
    """Write to standard error; where nobody reads it, nobody can be told."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        drop(sys.stderr)


def output_fails() -> OSError | None:
    """What the system says when the rest of standard output is written; None when that works."""
    try:
        with naming("standard output"):
            sys.stdout.flush()
    except BrokenPipeError:
        drop(sys.stdout)
    except OSError as error:
        return error
    return None
