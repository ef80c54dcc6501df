"""Commands: groups of options as dataclasses, and how a report is shown and ends the command."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, get_type_hints

import typer

from agenteval.cli.console import Verbosity, out, print_json, warn
from agenteval.cli.options import OutputOptions

if TYPE_CHECKING:
    from agenteval.report.report import Report


def grouped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as typer can take it: a parameter whose type is a dataclass is replaced by the
    fields of that dataclass, and the function gets the dataclass filled in.

    A field that two groups share is one option. -q (`quiet`) is obeyed at once.
    """
    hints = get_type_hints(function, include_extras=True)
    parameters: dict[str, inspect.Parameter] = {}
    groups: dict[str, type] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters[name] = parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY)
            continue
        groups[name] = kind
        types = get_type_hints(kind, include_extras=True)
        for own in fields(kind):
            default = inspect.Parameter.empty if own.default is MISSING else own.default
            parameters[own.name] = inspect.Parameter(
                own.name, parameter.KEYWORD_ONLY, default=default, annotation=types[own.name]
            )

    @wraps(function)
    def command(**values: Any) -> Any:
        filled = {
            name: kind(**{own.name: values[own.name] for own in fields(kind)})
            for name, kind in groups.items()
        }
        if values.get("quiet"):
            Verbosity.level = -1
        own_names = inspect.signature(function).parameters
        try:
            return function(**{n: filled[n] if n in filled else values[n] for n in own_names})
        except KeyboardInterrupt as interrupt:
            _interrupted(interrupt, filled.values())

    del command.__wrapped__  # typer would look through it
    command.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    command.__annotations__ = {name: p.annotation for name, p in parameters.items()}
    return command


def _interrupted(interrupt: KeyboardInterrupt, groups: Iterable[object]) -> NoReturn:
    """Show what an interrupted experiment has, and end the command."""
    from agenteval.api.running import Interrupted

    if not isinstance(interrupt, Interrupted):
        raise interrupt
    if interrupt.report is not None:
        finish(interrupt.report, _output(groups))
    warn("interrupted: what is done is stored; the same command goes on from here")
    raise typer.Exit(130)


def _output(groups: Iterable[object]) -> OutputOptions:
    return next((g for g in groups if isinstance(g, OutputOptions)), OutputOptions())


def finish(report: Report, output: OutputOptions) -> NoReturn:
    """Show the report as the options say and end the command with its exit code."""
    show(report, output)
    raise typer.Exit(report.exit_code)


def show(report: Report, output: OutputOptions) -> None:
    """Print the report as the options say."""
    from agenteval.trust.gates import gate_lines

    if output.as_json:
        print_json(report.to_json())
    else:
        report.print(all=output.all, console=out())
    if output.as_json or not sys.stdout.isatty():  # else it stands beside the tables
        for line in (
            *report.unfinished,
            *gate_lines(g for g in report.gates if g.outcome != "met"),
        ):
            warn(line)
