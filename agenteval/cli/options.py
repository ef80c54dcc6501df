"""Options of experiments, each declared once: the command line and the Python functions use them.

A group of options is a frozen dataclass. `option` gives a field the help text and the form that the
command line needs; a field with `python_only` has no command-line option. Functions take the same
names as keywords (`**options: Unpack[...]`, checked by type checkers) and read them with
`read_options`. To add an option, add a field, a key of the matching TypedDict, and its use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

if TYPE_CHECKING:
    from agenteval.cli.running import Notify, Progress
    from agenteval.models.limits import Limits
    from agenteval.records import Task
    from agenteval.store import Store

    StorePath = str | Path | Store | None

_Group = TypeVar("_Group")


@dataclass(frozen=True)
class CommandOption:
    """An option on the command line: its names, the type of its text, and how it is converted."""

    names: tuple[str, ...]
    type: Any
    convert: Callable[[Any], Any] | None
    settings: Mapping[str, Any]  # of `typer.Option`


def option(
    default: Any,
    *names: str,
    type: Any = None,
    convert: Callable[[Any], Any] | None = None,
    **settings: Any,
) -> Any:
    """Declare a field that is also an option of commands.

    `names` default to the name of the field, `type` to the type of the field; `convert` makes the
    value of the field from the value on the command line. `settings` are those of `typer.Option`,
    such as `help` and `min`; `rich_help_panel` is the section of the help, of `PANELS` in
    `agenteval.cli.command`, for an option that few people need.
    """
    declared = CommandOption(names, type, convert, settings)
    return field(default=default, metadata={"option": declared})


def python_only(default: Any = None) -> Any:
    """Declare a field that only Python functions take."""
    return field(default=default, metadata={"option": None})


def with_default(group: type, name: str, default: Any) -> Any:
    """Declare the field `name` of another group again, with another default."""
    (declared,) = (f for f in fields(group) if f.name == name)
    return field(default=default, metadata=declared.metadata)


def read_options(
    group: type[_Group], keywords: Mapping[str, Any], function: Callable[..., Any]
) -> _Group:
    """Return the options of a function's keywords.

    Raises TypeError for an unknown keyword; the message names the nearest known one.
    """
    names = [f.name for f in fields(group)]  # type: ignore[arg-type]
    for name in keywords:
        if name not in names:
            written = [
                p.name
                for p in inspect.signature(function).parameters.values()
                if p.kind is not p.VAR_KEYWORD
            ]
            near = get_close_matches(name, [*names, *written], 1, 0)
            called = function.__name__.removeprefix("a")
            raise TypeError(
                f"{called}() got an unexpected keyword argument {name!r}; did you mean {near[0]!r}?"
            )
    return group(**keywords)


def keywords(*groups: Any, **changes: Any) -> dict[str, Any]:
    """Return the fields of groups of options as keywords of a function, with changes."""
    values = {f.name: getattr(group, f.name) for group in groups for f in fields(group)}
    return {**values, **changes}


# -- conversions of command-line values ------------------------------------------------------------


def to_sampling(temperature: float | None) -> float | None:
    """Return the temperature; None, which leaves it to the endpoint, for a negative one."""
    return None if temperature is None or temperature < 0 else temperature


def read_columns(pairs: list[str] | None) -> dict[str, str] | None:
    """Return the mapping of `--map`; None without. Raises InputError."""
    from agenteval.readers.table_files import read_mapping

    return None if pairs is None else read_mapping(pairs)


def to_tuple(values: list[str] | None) -> tuple[str, ...]:
    """Return the values; none for None."""
    return tuple(values or ())


# -- groups ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunOptions:
    """Store, continuation and notification of an experiment."""

    store: StorePath = option(
        None,
        "--store",
        type=str | None,
        metavar="PATH",
        help="Database file, or postgresql://USER@HOST/DATABASE. Default: AGENTEVAL_STORE, else "
        "agenteval.db.",
        rich_help_panel="Store",
    )
    retry_failed: bool = option(
        False,
        "--retry-failed",
        help="Retry permanent failures.",
        rich_help_panel="Store",
    )
    dry_run: bool = option(
        False, "--dry-run", help="Print what would be done and its cost, then stop."
    )
    limits: Limits | None = python_only()
    notify: Notify | None = python_only()
    progress: Progress | None = python_only()


class RunKeywords(TypedDict, total=False):
    """Keywords for `RunOptions`."""

    store: StorePath
    retry_failed: bool
    dry_run: bool
    limits: Limits | None
    notify: Notify | None
    progress: Progress | None


@dataclass(frozen=True)
class EndpointOptions:
    """The endpoint of a model, and its temperature."""

    base_url: str | None = option(
        None,
        "--base-url",
        help="An OpenAI-compatible endpoint, e.g. http://127.0.0.1:8000/v1.",
        show_default=False,
        rich_help_panel="Model",
    )
    temperature: float | None = option(
        1.0,
        convert=to_sampling,
        help="Sampling temperature; -1 leaves it to the endpoint.",
        rich_help_panel="Model",
    )


class EndpointKeywords(TypedDict, total=False):
    """Keywords for `EndpointOptions`."""

    base_url: str | None
    temperature: float | None


@dataclass(frozen=True)
class ExecutorOptions:
    """Location of the evaluation: this process or Ray actors."""

    workers: int | None = option(
        None,
        "--workers",
        help="Evaluate in this many Ray actors, on this machine unless --ray names a cluster. "
        "This process still sends the requests. Needs agenteval[ray].",
        min=1,
        rich_help_panel="Workers",
    )
    ray: str | None = option(
        None,
        "--ray",
        metavar="ADDRESS|local",
        help="Evaluate in a Ray cluster, e.g. auto on one of its nodes; local: on this machine.",
        show_default=False,
        rich_help_panel="Workers",
    )


class ExecutorKeywords(TypedDict, total=False):
    """Keywords for `ExecutorOptions`."""

    workers: int | None
    ray: str | None


@dataclass(frozen=True)
class CommonOptions:
    """Options that several groups declare again with `with_default`."""

    task: str | Task | None = option(
        None,
        "--task",
        type=str | None,
        help="Name of a task, or its folder.",
        show_default=False,
    )
    mapping: Mapping[str, str] | None = option(
        None,
        "--map",
        type=list[str] | None,
        convert=read_columns,
        help="Which column or key holds a field, as FIELD=COLUMN,... (input, output, success, "
        "id, system, reference). Others: the map in task.yaml, then known column names.",
        show_default=False,
    )
    seed: int = option(
        0,
        help="Random seed.",
        min=0,
        rich_help_panel="Runs",
    )
    limit: int | None = option(
        None,
        help="Read only the first N runs.",
        min=1,
        rich_help_panel="Runs",
    )
