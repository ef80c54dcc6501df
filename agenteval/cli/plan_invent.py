"""agenteval plan synth --invent: professions from a chat model, into a file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agenteval.cli.console import Verbosity, clean, note, out, warn, warn_list
from agenteval.cli.ending import REPLIES, say_interrupted, say_waiting
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError, ModelError, ModelUnavailable

if TYPE_CHECKING:
    from agenteval.evaluators.planning.invent import Invention
    from agenteval.models.embeddings import Embedder
    from agenteval.models.factory import ModelChoice

_TIMEOUT = 600.0  # seconds of one request: a long reply of a model on this machine


def invent_lexicon(
    invent: int, lexicon_path: Path | None, model: str | None, base_url: str | None
) -> None:
    """Ask the model for so many professions, and write the file.

    Replies are kept in the store (AGENTEVAL_STORE, else agenteval.db), so a run that was
    interrupted asks nothing twice; the file is written at the end, in one step. Raises InputError
    without a file name, for a file that exists and without a chat model, ModelError when nothing
    could be kept, and whatever stops the client.
    """
    from agenteval.evaluators.planning.invent import requests_for
    from agenteval.models.factory import choose_model

    if lexicon_path is None:
        raise InputError("--invent needs a file to write to", "--lexicon")
    if lexicon_path.exists():
        raise InputError(
            f"{lexicon_path} exists; leave out --invent to use it, or name another file",
            "--lexicon",
        )
    refuse_input(lexicon_path)
    choice = choose_model(model, base_url)
    if choice.kind == "embedded":
        raise InputError(
            "inventing needs a chat model: PROVIDER:MODEL, or --base-url (`agenteval models serve` "
            "serves the embedded one, which is small for this)", "--model",
        )  # fmt: skip
    count = requests_for(invent)
    note(f"{choice.name}: {count} requests, at most {2 * count} with repairs")
    invention = _ask(choice, invent)
    note(invention.meaning)
    count = len(invention.refused)
    most = count if Verbosity.level > 0 else 20  # the file has all of them
    warn_list(f"refused: {count}", invention.refused, most=most)
    if not invention.topics:
        raise ModelError("nothing the model proposed could be kept; nothing was written")
    kept = ", ".join(f"{topic.role} ({len(topic.activities)})" for topic in invention.topics)
    out().print(clean(f"kept professions, with activities: {kept}"))
    if len(invention.topics) < invent:
        warn(f"{len(invention.topics)} of the {invent} professions asked for were kept")
    invention.save(lexicon_path)
    note(f"written to {lexicon_path}; nobody has reviewed order and overlap in it: read it")


def _ask(choice: ModelChoice, professions: int) -> Invention:
    import asyncio

    from agenteval.draining import answered
    from agenteval.evaluators.planning.invent import invent as invent_professions
    from agenteval.models.factory import make_client
    from agenteval.models.limits import Limits
    from agenteval.store import Store, default_path

    embedder = _embedder()
    with closing(Store(default_path())) as store:
        client = make_client(choice, Limits(timeout=_TIMEOUT), store)

        async def work() -> Invention:
            try:
                asking = invent_professions(
                    client, embedder, professions, lambda what: note(f"asking for {what}")
                )
                return await answered(asking, client, say_waiting)
            finally:
                await client.close()

        try:
            return asyncio.run(work())
        except KeyboardInterrupt:
            raise typer.Exit(say_interrupted(REPLIES)) from None


def _embedder() -> Embedder | None:
    from agenteval.models.embeddings import make_embedder

    try:
        return make_embedder(None)
    except ModelUnavailable as error:
        warn(f"closeness in meaning is not checked: {error}")
        return None
