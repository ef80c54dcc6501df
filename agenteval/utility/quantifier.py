"""The quantifier: scores one run on some criteria in one call.

AgentEval (arXiv 2402.09015, section 3): the QuantifierAgent maps a solution to one accepted value
per criterion. Here the explanation comes before the label, the order of the criteria is permuted
by seed, a malformed reply gets one repair round, and unreadable answers stay unscored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Literal, TypeVar, cast

import numpy as np
from pydantic import JsonValue

from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, RunJudge, cell_key, fail_all, worst_by_rule
from agenteval.errors import AgentevalError, BadRequest, InputError
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt, neutralise
from agenteval.models.wire import NONCE, Reply, Request
from agenteval.readers import degenerate
from agenteval.readers.tasks import find_task
from agenteval.records import CallRecord, Criterion, Run, Source, Task, Usage, View, content_hash
from agenteval.stats.scores import ORIGINAL
from agenteval.utility.answers import Answers, LevelAnswer, NoAnswer, leaves_of, to_result
from agenteval.utility.critic import strict_object
from agenteval.utility.evaluator import Renamed
from agenteval.utility.reading import read_text
from agenteval.utility.rubrics import MOST_ITEMS, parts_of

_T = TypeVar("_T")
_TOKENS_FOR_ONE = 120  # a few sentences of explanation and a label
RUBRIC_VERSION = 1  # version of how rubrics are shown and read
_RUBRIC = ("system", "user", "item")
Wording = Literal["a", "b"]  # two independently written prompts with the same meaning


@dataclass(frozen=True)
class QuantifierOptions:
    """Options for prompting a model. All of them are part of the source of every score."""

    one_per_call: bool = False
    temperature: float | None = 1.0  # None: the endpoint chooses
    max_tokens: int | None = 2048
    repair: bool = True
    seed: int = 0
    reversed_scale: bool = False  # accepted values listed from best to worst
    wording: Wording = "a"
    reworded: bool = False  # each call draws one of three other wordings per criterion
    rubrics: bool = False  # some runs have their own rubrics

    @property
    def unusual(self) -> dict[str, bool | str]:
        """Options that differ from the defaults; only these become part of the source."""
        ways = {name: getattr(self, name) for name in ("reversed_scale", "wording", "reworded")}
        return {name: value for name, value in ways.items() if value not in (False, "a")}


@dataclass(frozen=True)
class _AnsweredRequest:
    """Answers to one request; `repaired` has the rung of the repair by leaf path."""

    shown: tuple[str, ...]
    replies: list[Reply]
    answers: Answers
    rung: str | None = None
    repaired: dict[str, str] = field(default_factory=dict)
    refused: str | None = None


async def gathered(
    work: Sequence[Awaitable[_T]], replies_of: Callable[[_T], Sequence[Reply]]
) -> list[_T]:
    """Run requests concurrently and return their results. Raises the first error, which carries
    the usage of all requests."""
    done = await asyncio.gather(*work, return_exceptions=True)
    good = [part for part in done if not isinstance(part, BaseException)]
    if error := next((part for part in done if isinstance(part, BaseException)), None):
        if isinstance(error, AgentevalError):
            paid = (r.usage for part in good for r in replies_of(part) if not r.cached)
            error.spent = sum(paid, start=error.spent or Usage())
        raise error
    return good


class Quantifier:
    """Scores runs with a chat model."""

    def __init__(
        self, client: Client, task: Task, options: QuantifierOptions | None = None
    ) -> None:
        self.client = client
        self.task = task
        self.options = options or QuantifierOptions()
        wording = "_b" if self.options.wording == "b" else ""
        listing = "_reversed" if self.options.reversed_scale else ""
        listing = "_reworded" if self.options.reworded else listing
        names = f"system{wording}", f"user{wording}", f"criterion{listing}", "repair"
        prompts = [load_prompt("agenteval.utility", f"quantifier_{name}") for name in names]
        *self._plain, self._repair = prompts
        self._rubric = [load_prompt("agenteval.utility", f"rubric_{name}") for name in _RUBRIC]
        rubric: list[JsonValue] = [RUBRIC_VERSION, *(p.sha256 for p in self._rubric)]
        self._rendered: dict[object, str] = {}  # cached parts of prompts
        self.source = Source(
            evaluator="utility.quantifier",
            version=1,
            model=client.model,
            prompt_sha256=content_hash([p.sha256 for p in prompts]),
            parameters={
                "one_per_call": self.options.one_per_call,
                "temperature": self.options.temperature,
                "max_tokens": self.options.max_tokens,
                "repair": self.options.repair,
                "task": content_hash([task.name, task.description]),
                "endpoint": client.address,
                **self.options.unusual,
                **({"rubric": content_hash(rubric)} if self.options.rubrics else {}),
            },
            seed=self.options.seed,
        )

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return the criteria of each call: all, or one per call; a rubric has its own call."""
        if self.options.one_per_call:
            return [(c,) for c in criteria]
        shared = tuple(c for c in criteria if not c.is_rubric)
        return [*([shared] if shared else ()), *((c,) for c in criteria if c.is_rubric)]

    def request(self, unit: JudgeUnit) -> tuple[Request, tuple[str, ...]]:
        """Return the request for a unit, and the leaf paths in the order shown."""
        shown = self._order(unit)
        any_na = any(c.allow_na for _, c in shown)
        rubric = any(c.is_rubric for c in unit.criteria)
        system, user, _ = self._rubric if rubric else self._plain
        values: dict[str, Any] = {
            **prompt_values(self.task, unit),
            "any_na": any_na,
            "criteria": "\n".join(self._described(unit, shown)),
            "ids": [path for path, _ in shown],
        }
        if (rubric, any_na) not in self._rendered:
            self._rendered[rubric, any_na] = system.render(nonce=NONCE, any_na=any_na)
        request = request_about(
            unit,
            shown,
            messages=(
                {"role": "system", "content": self._rendered[rubric, any_na]},
                {"role": "user", "content": user.render(**values)},
            ),
            schema=reply_schema(shown, reversed_scale=self.options.reversed_scale),
            parameters=sampling(self.options, unit),
            role="quantifier",
        )
        return request, tuple(path for path, _ in shown)

    def _described(self, unit: JudgeUnit, shown: Sequence[tuple[str, Criterion]]) -> Iterator[str]:
        """Yield each criterion as listed in the prompt, in wording 0 or, with `reworded`, in one of
        three others drawn by seed."""
        wordings = [0] * len(shown)
        if self.options.reworded:
            wordings = self._rng(unit, 1).integers(1, 4, len(shown)).tolist()
        for (path, c), way in zip(shown, wordings, strict=True):
            # the order of the levels is shown, but is not part of the hash
            key = (path, c.sha256, c.accepted_values, c.ordered, way)
            if key not in self._rendered:
                entry = (self._plain if c.weight is None else self._rubric)[2]
                self._rendered[key] = entry.render(path=path, c=c, way=way)
            yield self._rendered[key]

    def _order(self, unit: JudgeUnit) -> list[tuple[str, Criterion]]:
        """Shuffle the leaves by seed, run and repeat, so that position does not cause bias."""
        leaves = leaves_of(unit.criteria)
        return [leaves[i] for i in self._rng(unit).permutation(len(leaves))]

    def _rng(self, unit: JudgeUnit, *more: int) -> np.random.Generator:
        seeds = [self.options.seed, unit.repeat, int(unit.view.sha256[:8], 16), *more]
        return np.random.default_rng(seeds)

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return one Score or Failure per criterion; raises ModelError if a request fails."""
        most = 1 if self.options.one_per_call else MOST_ITEMS
        units = [replace(unit, criteria=part) for part in parts_of(unit.criteria, most)]
        parts = await gathered([self._asked(part) for part in units], lambda part: part.replies)
        replies = [reply for part in parts for reply in part.replies]
        shown = tuple(path for part in parts for path in part.shown)
        if refused := next(filter(None, (part.refused for part in parts)), None):
            call = call_record(shown, replies, None)
            return fail_all(unit, self.source.sha256, "unscored:refusal", refused, call)
        by_path: dict[str, LevelAnswer | NoAnswer] = {}
        repaired: dict[str, str] = {}
        for part in parts:
            by_path |= part.answers.by_path
            repaired |= part.repaired
        rung, extra = parts[0].rung, [name for part in parts for name in part.answers.extra]
        results = []
        for criterion in unit.criteria:
            repairs = (repaired[path] for path, _ in criterion.leaves() if path in repaired)
            key = cell_key(unit, criterion, self.source.sha256)
            results.append(to_result(criterion, key, by_path, next(repairs, rung)))
        rung = next(iter(repaired.values()), rung)
        call = call_record(shown, replies, rung, extra, repaired=len(replies) > len(parts))
        return Outcome(tuple(results), call)

    async def _asked(self, unit: JudgeUnit) -> _AnsweredRequest:
        """Send one request and, if necessary, its repair."""
        request, shown = self.request(unit)
        reply = await self.client.complete(request)
        if refused := refusal(reply):
            return _AnsweredRequest(shown, [reply], Answers(), refused=refused)
        answers, rung = read_text(reply.text, unit.criteria, reply.finish)
        replies, repaired = [reply], dict[str, str]()
        if answers.missing() and self.options.repair and not reply.says_nothing:
            retry = await self._ask_again(unit, request, reply, answers)
            if retry is not None:
                replies.append(retry)
                second, again_rung = read_text(retry.text, unit.criteria, retry.finish)
                for path in answers.missing():
                    if not isinstance(second.by_path[path], NoAnswer):
                        answers.by_path[path] = second.by_path[path]
                        repaired[path] = f"repair:{again_rung}"
        return _AnsweredRequest(shown, replies, answers, rung, repaired)

    async def _ask_again(
        self, unit: JudgeUnit, request: Request, first: Reply, answers: Answers
    ) -> Reply | None:
        """Ask again for the unreadable answers, stating what was wrong with them. Returns None if
        this is impossible (a recorded model, a full context)."""
        unread = {p: a.message for p, a in answers.by_path.items() if isinstance(a, NoAnswer)}
        problems = [f"{path}: {why}" for path, why in unread.items()]
        text = self._repair.render(problems=problems, ids=list(unread))
        shown = [(path, leaf) for path, leaf in self._order(unit) if path in unread]
        repair = replace(
            request,
            messages=(
                *request.messages,
                {"role": "assistant", "content": neutralise(first.text[:8000]) or "(empty)"},
                {"role": "user", "content": text},
            ),
            schema=reply_schema(shown, reversed_scale=self.options.reversed_scale),
            role=f"{request.role}:repair",
        )
        try:
            return await self.client.complete(repair)
        except BadRequest:
            return None
        except AgentevalError as error:
            error.spent = (error.spent or Usage()) + (Usage() if first.cached else first.usage)
            raise


def refusal(reply: Reply) -> str | None:
    """Return the reason if a reply was refused or withheld, else None."""
    if reply.refusal or reply.finish == "content_filter":
        return reply.refusal or "blocked by the endpoint's content filter"
    return None


def prompt_values(task: Task, unit: JudgeUnit) -> dict[str, Any]:
    """Return the template values for a unit: the task and the parts of the run. The reference is
    None if it is withheld."""
    view = unit.view
    return {
        "nonce": NONCE,
        "task_name": task.name,
        "task_description": task.description,
        "problem": view.problem,
        "trajectory": view.trajectory,
        "reference": view.reference,
    }


def request_about(
    unit: JudgeUnit, shown: Sequence[tuple[str, Criterion]], **fields: Any
) -> Request:
    """Return a request about a unit, with the fields that identify its recorded reply."""
    judged = [unit.view.problem, unit.view.trajectory, unit.view.reference]
    by = sorted((path, c.name, c.description, c.hint, c.accepted_values) for path, c in shown)
    return Request(
        repeat=unit.repeat,
        attempt=unit.attempt,
        run_id=unit.run.id,
        variant="" if unit.variant == ORIGINAL else unit.variant,
        about={"text": content_hash(judged), "criteria": _hash_of(tuple(by))},
        **fields,
    )


_hash_of = lru_cache(maxsize=64)(content_hash)  # all runs share the same criteria


def sampling(options: QuantifierOptions, unit: JudgeUnit) -> dict[str, Any]:
    """Return the seed and, if set, the temperature and maximum number of tokens."""
    parameters: dict[str, Any] = {"seed": (options.seed * 100_003 + unit.repeat) % 2**31}
    if options.temperature is not None:
        parameters["temperature"] = options.temperature
    if options.max_tokens is not None:
        enough = _TOKENS_FOR_ONE * len(leaves_of(unit.criteria))
        parameters["max_tokens"] = max(options.max_tokens, enough)
    return parameters


def call_record(
    shown: tuple[str, ...],
    replies: Sequence[Reply],
    rung: str | None,
    extra: Sequence[str] = (),
    *,
    repaired: bool = False,
) -> CallRecord:
    """Return the record of one call: replies, usage, attempts and latency."""
    fresh = [r for r in replies if not r.cached]
    return CallRecord(
        shown=shown,
        replies=tuple(r.key for r in replies),
        raw=replies[-1].text,
        rung=rung,
        extra=tuple(extra),
        attempts=sum(r.attempts for r in fresh),
        repaired=repaired,
        cache_hit=not fresh,
        latency=sum(r.latency for r in fresh) if fresh else None,
        model=replies[-1].model,
        usage=sum((r.usage for r in fresh[1:]), start=fresh[0].usage) if fresh else Usage(),
    )


def reply_schema(
    shown: Sequence[tuple[str, Criterion]], *, reversed_scale: bool = False
) -> dict[str, Any]:
    """Return the JSON schema of the reply: one object per leaf path, explanation before label.

    The labels are in the order of the prompt: worst to best, or reversed.
    """

    def entry(criterion: Criterion) -> dict[str, Any]:
        label: dict[str, Any] = {"type": "number"}
        if criterion.scale != "numeric":
            values = list(criterion.accepted_values)[:: -1 if reversed_scale else 1]
            label = {"type": "string", "enum": values + [criterion.na_label] * criterion.allow_na}
        elif criterion.allow_na:
            label = {"anyOf": [label, {"enum": [criterion.na_label]}]}
        return strict_object({"explanation": {"type": "string"}, "label": label})

    return strict_object({path: entry(c) for path, c in shown})


RULE = "degenerate-answer/1"


def degenerate_outcome(unit: JudgeUnit, source: str, reason: str) -> Outcome:
    """Return the worst level for each criterion, with the rule and `reason` as evidence."""
    evidence: dict[str, JsonValue] = {"rule": RULE, "reason": reason}
    return worst_by_rule(unit, source, "degenerate", evidence)


class Guarded(Renamed):
    """Applies the rule for degenerate answers before a judge; the source names the rule.

    A degenerate answer is the system's failure, so it gets the worst level by rule, or no value if
    the criterion has no known order. The judge is not asked, because judges may praise an empty
    answer or an echo of the question (arXiv 2507.08794). The status `degenerate` marks these
    scores, so that means can be shown with and without them.
    """

    def __init__(self, inner: RunJudge) -> None:
        super().__init__(inner, guard=RULE)

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return the worst level for a degenerate run, else the results of the inner judge."""
        reason = degenerate(unit.run)
        if reason is None:
            return await super().evaluate(unit)
        return degenerate_outcome(unit, self.source.sha256, reason)


def chat_judge(client: Client, task: Task, options: QuantifierOptions | None = None) -> Guarded:
    """Return the quantifier, guarded by the rule for degenerate answers."""
    return Guarded(Quantifier(client, task, options))


# ---------------------------------------------------------------- prompts of stored calls


@dataclass(frozen=True)
class PromptMessage:
    """One message of a prompt."""

    role: str
    text: str


@dataclass(frozen=True)
class WrittenAgain:
    """The messages of a reconstructed prompt, or the reason why there are none."""

    messages: tuple[PromptMessage, ...] = ()
    reason: str = ""


def written_again(
    source: Source, run: Run, view: View, criteria: Sequence[Criterion], request: Mapping[str, Any]
) -> WrittenAgain:
    """Reconstruct the prompt of a call on a run, as it was sent except for the nonce.

    The prompt is shown only if it has the hash of the stored request. `criteria` are those of the
    call in the order in which they were registered; `request` is the stored description of the
    request (`Request.described`).
    """
    if source.evaluator != "utility.quantifier":
        return WrittenAgain(reason=f"{source.evaluator} keeps no prompt")
    try:
        task = find_task(run.task).task
    except InputError:
        return WrittenAgain(reason=f"the prompt names the task {run.task!r}, which was not found")
    parameters = source.parameters
    if content_hash([task.name, task.description]) != parameters.get("task"):
        return WrittenAgain(reason=f"the description of the task {run.task!r} has changed")
    options: dict[str, Any] = {
        field.name: parameters[field.name]
        for field in fields(QuantifierOptions)
        if field.name in parameters
    }
    # the quantifier needs only these attributes to build a request
    client = SimpleNamespace(model=source.model, address=str(parameters.get("endpoint") or ""))
    quantifier = Quantifier(
        cast(Client, client), task, QuantifierOptions(**options | {"seed": source.seed})
    )
    if quantifier.source.prompt_sha256 != source.prompt_sha256:
        return WrittenAgain(reason="this version of agenteval uses different prompts")
    repeat, attempt = (int(request.get(name) or 0) for name in ("repeat", "attempt"))
    unit = JudgeUnit(run, view, tuple(criteria), repeat=repeat, attempt=attempt)
    written, _ = quantifier.request(unit)
    if written.logical_hash() != request.get("key"):
        return WrittenAgain(reason="the reconstructed prompt differs from the one that was sent")
    messages = (
        PromptMessage(str(m["role"]), str(m["content"]).replace(NONCE, "…"))
        for m in written.messages
    )
    return WrittenAgain(tuple(messages))
