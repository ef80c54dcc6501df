"""What `--dry-run` says of a judge: runs, calls, estimated tokens and cost. Nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval.assemble import Limits
    from agenteval.models.factory import ModelChoice
    from agenteval.models.wire import Request
    from agenteval.plan import Units
    from agenteval.records import Criterion, Run, Task, View
    from agenteval.store import Store

_SAMPLE = 200  # requests that are rendered to estimate tokens
REPLY_TOKENS_PER_CRITERION = 60  # an explanation of one or two sentences and a label


@dataclass(frozen=True)
class Estimate:
    """What calls may take. `reserved` is the largest prompt (in tokens, a true bound) with the
    longest reply allowed, of the requests that were looked at: what a cap on cost sets aside."""

    calls: int = 0
    prompt: int = 0
    reply: int = 0
    reserved: tuple[int, int] = (0, 0)

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.calls + other.calls,
            self.prompt + other.prompt,
            self.reply + other.reply,
            max(self.reserved, other.reserved),
        )

    def lines(self, limits: Limits, said: str = "estimated") -> Iterator[str]:
        """Tokens and cost; `said` tells what kind of number they are."""
        yield f"tokens, {said}: {self.prompt:,} prompt + {self.reply:,} reply"
        if limits.price is None:
            yield "cost: unknown; --price-in and --price-out (per million tokens) give an estimate"
            return
        yield f"cost, {said}: {limits.price.cost(self.prompt, self.reply):.4f}"

    def reserve(self, limits: Limits) -> Iterator[str]:
        """What --max-cost sets aside before each call; a cap below it lets nothing through."""
        if limits.max_cost is None or limits.price is None or not self.calls:
            return
        worst = limits.price.cost(*self.reserved)
        refused = "; the cap is below it: no such call is made" if worst > limits.max_cost else ""
        yield (
            f"--max-cost: up to about {worst:.4f} is reserved for one call before it is made "
            f"(its prompt in bytes and the longest reply allowed){refused}"
        )


def describe(
    job: Any, items: Sequence[tuple[Run, View]], task: Task, criteria: Sequence[Criterion]
) -> Iterator[str]:
    """Lines for a person. Raises InputError for a model that cannot be chosen."""
    from agenteval.models.factory import choose_model

    choice = choose_model(job.model, job.base_url, need_key=False)
    job.limits.budget()  # a cap without a price is told before anything else
    cells = len(items) * len(criteria) * job.repeats
    yield f"runs: {len(items)} of task {task.name}"
    yield f"reference answers: {'shown to the judge' if job.with_reference else 'withheld'}"
    yield f"criteria: {len(criteria)} ({', '.join(c.name for c in criteria)})"
    yield f"cells: {len(items)} runs × {len(criteria)} criteria × {job.repeats} repeats = {cells}"
    if choice.kind == "embedded":
        yield f"calls: {len(items) * job.repeats} on this machine at most, no requests, no cost"
        return
    yield from _describe_chat(job, choice, items, task, criteria)


def _describe_chat(
    job: Any,
    choice: ModelChoice,
    items: Sequence[tuple[Run, View]],
    task: Task,
    criteria: Sequence[Criterion],
) -> Iterator[str]:
    from agenteval.pipeline import make_plan

    evaluator = silent_judge(job, choice, task)
    with planned_store(job.store) as store:
        plan = make_plan(
            evaluator, items, criteria, store, repeats=job.repeats, retry_failed=job.retry_failed
        )
    yield f"stored already: {plan.done} scored, {plan.failed} failed"
    yield f"calls: {len(plan.units)} (a reply out of form costs one more)"
    found = estimate(evaluator, plan.units, choice.name)
    yield from found.lines(job.limits)
    yield from found.reserve(job.limits)


def silent_judge(job: Any, choice: ModelChoice, task: Task, **change: Any) -> Any:
    """The judge of a command, asked in another way by `change`; it is there to be planned with."""
    from agenteval.assemble import JudgeOptions, chat_judge, make_client

    options = JudgeOptions(
        job.one_per_call, job.temperature, seed=job.seed, datamark=job.datamark, **change
    )
    return chat_judge(make_client(choice, job.limits, None), task, options)


@contextmanager
def planned_store(path: Path | None) -> Iterator[Store]:
    """The store to plan against; a dry run leaves no file behind, an empty one stands for none."""
    from agenteval.store import Store, default_path

    chosen = Path(path or default_path())
    with ExitStack() as stack:
        if not chosen.is_file():
            chosen = Path(stack.enter_context(TemporaryDirectory())) / "empty.db"
        yield stack.enter_context(Store(chosen))


def estimate(evaluator: Any, units: Units, model: str) -> Estimate:
    """What the calls of a chat judge take, from an evenly spread sample of its requests."""
    if not units:
        return Estimate()
    sample = list(islice(units, 0, None, max(1, len(units) // _SAMPLE)))
    requests = [evaluator.inner.request(unit)[0] for unit in sample]
    criteria = sum(len(unit.criteria) for unit in sample)
    share = len(units) / len(sample)
    found = of_requests(requests, model)
    return Estimate(
        len(units),
        round(found.prompt * share),
        round(criteria * share * REPLY_TOKENS_PER_CRITERION),
        found.reserved,
    )


def of_requests(requests: Sequence[Request], model: str) -> Estimate:
    """Calls, prompt tokens (estimated) and reply tokens (the longest allowed) of requests."""
    from agenteval.models.client import estimate_tokens, max_completion

    longest = [max_completion(request) for request in requests]
    return Estimate(
        len(requests),
        sum(estimate_tokens(request) for request in requests),
        sum(longest),
        max(
            ((r.identify("", model)[1], most) for r, most in zip(requests, longest, strict=True)),
            default=(0, 0),
        ),
    )
