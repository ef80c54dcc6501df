"""The critic that writes a rubric for each case, and the merging of several critics' rubrics.

Items of two critics are the same if their statements fold to the same text, or if an embedder finds
them similar from `tau` on and they name the same numbers. Items of opposite sign, and two items of
one critic, are never merged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from agenteval.engine.judging import classify
from agenteval.errors import InputError, ReplyError, Unauthorized
from agenteval.models import asking
from agenteval.models.client import Client
from agenteval.models.embeddings import Embedder
from agenteval.models.prompts import load_prompt, neutralise
from agenteval.models.reply import parse_reply
from agenteval.models.wire import NONCE, Request
from agenteval.readers.rubrics import read_rubric
from agenteval.records import Criterion, Run, Task, content_hash
from agenteval.utility.critic import FailedProposal, sampling, strict_object
from agenteval.utility.critic_reply import DESCRIPTION

TAU = 0.8  # of statements; those with other numbers or signs are kept apart besides
_PROMPTS = ("system", "user", "repair")


@dataclass(frozen=True, slots=True)
class ProposedItem:
    """One item of a rubric with the seeds of the critics that proposed it, and all wordings."""

    requirement: str
    weight: float
    seeds: tuple[int, ...]
    wordings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CaseRubric:
    """The rubric of one input. `failures` are of critics that proposed nothing for it."""

    input: str
    items: tuple[ProposedItem, ...]
    failures: tuple[FailedProposal, ...]

    @property
    def record(self) -> dict[str, Any]:
        """The line of a rubrics file."""
        items = [{"requirement": item.requirement, "weight": item.weight} for item in self.items]
        return {"input": self.input, "rubric": items}


class RubricCritic:
    """Asks a chat model for the rubric of one input; the reference is shown if the run has one."""

    def __init__(
        self,
        client: Client,
        task: Task,
        *,
        temperature: float | None = 1.0,
        retry_failed: bool = False,
    ) -> None:
        self.client = client
        self.task = task
        self.temperature = temperature
        self.retry_failed = retry_failed
        names = (f"rubric_critic_{name}" for name in _PROMPTS)
        self._prompts = [load_prompt("agenteval.utility", name) for name in names]

    def request(self, case: Run, seed: int) -> Request:
        """Return the request for a rubric of the case."""
        values = {
            "nonce": NONCE,
            "task_name": self.task.name,
            "task_description": self.task.description,
            "problem": case.input,
            "reference": case.reference,
        }
        item = strict_object({"requirement": {"type": "string"}, "weight": {"type": "number"}})
        rubric = {"type": "array", "items": item}
        return Request(
            messages=tuple(
                {"role": speaker, "content": prompt.render(**values)}
                for speaker, prompt in zip(("system", "user"), self._prompts, strict=False)
            ),
            schema=strict_object({"facts": {"type": "string"}, "rubric": rubric}),
            parameters=sampling(seed, self.temperature, max_tokens=4000),
            repeat=seed,
            role="rubric critic",
            run_id=case.id,
            about={"case": content_hash([case.input, case.reference])},
        )

    async def propose(self, case: Run, seed: int) -> Criterion | FailedProposal:
        """Return the rubric of one critic, or why there is none. Raises Unauthorized."""
        request = self.request(case, seed)
        while True:
            try:
                answer = await asking.ask(self.client, request, read_reply, self._repair)
                return answer.value
            except Unauthorized:
                raise
            except Exception as error:  # noqa: BLE001  a crash of one critic becomes a record
                following = replace(request, attempt=request.attempt + 1)
                stored = isinstance(error, ReplyError) and not (
                    error.spent and error.spent.requests
                )
                if stored and (self.retry_failed or self.client.has_stored(following)):
                    request = following
                    continue
                return FailedProposal(seed, *classify(error))

    def _repair(self, problem: str) -> str:
        return self._prompts[2].render(problem=problem)


def read_reply(text: str) -> Criterion:
    """Return the rubric in a critic's reply. Raises ReplyError."""
    value = parse_reply(text, lambda v: isinstance(v, dict | list)).value
    try:
        rubric = read_rubric(value, "the reply")
    except InputError as error:
        raise ReplyError(str(error)) from None
    parts = tuple(
        part.model_copy(update={"description": neutralise(part.description)[:DESCRIPTION]})
        for part in rubric.sub_criteria
    )
    return rubric.model_copy(update={"sub_criteria": parts})


def merged(
    rubrics: Sequence[tuple[int, Criterion]],
    embedder: Embedder | None,
    *,
    tau: float = TAU,
    min_seeds: int = 1,
) -> tuple[ProposedItem, ...]:
    """Return the items of several critics' rubrics, (seed, rubric), without repetitions.

    The wording most similar to the others stands for an item, with the median of their weights.
    Items that most critics proposed come first; those of fewer than `min_seeds` are left out.
    """
    items = [(seed, part) for seed, rubric in rubrics for part in rubric.sub_criteria]
    texts = [part.description for _, part in items]
    near = np.array([[_folded(a) == _folded(b) for b in texts] for a in texts], dtype=float)
    if embedder is not None and tau < 1 and texts:
        vectors = embedder.embed(texts)
        near = np.maximum(near, vectors @ vectors.T)
    groups: list[list[int]] = []
    for n, (seed, part) in enumerate(items):
        fitting = [
            group
            for group in groups
            if all(
                near[n, m] >= tau - 1e-6
                and items[m][0] != seed
                and _sign(items[m][1]) == _sign(part)
                and _numbers(texts[m]) == _numbers(texts[n])
                for m in group
            )
        ]
        if fitting:
            max(fitting, key=lambda group: near[n, group].mean()).append(n)
        else:
            groups.append([n])
    proposed = []
    for group in groups:
        best = max(group, key=lambda n: (near[n, group].mean(), -len(texts[n])))
        seeds = tuple(sorted(items[n][0] for n in group))
        weight = median(items[n][1].weight or 0.0 for n in group)
        wordings = tuple(texts[n] for n in group)
        proposed.append(ProposedItem(texts[best], weight, seeds, wordings))
    frequent = [item for item in proposed if len(item.seeds) >= min_seeds]
    return tuple(sorted(frequent, key=lambda item: -len(item.seeds)))


def _folded(text: str) -> str:
    return text.casefold().strip(" .")


def _sign(part: Criterion) -> bool:
    return (part.weight or 0.0) < 0


def _numbers(text: str) -> list[str]:
    return sorted(re.findall(r"\d+(?:[.,]\d+)*", text))
