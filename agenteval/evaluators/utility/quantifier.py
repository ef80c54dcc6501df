"""The quantifier: one run, some criteria, one call, one Score or Failure per criterion.

AgentEval (arXiv 2402.09015, section 3): the QuantifierAgent maps a solution to one accepted value
per criterion. Here the explanation comes before the label, the order of the criteria is permuted
by seed, a reply out of form gets one repair round, and what is still unreadable stays unscored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from agenteval.errors import AgentevalError, BadRequest
from agenteval.evaluators.base import Outcome, Unit, cell_key, fail_all
from agenteval.evaluators.utility.aggregate import to_result
from agenteval.evaluators.utility.answers import Answers, NoAnswer, leaves
from agenteval.evaluators.utility.guard import Guarded
from agenteval.evaluators.utility.reading import read_text
from agenteval.models.client import Client
from agenteval.models.prompts import DATAMARK, datamarked, load_prompt, neutralise
from agenteval.models.wire import NONCE, Reply, Request
from agenteval.records import CallRecord, Criterion, Source, Task, Usage, content_hash

_PACKAGE = "agenteval.evaluators.utility"
_VERSION = 1
Wording = Literal["a", "b"]  # two prompts of the same meaning, written apart from one another
_WORDINGS: dict[str, str] = {"a": "", "b": "_b"}


@dataclass(frozen=True)
class QuantifierOptions:
    """How a model is asked. All of it is part of the source of every score."""

    one_per_call: bool = False
    temperature: float | None = 1.0  # None leaves it to the endpoint
    max_tokens: int | None = 2048
    repair: bool = True
    seed: int = 0
    reversed_scale: bool = False  # accepted values listed from best to worst
    wording: Wording = "a"
    datamark: bool = False  # a sign for every space of what is graded (spotlighting)

    @property
    def unusual(self) -> dict[str, bool | str]:
        """What differs from the plain way to ask; empty for it, so that its source stays."""
        found: dict[str, bool | str] = {}
        if self.reversed_scale:
            found["reversed_scale"] = True
        if self.wording != "a":
            found["wording"] = self.wording
        if self.datamark:
            found["datamark"] = DATAMARK
        return found


@dataclass
class _Round:
    """What the replies so far gave: `rung` of the first, `repaired` of what the repair brought."""

    answers: Answers
    rung: str | None
    replies: list[Reply]
    repaired: dict[str, str] = field(default_factory=dict)  # by leaf path

    def rung_of(self, criterion: Criterion) -> str | None:
        """The rung of a criterion: of the repair where it brought any part of it."""
        mended = (self.repaired.get(path) for path, _ in leaves(criterion))
        return next((rung for rung in mended if rung is not None), self.rung)


class Quantifier:
    """Scores runs with a chat model."""

    def __init__(
        self, client: Client, task: Task, options: QuantifierOptions | None = None
    ) -> None:
        self.client = client
        self.task = task
        self.options = options or QuantifierOptions()
        wording = _WORDINGS[self.options.wording]
        listing = "_reversed" if self.options.reversed_scale else ""
        self._system = load_prompt(_PACKAGE, f"quantifier_system{wording}")
        self._user = load_prompt(_PACKAGE, f"quantifier_user{wording}")
        self._entry = load_prompt(_PACKAGE, f"quantifier_criterion{listing}")
        self._repair = load_prompt(_PACKAGE, "quantifier_repair")
        self._entries: dict[tuple[str, str, tuple[str, ...], bool], str] = {}
        self._systems: dict[bool, str] = {}
        self._source = self._make_source()
        self._source_key = self._source.sha256

    def _make_source(self) -> Source:
        parameters = {
            "one_per_call": self.options.one_per_call,
            "temperature": self.options.temperature,
            "max_tokens": self.options.max_tokens,
            "repair": self.options.repair,
            "task": content_hash([self.task.name, self.task.description]),
            "endpoint": self.client.transport.endpoint,
            **self.options.unusual,
        }
        prompts = [self._system, self._user, self._entry, self._repair]
        return Source(
            evaluator="utility.quantifier",
            version=_VERSION,
            model=self.client.model,
            prompt_sha256=content_hash([p.sha256 for p in prompts]),
            parameters=parameters,
            seed=self.options.seed,
        )

    @property
    def source(self) -> Source:
        """Model, prompts, parameters and seed of this judge."""
        return self._source

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """All criteria in one call, or one per call."""
        if self.options.one_per_call:
            return [(c,) for c in criteria]
        return [tuple(criteria)] if criteria else []

    def request(self, unit: Unit) -> tuple[Request, tuple[str, ...]]:
        """The request for a unit, and the leaf paths in the order shown."""
        shown = self._order(unit)
        values: dict[str, Any] = {
            "nonce": NONCE,
            "any_na": any(c.allow_na for _, c in shown),
            "task_name": self.task.name,
            "task_description": self.task.description,
            "criteria": "\n".join(self._described(path, c) for path, c in shown),
            "ids": [path for path, _ in shown],
            "problem": unit.view.problem,
            "trajectory": unit.view.trajectory,
            "reference": unit.view.reference,
        }
        if self.options.datamark:
            texts = {k: values[k] for k in ("problem", "trajectory", "reference") if values[k]}
            values |= {"datamark": DATAMARK, **{k: datamarked(v) for k, v in texts.items()}}
        messages = (
            {"role": "system", "content": self._instructions(values)},
            {"role": "user", "content": self._user.render(**values)},
        )
        request = Request(
            messages=messages,
            schema=reply_schema(shown, reversed_scale=self.options.reversed_scale),
            parameters=self._parameters(unit),
            repeat=unit.repeat,
            attempt=unit.attempt,
            role="quantifier",
            run_id=unit.run.id,
        )
        return request, tuple(path for path, _ in shown)

    def _instructions(self, values: dict[str, Any]) -> str:
        """The system message; it knows nothing of a unit but whether anything may not apply."""
        any_na: bool = values["any_na"]
        if any_na not in self._systems:
            names = "nonce", "any_na", "datamark"
            some = {name: values[name] for name in names if name in values}
            self._systems[any_na] = self._system.render(**some)
        return self._systems[any_na]

    def _described(self, path: str, criterion: Criterion) -> str:
        """A criterion as the prompt lists it; rendered once, since every call shows it."""
        # the order of the levels is shown, but is no part of the hash
        shown = (path, criterion.sha256, criterion.accepted_values, criterion.ordered)
        known = self._entries.get(shown)
        if known is None:
            known = self._entries[shown] = self._entry.render(path=path, c=criterion)
        return known

    def _order(self, unit: Unit) -> list[tuple[str, Criterion]]:
        """Leaves in an order drawn from seed, run and repeat, so that position cannot bias."""
        flat = [leaf for c in unit.criteria for leaf in leaves(c)]
        words = [self.options.seed, unit.repeat, int(unit.view.sha256[:8], 16)]
        order = np.random.default_rng(words).permutation(len(flat)).tolist()
        return [flat[i] for i in order]

    def _parameters(self, unit: Unit) -> dict[str, Any]:
        parameters: dict[str, Any] = {"seed": (self.options.seed * 100_003 + unit.repeat) % 2**31}
        if self.options.temperature is not None:
            parameters["temperature"] = self.options.temperature
        if self.options.max_tokens is not None:
            parameters["max_tokens"] = self.options.max_tokens
        return parameters

    async def evaluate(self, unit: Unit) -> Outcome:
        """One Score or Failure per criterion; raises the ModelError of a failed first request."""
        request, shown = self.request(unit)
        reply = await self.client.complete(request)
        if reply.refusal or reply.finish == "content_filter":
            message = reply.refusal or "withheld by the endpoint's content filter"
            call = _call_record(shown, [reply], None)
            return fail_all(unit, self._source_key, "unscored:refusal", message, call)
        state = _Round(*read_text(reply.text, unit.criteria, reply.finish), [reply])
        if state.answers.missing() and self.options.repair:
            await self._repair_round(unit, request, state)
        results = tuple(
            to_result(c, cell_key(unit, c, self._source_key), state.answers, state.rung_of(c))
            for c in unit.criteria
        )
        rung = next(iter(state.repaired.values()), state.rung)
        call = _call_record(shown, state.replies, rung, state.answers.extra)
        return Outcome(results, call)

    async def _repair_round(self, unit: Unit, request: Request, state: _Round) -> None:
        """Ask once more, for what could not be read only, naming what was wrong with it."""
        missing = state.answers.missing()
        problems = [f"{path}: {_reason(state.answers, path)}" for path in missing]
        text = self._repair.render(problems=problems, ids=missing)
        again = [(path, leaf) for path, leaf in self._order(unit) if path in missing]
        repair = Request(
            messages=(
                *request.messages,
                {
                    "role": "assistant",
                    "content": neutralise(state.replies[0].text[:8000]) or "(empty)",
                },
                {"role": "user", "content": text},
            ),
            schema=reply_schema(again, reversed_scale=self.options.reversed_scale),
            parameters=request.parameters,
            repeat=request.repeat,
            attempt=request.attempt,
            role="quantifier:repair",
            run_id=request.run_id,
        )
        try:
            reply = await self.client.complete(repair)
        except BadRequest:
            return  # the repair cannot be asked for here (a recording, a full context): as it was
        except AgentevalError as error:
            first = [r.usage for r in state.replies if not r.cached]
            error.spent = sum(first, start=error.spent or Usage())
            raise
        state.replies.append(reply)
        second, rung = read_text(reply.text, unit.criteria, reply.finish)
        for path in missing:
            if not isinstance(second.by_path[path], NoAnswer):
                state.answers.by_path[path] = second.by_path[path]
                state.repaired[path] = f"repair:{rung}"


def _reason(answers: Answers, path: str) -> str:
    answer = answers.by_path[path]
    return answer.message if isinstance(answer, NoAnswer) else ""


def _call_record(
    shown: tuple[str, ...], replies: list[Reply], rung: str | None, extra: Sequence[str] = ()
) -> CallRecord:
    fresh = [r for r in replies if not r.cached]
    usage = sum((r.usage for r in fresh[1:]), start=fresh[0].usage) if fresh else Usage()
    return CallRecord(
        shown=shown,
        replies=tuple(r.key for r in replies),
        raw=replies[-1].text,
        rung=rung,
        extra=tuple(extra),
        attempts=sum(r.attempts for r in fresh),
        repaired=len(replies) > 1,
        cache_hit=not fresh,
        latency=sum(r.latency for r in fresh) if fresh else None,
        model=replies[-1].model,
        usage=usage,
    )


def reply_schema(
    shown: Sequence[tuple[str, Criterion]], *, reversed_scale: bool = False
) -> dict[str, Any]:
    """JSON schema of the reply: one object per leaf path, explanation before label.

    The labels stand in the order of the prompt: from worst to best, or the reverse.
    """
    return {
        "type": "object",
        "properties": {path: _entry_schema(c, reversed_scale) for path, c in shown},
        "required": [path for path, _ in shown],
        "additionalProperties": False,
    }


def _entry_schema(criterion: Criterion, reversed_scale: bool) -> dict[str, Any]:
    label: dict[str, Any]
    if criterion.scale == "numeric":
        label = {"type": "number"}
        if criterion.allow_na:
            label = {"anyOf": [label, {"enum": ["not applicable"]}]}
    else:
        values = list(criterion.accepted_values)[:: -1 if reversed_scale else 1]
        label = {"type": "string", "enum": values + ["not applicable"] * criterion.allow_na}
    return {
        "type": "object",
        "properties": {"explanation": {"type": "string"}, "label": label},
        "required": ["explanation", "label"],
        "additionalProperties": False,
    }


def chat_judge(client: Client, task: Task, options: QuantifierOptions | None = None) -> Guarded:
    """The quantifier behind the rule for degenerate answers."""
    return Guarded(Quantifier(client, task, options))
