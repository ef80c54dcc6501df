"""The sub-critic: divides criteria into sub-criteria, one question for the whole list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.errors import ReplyError
from agenteval.evaluators.utility.critic_call import ask, signed
from agenteval.evaluators.utility.critic_reply import CriticReading, read_criteria
from agenteval.evaluators.utility.critic_schema import subcritic_schema
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt, neutralise
from agenteval.models.reply import parse_reply
from agenteval.models.wire import NONCE, Request
from agenteval.records import Criterion, Provenance, Task, Usage, content_hash, slug

_PACKAGE = "agenteval.evaluators.utility"
_MAX_TOKENS = 8000


@dataclass(frozen=True, slots=True)
class Division:
    """The criteria in their order, divided where the sub-critic did; `problems` one line each."""

    criteria: tuple[Criterion, ...]
    problems: tuple[str, ...]
    usage: Usage
    rung: str | None
    raw: str


class SubCritic:
    """Asks a chat model to divide criteria. A criterion may stay whole."""

    def __init__(self, client: Client, task: Task, *, temperature: float | None = 1.0) -> None:
        self.client = client
        self.task = task
        self.temperature = temperature
        self._system = load_prompt(_PACKAGE, "subcritic_system")
        self._user = load_prompt(_PACKAGE, "subcritic_user")
        self._repair = load_prompt(_PACKAGE, "critic_repair")

    @property
    def prompt_sha256(self) -> str:
        """Hash (hex) over the templates used."""
        return content_hash([self._system.sha256, self._user.sha256, self._repair.sha256])

    def request(self, criteria: Sequence[Criterion], seed: int, instructions: str = "") -> Request:
        """The request for a list of criteria."""
        values: dict[str, Any] = {
            "nonce": NONCE,
            "task_name": self.task.name,
            "task_description": self.task.description,
            "criteria": json.dumps([_shown(c) for c in criteria], indent=1, ensure_ascii=False),
            "ids": [c.id for c in criteria],
            "instructions": neutralise(instructions.strip()),
        }
        parameters: dict[str, Any] = {"seed": seed, "max_tokens": _MAX_TOKENS}
        if self.temperature is not None:
            parameters["temperature"] = self.temperature
        return Request(
            messages=(
                {"role": "system", "content": self._system.render(**values)},
                {"role": "user", "content": self._user.render(**values)},
            ),
            schema=subcritic_schema([c.id for c in criteria]),
            parameters=parameters,
            repeat=seed,
            role="subcritic",
            run_id=self.task.name,
        )

    async def divide(
        self, criteria: Sequence[Criterion], seed: int, *, instructions: str = ""
    ) -> Division:
        """The criteria with sub-criteria, scored by the mean of these.

        A divided criterion gives up its own accepted values. Raises ReplyError when reply and
        repair cannot be read, Filtered, and the ModelError or BudgetExceeded of the client.
        """
        request = self.request(criteria, seed, instructions)
        asked = await ask(self.client, request, _read, self._repair)
        provenance = Provenance(
            origin="subcritic",
            seeds=(seed,),
            model=self.client.model,
            prompt_sha256=self.prompt_sha256,
        )
        divided, problems = divide(criteria, asked.reading, provenance)
        return Division(divided, problems, asked.usage, asked.reading.rung, asked.raw)


def divide(
    criteria: Sequence[Criterion], reading: CriticReading, provenance: Provenance
) -> tuple[tuple[Criterion, ...], tuple[str, ...]]:
    """The criteria with the parts that a reading gives for them, and what was changed or lost."""
    parts: dict[str, tuple[Criterion, ...]] = {}
    problems = list(reading.problems)
    asked = {key: c.id for c in criteria for key in (slug(c.name), c.id)}
    for found in reading.criteria:
        owner = asked.get(found.id)
        if owner is None:
            problems.append(f"{found.name}: nobody asked for this criterion; left out")
        elif owner in parts:
            problems.append(f"{found.name}: divided twice; the first division is kept")
        elif not found.sub_criteria:
            problems.append(f"{found.name}: came back without sub-criteria; kept whole")
        else:
            parts[owner] = tuple(signed(p, provenance) for p in found.sub_criteria)
    divided = tuple(
        c.model_copy(update={"sub_criteria": parts[c.id], "accepted_values": (),
                             "numeric_range": None, "scale": "ordinal",
                             "order": "worst_to_best"})
        if c.id in parts else c
        for c in criteria
    )  # fmt: skip
    return divided, tuple(problems)


def _read(text: str) -> CriticReading:
    """The divisions in a reply; "all stay whole" is an answer, too."""
    try:
        return read_criteria(text)
    except ReplyError:
        whole = parse_reply(text)
        entries = whole.value.get("criteria") if isinstance(whole.value, dict) else whole.value
        if isinstance(entries, list) and entries and all(_is_whole(e) for e in entries):
            return CriticReading(rung=whole.rung)
        raise


def _is_whole(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("sub_criteria") == []


def _shown(criterion: Criterion) -> dict[str, Any]:
    return {
        "id": criterion.id,
        "name": criterion.name,
        "description": criterion.description,
        "accepted_values": list(criterion.accepted_values),
        "allow_na": criterion.allow_na,
        "expect": dict(criterion.expect),
    }
