"""agenteval doctor: what is configured, what answers, which versions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agenteval.cli import options
from agenteval.cli.console import clean, out, print_json
from agenteval.errors import AgentevalError, InputError, NoStoreYet
from agenteval.text import public_url

if TYPE_CHECKING:
    from agenteval.models.factory import ModelChoice

_PACKAGES = (
    "agenteval", "autogen-agentchat", "autogen-ext", "openai", "pydantic", "sqlalchemy",
    "sentence-transformers", "torch",
)  # fmt: skip
_LOCAL = ("torch", "sentence_transformers")

Check = tuple[str, bool | None, str]  # name, fine (None: only information), what was found


def doctor(
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    store: options.StorePath = None,
    as_json: options.AsJson = False,
) -> None:
    """Check versions, the extra `local`, the judge, tasks with their criteria, and the store.

    Exit 3 if one fails; what is only missing is told with the command that makes it."""
    checks = [
        *_versions(), *_local(), *_model(model, options.one_text(base_url)), *_tasks(),
        *_store(store),
    ]  # fmt: skip
    if as_json:
        print_json([{"check": n, "fine": ok, "found": found} for n, ok, found in checks])
    else:
        marks = {True: "[green]ok  [/green]", False: "[red]fail[/red]", None: "    "}
        for name, fine, found in checks:
            out().print(f"{marks[fine]} [bold]{clean(name)}[/bold]  {clean(found)}", soft_wrap=True)
    raise typer.Exit(3 if any(fine is False for _, fine, _ in checks) else 0)


def _versions() -> Iterator[Check]:
    import platform
    import sqlite3
    from importlib.metadata import PackageNotFoundError, version

    yield "python", None, platform.python_version()
    yield "sqlite", None, sqlite3.sqlite_version
    for package in _PACKAGES:
        try:
            yield package, None, version(package)
        except PackageNotFoundError:
            yield package, None, "not installed"


def _local() -> Iterator[Check]:
    from importlib.util import find_spec

    missing = [name for name in _LOCAL if find_spec(name) is None]
    if missing:
        yield "local extra", None, f"missing {', '.join(missing)}: pip install 'agenteval[local]'"
        return
    yield "local extra", True, "installed"
    from agenteval.errors import ModelUnavailable
    from agenteval.models.embeddings import DEFAULT_MODEL, SentenceTransformerEmbedder

    try:
        SentenceTransformerEmbedder()
        yield "weights", True, DEFAULT_MODEL
    except ModelUnavailable as error:
        yield "weights", False, str(error)


def _model(spec: str | None, base_url: str | None) -> Iterator[Check]:
    import asyncio

    from agenteval.models.factory import PROVIDERS, choose_model

    try:
        choice = choose_model(spec, base_url)
        if choice.kind == "embedded":
            keys = sorted({key for _, key in PROVIDERS.values() if key and os.environ.get(key)})
            yield (
                "judge",
                None,
                (
                    "embedded (conciseness by length only); another with --model PROVIDER:MODEL "
                    f"or --base-url URL; keys are set for: {', '.join(keys) or 'no provider'}"
                ),
            )
            return
    except AgentevalError as error:
        yield "judge", False, str(error)
        return
    try:
        yield "judge", True, asyncio.run(_ask(choice))
    except AgentevalError as error:
        yield "judge", False, str(error)


async def _ask(choice: ModelChoice) -> str:
    """One short question, without retries: does the endpoint answer, and how fast?"""
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


def _tasks() -> Iterator[Check]:
    """The tasks of this folder, and what each lacks before its runs can be judged."""
    from agenteval.evaluators.utility.criteria_file import criteria_named
    from agenteval.readers.tasks import TASK_FILE, load_task

    files = sorted(Path("tasks").glob(f"*/{TASK_FILE}"))
    if not files:
        yield "tasks", None, "none in ./tasks: agenteval init NAME RUNS.csv makes one"
    for file in files:
        try:
            task = load_task(file)
        except InputError as error:
            yield f"task {file.parent.name}", False, str(error)
            continue
        paths = (criteria_named(f"{task.name}{end}.json") for end in ("", ".reviewed"))
        criteria = next((path for path in paths if path), None)
        lacks = f"no criteria yet: agenteval criteria --task {file.parent}"
        yield (
            f"task {task.name}",
            criteria is not None or None,
            (f"criteria: {criteria}" if criteria else lacks),
        )


def _store(store: str | None) -> Iterator[Check]:
    from agenteval.store import Store, default_path

    path = store or default_path()
    try:
        with Store(path, create=False) as opened, opened.snapshot():
            held = f"{len(opened.runs())} runs, {len(opened.sources())} judges"
            yield "store", True, f"{opened.shown}: {held}"
    except NoStoreYet:
        yield "store", None, f"{path} (made by the first quantify)"
    except AgentevalError as error:
        yield "store", False, str(error)
