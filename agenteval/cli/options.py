"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[
    str | None,
    typer.Option(
        help="PROVIDER:MODEL, embedded[:GGUF], replay:FILE or autogen:FILE. "
        "Default: AGENTEVAL_MODEL, else embedded.",
        show_default=False,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="An OpenAI-compatible endpoint, e.g. http://127.0.0.1:8000/v1."),
]
StorePath = Annotated[
    Path | None,
    typer.Option("--store", help="Database file. Default: AGENTEVAL_STORE, else agenteval.db."),
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
Record = Annotated[
    Path | None, typer.Option(help="Append every reply to this file, for replay:FILE.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would do and cost; stop.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only results and errors.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")]
