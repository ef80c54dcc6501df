"""agenteval plan synth --invent: professions and wordings from a chat model, into a file."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Ask the model for so many professions and further wordings, and write the file.

    Replies are kept in the store (AGENTEVAL_STORE, else agenteval.db), so a run that was
    interrupted asks nothing twice; the file is written at the end, in one step. Raises InputError
    without a file name, for a file that exists and without a chat model, ModelError when nothing
    could be kept, and whatever stops the client.
    """
    from agenteval.evaluators.planning.invent import requests_for, save_invention
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
    found = _ask(choice, invent)
    _tell(found)
    if not found.topics and not found.wordings:
        raise ModelError("nothing the model proposed could be kept; nothing was written")
    save_invention(lexicon_path, found)
    note(f"written to {lexicon_path}; nobody has reviewed order and overlap in it: read it")


def _ask(choice: ModelChoice, invent: int) -> Invention:
    import asyncio

    from agenteval.assemble import Limits, make_client
    from agenteval.draining import answered
    from agenteval.evaluators.planning.invent import Inventor
    from agenteval.store import Store, default_path

    embedder = _embedder()
    with closing(Store(default_path())) as store:
        client = make_client(choice, Limits(timeout=_TIMEOUT), store)

        async def work() -> Invention:
            try:
                asking = Inventor(client, embedder, tell=_asking).invent(invent)
                return await answered(asking, client, say_waiting)
            finally:
                await client.close()

        try:
            return asyncio.run(work())
        except KeyboardInterrupt:
            raise typer.Exit(say_interrupted(REPLIES)) from None


def _asking(what: str) -> None:
    note(f"asking for {what}")


def _embedder() -> Embedder | None:
    from agenteval.models.embeddings import make_embedder

    try:
        return make_embedder(None)
    except ModelUnavailable as error:
        warn(f"closeness in meaning is not checked: {error}")
        return None


def _tell(found: Invention) -> None:
    for failure in found.failures:
        warn(f"{failure.request}: {failure.status}: {failure.message}")
    for kind, plural in (("profession", "professions"), ("activity", "activities"),
                         ("wording", "wordings")):  # fmt: skip
        kept, proposed = found.kept[kind], found.proposed[kind]
        out().print(f"{plural}: {kept} of {proposed} proposed were kept")
    if found.topics:
        out().print(clean("kept professions: " + ", ".join(t.role for t in found.topics)))
    if found.wordings:
        out().print(clean("kept wordings: " + "; ".join(w[1] for w in found.wordings)))
    note(found.meaning)
    _refused([str(entry) for entry in found.refused])
    if not found.topics:
        warn("no profession was kept; the built-in ones serve")
    elif len(found.topics) < found.asked:
        warn(f"{len(found.topics)} of the {found.asked} professions asked for were kept")


def _refused(lines: Sequence[str]) -> None:
    """All of them with -v; what is not shown is counted, and stands in the file."""
    most = len(lines) if Verbosity.level > 0 else 20
    warn_list(f"refused: {len(lines)}", lines, most=most)
