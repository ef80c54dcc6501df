"""Writes stored replies as a recording that `replay:FILE` reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from agenteval.errors import InputError
from agenteval.files import replacing
from agenteval.records import canonical_json
from agenteval.store import schema
from agenteval.store.connect import reading
from agenteval.store.rows import decode
from agenteval.store.store import Store


@dataclass
class ExportedReplies:
    """Number of replies written, and of those without a request."""

    written: int = 0
    without_request: int = 0


def export_replies(store: Store, path: Path, model: str | None = None) -> ExportedReplies:
    """Write the replies of all models, or of `model`, to a JSON-lines file; return their numbers.

    Each line names the request by its hash, and the run, repeat and role it was sent for. Raises
    InputError when there is nothing to write, when two models (or one model with other parameters)
    replied differently to the same request, and when the file cannot be written.
    """
    exported = ExportedReplies()
    answered: dict[str, tuple[str, str]] = {}  # hash of the reply, and who gave it
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for reply in _stored(store):
            request = reply.pop("request", None)
            if not isinstance(request, dict):
                exported.without_request += 1
                continue
            name, address = request.pop("model"), request.pop("address")
            if model not in (None, name):
                continue
            content = canonical_json([reply["text"], reply["tool_calls"]])
            digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
            provider = f"{name} at {address}"
            first, other = answered.setdefault(request["key"], (digest, provider))
            if (first, other) != (digest, provider):
                if first != digest:
                    advice = "choose one with --model" if model is None else "use separate stores"
                    problem = f"{other} and {provider} replied differently to the same request"
                    raise InputError(f"{problem}; {advice}", "--replies")
                continue
            stream.write(json.dumps({**request, "reply": reply}, ensure_ascii=True) + "\n")
            exported.written += 1
        if not exported.written:
            raise InputError(_nothing(exported, model), store.shown)
    return exported


def _stored(store: Store) -> Iterator[dict[str, Any]]:
    query = select(schema.replies).order_by(schema.replies.c.key)
    with reading(store.engine) as connection:
        for row in connection.execution_options(yield_per=1000).execute(query):
            yield decode(row.reply, f"the reply {row.key[:12]}")


def _nothing(exported: ExportedReplies, model: str | None) -> str:
    if exported.without_request:
        return "the replies were stored by an earlier version, which did not keep their requests"
    return "no reply is stored" if model is None else f"no reply of {model} is stored"
