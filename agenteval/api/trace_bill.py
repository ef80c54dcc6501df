"""What locating errors would ask, rehearsed: parts of the traces, and the questions on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval.api.running import planned
from agenteval.evaluators.traces.finders import LocatorFinder, finder_key
from agenteval.evaluators.traces.trials import EVALUATOR, plan_findings
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.rehearsal import REPAIR, Amount, Bill, Part, Rehearsal
from agenteval.models.windows import LARGEST
from agenteval.store import Trials

if TYPE_CHECKING:
    from agenteval.api.traces import Location

_LOCAL = "all of it is computed on this machine: no requests, no cost"


def locate_bill(asked: Location) -> Bill:
    """What `trace locate` would ask; nothing is asked, nothing is written."""
    cases = asked.cases
    with planned(asked.store) as store:
        finder, _ = asked.asking(store)
        plan = plan_findings(store, cases, finder, retry_failed=asked.retry_failed)
        about = [
            f"finder: {finder.name}",
            f"traces: {len(cases)}, of them to examine: {len(plan.units)}",
        ]
        budget = asked.limits.budget(Trials(store).usage(EVALUATOR, finder_key(finder)))
        if not isinstance(finder, LocatorFinder):
            return Bill("trace locate", (*about, f"rules; {_LOCAL}"), (), budget)
        options = finder.locator.options
        part = Part(
            "judge",
            "one request for each part of a trace, question and repeat, and one for the grades; "
            "one more for a reply out of form; a part that the endpoint calls too long is halved, "
            "which is not counted",
            largest=(3 * (options.context - options.reply_tokens), options.reply_tokens),
        )
        before = after = 0
        large = finder.locator.with_context(LARGEST)
        requests = tokens = 0  # with the largest context
        with Rehearsal() as rehearsal:
            for unit in plan.units:
                run = unit[0].load()
                condensed, parts = finder.planned(run)
                whole = large.plan(run, condensed)
                requests, tokens = (
                    requests + whole.requests,
                    tokens + whole.prompt_tokens - whole.grades_tokens,
                )
                before += condensed.source_tokens
                after += condensed.tokens
                first = rehearsal.first(plan.evaluate(unit))[:1]
                part.where.update(draft.where for draft in first)
                stored = len(rehearsal.answered)
                # once some is stored, what is left depends on what it says
                part.least += (
                    Amount(len(first), sum(draft.prompt for draft in first), None)
                    if stored
                    else Amount(parts.requests, parts.prompt_tokens - parts.grades_tokens, None)
                )
                part.most += Amount(
                    MOST_REQUESTS * parts.requests - stored,
                    MOST_REQUESTS * parts.prompt_tokens + REPAIR * parts.requests,
                    MOST_REQUESTS * parts.reply_tokens,
                )
        share = f" ({after / before:.1%})" if before else ""
        if withheld := [case.outline.withheld for case in cases if case.outline.withheld]:
            names = sorted({path.rpartition(".")[2] for paths in withheld for path in paths})
            about.append(
                f"gold answers: withheld from {len(withheld)} of {len(cases)} traces "
                f"({', '.join(names)}); --with-reference shows them to the judge"
            )
        about.append(f"condensed: {before:,} tokens to {after:,}{share}")
        if options.context < LARGEST and requests < part.least.requests:
            about.append(
                f"context: {options.context:,} tokens; for a model that takes more, --context "
                f"{LARGEST} would need {requests:,} requests, {tokens:,} tokens of prompt at least"
            )
    return Bill("trace locate", about, (part,), budget)
