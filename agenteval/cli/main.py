"""The command line: parse, call a library function, show. Errors are one line and a code.

Exit codes: 0 fine; 1 a gate was not met; 2 wrong use or bad input; 3 infrastructure, or too many
unscored; 4 not enough data; 5 the judge is not trustworthy; 130 interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
import traceback
import warnings
from functools import cache
from types import TracebackType
from typing import Any, TextIO

import typer

from agenteval.cli import (
    agree,
    called,
    compare,
    criteria,
    demo,
    doctor,
    export,
    flow,
    init,
    models,
    plan,
    quantify,
    report,
    show,
    trace,
    verify,
)
from agenteval.errors import AgentevalError, StoreError
from agenteval.redact import guard_logs, redacted
from agenteval.visible import visible

app = typer.Typer(
    name="agenteval",
    help="Find out whether an LLM agent is useful, and whether the judge that says so can be "
    "trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(demo.demo)
app.command("init")(init.init)
app.command("criteria")(criteria.criteria)
app.command("quantify")(quantify.quantify)
app.command("verify")(verify.verify)
app.command("agree")(agree.agree)
app.command("compare")(compare.compare)
app.command("report")(report.report)
app.command("show")(show.show)
app.command("export")(export.export)
app.command("doctor")(doctor.doctor)
app.add_typer(models.app, name="models")
app.add_typer(plan.app, name="plan")
app.add_typer(trace.app, name="trace")
app.add_typer(flow.app, name="flow")


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True),
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("agenteval"))
        raise typer.Exit


@cache
def _command(some: frozenset[str] | None = None) -> Any:
    """The commands with their options, built once: that takes longer than many a command.

    `some` are the names that may be called (see `cli.called`); None stands for all.
    """
    return typer.main.get_command(app if some is None else called.only(app, some))


def _named_in(arguments: list[str]) -> frozenset[str] | None:
    """A command that is called is named, wherever; other words may be names by chance."""
    if "_AGENTEVAL_COMPLETE" in os.environ:  # a shell asks, and its words stand elsewhere
        return None
    return called.names(app).intersection(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the script `agenteval`; always ends in SystemExit."""
    guard_logs(visible)
    warnings.showwarning = _warned
    sys.excepthook = _told
    # AutoGen logs every exception that passes it, a cancelled team's too; ours are told by us.
    logging.getLogger("autogen_core").addHandler(logging.NullHandler())
    try:
        try:
            _command(_named_in(sys.argv[1:] if arguments is None else arguments))(arguments)
        finally:
            sys.stdout.flush()  # what cannot be written is told here, not by Python at its end
    except AgentevalError as error:
        sys.stderr.write(f"agenteval: {_one_line(error)}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _drop_output()
        sys.exit(0)  # the reader of a pipe has seen enough
    except OSError as error:
        if error.errno is None or error.errno not in _OF_THE_MACHINE:
            raise
        _drop_output()
        where = f"{error.filename}: " if error.filename else ""
        told = StoreError(f"{where}{os.strerror(error.errno)}")
        sys.stderr.write(f"agenteval: {_one_line(told)}\n")
        sys.exit(told.exit_code)


# No fault of the program or of what it was given: a full disk, a failing one, no descriptors left.
_OF_THE_MACHINE = {
    errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM,
    getattr(errno, "EDQUOT", errno.ENOSPC),
}  # fmt: skip


def _drop_output() -> None:
    """What is still to be written to standard output goes nowhere: Python would try it again at
    its end, and say so (docs.python.org, library/signal, "Note on SIGPIPE")."""
    with contextlib.suppress(OSError, ValueError):  # no file below it, as in tests
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _warned(
    message: Warning | str, category: type[Warning], filename: str, lineno: int,
    file: TextIO | None = None, line: str | None = None,
) -> None:  # fmt: skip
    """A warning of a library as Python prints it; it may repeat what an endpoint said."""
    text = warnings.formatwarning(message, category, filename, lineno, line)
    (file or sys.stderr).write(visible(redacted(text)))


def _told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A crash, with its traceback as Python prints it, but for keys and control characters."""
    whole = "".join(traceback.format_exception(kind, error, trace))
    sys.stderr.write(visible(redacted(whole)))


def _one_line(error: Exception) -> str:
    """The message on one line; control characters from a file are shown, not obeyed."""
    line = redacted(" ".join(str(error).split()))
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
