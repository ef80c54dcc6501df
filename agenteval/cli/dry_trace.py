"""What `trace locate --dry-run` says: parts of the traces, and the judge's questions on them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.cli.dry import LOCAL, planned_store
from agenteval.cli.dry_bill import Amount, Asked, Bill, repaired
from agenteval.cli.dry_rehearsal import rehearsal

if TYPE_CHECKING:
    from agenteval.api.traces import Location
    from agenteval.evaluators.traces.finders import LocatorFinder
    from agenteval.evaluators.traces.trials import TraceCase
    from agenteval.store import Store

_WHY = (
    "one request for each part of a trace, question and repeat, and one for the grades; one more "
    "for a reply out of form; a part that the endpoint calls too long is halved, which is not "
    "counted"
)


def bill(job: Location) -> Bill:
    """What `trace locate` would ask; nothing is asked, nothing is written."""
    from agenteval.evaluators.traces.finders import LocatorFinder, finder_key
    from agenteval.evaluators.traces.trials import EVALUATOR, plan_findings
    from agenteval.store import Trials

    finder, cases = job.finder, job.cases
    job.limits.budget()  # a cap without a price is told
    key = finder_key(finder)
    with planned_store(job.store if isinstance(job.store, Path) else None) as store:
        work = plan_findings(store, cases, finder, retry_failed=job.retry_failed).units
        about = [
            f"finder: {finder.name}",
            f"traces: {len(cases)}, of them to examine: {len(work)}",
        ]
        if not isinstance(finder, LocatorFinder):
            return Bill("trace locate", (*about, f"rules; {LOCAL}"), (), job.limits)
        asked, condensed = _asked(finder, work, store)
        spent = Trials(store).usage(EVALUATOR, key)
    return Bill("trace locate", (*about, condensed), (asked,), job.limits, spent)


def _asked(
    finder: LocatorFinder, work: Sequence[tuple[TraceCase, int]], store: Store
) -> tuple[Asked, str]:
    least, most = Amount(), Amount()
    before = after = 0
    for case, attempt in work:
        condensed, plan = _planned(finder, case)
        whole = Amount(plan.requests, plan.prompt_tokens, plan.reply_tokens)
        before += condensed.source_tokens
        after += condensed.tokens
        stored, unsent = _rehearsed(finder, case, attempt, store)
        certain = whole if not stored else Amount(min(1, unsent), 0)
        least += replace(certain, prompt=_shortest(finder, plan, certain), reply=None)
        left = repaired(whole)
        most += replace(left, requests=left.requests - stored)
    share = f" ({after / before:.1%})" if before else ""
    options = finder.locator.options
    largest = 3 * (options.context - options.reply_tokens), options.reply_tokens
    return (
        Asked("judge", least, most, _WHY, largest=largest),
        f"condensed: {before:,} tokens to {after:,}{share}",
    )


def _shortest(finder: LocatorFinder, plan: Any, certain: Amount) -> int:
    """Prompt tokens without those of the grades, which are told as many as the context takes."""
    options = finder.locator.options
    asked_for = plan.requests > options.repeats * sum(plan.parts)
    grades: int = asked_for * (options.context - options.reply_tokens)
    return max(0, (certain.prompt or 0) - grades)


def _rehearsed(
    finder: LocatorFinder, case: TraceCase, attempt: int, store: Store
) -> tuple[int, int]:
    """Replies that are stored of an attempt, and requests that would be sent after them."""
    own = finder.locator
    client, nobody = rehearsal(own.client, _Counting(store))
    again = type(own)(client, own.taxonomy, own.options, legend=own.legend)
    asyncio.run(replace(finder, locator=again).find(case.load(), attempt))
    cache: Any = client.cache
    return cache.found, len(nobody.asked)


class _Counting:
    """A store's replies, counted as they are found."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.found = 0

    def get_reply(self, key: str) -> dict[str, Any] | None:
        """The stored reply, or None."""
        reply = self._store.get_reply(key)
        self.found += reply is not None
        return reply

    def put_reply(self, key: str, reply: dict[str, Any]) -> None:
        """Never called: nothing is answered."""
        raise AssertionError("a dry run has no reply to keep")


def _planned(finder: LocatorFinder, case: TraceCase) -> tuple[Any, Any]:
    from agenteval.evaluators.traces.condense import condense
    from agenteval.evaluators.traces.detectors import detect

    run = case.load()
    condensed = condense(run, finder.condensing)
    hints = detect(run, finder.locator.taxonomy) if finder.hints else ()
    return condensed, finder.locator.plan(run, condensed, hints)
