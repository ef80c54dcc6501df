"""Commands: groups of options as dataclasses, and how a report is shown and ends the command."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cached_property
from inspect import get_annotations
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar, get_type_hints

import typer

from agenteval.cli.arguments import OutputOptions
from agenteval.cli.console import Verbosity, out, print_json, warn

if TYPE_CHECKING:
    from agenteval.cli.options import CommandOption
    from agenteval.reporting.report import Report


_Function = TypeVar("_Function", bound=Callable[..., Any])

# Sections of the help after "Options", which has the options that most people need. An option names
# its section (`rich_help_panel`).
PANELS = (
    "Runs",
    "Model",
    "Several judges",
    "Critic",
    "Merging",
    "Perturbations",
    "Agent",
    "Simulation",
    "Checks",
    "Limits",
    "Store",
    "Workers",
    "Output",
)


class _Sections:
    """Formats the help of a command in sections."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel, and the commands of a group."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):  # type: ignore[attr-defined]
            title = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if (row := parameter.get_help_record(ctx)) is not None:
                panel = getattr(parameter, "rich_help_panel", None) or title
                sections.setdefault(panel, []).append(row)
        for title in ("Arguments", "Options", *PANELS):
            if title in sections:
                with formatter.section(title):
                    formatter.write_dl(sections[title])
        if isinstance(self, typer.core.TyperGroup):
            self.format_commands(ctx, formatter)


class _Command(_Sections, typer.core.TyperCommand):
    pass


class _SectionedGroup(_Sections, typer.core.TyperGroup):
    pass


class CommandApp(typer.Typer):
    """A command or a group of commands below `agenteval`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            cls=_SectionedGroup, add_completion=False, rich_markup_mode=None, **settings
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[_Function], _Function]:
        """Return a decorator that adds a function as a command."""
        return super().command(name, cls=_Command, **settings)


class grouped:  # noqa: N801  a decorator
    """Adapt a function for typer: a dataclass parameter is replaced by the fields of the dataclass,
    and the function gets an instance.

    A field that two groups share is one option. -q (`quiet`) is obeyed at once. The signature is
    built on demand, because only the called command needs it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._function = function

    @cached_property
    def _types(self) -> dict[str, Any]:
        return get_type_hints(self._function, include_extras=True)

    @cached_property
    def __signature__(self) -> inspect.Signature:
        parameters: dict[str, inspect.Parameter] = {}
        for name, parameter in inspect.signature(self._function).parameters.items():
            kind = self._types[name]
            if not _is_group(kind):
                parameters[name] = parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY)
                continue
            for field, annotation in command_options(kind).items():
                default = inspect.Parameter.empty if field.default is MISSING else field.default
                parameters[field.name] = inspect.Parameter(
                    field.name, parameter.KEYWORD_ONLY, default=default, annotation=annotation
                )
        return inspect.Signature(list(parameters.values()))

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        return {name: p.annotation for name, p in self.__signature__.parameters.items()}

    def __call__(self, **values: Any) -> Any:
        if values.get("quiet"):
            Verbosity.level = -1
        filled = {
            name: _filled(kind, values) if _is_group(kind := self._types[name]) else values[name]
            for name in inspect.signature(self._function).parameters
        }
        try:
            return self._function(**filled)
        except KeyboardInterrupt as interrupt:
            _interrupted(interrupt, filled.values())


def _is_group(kind: object) -> bool:
    return isinstance(kind, type) and is_dataclass(kind)


def command_options(group: type) -> dict[Field[Any], Any]:
    """The fields of a group that are options of commands, with their annotations for typer."""
    options: dict[Field[Any], Any] = {}
    for field in fields(group):
        declared: CommandOption | None = field.metadata.get("option")
        if "option" in field.metadata and declared is None:
            continue
        annotation = declared.type if declared else None
        if annotation is None:
            home = next(c for c in group.__mro__ if field.name in get_annotations(c))
            annotation = eval(str(field.type), vars(sys.modules[home.__module__]))  # noqa: S307
        if declared is not None:
            annotation = Annotated[annotation, typer.Option(*declared.names, **declared.settings)]
        options[field] = annotation
    return options


def _filled(group: type, values: dict[str, Any]) -> Any:
    """Return the group with its option values, converted if it defines a conversion."""
    filled = {}
    for field in fields(group):
        if field.name in values and field.metadata.get("option", ...) is not None:
            convert = getattr(field.metadata.get("option"), "convert", None)
            filled[field.name] = convert(values[field.name]) if convert else values[field.name]
    return group(**filled)


def _interrupted(interrupt: KeyboardInterrupt, groups: Iterable[object]) -> NoReturn:
    """Show the partial report of an interrupted experiment, and end the command."""
    from agenteval.cli.running import Interrupted

    if not isinstance(interrupt, Interrupted):
        raise interrupt
    if interrupt.report is not None:
        finish(interrupt.report, _output(groups))
    warn("interrupted: finished results are stored; run the same command to continue")
    raise typer.Exit(130)


def _output(groups: Iterable[object]) -> OutputOptions:
    return next((g for g in groups if isinstance(g, OutputOptions)), OutputOptions())


def finish(report: Report, output: OutputOptions) -> NoReturn:
    """Show the report as the options say, after a dry run its estimate; end the command with its
    exit code."""
    from agenteval.analysis.gates import gate_lines

    if output.as_json:
        print_json(report.to_json())
    else:
        report.print(all=output.all, console=out())
    if output.as_json or not sys.stdout.isatty():  # otherwise it appears with the tables
        for line in (
            *report.unfinished,
            *gate_lines(g for g in report.gates if g.outcome != "met"),
        ):
            warn(line)
    raise typer.Exit(report.exit_code)
