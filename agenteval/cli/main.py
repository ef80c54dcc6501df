"""The command line: parse, call a library function, show. Errors are one line and a code.

Exit codes: 0 fine; 1 a gate was not met; 2 wrong use or bad input; 3 infrastructure, or too many
unscored; 4 not enough data; 5 the judge is not trustworthy; 130 interrupted, 143 by SIGTERM,
129 by SIGHUP.
"""

from __future__ import annotations

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
    perturb,
    plan,
    quantify,
    report,
    show,
    trace,
    verify,
)
from agenteval.cli.signals import INTERRUPTED, Caught, as_interrupts
from agenteval.cli.streams import drop, output_fails, write_err
from agenteval.errors import AgentevalError, StoreError
from agenteval.text import guard_logs, redacted, visible

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
app.command("perturb")(perturb.perturb)
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
    with as_interrupts() as caught:
        try:
            code = _run(arguments, caught)
        except KeyboardInterrupt:  # before the command began, or after it
            code = _interrupted(caught)
        sys.exit(code)


def _run(arguments: list[str] | None, caught: Caught) -> int:
    """Call the command; returns the exit code."""
    try:
        try:
            _command(_named_in(sys.argv[1:] if arguments is None else arguments))(arguments)
        finally:  # what cannot be written is told here, not by Python at its end
            if (failed := output_fails()) is not None:
                raise failed
            write_err("")
    except AgentevalError as error:
        write_err(f"agenteval: {_one_line(error)}\n")
        return error.exit_code
    except OSError as error:
        if error.errno is None or error.errno not in _OF_THE_MACHINE:
            raise
        drop(sys.stdout)
        where = f"{error.filename}: " if error.filename else ""
        told = StoreError(f"{where}{os.strerror(error.errno)}")
        write_err(f"agenteval: {_one_line(told)}\n")
        return told.exit_code
    except SystemExit as end:
        return _code(end, caught)
    return 0


def _code(end: SystemExit, caught: Caught) -> int:
    """The exit code of a command, where the framework around it has its own opinion."""
    if end.code is not None and not isinstance(end.code, int):
        raise end
    code = end.code or 0
    if code == INTERRUPTED:
        # Raised by the framework for a Ctrl-C that the command did not answer: nothing was said.
        unanswered = end.__context__ and isinstance(end.__context__.__cause__, KeyboardInterrupt)
        return _interrupted(caught) if unanswered else caught.code
    if isinstance(end.__context__, BrokenPipeError):
        drop(sys.stdout)
        return 0  # the reader of a pipe has seen enough
    return code


def _interrupted(caught: Caught) -> int:
    write_err(f"agenteval: {caught.told}; what was stored stays\n")
    return caught.code


# No fault of the program or of what it was given: a full disk, a failing one, no descriptors left.
_OF_THE_MACHINE = {
    errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM,
    getattr(errno, "EDQUOT", errno.ENOSPC),
}  # fmt: skip


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
