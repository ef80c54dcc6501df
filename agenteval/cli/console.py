"""Output of commands: results on standard output, progress and notes on standard error. Closed
pipes and full disks are handled here as well."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, TextIO

from agenteval.text import HIDDEN, is_utf, replace_unencodable, visible, visible_line

if TYPE_CHECKING:
    from rich.console import Console


class Verbosity:
    """Verbosity of standard error: -2 only errors, -1 also warnings, 0 normal."""

    level = 0


def width_of(stream: TextIO) -> int | None:
    """Return None for a terminal, which is measured, and 120 columns for a pipe, so that tables are
    the same everywhere, unless COLUMNS has a valid width."""
    if stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    sane = re.fullmatch("[0-9]{1,4}", columns) and 20 <= int(columns) <= 1000
    return int(columns) if sane else 120


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    class Patient(Console):
        """A console that discards output to a closed pipe. The command continues, its work is kept,
        and it returns its own exit code, whereas Console would exit with 1."""

        def on_broken_pipe(self) -> None:
            drop(self.file)

        def print(self, *objects: Any, **how: Any) -> None:
            """Like Console.print, but name the stream if it cannot be written, for example on a
            full disk."""
            with naming("standard error" if stderr else "standard output"):
                super().print(*objects, **how)

    width = width_of(sys.stderr if stderr else sys.stdout)
    return Patient(stderr=stderr, width=width, highlight=False, emoji=False, soft_wrap=False)


@functools.cache
def out() -> Console:
    """Standard output."""
    return _console(stderr=False)


@functools.cache
def err() -> Console:
    """Standard error."""
    return _console(stderr=True)


def clean(text: object) -> str:
    """Escape untrusted text for one line of the terminal: control characters are shown as codes,
    and markup is escaped."""
    from rich.markup import escape

    return escape(visible_line(text))


def clean_lines(text: object) -> str:
    """The same for a separate text of several lines."""
    from rich.markup import escape

    return escape(visible(text))


def note(text: str) -> None:
    """Print one line unless -q is set."""
    if Verbosity.level >= 0:
        err().print(f"[dim]{clean(text)}[/dim]", soft_wrap=True)


def warn(text: str) -> None:
    """Print one important line even with -q; not in a worker, because its leader prints it."""
    if Verbosity.level > -2:
        err().print(f"[yellow]{clean(text)}[/yellow]", soft_wrap=True)


def notify(line: str) -> None:
    """Print a message of a running experiment as a note or as a warning."""
    from agenteval.cli.running import Warned

    warn(line) if isinstance(line, Warned) else note(line)


_BEYOND_ASCII = re.compile(r"[^\n -~]")


def print_json(value: Any) -> None:
    """A JSON document on standard output; what a terminal would obey, or could not show, stands in
    it as \\uXXXX, which reads back as the same text."""
    write_out(json_text(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)))


def json_text(text: str) -> str:
    """JSON for standard output, with a line end. Escapes invisible characters; where the output is
    not UTF-8, all beyond ASCII. Both occur in strings only, so the value stays the same."""
    escaped = HIDDEN if is_utf(sys.stdout) else _BEYOND_ASCII
    return escaped.sub(lambda m: json.dumps(m.group())[1:-1], text) + "\n"


# ---- standard streams ----------------------------------------------------------------------------


def prepare_streams() -> None:
    """Make standard streams usable: a closed one (`>&-`) discards output, and one that is not UTF-8
    replaces characters that it cannot encode."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        replace_unencodable(stream)


def drop(stream: IO[Any]) -> None:
    """Discard what is buffered or written later to the stream; Python would otherwise retry at exit
    and report it (docs.python.org, library/signal, "Note on SIGPIPE")."""
    with contextlib.suppress(OSError, ValueError):  # no underlying file, as in tests
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def write_out(text: str) -> None:
    """Write to standard output. A closed pipe is not an error."""
    try:
        with naming("standard output"):
            sys.stdout.write(text)
            sys.stdout.flush()
    except BrokenPipeError:
        drop(sys.stdout)


@contextlib.contextmanager
def naming(stream: str) -> Iterator[None]:
    """Add the stream's name to an OSError of the block, which the system leaves out."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = stream
        raise


def write_err(text: str) -> None:
    """Write to standard error. A closed pipe is ignored."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        drop(sys.stderr)


def output_fails() -> OSError | None:
    """Flush standard output and return the system's error message, or None."""
    try:
        with naming("standard output"):
            sys.stdout.flush()
    except BrokenPipeError:
        drop(sys.stdout)
    except OSError as error:
        return error
    return None
