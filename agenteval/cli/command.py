"""Commands: groups of options as dataclasses, and how a report is shown and ends the command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import typer

from agenteval.cli.console import Verbosity, note, out, print_json, warn
from agenteval.cli.options import OutputOptions
from agenteval.cli.progress import counting

if TYPE_CHECKING:
    from agenteval.report.report import Report

R = TypeVar("R", bound="Report")


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
        return function(**{n: filled[n] if n in filled else values[n] for n in own_names})

    del command.__wrapped__  # typer would look through it
    command.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    command.__annotations__ = {name: p.annotation for name, p in parameters.items()}
    return command


def say(line: str) -> None:
    """A notice of an experiment, on standard error; -q leaves out what does not matter."""
    from agenteval.api.running import Warned

    (warn if isinstance(line, Warned) else note)(line)


def watched(experiment: Callable[..., R], title: str, what: str) -> R:
    """What the experiment returns, with its notices and progress on standard error; interrupted,
    the report of what is done."""
    from agenteval.api.running import Interrupted

    with counting(title, what) as update:
        try:
            return experiment(notify=say, progress=update)
        except Interrupted as interrupted:
            if interrupted.report is None:
                raise
            stopped = interrupted.report
    return stopped  # type: ignore[return-value]


def finish(report: Report, output: OutputOptions) -> None:
    """Show the report as the options say and end the command with its exit code."""
    show(report, output)
    raise typer.Exit(report.exit_code)


def show(report: Report, output: OutputOptions) -> None:
    """Print the report as the options say."""
    from agenteval.trust.gates import gate_lines

    if output.as_json:
        print_json(report.to_json())
        for line in (
            *report.unfinished,
            *gate_lines(g for g in report.gates if g.outcome != "met"),
        ):
            warn(line)
    else:
        report.print(all=output.all, console=out())
