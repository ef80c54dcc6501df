"""Standard input, output and error as they may be found: closed, or a pipe whose reader is gone."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import IO, Any


def open_missing() -> None:
    """Put /dev/null in the place of a standard stream that is closed (`>&-`, `2>&-`, `<&-`).

    Else the next file that is opened, such as the store, would get its number, and whatever a
    library prints would go into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            found = os.open(os.devnull, os.O_RDWR)
            if found != number:
                os.dup2(found, number)
                os.close(found)
            os.set_inheritable(number, True)  # a child has it too, for the same reason
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  to the end


def drop(stream: IO[Any]) -> None:
    """What is written to the stream from now on, or waits in it, goes nowhere: Python would try it
    again at its end, and say so (docs.python.org, library/signal, "Note on SIGPIPE")."""
    with contextlib.suppress(OSError, ValueError):  # no file below it, as in tests
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def drop_lost_terminal() -> None:
    """Drop what goes to a terminal that is closed: every write to it would fail."""
    for stream in (sys.stdout, sys.stderr):
        try:
            os.get_terminal_size(stream.fileno())
        except ValueError:  # no file below it
            continue
        except OSError as error:
            if error.errno == errno.EIO:
                drop(stream)


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
