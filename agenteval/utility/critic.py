"""Critic and sub-critic: criteria for a task, from its description or from solved examples.

AgentEval (arXiv 2402.09015, section 3): the CriticAgent turns a task, with or without a
successful and a failed solution, into criteria with accepted values. Here it is asked once per
seed, all seeds at the same time; scales and their order are stated by the critic and checked by
the reader; a reply out of form gets one repair round. Lists that leave open which end is the best
are asked about once more, all together and without a repair: a criterion that gets no answer stays
unclear and without a mean.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agenteval.engine.judging import classify
from agenteval.errors import AgentevalError, InputError, ReplyError, StoreError, Unauthorized
from agenteval.models import asking
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt, neutralise
from agenteval.models.reply import parse_reply
from agenteval.models.wire import NONCE, Request
from agenteval.records import (
    Criterion,
    FailureStatus,
    Provenance,
    Task,
    Usage,
    content_hash,
    slug,
)
from agenteval.utility.critic_reply import (
    OPERATORS,
    CriticReading,
    read_criteria,
    tamed,
)

_PACKAGE = "agenteval.utility"
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


class _Asker:
    """What critic and sub-critic share: model, task, templates, and how a request is made."""

    retry_failed = False  # ask again where a stored reply cannot be read

    def __init__(
        self, client: Client, task: Task, temperature: float | None, prompts: Sequence[str]
    ) -> None:
        self.client = client
        self.task = task
        self.temperature = temperature
        self._prompts = [load_prompt(_PACKAGE, name) for name in prompts]

    @property
    def prompt_sha256(self) -> str:
        """Hash (hex) over the templates used."""
        return content_hash([p.sha256 for p in self._prompts])

    def _request(
        self, role: str, seed: int, max_tokens: int, schema: dict[str, Any], **values: Any
    ) -> Request:
        """A request by the first two templates, system and user."""
        values |= {
            "nonce": NONCE,
            "task_name": self.task.name,
            "task_description": self.task.description,
        }
        return Request(
            messages=tuple(
                {"role": speaker, "content": prompt.render(**values)}
                for speaker, prompt in zip(("system", "user"), self._prompts, strict=False)
            ),
            schema=schema,
            parameters=sampling(seed, self.temperature, max_tokens=max_tokens),
            repeat=seed,
            role=role,
            run_id=self.task.name,
            about={
                "description or examples": content_hash(
                    [
                        self.task.description,
                        *(
                            [e.input, e.output]
                            for kind in ("success", "failed")
                            for e in values.get(kind, ())
                        ),
                    ]
                )
            },
        )

    async def _ask(
        self, request: Request, read: Callable[[str], CriticReading]
    ) -> asking.ParsedReply[CriticReading]:
        """The reading of the reply, or of the one repair by the third template; its rung says so.

        A stored reply that cannot be read is passed over for a later one that is stored, and with
        `retry_failed` for a new one. Raises as `asking.ask`; the error says that the reply comes
        from the store.
        """

        def repair(problem: str) -> str:
            return self._prompts[2].render(problem=problem, key="criteria")

        while True:
            try:
                asked = await asking.ask(self.client, request, read, repair)
                break
            except ReplyError as error:
                following = replace(request, attempt=request.attempt + 1)
                stored = error.spent is None or not error.spent.requests
                if not stored or getattr(self.client.transport, "recorded", False):
                    raise
                if not (self.retry_failed or self.client.has_stored(following)):
                    why = f"{error} (a reply from the store; --retry-failed asks again)"
                    raise ReplyError(why) from error
                request = following
        reading = asked.value
        reading.criteria = tamed(reading.criteria, reading.problems)
        if asked.repaired:
            reading.rung = f"repair:{reading.rung}"
        return asked

    def _sign(self, criteria: Sequence[Criterion], origin: str, seed: int) -> tuple[Criterion, ...]:
        """The criteria and their parts with their provenance."""
        provenance = Provenance(
            origin=origin,
            seeds=(seed,),
            model=self.client.model,
            prompt_sha256=self.prompt_sha256,
        )
        return tuple(
            c.model_copy(
                update={
                    "provenance": provenance,
                    "sub_criteria": self._sign(c.sub_criteria, origin, seed),
                }
            )
            for c in criteria
        )


class Critic(_Asker):
    """Asks a chat model for criteria.

    `bank` holds entries that are shown as inspiration. `temperature` None leaves it to the
    endpoint. `retry_failed` asks again where a stored reply cannot be read. Raises InputError when
    examples are to be used and the task has none.
    """

    def __init__(  # noqa: PLR0913  each changes what is asked
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
        prompts = "critic_system", "critic_user", "critic_repair", "critic_order"
        super().__init__(client, task, temperature, prompts)
        self.use_examples = use_examples
        self.bank = tuple(bank)
        self.subcritic = SubCritic(client, task, temperature=temperature) if sub_criteria else None
        for asker in (self, self.subcritic):
            if asker is not None:
                asker.retry_failed = retry_failed

    def request(self, seed: int, instructions: str = "") -> Request:
        """The request of one seed."""
        examples = self.task.examples
        return self._request(
            "critic",
            seed,
            _MAX_TOKENS,
            critic_schema(),
            success=examples.success if self.use_examples else (),
            failed=examples.failed if self.use_examples else (),
            bank=self.bank,
            instructions=neutralise(instructions.strip()),
        )

    def order_request(self, unclear: Sequence[Criterion], seed: int) -> Request:
        """The question which level of these criteria is the best."""
        text = self._prompts[3].render(
            nonce=NONCE,
            task_name=self.task.name,
            task_description=self.task.description,
            criteria=unclear,
        )
        answer = strict_object(
            {
                "criterion": {"type": "integer"},
                "reason": _TEXT,
                "best": {"type": "string", "enum": ["first", "last", "none"]},
            }
        )
        return Request(
            messages=({"role": "user", "content": text},),
            schema=strict_object({"answers": {"type": "array", "items": answer}}),
            parameters=sampling(seed, self.temperature, max_tokens=2000),
            repeat=seed,
            role="critic:order",
            run_id=self.task.name,
        )

    async def propose(self, seed: int, *, instructions: str = "") -> Proposal:
        """The criteria of one seed; with sub-criteria when the critic was made for them.

        A sub-critic that cannot be read leaves the criteria whole and is named among the
        problems. Raises ReplyError when the critic's reply and its repair cannot be read,
        Filtered when it was refused, and the ModelError or BudgetExceeded of the client.
        """
        asked = await self._ask(self.request(seed, instructions), read_criteria)
        criteria = self._sign(asked.value.criteria, "critic", seed)
        problems, usage = tuple(asked.value.problems), asked.usage
        if self.subcritic is not None:
            try:
                divided = await self.subcritic.divide(criteria, seed, instructions=instructions)
            except ReplyError as error:
                problems += (f"no sub-criteria: {error}",)
            else:
                criteria, usage = divided.criteria, usage + divided.usage
                problems += divided.problems
        unclear = [
            leaf
            for criterion in criteria
            for _, leaf in criterion.leaves()
            if leaf.scale != "nominal" and leaf.order == "unclear"
        ]
        if unclear:
            best, why, spent = await self._ask_orders(unclear, seed)
            usage += spent
            open_before = tuple(f"{leaf.name}: order unclear" for leaf in unclear)
            problems = tuple(p for p in problems if not p.startswith(open_before))
            for number, leaf in enumerate(unclear, start=1):
                outcome = _SAID.get(
                    best.get(number, ""), f"{why}; it stays unclear and has no mean"
                )
                problems += (f"{leaf.name}: order asked of the critic: {outcome}",)
            answers = {id(leaf): best.get(number) for number, leaf in enumerate(unclear, start=1)}
            criteria = tuple(_ordered(criterion, answers) for criterion in criteria)
        return Proposal(seed, criteria, problems, usage, asked.value.rung, asked.text)

    async def _ask_orders(
        self, unclear: Sequence[Criterion], seed: int
    ) -> tuple[dict[int, str], str, Usage]:
        """The best end by number of the criterion, why the others have none, and what it took.

        Raises Unauthorized, and StoreError of a recording that cannot be kept.
        """
        usage = Usage()
        try:
            reply = await self.client.complete(self.order_request(unclear, seed))
            usage = Usage() if reply.cached else reply.usage
            if reply.refusal or reply.finish == "content_filter":
                raise ReplyError("the critic refused")
            return read_orders(reply.text, len(unclear)), "the critic did not say", usage
        except (Unauthorized, StoreError):
            raise
        except AgentevalError as error:
            return {}, str(error), usage + (error.spent or Usage())

    async def propose_all(self, seeds: Sequence[int]) -> list[Proposal | FailedProposal]:
        """One result per seed, in their order, all asked at the same time (the Client limits).

        What goes wrong with one seed is kept as what it is. Raises Unauthorized: a refused key
        would fail every seed alike.
        """

        async def kept(seed: int) -> Proposal | FailedProposal:
            try:
                return await self.propose(seed)
            except Unauthorized:
                raise
            except Exception as error:  # noqa: BLE001  a crash of one seed is kept as a record
                return FailedProposal(seed, *classify(error))

        answers = await asyncio.gather(*map(kept, seeds), return_exceptions=True)
        if failed := [answer for answer in answers if isinstance(answer, BaseException)]:
            raise failed[0]
        return [answer for answer in answers if not isinstance(answer, BaseException)]


@dataclass(frozen=True, slots=True)
class Division:
    """The criteria in their order, divided where the sub-critic did; `problems` one line each."""

    criteria: tuple[Criterion, ...]
    problems: tuple[str, ...]
    usage: Usage


class SubCritic(_Asker):
    """Asks a chat model to divide criteria, one question for the list. One may stay whole."""

    def __init__(self, client: Client, task: Task, *, temperature: float | None = 1.0) -> None:
        prompts = "subcritic_system", "subcritic_user", "critic_repair"
        super().__init__(client, task, temperature, prompts)

    def request(self, criteria: Sequence[Criterion], seed: int, instructions: str = "") -> Request:
        """The request for a list of criteria."""
        shown = [
            {
                "id": c.id,
                "name": c.name,
                "description": c.description,
                "accepted_values": list(c.accepted_values),
                "allow_na": c.allow_na,
                "expect": dict(c.expect),
            }
            for c in criteria
        ]
        ids = [c.id for c in criteria]
        return self._request(
            "subcritic",
            seed,
            8000,
            subcritic_schema(ids),
            criteria=json.dumps(shown, indent=1, ensure_ascii=False),
            ids=ids,
            instructions=neutralise(instructions.strip()),
        )

    async def divide(
        self, criteria: Sequence[Criterion], seed: int, *, instructions: str = ""
    ) -> Division:
        """The criteria with sub-criteria, scored by the mean of these.

        A divided criterion gives up its own accepted values. Raises ReplyError when reply and
        repair cannot be read, Filtered, and the ModelError or BudgetExceeded of the client.
        """
        asked = await self._ask(self.request(criteria, seed, instructions), _read_division)
        parts: dict[str, tuple[Criterion, ...]] = {}
        problems = list(asked.value.problems)
        owners = {key: c.id for c in criteria for key in (slug(c.name), c.id)}
        for divided in asked.value.criteria:
            owner = owners.get(divided.id)
            if owner is None:
                problems.append(f"{divided.name}: nobody asked for this criterion; left out")
            elif owner in parts:
                problems.append(f"{divided.name}: divided twice; the first division is kept")
            elif not divided.sub_criteria:
                problems.append(f"{divided.name}: came back without sub-criteria; kept whole")
            else:
                parts[owner] = self._sign(divided.sub_criteria, "subcritic", seed)
        without_levels: dict[str, Any] = {
            "accepted_values": (),
            "numeric_range": None,
            "scale": "ordinal",
            "order": "worst_to_best",
        }
        return Division(
            tuple(
                c.model_copy(update={"sub_criteria": parts[c.id], **without_levels})
                if c.id in parts
                else c
                for c in criteria
            ),
            tuple(problems),
            asked.usage,
        )


def _read_division(text: str) -> CriticReading:
    """The divisions in a reply; "all stay whole" is an answer, too."""
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


def sampling(
    seed: int, temperature: float | None, *, max_tokens: int = _MAX_TOKENS
) -> dict[str, Any]:
    """Parameters of a request: a real sampling seed, and room for the whole rubric."""
    parameters: dict[str, Any] = {"seed": seed, "max_tokens": max_tokens}
    return parameters if temperature is None else parameters | {"temperature": temperature}


# ---------------------------------------------------------------- orders of levels

_SAID = {
    "first": "the first value is the best",
    "last": "the last value is the best",
    "none": "its values are no grades in this order; it is counted and has no mean",
}


def read_orders(text: str, count: int) -> dict[int, str]:
    """ "first", "last" or "none" by number of the criterion; contradictions are no answer.

    Raises ReplyError when there is none at all.
    """
    value = parse_reply(text).value
    entries = value.get("answers", value) if isinstance(value, dict) else value
    if isinstance(entries, dict):  # {"1": "first"} or {"1": {"best": "first"}}
        entries = [
            {**(own if isinstance(own, dict) else {"best": own}), "criterion": number}
            for number, own in entries.items()
        ]
    answers: dict[int, set[str]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        named = str(entry.get("criterion")).strip().lower()
        number = re.fullmatch(r"(?:criterion )?(\d{1,3})", named)
        best = str(entry.get("best")).strip().lower()
        if number and best in _SAID and 1 <= int(number[1]) <= count:
            answers.setdefault(int(number[1]), set()).add(best)
    agreed = {n: own.pop() for n, own in answers.items() if len(own) == 1}
    if not agreed:
        raise ReplyError("the reply names no order")
    return agreed


def _ordered(criterion: Criterion, answers: dict[int, str | None]) -> Criterion:
    """The criterion, or its parts, with the order that was answered; by identity of the leaf."""
    if criterion.sub_criteria:
        parts = tuple(_ordered(part, answers) for part in criterion.sub_criteria)
        return criterion.model_copy(update={"sub_criteria": parts})
    best = answers.get(id(criterion))
    if best is None:
        return criterion
    reason = f"asked the critic: {'no end' if best == 'none' else 'the ' + best} is the best"
    if best == "none":
        kind: dict[str, Any] = {"scale": "nominal"} if criterion.accepted_values else {}
        return criterion.model_copy(update={**kind, "order_reason": reason})
    turn = -1 if best == "first" else 1
    bounds = criterion.numeric_range
    return criterion.model_copy(
        update={
            "accepted_values": criterion.accepted_values[::turn],
            "numeric_range": None if bounds is None else bounds[::turn],
            "order": "worst_to_best",
            "order_confirmed": True,
            "order_reason": reason,
        }
    )


# ---------------------------------------------------------------- schemas

_TEXT = {"type": "string"}


def strict_object(properties: dict[str, Any]) -> dict[str, Any]:
    """JSON schema of an object with exactly these keys."""
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
            "expect": strict_object(dict.fromkeys(OPERATORS, direction)),
        }
    )
    return {"type": "array", "items": entry}


def critic_schema() -> dict[str, Any]:
    """JSON schema of the critic's reply: `{"criteria": [...]}`."""
    return strict_object({"criteria": _criteria_schema()})


def subcritic_schema(ids: list[str]) -> dict[str, Any]:
    """Schema of the sub-critic's reply: for some of these criterion ids a list of sub-criteria."""
    division = strict_object(
        {
            "id": {"type": "string", "enum": ids},
            "sub_criteria": _criteria_schema(),
        }
    )
    return strict_object({"criteria": {"type": "array", "items": division}})
