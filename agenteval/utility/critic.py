"""Critic and sub-critic: propose criteria from a task's description or from solved examples.

AgentEval (arXiv 2402.09015, section 3): the CriticAgent turns a task, with or without a
successful and a failed solution, into criteria with accepted values. Here it is asked once per
seed, concurrently. The critic states each scale and its order, and the reader checks them. A
malformed reply gets one repair round. If it is unclear which end of a scale is the best, the critic
is asked once more, in one request for all such criteria and without a repair. A criterion that is
still unclear has no mean.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from agenteval.engine.judging import classify
from agenteval.errors import AgentevalError, InputError, ReplyError, StoreError, Unauthorized
from agenteval.models import asking
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt, neutralise
from agenteval.models.reply import parse_reply
from agenteval.models.wire import NONCE, Request
from agenteval.records import Criterion, FailureStatus, Provenance, Task, Usage, content_hash, slug
from agenteval.utility.critic_reply import CRITIC_OPERATORS, CriticReading, read_criteria, sanitized

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Proposal:
    """The criteria of one seed.

    `problems` has one line for each change or omission made while reading. `rung` is the parsing
    step that succeeded, `raw` the critic's text.
    """

    seed: int
    criteria: tuple[Criterion, ...]
    problems: tuple[str, ...]
    usage: Usage
    rung: str | None
    raw: str


@dataclass(frozen=True, slots=True)
class FailedProposal:
    """A seed without a proposal, and the reason."""

    seed: int
    status: FailureStatus
    message: str


class ChatCritic:
    """Asks a chat model about a task, with one repair request if the reply cannot be read.

    With `temperature=None`, the endpoint chooses. `retry_failed` asks again if a stored reply
    cannot be read.
    """

    role: ClassVar[str]  # of the requests; stored as the origin of the criteria
    max_tokens: ClassVar[int] = 6000  # enough for a whole rubric
    prompts: ClassVar[Sequence[str]]  # system, user, repair, and others

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
        self._prompts = [load_prompt("agenteval.utility", name) for name in self.prompts]
        self._shown = {  # in every prompt
            "nonce": NONCE,
            "task_name": task.name,
            "task_description": task.description,
        }

    @property
    def prompt_sha256(self) -> str:
        """Hex hash of the templates."""
        return content_hash([p.sha256 for p in self._prompts])

    def _sampling(self, seed: int, max_tokens: int) -> dict[str, Any]:
        parameters: dict[str, Any] = {"seed": seed, "max_tokens": max_tokens}
        if self.temperature is not None:
            parameters["temperature"] = self.temperature
        return parameters

    def _request(
        self, seed: int, schema: dict[str, Any], values: Mapping[str, Any], **fields: Any
    ) -> Request:
        """Return a request with the system and user templates."""
        return Request(
            messages=tuple(
                {"role": speaker, "content": prompt.render(**self._shown, **values)}
                for speaker, prompt in zip(("system", "user"), self._prompts, strict=False)
            ),
            schema=schema,
            parameters=self._sampling(seed, self.max_tokens),
            repeat=seed,
            role=self.role,
            **fields,
        )

    async def _ask(self, request: Request, read: Callable[[str], _T]) -> asking.ParsedReply[_T]:
        """Return the reply as parsed by `read`, after a repair request if necessary.

        If a stored reply is unreadable, use a later stored one or, with `retry_failed`, a new one.
        Raises like `asking.ask`; the error says if the reply comes from the store.
        """

        def repair(problem: str) -> str:
            return self._prompts[2].render(problem=problem, key="criteria")

        while True:
            try:
                return await asking.ask(self.client, request, read, repair)
            except ReplyError as error:
                following = replace(request, attempt=request.attempt + 1)
                stored = error.spent is None or not error.spent.requests
                if not stored or getattr(self.client.transport, "recorded", False):
                    raise
                if not (self.retry_failed or self.client.has_stored(following)):
                    why = f"{error} (a stored reply; use --retry-failed to ask again)"
                    raise ReplyError(why) from error
                request = following

    async def _propose(
        self, request: Request, read: Callable[[str], CriticReading] = read_criteria
    ) -> Proposal:
        """Return the criteria in the reply with their provenance; raises like `_ask`."""
        answer = await self._ask(request, read)
        reading, seed = answer.value, request.repeat
        origin = Provenance(
            origin=self.role,
            seeds=(seed,),
            model=self.client.model,
            prompt_sha256=self.prompt_sha256,
        )
        criteria = sanitized(reading.criteria, reading.problems)
        return Proposal(
            seed=seed,
            criteria=tuple(_with_provenance(criterion, origin) for criterion in criteria),
            problems=tuple(reading.problems),
            usage=answer.usage,
            rung=f"repair:{reading.rung}" if answer.repaired else reading.rung,
            raw=answer.text,
        )

    def _about_task(
        self, seed: int, schema: dict[str, Any], instructions: str, **values: Any
    ) -> Request:
        """Return a request about the task; its description and examples identify recordings."""
        examples = [*values.get("success", ()), *values.get("failed", ())]
        about = [self.task.description, *([e.input, e.output] for e in examples)]
        return self._request(
            seed,
            schema,
            {**values, "instructions": neutralise(instructions.strip())},
            run_id=self.task.name,
            about={"description or examples": content_hash(about)},
        )


def _with_provenance(criterion: Criterion, provenance: Provenance) -> Criterion:
    parts = tuple(_with_provenance(part, provenance) for part in criterion.sub_criteria)
    return criterion.model_copy(update={"provenance": provenance, "sub_criteria": parts})


async def proposed_or_failed(proposal: Awaitable[_T], seed: int) -> _T | FailedProposal:
    """Return the proposal of a seed, or the reason why it failed. Raises Unauthorized, because a
    rejected key would fail every seed."""
    try:
        return await proposal
    except Unauthorized:
        raise
    except Exception as error:  # noqa: BLE001  record the crash of one seed
        return FailedProposal(seed, *classify(error))


class Critic(ChatCritic):
    """Asks a chat model for criteria.

    `bank` holds criteria that are shown as inspiration. Raises InputError if `use_examples` is set
    and the task has no examples.
    """

    role = "critic"
    prompts = "critic_system", "critic_user", "critic_repair", "critic_order"

    def __init__(  # noqa: PLR0913  each changes the request
        self,
        client: Client,
        task: Task,
        *,
        use_examples: bool,
        sub_criteria: bool = False,
        bank: Sequence[Criterion] = (),
        temperature: float | None = 1.0,
        retry_failed: bool = False,
    ) -> None:
        if use_examples and not task.examples:
            raise InputError(f"task {task.name!r} has no examples of success or failure")
        super().__init__(client, task, temperature=temperature, retry_failed=retry_failed)
        self.use_examples = use_examples
        self.bank = tuple(bank)
        self.subcritic: SubCritic | None = None
        if sub_criteria:
            self.subcritic = SubCritic(
                client, task, temperature=temperature, retry_failed=retry_failed
            )

    def request(self, seed: int, instructions: str = "") -> Request:
        """Return the request for one seed."""
        examples = self.task.examples
        return self._about_task(
            seed,
            strict_object({"criteria": _criteria_schema()}),
            instructions,
            success=examples.success if self.use_examples else (),
            failed=examples.failed if self.use_examples else (),
            bank=self.bank,
        )

    def order_request(self, unclear: Sequence[Criterion], seed: int) -> Request:
        """Return a request for the best level of each of these criteria."""
        text = self._prompts[3].render(**self._shown, criteria=unclear)
        answer = strict_object(
            {
                "criterion": {"type": "integer"},
                "reason": _TEXT,
                "best": {"type": "string", "enum": list(_OUTCOMES)},
            }
        )
        return Request(
            messages=({"role": "user", "content": text},),
            schema=strict_object({"answers": {"type": "array", "items": answer}}),
            parameters=self._sampling(seed, 2000),
            repeat=seed,
            role="critic:order",
            run_id=self.task.name,
        )

    async def propose(self, seed: int, *, instructions: str = "") -> Proposal:
        """Propose the criteria of one seed, with sub-criteria if they are enabled.

        If the sub-critic's reply cannot be read, the criteria are returned undivided with a
        problem. Raises ReplyError if the critic's reply and its repair cannot be read, Filtered if
        the critic refused, and the ModelError or BudgetExceeded of the client.
        """
        proposal = await self._propose(self.request(seed, instructions))
        problems = proposal.problems
        if self.subcritic is not None:
            try:
                divided = await self.subcritic.divide(
                    proposal.criteria, seed, instructions=instructions
                )
            except ReplyError as error:
                proposal = replace(proposal, problems=(*problems, f"no sub-criteria: {error}"))
            else:
                proposal = replace(
                    proposal,
                    criteria=divided.criteria,
                    usage=proposal.usage + divided.usage,
                    problems=problems + divided.problems,
                )
        leaves = [leaf for criterion in proposal.criteria for _, leaf in criterion.leaves()]
        unclear = list(filter(_is_unclear, leaves))
        return await self._with_orders(proposal, unclear) if unclear else proposal

    async def _with_orders(self, proposal: Proposal, unclear: Sequence[Criterion]) -> Proposal:
        """Ask the critic for the order of unclear scales; failures are added to the problems.
        Raises Unauthorized, and StoreError if the reply cannot be stored."""
        best: dict[int, str] = {}
        why, spent = "the critic did not state it", Usage()
        try:
            reply = await self.client.complete(self.order_request(unclear, proposal.seed))
            spent = Usage() if reply.cached else reply.usage
            if reply.refusal or reply.finish == "content_filter":
                raise ReplyError("the critic refused")
            best = read_orders(reply.text, len(unclear))
        except (Unauthorized, StoreError):
            raise
        except AgentevalError as error:
            why, spent = str(error), spent + (error.spent or Usage())
        unsettled = tuple(f"{leaf.name}: order unclear" for leaf in unclear)
        problems = [p for p in proposal.problems if not p.startswith(unsettled)]
        without = f"{why}; the order stays unclear, so the criterion has no mean"
        for number, leaf in enumerate(unclear, 1):
            outcome = _OUTCOMES[best[number]] if number in best else without
            problems.append(f"{leaf.name}: order according to the critic: {outcome}")
        answers = iter([best.get(number) for number in range(1, len(unclear) + 1)])

        def ordered(criterion: Criterion) -> Criterion:
            if criterion.sub_criteria:
                parts = tuple(map(ordered, criterion.sub_criteria))
                return criterion.model_copy(update={"sub_criteria": parts})
            return _ordered(criterion, next(answers)) if _is_unclear(criterion) else criterion

        return replace(
            proposal,
            criteria=tuple(map(ordered, proposal.criteria)),
            problems=tuple(problems),
            usage=proposal.usage + spent,
        )

    async def propose_all(self, seeds: Sequence[int]) -> list[Proposal | FailedProposal]:
        """Propose criteria for all seeds concurrently; return one result per seed, in order.

        A failed seed is returned as a FailedProposal. Raises Unauthorized, because a rejected key
        would fail every seed.
        """
        answers = await asyncio.gather(
            *(proposed_or_failed(self.propose(seed), seed) for seed in seeds),
            return_exceptions=True,
        )
        if failed := [answer for answer in answers if isinstance(answer, BaseException)]:
            raise failed[0]
        return [answer for answer in answers if not isinstance(answer, BaseException)]


class SubCritic(ChatCritic):
    """Asks a chat model to divide criteria, all in one request; any may stay undivided."""

    role, max_tokens = "subcritic", 8000
    prompts = "subcritic_system", "subcritic_user", "critic_repair"

    def request(self, criteria: Sequence[Criterion], seed: int, instructions: str = "") -> Request:
        """Return the request for a list of criteria."""
        keys = ("id", "name", "description", "accepted_values", "allow_na", "expect")
        shown = [{key: getattr(c, key) for key in keys} for c in criteria]
        ids = [c.id for c in criteria]
        division = strict_object(
            {"id": {"type": "string", "enum": ids}, "sub_criteria": _criteria_schema()}
        )
        return self._about_task(
            seed,
            strict_object({"criteria": {"type": "array", "items": division}}),
            instructions,
            criteria=json.dumps(shown, indent=1, ensure_ascii=False),
            ids=ids,
        )

    async def divide(
        self, criteria: Sequence[Criterion], seed: int, *, instructions: str = ""
    ) -> Proposal:
        """Return the criteria with sub-criteria, scored by their mean.

        A divided criterion loses its own accepted values. Raises ReplyError if the reply and its
        repair cannot be read, Filtered, and the ModelError or BudgetExceeded of the client.
        """
        reply = await self._propose(self.request(criteria, seed, instructions), _read_division)
        parts: dict[str, tuple[Criterion, ...]] = {}
        problems = list(reply.problems)
        ids = {key: c.id for c in criteria for key in (slug(c.name), c.id)}
        for divided in reply.criteria:
            owner = ids.get(divided.id)
            if owner is None:
                problems.append(f"{divided.name}: this criterion was not requested; dropped")
            elif owner in parts:
                problems.append(f"{divided.name}: divided twice; the first division is kept")
            elif not divided.sub_criteria:
                problems.append(f"{divided.name}: returned without sub-criteria; kept undivided")
            else:
                parts[owner] = divided.sub_criteria
        combined = tuple(
            c.model_copy(update={**_WITHOUT_LEVELS, "sub_criteria": parts[c.id]})
            if c.id in parts
            else c
            for c in criteria
        )
        return replace(reply, criteria=combined, problems=tuple(problems))


_WITHOUT_LEVELS: dict[str, Any] = {
    "accepted_values": (),
    "numeric_range": None,
    "scale": "ordinal",
    "order": "worst_to_best",
}


def _read_division(text: str) -> CriticReading:
    """Return the divisions in a reply, none if it leaves all criteria undivided."""
    try:
        return read_criteria(text)
    except ReplyError:
        reply = parse_reply(text)
        entries = reply.value.get("criteria") if isinstance(reply.value, dict) else reply.value
        if not isinstance(entries, list) or not entries:
            raise
        if any(not isinstance(e, dict) or e.get("sub_criteria") != [] for e in entries):
            raise
        return CriticReading(rung=reply.rung)


# ---------------------------------------------------------------- orders of levels

_OUTCOMES = {
    "first": "the first value is the best",
    "last": "the last value is the best",
    "none": "its values are not grades in this order; it is counted but has no mean",
}


def _is_unclear(leaf: Criterion) -> bool:
    return leaf.scale != "nominal" and leaf.order == "unclear"


def read_orders(text: str, count: int) -> dict[int, str]:
    """Map the number of each criterion (1 to `count`) to its best end: "first", "last" or "none".

    A criterion with contradicting answers is left out. Raises ReplyError if no answer is left.
    """
    value = parse_reply(text).value
    entries = value.get("answers", value) if isinstance(value, dict) else value
    if isinstance(entries, dict):  # {"1": "first"} or {"1": {"best": "first"}}
        entries = [
            {**(answer if isinstance(answer, dict) else {"best": answer}), "criterion": number}
            for number, answer in entries.items()
        ]
    answers: dict[int, set[str]] = {}
    for entry in entries if isinstance(entries, list) else ():
        fields = entry if isinstance(entry, dict) else {}
        name, best = (str(fields.get(key)).strip().lower() for key in ("criterion", "best"))
        number = re.fullmatch(r"(?:criterion )?(\d{1,3})", name)
        if number and best in _OUTCOMES and 1 <= int(number[1]) <= count:
            answers.setdefault(int(number[1]), set()).add(best)
    agreed = {number: best.pop() for number, best in answers.items() if len(best) == 1}
    if not agreed:
        raise ReplyError("the reply names no order")
    return agreed


def _ordered(leaf: Criterion, best: str | None) -> Criterion:
    if best is None:
        return leaf
    reason = f"asked the critic: {'no end' if best == 'none' else 'the ' + best} is the best"
    if best == "none":
        kind: dict[str, Any] = {"scale": "nominal"} if leaf.accepted_values else {}
        return leaf.model_copy(update={**kind, "order_reason": reason})
    turn = -1 if best == "first" else 1
    return leaf.model_copy(
        update={
            "accepted_values": leaf.accepted_values[::turn],
            "numeric_range": leaf.numeric_range and leaf.numeric_range[::turn],
            "order": "worst_to_best",
            "order_confirmed": True,
            "order_reason": reason,
        }
    )


# ---------------------------------------------------------------- schemas

_TEXT = {"type": "string"}


def strict_object(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _criteria_schema() -> dict[str, Any]:
    direction = {"type": "string", "enum": ["lower", "none", "higher", "unknown"]}
    entry = strict_object(
        {
            "name": _TEXT,
            "description": _TEXT,
            "scale": {"type": "string", "enum": ["ordinal", "binary"]},
            "accepted_values": {"type": "array", "items": _TEXT},
            "order": {"type": "string", "enum": ["worst_to_best"]},
            "allow_na": {"type": "boolean"},
            "expect": strict_object(dict.fromkeys(CRITIC_OPERATORS, direction)),
        }
    )
    return {"type": "array", "items": entry}
