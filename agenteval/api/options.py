"""Options of experiments, each declared once: the command line and the Python functions use them.

A group of options is a frozen dataclass. `option` gives a field the help text and the form that the
command line needs; a field with `python_only` has no command-line option. Functions take the same
names as keywords (`**options: Unpack[...]`, checked by type checkers) and read them with
`read_options`. To add an option, add a field, a key of the matching TypedDict, and its use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

if TYPE_CHECKING:
    from agenteval.api.judging import AnyJudge
    from agenteval.api.running import Notify, Progress
    from agenteval.models.factory import Model
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
    such as `help` and `min`.
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


# -- conversions of what the command line gives ----------------------------------------------------


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
    """Where an experiment is stored, how it continues, and who is notified."""

    store: StorePath = option(
        None,
        "--store",
        type=str | None,
        metavar="PATH",
        help="Database file, or postgresql://USER@HOST/DATABASE. Default: AGENTEVAL_STORE, else "
        "agenteval.db.",
    )
    retry_failed: bool = option(
        False, "--retry-failed", help="Ask again where no result could be had for good."
    )
    dry_run: bool = option(False, "--dry-run", help="Say what it would do and cost; stop.")
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
    """The endpoint of a model, and how freely it answers."""

    base_url: str | None = option(
        None,
        "--base-url",
        help="An OpenAI-compatible endpoint, e.g. http://127.0.0.1:8000/v1.",
        show_default=False,
    )
    temperature: float | None = option(
        1.0, convert=to_sampling, help="Sampling temperature; -1 leaves it to the endpoint."
    )


class EndpointKeywords(TypedDict, total=False):
    """Keywords for `EndpointOptions`."""

    base_url: str | None
    temperature: float | None


@dataclass(frozen=True)
class ExecutorOptions:
    """Where units are evaluated."""

    workers: int | None = option(
        None,
        "--workers",
        help="Evaluate in this many Ray actors, on this machine unless --ray says where. Requests "
        "are still sent by this process. Needs agenteval[ray].",
        min=1,
    )
    ray: str | None = option(
        None,
        "--ray",
        metavar="ADDRESS|local",
        help="Evaluate in a Ray cluster, e.g. auto on one of its nodes; local: on this machine.",
        show_default=False,
    )


class ExecutorKeywords(TypedDict, total=False):
    """Keywords for `ExecutorOptions`."""

    workers: int | None
    ray: str | None


@dataclass(frozen=True)
class JudgeOptions(RunOptions, EndpointOptions, ExecutorOptions):
    """Which runs are judged, and how the judge is asked."""

    judge: AnyJudge = option(
        None,
        "--model",
        "--judge",
        type=str | None,
        help="PROVIDER:MODEL, decisions:NAME, embedded, recorded, replay:FILE, autogen:FILE, or "
        "python:MODULE:NAME of a function (run, criterion) or of another framework's scorer. "
        "Default: AGENTEVAL_MODEL, else embedded.",
        show_default=False,
    )
    version: str | None = python_only()  # of a judge that is a function
    task: str | Task | None = option(
        None,
        "--task",
        type=str | None,
        help="Name of a task, or its folder.",
        show_default=False,
    )
    with_reference: bool = option(
        False, "--with-reference", help="Show the judge the reference answer."
    )
    mapping: Mapping[str, str] | None = option(
        None,
        "--map",
        type=list[str] | None,
        convert=read_columns,
        help="FIELD=COLUMN,... where the names of columns or keys do not tell: input, output, "
        "success, id, system, reference. Default: what task.yaml says.",
        show_default=False,
    )
    system: str | None = option(
        None,
        help="Name of the system of runs that name none, e.g. bot-v2; their ids become NAME/ID.",
        show_default=False,
    )
    repeats: int = option(1, help="How often each text is judged.", min=1)
    seed: int = option(0, help="Seed of everything that is drawn.", min=0)
    one_per_call: bool = option(
        False, "--one-per-call", help="One criterion per request: less halo, n × cost."
    )
    probabilities: bool = option(
        False,
        "--probabilities",
        help="A probability for each level, from the log-probabilities of a chat model.",
    )
    limit: int | None = option(None, help="Only the first N runs.", min=1)


class JudgeKeywords(RunKeywords, EndpointKeywords, ExecutorKeywords, total=False):
    """Keywords for `JudgeOptions`."""

    judge: AnyJudge
    version: str | None
    task: str | Task | None
    with_reference: bool
    mapping: Mapping[str, str] | None
    system: str | None
    repeats: int
    seed: int
    one_per_call: bool
    probabilities: bool
    limit: int | None


@dataclass(frozen=True)
class VerifiedJudge(JudgeOptions):
    """As for `quantify`; each text is judged twice, so that the judge can disagree with itself."""

    repeats: int = with_default(JudgeOptions, "repeats", 2)


@dataclass(frozen=True)
class ProposeOptions(RunOptions, EndpointOptions):
    """How critics propose criteria, and how proposals are merged."""

    model: Model = option(
        None,
        type=str | None,
        help="PROVIDER:MODEL, embedded, recorded, replay:FILE or autogen:FILE. "
        "Default: AGENTEVAL_MODEL, else embedded.",
        show_default=False,
    )
    seeds: int = option(5, help="How many critics, each with its own seed.", min=1)
    seed: int = with_default(JudgeOptions, "seed", 0)
    tau: float | None = option(
        None, help="Cosine from which two criteria merge; 1: only equal names.", min=0, max=1
    )
    embedder: str | None = option(
        None, help="sentence-transformers name or path, or endpoint:NAME."
    )
    examples: bool = option(
        True,
        "--examples/--no-examples",
        help="Show the critic examples; without (task-based), the description only.",
    )
    sub_criteria: bool = option(
        False, "--sub-criteria", help="Have a second agent divide the criteria."
    )
    bank: bool = option(False, "--bank", help="Show the critic the nearest entries of the bank.")
    kinds: Sequence[str] = option(
        (),
        "--kind",
        type=list[str] | None,
        convert=to_tuple,
        help="Kind of task, for what comes from the bank; default: guessed, and told.",
        show_default=False,
    )
    consolidate: bool = option(
        True,
        "--consolidate/--no-consolidate",
        help="Ask the critic which names are the same; without, merge by embedding alone.",
    )
    min_seeds: int = option(1, help="Keep what at least so many seeds proposed.", min=1)
    output: str | Path | None = option(
        None, "-o", "--output", type=Path | None, help="Default: criteria/TASK.json."
    )


class ProposeKeywords(RunKeywords, EndpointKeywords, total=False):
    """Keywords for `ProposeOptions`."""

    model: Model
    seeds: int
    seed: int
    tau: float | None
    embedder: str | None
    examples: bool
    sub_criteria: bool
    bank: bool
    kinds: Sequence[str]
    consolidate: bool
    min_seeds: int
    output: str | Path | None
