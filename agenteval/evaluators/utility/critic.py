"""The critic: proposes criteria for a task, from its description or from solved examples.

AgentEval (arXiv 2402.09015, section 3): the CriticAgent turns a task, with or without a
successful and a failed solution, into criteria with accepted values. Here it is asked once per
seed, all seeds at the same time; scales and their order are stated by the critic and checked by
the reader; a reply out of form gets one repair round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.errors import InputError, ReplyError, Unauthorized
from agenteval.evaluators.base import classify
from agenteval.evaluators.utility.critic_call import ask, signed
from agenteval.evaluators.utility.critic_order import PROMPT as ORDER_PROMPT
from agenteval.evaluators.utility.critic_order import ask_orders, order_request, unclear_leaves
from agenteval.evaluators.utility.critic_reply import read_criteria
from agenteval.evaluators.utility.critic_schema import critic_schema
from agenteval.evaluators.utility.subcritic import SubCritic
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt, neutralise
from agenteval.models.wire import NONCE, Request
from agenteval.records import Criterion, FailureStatus, Provenance, Task, Usage, content_hash

_PACKAGE = "agenteval.evaluators.utility"
_MAX_TOKENS = 6000


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one seed proposed.

    `problems` has one line for each thing that was changed or left out in reading. `rung` is the
    step of the reply ladder that was needed, `raw` the critic's text.
    """

    seed: int
    criteria: tuple[Criterion, ...]
    problems: tuple[str, ...]
    usage: Usage
    rung: str | None
    raw: str


@dataclass(frozen=True, slots=True)
class FailedProposal:
    """Why one seed proposed nothing."""

    seed: int
    status: FailureStatus
    message: str


class Critic:
    """Asks a chat model for criteria.

    `bank` holds entries that are shown as inspiration. `temperature` None leaves it to the
    endpoint. Raises InputError when examples are to be used and the task has none.
    """

    def __init__(
        self,
        client: Client,
        task: Task,
        *,
        use_examples: bool,
        sub_criteria: bool = False,
        bank: Sequence[Criterion] = (),
        temperature: float | None = 1.0,
    ) -> None:
        if use_examples and not task.examples:
            raise InputError(f"task {task.name!r} has no examples of success or failure")
        self.client = client
        self.task = task
        self.use_examples = use_examples
        self.bank = tuple(bank)
        self.temperature = temperature
        self.subcritic = SubCritic(client, task, temperature=temperature) if sub_criteria else None
        self._system = load_prompt(_PACKAGE, "critic_system")
        self._user = load_prompt(_PACKAGE, "critic_user")
        self._repair = load_prompt(_PACKAGE, "critic_repair")

    @property
    def prompt_sha256(self) -> str:
        """Hash (hex) over the templates used."""
        order = load_prompt(_PACKAGE, ORDER_PROMPT)
        prompts = self._system, self._user, self._repair, order
        return content_hash([p.sha256 for p in prompts])

    def request(self, seed: int, instructions: str = "") -> Request:
        """The request of one seed."""
        examples = self.task.examples
        values: dict[str, Any] = {
            "nonce": NONCE,
            "task_name": self.task.name,
            "task_description": self.task.description,
            "success": examples.success if self.use_examples else (),
            "failed": examples.failed if self.use_examples else (),
            "bank": self.bank,
            "instructions": neutralise(instructions.strip()),
        }
        return Request(
            messages=(
                {"role": "system", "content": self._system.render(**values)},
                {"role": "user", "content": self._user.render(**values)},
            ),
            schema=critic_schema(sub_criteria=False),
            parameters=sampling(seed, self.temperature),
            repeat=seed,
            role="critic",
            run_id=self.task.name,
        )

    def order_request(self, unclear: Sequence[Criterion], seed: int) -> Request:
        """The question which level of these criteria is the best."""
        return order_request(self.task, unclear, sampling(seed, self.temperature))

    async def propose(self, seed: int, *, instructions: str = "") -> Proposal:
        """The criteria of one seed; with sub-criteria when the critic was made for them.

        Criteria whose levels do not show their order are asked for once more, all together.
        A sub-critic that cannot be read leaves the criteria whole and is named among the
        problems. Raises ReplyError when the critic's reply and its repair cannot be read,
        Filtered when it was refused, and the ModelError or BudgetExceeded of the client.
        """
        asked = await ask(
            self.client, self.request(seed, instructions), read_criteria, self._repair
        )
        provenance = Provenance(
            origin="critic",
            seeds=(seed,),
            model=self.client.model,
            prompt_sha256=self.prompt_sha256,
        )
        criteria = tuple(signed(c, provenance) for c in asked.reading.criteria)
        problems, usage = tuple(asked.reading.problems), asked.usage
        if self.subcritic is not None:
            try:
                divided = await self.subcritic.divide(criteria, seed, instructions=instructions)
            except ReplyError as error:
                problems += (f"no sub-criteria: {error}",)
            else:
                criteria, usage = divided.criteria, usage + divided.usage
                problems += divided.problems
        unclear = unclear_leaves(criteria)
        if unclear:
            ordered = await ask_orders(self.client, self.order_request(unclear, seed), criteria)
            open_before = {f"{leaf.name}: order unclear" for leaf in unclear}
            problems = tuple(p for p in problems if not p.startswith(tuple(open_before)))
            criteria, usage = ordered.criteria, usage + ordered.usage
            problems += ordered.problems
        return Proposal(seed, criteria, problems, usage, asked.reading.rung, asked.raw)

    async def propose_all(self, seeds: Sequence[int]) -> list[Proposal | FailedProposal]:
        """One result per seed, in their order, all asked at the same time (the Client limits).

        What goes wrong with one seed is kept as what it is. Raises Unauthorized: a refused key
        would fail every seed alike.
        """
        answers = await asyncio.gather(*map(self._kept, seeds), return_exceptions=True)
        if failed := [answer for answer in answers if isinstance(answer, BaseException)]:
            raise failed[0]
        return [answer for answer in answers if not isinstance(answer, BaseException)]

    async def _kept(self, seed: int) -> Proposal | FailedProposal:
        try:
            return await self.propose(seed)
        except Unauthorized:
            raise
        except Exception as error:  # noqa: BLE001  a crash of one seed is kept as a record
            status, message = classify(error)
            return FailedProposal(seed, status, message)


def sampling(seed: int, temperature: float | None) -> dict[str, Any]:
    """Parameters of a request: a real sampling seed, and room for the whole rubric."""
    parameters: dict[str, Any] = {"seed": seed, "max_tokens": _MAX_TOKENS}
    return parameters if temperature is None else parameters | {"temperature": temperature}


__all__ = ["Critic", "FailedProposal", "Proposal", "critic_schema", "sampling"]
