"""The command line: parse, call a library function, show. Errors are one line and a code.

Exit codes: 0 fine; 1 a gate was not met; 2 wrong use or bad input; 3 infrastructure, or too many
unscored; 4 not enough data; 5 the judge is not trustworthy; 70 unexpected error, a bug; 130
interrupted, 143 by SIGTERM, 129 by SIGHUP.
"""

from __future__ import annotations

import errno
import gc
import logging
import sys
import traceback
import warnings
from functools import cache
from importlib import import_module
from typing import Any, TextIO

import typer

from agenteval.app.removed import refuse_removed
from agenteval.cli.command import CommandApp
from agenteval.cli.console import drop, output_fails, prepare_streams, write_err
from agenteval.cli.signals import INTERRUPTED, Caught, as_interrupts
from agenteval.errors import AgentevalError, StoreError
from agenteval.text import guard_logs, redacted, visible

# The commands and groups: the module, which is imported when one is called, and the first sentence
# of the help. A group is `NAME_app` or `app` of the module.
_COMMANDS = {
    "demo": ("app.commands.demo", "Compare a capable, a weak and a bad judge (no API key needed)."),
    "init": ("app.commands.init", "Create a task, and a first report page from a file of runs."),
    "run": ("app.commands.run", "Run an evaluation file: criteria, scores, verdict, report."),
    "criteria": ("utility.commands", "Propose criteria for a task, and merge paraphrases."),
    "design": ("app.commands.ratings", "Plan cases and repeats: calls, cost and precision."),
    "quantify": ("utility.commands", "Score every run on every criterion."),
    "verify": ("utility.commands", "Decide which criteria to keep and whether to trust the judge."),
    "perturb": ("utility.commands", "Write runs and perturbed copies for rating elsewhere."),
    "prefer": ("utility.pairwise.commands", "Judge which of two or more systems does better."),
    "anchor": (
        "utility.anchor_commands",
        "Freeze the scores of a judge, and check later for drift.",
    ),
    "agree": ("app.commands.ratings", "Compare the judge with human labels."),
    "label": (
        "app.commands.stored",
        "Export human labels, or a labelling page that needs no server.",
    ),
    "view": ("app.commands.stored", "Look at a store in the browser, and label its runs."),
    "compare": ("app.commands.ratings", "Compare two systems, judges or stores, paired by case."),
    "report": ("app.commands.stored", "Write one HTML page with all stored results of a judge."),
    "show": ("app.commands.stored", "Print the stored results of a judge, agent or finder."),
    "export": ("app.commands.stored", "Write the stored results to a file, one row per result."),
    "store": ("app.commands.stored", "Show what a store contains, or copy it."),
    "doctor": ("app.commands.doctor", "Check the installation, judge, tasks and store."),
    "plan": (
        "planning.commands",
        "Test whether an agent can plan: exact verdicts without a judge.",
    ),
    "trace": ("traces.commands", "Find errors in agent traces, and score error finders."),
    "flow": ("workflows.commands", "Evaluate agents that serve users by following a procedure."),
}
COMMANDS = {name: text for name, (_, text) in _COMMANDS.items()}


class Commands(typer.core.TyperGroup):
    """The commands by name, none of which is imported before it is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)  # near names are proposed from these

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the workflow."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with this name and its options, or None."""
        return command_of(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Return names and first sentences without loading the commands."""
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        rows = [
            (name, typer.core.TyperCommand(name, help=text).get_short_help_str(limit))
            for name, text in COMMANDS.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


app = typer.Typer(
    name="agenteval",
    cls=Commands,
    help="Find out whether an LLM agent is useful, and whether you can trust the judge that scores "
    "it.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},  # commands inherit it
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True),
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("agenteval"))
        raise typer.Exit


def typed(name: str) -> typer.Typer:
    """The app of a group, or one of a single command."""
    module = import_module(f"agenteval.{_COMMANDS[name][0]}")
    group: typer.Typer | None = getattr(module, f"{name}_app", getattr(module, "app", None))
    if group is not None:
        return group
    single = CommandApp()
    single.command(name)(getattr(module, name))
    return single


@cache
def command_of(name: str | None = None) -> Any:
    """Return a command with its options, or the root; built once, because it is slow."""
    command = typer.main.get_command(app if name is None else typed(name))
    command.name = name or command.name
    return command


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the script `agenteval`; always ends in SystemExit."""
    prepare_streams()
    gc.set_threshold(100_000, 20, 20)  # looking for cycles among the records took a tenth of a run
    guard_logs(visible)
    warnings.showwarning = _warned
    # AutoGen logs every exception, also of cancelled teams; this module reports them itself.
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
            refuse_removed(sys.argv[1:] if arguments is None else arguments)
            command_of()(arguments)
        finally:  # report failed writes here rather than at interpreter exit
            if (failed := output_fails()) is not None:
                raise failed
            write_err("")
        return 0
    except SystemExit as end:
        return _code(end, caught)
    except AgentevalError as error:
        failure = error
    except Exception as error:  # noqa: BLE001  a bug, which is reported as one
        if not (isinstance(error, OSError) and error.errno in _OF_THE_MACHINE):
            return _crashed(error)
        drop(sys.stdout)
        where = f"{error.filename}: " if error.filename else ""
        failure = StoreError(f"{where}{error.strerror}")
    write_err(f"agenteval: {_one_line(failure)}\n")
    return failure.exit_code


def _code(end: SystemExit, caught: Caught) -> int:
    """Return the exit code of a command, overriding that of the framework."""
    if end.code is not None and not isinstance(end.code, int):
        raise end
    code = end.code or 0
    if code == INTERRUPTED:
        # Raised by the framework for a Ctrl-C that the command did not handle or report.
        unanswered = end.__context__ and isinstance(end.__context__.__cause__, KeyboardInterrupt)
        return _interrupted(caught) if unanswered else caught.code
    if isinstance(end.__context__, BrokenPipeError):
        drop(sys.stdout)
        return 0  # the reader closed the pipe
    return code


def _interrupted(caught: Caught) -> int:
    write_err(f"agenteval: {caught.told}; what was stored stays\n")
    return caught.code


# Neither a bug nor bad input: a full or failing disk, or no descriptors left.
_OF_THE_MACHINE = {
    errno.ENOSPC,
    errno.EFBIG,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    getattr(errno, "EDQUOT", errno.ENOSPC),
}


def _warned(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Return a library's warning as Python prints it; it may quote an endpoint."""
    text = warnings.formatwarning(message, category, filename, lineno, line)
    (file or sys.stderr).write(visible(redacted(text)))


def _crashed(error: Exception) -> int:
    """Report an exception that no command expects; its traceback is saved in a file."""
    import tempfile  # slow to import

    trace = visible(redacted("".join(traceback.format_exception(error))))
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="agenteval-crash-", suffix=".txt", delete=False
    ) as file:
        file.write(trace)
    text = f"unexpected {type(error).__name__}: {_one_line(error)[:500]}"
    write_err(
        f"agenteval: {text}. This is a bug; please report it with the traceback in {file.name}\n"
    )
    return 70  # EX_SOFTWARE of sysexits.h


def _one_line(error: Exception) -> str:
    """The message on one line; control characters from a file are shown, not obeyed."""
    line = redacted(" ".join(str(error).split()))
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
