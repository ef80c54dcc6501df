"""The command line: parse, call a library function, show. Errors are one line and a code.

Exit codes: 0 fine; 1 a gate was not met; 2 wrong use or bad input; 3 infrastructure, or too many
unscored; 4 not enough data; 5 the judge is not trustworthy; 130 interrupted.
"""

from __future__ import annotations

import logging
import sys
import traceback
from functools import cache
from types import TracebackType
from typing import Any

import typer

from agenteval.cli import (
    agree,
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
from agenteval.errors import AgentevalError
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
def _command() -> Any:
    """The commands with their options, built once: that takes longer than many a command."""
    return typer.main.get_command(app)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the script `agenteval`; always ends in SystemExit."""
    guard_logs(visible)
    sys.excepthook = _told
    # AutoGen logs every exception that passes it, a cancelled team's too; ours are told by us.
    logging.getLogger("autogen_core").addHandler(logging.NullHandler())
    try:
        _command()(arguments)
    except AgentevalError as error:
        sys.stderr.write(f"agenteval: {_one_line(error)}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(0)  # the reader of a pipe has seen enough


def _told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A crash, with its traceback as Python prints it, but for keys and control characters."""
    whole = "".join(traceback.format_exception(kind, error, trace))
    sys.stderr.write(visible(redacted(whole)))


def _one_line(error: Exception) -> str:
    """The message on one line; control characters from a file are shown, not obeyed."""
    line = redacted(" ".join(str(error).split()))
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
