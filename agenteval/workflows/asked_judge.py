"""Prompting of judges: prompts by name, a schema, one repair."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from agenteval.engine.judging import classify
from agenteval.errors import AgentevalError, ReplyError, Unauthorized
from agenteval.models.asking import ParsedReply, ask
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.wire import NONCE, Request
from agenteval.records import FailureStatus, Usage, content_hash

T = TypeVar("T")
_PACKAGE = "agenteval.workflows"
_PROBLEM, _MESSAGE = 300, 500  # characters


@dataclass(frozen=True, slots=True)
class JudgeSampling:
    """The sampling of a judge. `temperature` None leaves it to the endpoint."""

    temperature: float | None = 0.0
    max_tokens: int = 1024
    seed: int = 0

    def parameters(self) -> dict[str, Any]:
        """Return them as requests have them."""
        parameters: dict[str, Any] = {"seed": self.seed, "max_tokens": self.max_tokens}
        if self.temperature is not None:
            parameters["temperature"] = self.temperature
        return parameters


@dataclass(frozen=True, slots=True)
class Form:
    """The prompts `<name>_system`, `_user` and `_repair`, a schema, and how to read a reply."""

    name: str
    schema: dict[str, Any]
    read: Callable[[str], Any]


async def ask_judge(
    client: Client, form: Form, options: JudgeSampling, repeat: int = 0, **values: Any
) -> ParsedReply[Any]:
    """Return what the judge says; see `models.asking.ask` for what is raised.

    `values` fill the prompts, which put everything that comes from outside between markers.
    """
    system, user, repair = (load_prompt(_PACKAGE, name) for name in _prompt_names(form.name))
    request = Request(
        messages=(
            {"role": "system", "content": system.render(nonce=NONCE, **values)},
            {"role": "user", "content": user.render(**values)},
        ),
        schema=form.schema,
        parameters=options.parameters(),
        repeat=repeat,
        role=f"flow:{form.name}",
    )
    return await ask(
        client, request, form.read, lambda problem: repair.render(problem=problem[:_PROBLEM])
    )


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why a question has no answer, and what it took."""

    status: FailureStatus
    message: str
    usage: Usage


def failure_of(error: Exception) -> Unanswered:
    """Return why a question has no answer. Raises the error again for a refused key, which would
    fail every question."""
    if isinstance(error, Unauthorized):
        raise error
    status, message = classify(error)
    spent = error.spent if isinstance(error, AgentevalError) else None
    return Unanswered(status, message[:_MESSAGE], spent or Usage())


def _prompt_names(judge: str) -> list[str]:
    return [f"{judge}_{part}" for part in ("system", "user", "repair")]


def prompts_sha256(judge: str) -> str:
    """Return one hash (hex) over the prompts of a judge."""
    return content_hash([load_prompt(_PACKAGE, name).sha256 for name in _prompt_names(judge)])


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these members, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def reason_of(members: dict[str, Any], name: str) -> str:
    """Return a required text. Raises ReplyError when it is missing or repeats the form."""
    text = members.get(name)
    if not isinstance(text, str) or not text.strip():
        raise ReplyError(f"{name} is missing or no text")
    if text.strip().startswith("<") and text.strip().endswith(">"):
        raise ReplyError(f"{name} repeats the form instead of saying something")
    return text.strip()[:2000]


def yes_or_no(answer: Any, name: str) -> bool:
    """Return true or false, also from words. Raises ReplyError for anything else."""
    if isinstance(answer, bool):
        return answer
    word = answer.strip().lower() if isinstance(answer, str) else ""
    if word in ("yes", "true", "no", "false"):
        return word in ("yes", "true")
    raise ReplyError(f"{name} must be true or false")


def number_of(answer: Any) -> float | None:
    """Return a finite number, also from text; None for anything else."""
    if isinstance(answer, bool) or not isinstance(answer, int | float | str):
        return None
    if isinstance(answer, str) and "_" in answer:  # Python's 1_0 is nobody's number
        return None
    try:
        number = float(answer)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
