"""Options that several commands share: single ones, and groups of them (see `cli.command`)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli.options import CommonOptions, EndpointOptions, RunOptions, option
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.models.limits import Limits


def flag(group: type, name: str) -> Any:
    """Return the command-line option that a field of a group declares."""
    (declared,) = (f.metadata["option"] for f in fields(group) if f.name == name)
    return typer.Option(*declared.names, **declared.settings)


Model = Annotated[
    str | None,
    typer.Option(
        help="PROVIDER:MODEL, embedded, recorded, replay:FILE or autogen:FILE. "
        "Default: AGENTEVAL_MODEL, else embedded.",
        show_default=False,
    ),
]
BaseUrl = Annotated[str | None, flag(EndpointOptions, "base_url")]
StorePath = Annotated[str | None, flag(RunOptions, "store")]
TaskName = Annotated[str | None, flag(CommonOptions, "task")]
Columns = Annotated[list[str] | None, flag(CommonOptions, "mapping")]
Seed = Annotated[int, flag(CommonOptions, "seed")]
FirstRuns = Annotated[int | None, flag(CommonOptions, "limit")]
DryRun = Annotated[bool, flag(RunOptions, "dry_run")]
CriteriaFile = Annotated[
    Path | None,
    typer.Option(
        "--criteria", help="Criteria file. Default: criteria/TASK.json, else the reviewed set."
    ),
]

JudgeInStore = Annotated[
    str | None,
    typer.Option("--source", help="Judge: model or start of its hash. Default: the latest."),
]


@dataclass(frozen=True)
class OutputOptions:
    """Output format of a command."""

    as_json: bool = option(
        False, "--json", rich_help_panel="Output", help="Print JSON instead of tables."
    )
    all: bool = option(
        False, "--all", rich_help_panel="Output", help="Print every table, not only the first ones."
    )
    quiet: bool = option(
        False, "-q", "--quiet", rich_help_panel="Output", help="Print only results and errors."
    )


AsJson = Annotated[bool, flag(OutputOptions, "as_json")]
Quiet = Annotated[bool, flag(OutputOptions, "quiet")]


@dataclass(frozen=True)
class RequestOptions:
    """Headers and parameters of every request."""

    header: list[str] | None = option(
        None,
        rich_help_panel="Model",
        help="NAME=VALUE of a header that every request carries, e.g. for a gateway. "
        "Repeatable. Also AGENTEVAL_HEADERS, one per line.",
        show_default=False,
    )
    reasoning_effort: str | None = option(
        None,
        rich_help_panel="Model",
        help="Reasoning effort of the model: low, medium or high.",
        show_default=False,
    )
    param: list[str] | None = option(
        None,
        rich_help_panel="Model",
        metavar="KEY=JSON",
        help="Additional request parameter, e.g. top_p=0.9. Repeatable.",
        show_default=False,
    )

    def __post_init__(self) -> None:  # for every endpoint of this process
        if self.header:
            headers = [os.environ.get("AGENTEVAL_HEADERS", ""), *self.header]
            os.environ["AGENTEVAL_HEADERS"] = "\n".join(headers)
        if parameters := self.parameters():
            os.environ["AGENTEVAL_PARAMETERS"] = json.dumps(parameters)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of every request. Raises InputError for unreadable ones."""
        parameters: dict[str, Any] = {}
        for pair in self.param or ():
            name, sign, text = pair.partition("=")
            if not sign or not name.strip():
                raise InputError(f"{pair[:60]!r}: write KEY=JSON, e.g. top_p=0.9", "--param")
            try:
                parameters[name.strip()] = json.loads(text)
            except ValueError:  # a word without quotes is a string
                parameters[name.strip()] = text
        if self.reasoning_effort is not None:
            parameters["reasoning_effort"] = self.reasoning_effort
        return parameters


@dataclass(frozen=True)
class ReplyOptions(RequestOptions):
    """The same, with a limit on replies."""

    max_tokens: str | None = option(
        None,
        rich_help_panel="Model",
        metavar="N|none",
        help="Maximum tokens per reply; none: no limit. Default: enough for the criteria, and none "
        "for known reasoning models.",
        show_default=False,
    )

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of every request. Raises InputError for unreadable ones."""
        if self.max_tokens is None:
            return super().parameters()
        limit = self.max_tokens.strip().lower()
        if limit != "none" and not (limit.isdigit() and int(limit)):
            raise InputError(f"{limit!r}: write a number above 0, or none", "--max-tokens")
        return {**super().parameters(), "max_tokens": None if limit == "none" else int(limit)}


@dataclass(frozen=True)
class ModelOptions(ReplyOptions, EndpointOptions):
    """A model, its endpoint, and the headers and parameters of its requests."""

    model: Model = None


@dataclass(frozen=True)
class LimitOptions:
    """Limits of a command that sends requests."""

    concurrency: int = option(
        8,
        "-j",
        "--concurrency",
        help="Maximum number of concurrent requests.",
        min=1,
        max=512,
    )
    max_calls: int | None = option(
        None,
        rich_help_panel="Limits",
        help="Stop before exceeding this many requests, including those already stored.",
        min=1,
    )
    max_cost: float | None = option(
        None,
        help="Stop before spending more than this, including requests already stored.",
        min=0.0,
    )
    price_in: float | None = option(
        None, rich_help_panel="Limits", help="Price per million prompt tokens.", min=0.0
    )
    price_out: float | None = option(
        None, rich_help_panel="Limits", help="Price per million reply tokens.", min=0.0
    )
    timeout: float = option(
        120.0, rich_help_panel="Limits", help="Timeout of one request, in seconds.", min=1.0
    )

    def limits(self) -> Limits:
        """Return the limits. Raises InputError if only one of both prices is given, because the
        cost would be reported and capped too low."""
        from agenteval.models.limits import Limits, Price

        if (self.price_in is None) != (self.price_out is None):
            missing = "--price-out" if self.price_out is None else "--price-in"
            raise InputError("give both prices; the cost cannot be computed from one", missing)
        price = None
        if self.price_in is not None and self.price_out is not None:
            price = Price(self.price_in, self.price_out)
        return Limits(self.concurrency, self.max_calls, self.max_cost, price, self.timeout)


Timeout = Annotated[float, flag(LimitOptions, "timeout")]


@dataclass(frozen=True)
class CopyOptions:
    """Perturbations and their parameters."""

    # Not read from the operators: to list them would load more than the help needs.
    perturb: list[str] | None = option(
        None,
        rich_help_panel="Perturbations",
        help="Perturbation (repeatable): drop_sentences, drop_words, drop_middle, "
        "truncate, shuffle_sentences, swap_numbers, pad, whitespace, formatting; for runs with "
        "rubrics drop_item. Default: five of them, see docs/verify.md.",
        show_default=False,
    )
    share: float = option(
        0.25,
        "--share",
        "--drop",
        rich_help_panel="Perturbations",
        help="Share of a text that a perturbation changes. `--drop` is its former name.",
        min=0.01,
        max=0.9,
    )
