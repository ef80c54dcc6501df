"""What `quantify --dry-run` says, and what all dry runs share. Nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from agenteval.cli.dry_bill import Bill
from agenteval.cli.dry_judge import Asker, judged
from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.models.factory import ModelChoice
    from agenteval.records import Criterion, Run, Task, View
    from agenteval.store import Store

RECORDED = "the replies come from a recording: no endpoint is asked, nothing is paid"
EMPTY = "none.db"  # stands for a store that is not there yet
LOCAL = "all of it is computed on this machine: no requests, no cost"


def bill(
    job: Any, items: Sequence[tuple[Run, View]], task: Task, criteria: Sequence[Criterion]
) -> Bill:
    """What `quantify` would ask. Raises InputError for a model that cannot be chosen, and for a
    cap without a price."""
    from agenteval.evaluators.utility.plan import make_plan
    from agenteval.models.factory import choose_model

    choice = choose_model(job.model, job.base_url, need_key=False)
    job.limits.budget()  # a cap without a price is told before anything else
    cells = len(items) * len(criteria) * job.repeats
    about = [
        f"runs: {len(items)} of task {task.name}",
        f"reference answers: {'shown to the judge' if job.with_reference else 'withheld'}",
        f"criteria: {len(criteria)} ({', '.join(c.name for c in criteria)})",
        f"cells: {plural(len(items), 'run')} × {plural(len(criteria), 'criterion')} × "
        f"{plural(job.repeats, 'repeat')} = {cells:,}",
    ]
    if choice.kind == "embedded":
        calls = f"calls: {len(items) * job.repeats} at most; {LOCAL}"
        return Bill("quantify", (*about, calls), (), job.limits)
    with planned_store(job.store) as store:
        asker = asker_of(job, choice, task, store)
        judge = asker.judge()
        plan = make_plan(
            judge, items, criteria, store, repeats=job.repeats, retry_failed=job.retry_failed
        )
        about.append(
            f"stored already: {plan.done} scored, {plan.failed} failed; calls: {len(plan.units)}"
        )
        asked = judged(asker, plan.units)
        spent = store.usage(judge.source.sha256)
    return Bill("quantify", tuple(about), (asked,), job.limits, spent, notes(choice))


def asker_of(job: Any, choice: ModelChoice, task: Task, store: Store, **change: Any) -> Asker:
    """The judge of a command, asked in another way by `change`."""
    from agenteval.evaluators.utility.quantifier import QuantifierOptions

    options = QuantifierOptions(
        job.one_per_call, job.temperature, seed=job.seed, datamark=job.datamark, **change
    )
    return Asker(choice, task, options, store)


def notes(choice: ModelChoice) -> tuple[str, ...]:
    """What is to be said of where the replies come from."""
    return (RECORDED,) if choice.provider == "replay" else ()


@contextmanager
def planned_store(path: Path | None) -> Iterator[Store]:
    """The store to plan against; a dry run leaves no file behind, an empty one stands for none."""
    from agenteval.store import Store, default_path

    chosen = Path(path or default_path())
    with ExitStack() as stack:
        if not chosen.is_file():
            chosen = Path(stack.enter_context(TemporaryDirectory())) / EMPTY
        yield stack.enter_context(Store(chosen))


__all__ = ["EMPTY", "LOCAL", "RECORDED", "asker_of", "bill", "notes", "planned_store"]
