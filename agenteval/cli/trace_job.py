"""The finder that `trace locate` was asked for, run over traces and stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agenteval.cli.console import note
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.traces.finders import DetectorsFinder, LocatorFinder
    from agenteval.evaluators.traces.taxonomy import Taxonomy
    from agenteval.evaluators.traces.trials import TraceCase
    from agenteval.evaluators.trials import TrialPlan
    from agenteval.experiment import Ended
    from agenteval.models.client import Client
    from agenteval.models.limits import Limits
    from agenteval.store import Store

_MOST_AT_ONCE = 8  # traces in memory


@dataclass(frozen=True, slots=True)
class LocateJob:
    """What is asked of whom, and with which bounds."""

    model: str | None
    base_url: str | None
    detectors_only: bool
    taxonomy: Taxonomy
    mode: Literal["areas", "broad"]
    context: int
    reply_tokens: int
    repeats: int
    budget: int
    hints: bool
    temperature: float | None
    seed: int
    limits: Limits
    store: Path | None
    retry_failed: bool
    record: Path | None
    dry: bool = False  # nothing is sent, so no key is needed


def make_finder(
    job: LocateJob, store: Store | None
) -> tuple[DetectorsFinder | LocatorFinder, Client | None]:
    """The finder, and the client it asks through (None for rules); nothing is sent.

    Raises InputError for the embedded model, which cannot be asked, and for options that cannot
    work.
    """
    from agenteval.evaluators.traces.finders import DetectorsFinder, LocatorFinder

    if job.detectors_only:
        return DetectorsFinder(job.taxonomy), None
    from agenteval.evaluators.traces.condense import LEGEND, Options
    from agenteval.evaluators.traces.locator import Locator
    from agenteval.evaluators.traces.locator_prompt import LocatorOptions
    from agenteval.models.factory import choose_model, make_client

    choice = choose_model(job.model, job.base_url, need_key=not job.dry)
    if choice.kind == "embedded":
        raise InputError(
            "locating needs a chat model: PROVIDER:MODEL, or --base-url; --detectors-only finds "
            "what rules can, without a model", "--model",
        )  # fmt: skip
    client = make_client(choice, job.limits, store, record=job.record)
    options = LocatorOptions(
        mode=job.mode,
        context=job.context,
        reply_tokens=job.reply_tokens,
        repeats=job.repeats,
        temperature=job.temperature,
        seed=job.seed,
    )
    locator = Locator(client, job.taxonomy, options, legend=LEGEND)
    locator.check()
    finder = LocatorFinder(locator, Options(budget=job.budget), job.hints)
    return finder, client


def run_job(job: LocateJob, store: Store, cases: Sequence[TraceCase]) -> tuple[str, Ended | None]:
    """Key of the finder, and how it ended; None when it was interrupted."""
    import asyncio

    from agenteval.evaluators.traces.finders import finder_key
    from agenteval.evaluators.traces.trials import EVALUATOR, plan_findings
    from agenteval.store import Trials
    from agenteval.text import plural

    finder, client = make_finder(job, store)
    key = finder_key(finder)
    tables = Trials(store)
    with tables.lock(EVALUATOR, key):
        if client is not None:
            client.budget = job.limits.budget(tables.usage(EVALUATOR, key))
        plan = plan_findings(store, cases, finder, retry_failed=job.retry_failed)
        left = len(plan.units)
        done = len(cases) - left
        note(
            f"{finder.name}: {plural(left, 'trace')} to examine"
            + (f", {done} done before" if done else "")
        )
        try:
            return key, asyncio.run(_run(job, store, plan, client))
        except KeyboardInterrupt:
            return key, None


async def _run(job: LocateJob, store: Store, plan: TrialPlan[Any], client: Client | None) -> Ended:
    from agenteval.cli.progress import live
    from agenteval.experiment import Experiment

    # rules compute: more at once would only hold more traces in memory
    at_once = min(job.limits.concurrency, _MOST_AT_ONCE) if client else 1
    try:
        with live(len(plan.units), "locating", "traces") as update:
            return await Experiment(plan, store, workers=at_once, on_interrupt=note).run(update)
    finally:
        if client is not None:
            await client.close()
