"""Options that several commands share: single ones, and groups of them (see `cli.command`)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.models import factory
    from agenteval.models.limits import Limits

Model = Annotated[
    str | None,
    typer.Option(
        help="PROVIDER:MODEL, embedded, recorded, replay:FILE or autogen:FILE. "
        "Default: AGENTEVAL_MODEL, else embedded.",
        show_default=False,
    ),
]
JudgeModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        "--judge",
        help="PROVIDER:MODEL, decisions:NAME, embedded, recorded, replay:FILE, autogen:FILE, or "
        "python:MODULE:NAME of a function (run, criterion) or of another framework's scorer. "
        "Default: AGENTEVAL_MODEL, else embedded.",
        show_default=False,
    ),
]
WithReference = Annotated[
    bool, typer.Option("--with-reference", help="Show the judge the reference answer.")
]
ChatModel = Annotated[
    str | None,
    typer.Option(
        help="PROVIDER:MODEL, replay:FILE or autogen:FILE. Default: AGENTEVAL_MODEL.",
        show_default=False,
    ),
]
BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        "--base-url",
        help="An OpenAI-compatible endpoint, e.g. http://127.0.0.1:8000/v1; several of one model "
        "share the requests, see docs/scale.md.",
        show_default=False,
    ),
]
StorePath = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PATH",
        help="Database file, or postgresql://USER@HOST/DATABASE. Default: AGENTEVAL_STORE, else "
        "agenteval.db.",
    ),
]
TaskName = Annotated[
    str | None, typer.Option("--task", help="Name of a task, or its folder.", show_default=False)
]
SystemName = Annotated[
    str | None,
    typer.Option(
        "--system",
        help="Name of the system of runs that name none, e.g. bot-v2; their ids become NAME/ID.",
        show_default=False,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        help="FIELD=COLUMN,... where the names of columns or keys do not tell: input, output, "
        "success, id, system, reference. Default: what task.yaml says.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of everything that is drawn.", min=0)]
Concurrency = Annotated[
    int, typer.Option("-j", "--concurrency", help="Requests in flight at most.", min=1, max=512)
]
MaxCalls = Annotated[
    int | None, typer.Option(help="Stop before this many requests, earlier ones included.", min=1)
]
MaxCost = Annotated[
    float | None, typer.Option(help="Stop before this much money is spent.", min=0.0)
]
PriceIn = Annotated[float | None, typer.Option(help="Price of a million prompt tokens.", min=0.0)]
PriceOut = Annotated[float | None, typer.Option(help="Price of a million reply tokens.", min=0.0)]
Temperature = Annotated[
    float | None, typer.Option(help="Sampling temperature; -1 leaves it to the endpoint.")
]
Timeout = Annotated[float, typer.Option(help="Seconds for one request.", min=1.0)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would do and cost; stop.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only results and errors.")]
ShowAll = Annotated[bool, typer.Option("--all", help="Every table, not only the first ones.")]
Repeats = Annotated[int, typer.Option(help="How often each text is judged.", min=1)]
FirstRuns = Annotated[int | None, typer.Option("--limit", help="Only the first N runs.", min=1)]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Ask again where no result could be had for good.")
]


def read_columns(pairs: list[str] | None) -> dict[str, str] | None:
    """What `--map` says; None without. Raises InputError."""
    from agenteval.readers.table_files import read_mapping

    return None if pairs is None else read_mapping(pairs)


def one_text(urls: list[str] | None) -> str | None:
    """The URLs with blanks between them; None without."""
    return None if urls is None else " ".join(urls)


@dataclass(frozen=True)
class OutputOptions:
    """How a command tells what it found."""

    as_json: AsJson = False
    all: ShowAll = False
    quiet: Quiet = False


@dataclass(frozen=True)
class AskingOptions:
    """Who is asked, and how freely it answers."""

    model: Model = None
    base_urls: BaseUrl = None
    temperature: Temperature = 1.0
    header: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=VALUE of a header that every request carries, e.g. for a gateway; may be "
            "given often. Also AGENTEVAL_HEADERS, one a line.",
            show_default=False,
        ),
    ] = None

    reasoning_effort: Annotated[
        str | None,
        typer.Option(help="How long the model thinks: low, medium, high.", show_default=False),
    ] = None
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=JSON",
            help="A further parameter of every request, e.g. top_p=0.9; may be given often.",
            show_default=False,
        ),
    ] = None

    def __post_init__(self) -> None:  # for every endpoint of this process
        if self.header:
            own = [os.environ.get("AGENTEVAL_HEADERS", ""), *self.header]
            os.environ["AGENTEVAL_HEADERS"] = "\n".join(own)

    @property
    def configured_model(self) -> str | factory.ChatModel | None:
        """The model with the parameters of every request, as the Python API takes it.

        Raises InputError for a parameter that cannot be read.
        """
        parameters = self.parameters()
        if not parameters:
            return self.model
        from agenteval.models.factory import ChatModel

        return ChatModel(self.model, parameters=parameters)

    def parameters(self) -> dict[str, Any]:
        """The parameters of every request. Raises InputError for one that cannot be read."""
        parameters: dict[str, Any] = {}
        for pair in self.param or ():
            name, sign, text = pair.partition("=")
            if not sign or not name.strip():
                raise InputError(f"{pair[:60]!r}: write KEY=JSON, e.g. top_p=0.9", "--param")
            try:
                parameters[name.strip()] = json.loads(text)
            except ValueError:  # a word without quotes is meant as it is
                parameters[name.strip()] = text
        if self.reasoning_effort is not None:
            parameters["reasoning_effort"] = self.reasoning_effort
        return parameters

    @property
    def base_url(self) -> str | None:
        """The endpoints that were named, as `choose_model` reads them."""
        return one_text(self.base_urls)

    @property
    def sampling(self) -> float | None:
        """The temperature; None leaves it to the endpoint."""
        return None if self.temperature is None or self.temperature < 0 else self.temperature


@dataclass(frozen=True)
class ModelOptions(AskingOptions):
    """The same, with a limit on replies."""

    max_tokens: Annotated[
        str | None,
        typer.Option(
            metavar="N|none",
            help="Tokens of one reply at most; none: as many as the model can write. Default: "
            "enough for the criteria, none for models that are known to reason.",
            show_default=False,
        ),
    ] = None

    def parameters(self) -> dict[str, Any]:
        """The parameters of every request. Raises InputError for one that cannot be read."""
        if self.max_tokens is None:
            return super().parameters()
        limit = self.max_tokens.strip().lower()
        if limit != "none" and not (limit.isdigit() and int(limit)):
            raise InputError(f"{limit!r}: write a number above 0, or none", "--max-tokens")
        return {**super().parameters(), "max_tokens": None if limit == "none" else int(limit)}


@dataclass(frozen=True)
class AgentModelOptions(AskingOptions):
    """The model of an agent under test."""

    model: ChatModel = None


@dataclass(frozen=True)
class ChatOptions(ModelOptions):
    """The same where the embedded model cannot be asked."""

    model: ChatModel = None


@dataclass(frozen=True)
class LimitOptions:
    """The bounds of a command that asks."""

    concurrency: Concurrency = 8
    max_calls: MaxCalls = None
    max_cost: MaxCost = None
    price_in: PriceIn = None
    price_out: PriceOut = None
    timeout: Timeout = 120.0

    def limits(self) -> Limits:
        """The bounds. Raises InputError for one price without the other: a cost of which half is
        unknown would be told, and capped, too low."""
        from agenteval.models.limits import Limits, Price

        if (self.price_in is None) != (self.price_out is None):
            missing = "--price-out" if self.price_out is None else "--price-in"
            raise InputError("one price without the other gives no cost; say both", missing)
        price = (
            None
            if self.price_in is None or self.price_out is None
            else Price(self.price_in, self.price_out)
        )
        return Limits(self.concurrency, self.max_calls, self.max_cost, price, self.timeout)


@dataclass(frozen=True)
class RunOptions:
    """Where an experiment is kept, and how it goes on."""

    store: StorePath = None
    retry_failed: RetryFailed = False
    dry_run: DryRun = False


@dataclass(frozen=True)
class JudgeOptions(ModelOptions):
    """Which runs are judged on which criteria, and how the judge is asked."""

    model: JudgeModel = None
    task: TaskName = None
    criteria: Annotated[
        Path | None,
        typer.Option(help="Criteria file. Default: criteria/TASK.json, else the reviewed set."),
    ] = None
    with_reference: WithReference = False
    columns: Columns = None
    system: SystemName = None
    repeats: Repeats = 1
    seed: Seed = 0
    one_per_call: Annotated[
        bool, typer.Option("--one-per-call", help="One criterion per request: less halo, n × cost.")
    ] = False
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="A probability for each level, from the log-probabilities of a chat model.",
        ),
    ] = False
    limit: FirstRuns = None

    def asked(self) -> dict[str, Any]:
        """The keyword arguments of `quantify` and `verify` for them."""
        return {
            "judge": self.configured_model, "base_url": self.base_url, "temperature": self.sampling,
            "task": self.task, "criteria": self.criteria, "system": self.system,
            "repeats": self.repeats, "seed": self.seed, "one_per_call": self.one_per_call,
            "limit": self.limit, "mapping": read_columns(self.columns),
            "with_reference": self.with_reference, "probabilities": self.probabilities,
        }  # fmt: skip


@dataclass(frozen=True)
class CopyOptions:
    """How runs are perturbed."""

    # Not read from the operators: to list them would load more than the help needs.
    perturb: Annotated[
        list[str] | None,
        typer.Option(
            "--perturb",
            help="Perturbation, may be given often: drop_sentences, drop_words, drop_middle, "
            "truncate, shuffle_sentences, swap_numbers, pad, whitespace, formatting. "
            "Default: five of them, see docs/verify.md.",
            show_default=False,
        ),
    ] = None
    drop: Annotated[
        float, typer.Option(help="Share of a text that a perturbation touches.", min=0.01, max=0.9)
    ] = 0.25
