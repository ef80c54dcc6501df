"""The prompt of a stored call, written again: the store keeps the hash of a request and its reply.

A prompt is shown only if its request has the stored hash, so what is shown is what was sent but for
the nonce in its markers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agenteval.engine.judging import JudgeUnit
from agenteval.errors import InputError
from agenteval.models.client import Client
from agenteval.models.wire import NONCE
from agenteval.readers.tasks import find_task
from agenteval.records import Criterion, Run, Source, View, content_hash
from agenteval.utility.quantifier import Quantifier, QuantifierOptions

_EVALUATOR = "utility.quantifier"


@dataclass(frozen=True)
class PromptMessage:
    """One message of a prompt."""

    role: str
    text: str


@dataclass(frozen=True)
class WrittenAgain:
    """The messages of a prompt, or why they cannot be known."""

    messages: tuple[PromptMessage, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class _Named:
    """The part of a client that the quantifier needs to write a request."""

    model: str
    address: str


def written_again(
    source: Source, run: Run, view: View, criteria: Sequence[Criterion], request: Mapping[str, Any]
) -> WrittenAgain:
    """Return the prompt of a call on a run, as it was sent.

    `criteria` are those of the call in the order in which they were registered; `request` is what
    the reply says of its request (`Request.described`).
    """
    if source.evaluator != _EVALUATOR:
        return WrittenAgain(reason=f"{source.evaluator} keeps no prompt")
    try:
        task = find_task(run.task).task
    except InputError:
        return WrittenAgain(reason=f"the prompt names the task {run.task!r}, which is not here")
    known = source.parameters
    if content_hash([task.name, task.description]) != known.get("task"):
        return WrittenAgain(reason=f"the description of the task {run.task!r} has changed")
    names = ("one_per_call", "temperature", "max_tokens", "repair", "wording")
    flags = ("reversed_scale", "reworded")
    fields: dict[str, Any] = {n: known[n] for n in (*names, *flags) if n in known}
    named = _Named(source.model, str(known.get("endpoint") or ""))
    quantifier = Quantifier(
        cast(Client, named), task, QuantifierOptions(seed=source.seed, **fields)
    )
    if quantifier.source.prompt_sha256 != source.prompt_sha256:
        return WrittenAgain(reason="this version of agenteval words its prompts differently")
    unit = JudgeUnit(
        run,
        view,
        tuple(criteria),
        repeat=int(request.get("repeat") or 0),
        attempt=int(request.get("attempt") or 0),
    )
    written, _ = quantifier.request(unit)
    if written.logical_hash() != request.get("key"):
        return WrittenAgain(reason="what can be written again is not the request that was sent")
    messages = (
        PromptMessage(str(m["role"]), str(m["content"]).replace(NONCE, "…"))
        for m in written.messages
    )
    return WrittenAgain(tuple(messages))
