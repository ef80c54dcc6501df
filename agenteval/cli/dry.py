"""What `quantify --dry-run` says: runs, calls, estimated tokens and cost. Nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval.plan import Units
    from agenteval.records import Criterion, Run, Task, View

_SAMPLE = 200  # requests that are rendered to estimate tokens
_REPLY_TOKENS_PER_CRITERION = 60  # an explanation of one or two sentences and a label


def describe(
    job: Any, items: Sequence[tuple[Run, View]], task: Task, criteria: Sequence[Criterion]
) -> Iterator[str]:
    """Lines for a person. Raises InputError for a model that cannot be chosen."""
    from agenteval.models.factory import choose_model

    choice = choose_model(job.model, job.base_url, need_key=False)
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
    choice: Any,
    items: Sequence[tuple[Run, View]],
    task: Task,
    criteria: Sequence[Criterion],
) -> Iterator[str]:
    from agenteval.assemble import JudgeOptions, chat_judge, make_client
    from agenteval.pipeline import make_plan
    from agenteval.store import Store, default_path

    client = make_client(choice, job.limits, None)
    options = JudgeOptions(job.one_per_call, job.temperature, seed=job.seed, datamark=job.datamark)
    evaluator = chat_judge(client, task, options)
    path = Path(job.store or default_path())
    with ExitStack() as stack:
        if not path.is_file():  # a dry run leaves no file behind: it plans against an empty store
            path = Path(stack.enter_context(TemporaryDirectory())) / "empty.db"
        store = stack.enter_context(Store(path))
        plan = make_plan(
            evaluator, items, criteria, store, repeats=job.repeats, retry_failed=job.retry_failed
        )
    yield f"stored already: {plan.done} scored, {plan.failed} failed"
    yield f"calls: {len(plan.units)} (a reply out of form costs one more)"
    prompt = _prompt_tokens(evaluator, plan.units)
    reply = plan.open * _REPLY_TOKENS_PER_CRITERION
    yield f"tokens, estimated: {prompt:,} prompt + {reply:,} reply"
    if job.limits.price is None:
        yield "cost: unknown; --price-in and --price-out (per million tokens) give an estimate"
    else:
        yield f"cost, estimated: {job.limits.price.cost(prompt, reply):.4f}"


def _prompt_tokens(evaluator: Any, units: Units) -> int:
    """Estimate from an evenly spread sample of the requests."""
    from agenteval.models.client import estimate_tokens

    if not units:
        return 0
    sample = list(islice(units, 0, None, max(1, len(units) // _SAMPLE)))
    total = sum(estimate_tokens(evaluator.inner.request(u)[0]) for u in sample)
    return round(total / len(sample) * len(units))
