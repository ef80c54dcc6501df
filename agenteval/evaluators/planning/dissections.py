"""Dissections in the store: each is kept when it is done, and never made twice."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from agenteval.agents import AgentFailure, System
from agenteval.errors import BudgetExceeded
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.checker import CheckRules
from agenteval.evaluators.planning.dissect import Dissection, DissectOptions, dissect
from agenteval.evaluators.planning.measures import of_dissection
from agenteval.evaluators.planning.run import check_key
from agenteval.evaluators.planning.trials import EVALUATOR, stored_case, stored_system
from agenteval.evaluators.trials import TrialOutcome, TrialPlan
from agenteval.records import FailureStatus, Record, Usage, content_hash
from agenteval.store import Store, Trial, Trials

_PREFIX = f"{EVALUATOR}.dissect"
_BROKEN_OFF: FailureStatus = "error:budget"
_UNDECIDED: FailureStatus = "error:infrastructure"


def evaluator_name(options: DissectOptions) -> str:
    """Under which name dissections by these options are stored: other options, another name."""
    kind = "literal" if options.paper_literal else "full" if options.full else "each"
    rules = check_key(options.rules or CheckRules())[:8]
    choices = content_hash(repr(options.choices))[:8]
    return (
        f"{_PREFIX}-{kind}-k{options.tries}-o{options.original}-s{options.seed}-{rules}-{choices}"
    )


def plan_dissections(
    store: Store,
    cases: Sequence[Case],
    system: System,
    options: DissectOptions,
    *,
    concurrency: int = 8,
) -> TrialPlan[Case]:
    """The cases whose dissection by these options the store lacks; one that stayed undecided is
    made anew.

    A dissection runs several tries at once: `concurrency` bounds the agents at work, however many
    dissections are under way. Running it raises what `dissect` raises.
    """
    name = evaluator_name(options)
    by_key = {case.sha256: case for case in cases}
    missing = Trials(store).missing(name, list(by_key), system.sha256, 1)
    slots = asyncio.Semaphore(concurrency)

    async def act(case: Case) -> TrialOutcome:
        started = time.time()
        try:
            dissection = await dissect(case, system, options, slots=slots)
        except BudgetExceeded as error:  # no dissection, and made anew
            spent = error.spent if isinstance(error.spent, Usage) else Usage()
            log: Record = AgentFailure(status=_BROKEN_OFF, message=str(error)[:500], usage=spent)
            return TrialOutcome(
                trial(case, log, started, spent, status=_BROKEN_OFF, why=str(error)[:500])
            )
        if dissection.label != "undecided":
            done = trial(case, dissection, started, dissection.usage, status="done")
            return TrialOutcome(
                done.judged(
                    check_key(options.rules or CheckRules()),
                    dissection.label.lower(),
                    results=of_dissection(dissection.label),
                )
            )
        why = _why(dissection)
        failed = trial(case, dissection, started, dissection.usage, status=_UNDECIDED, why=why)
        return TrialOutcome(failed, failure=(_UNDECIDED, why))

    def trial(
        case: Case,
        log: Record,
        started: float,
        usage: Usage,
        *,
        status: Literal["done"] | FailureStatus,
        why: str = "",
    ) -> Trial:
        return Trial(
            evaluator=name,
            system_key=system.sha256,
            case_key=case.sha256,
            trial=0,
            case_id=case.id,
            status=status,
            log=log.model_dump(mode="json"),
            results=() if status == "done" else of_dissection("", status, why),
            started=started,
            ended=time.time(),
            usage=usage,
        )

    return TrialPlan(
        evaluator=name,
        system=stored_system(system),
        cases=[stored_case(by_key[key]) for key, _ in missing],
        units=[by_key[key] for key, _ in missing],
        new=missing,
        act=act,
        noun="dissection",
        lock=EVALUATOR,
        worked=len(missing) < len(by_key),
    )


def load_dissections(
    store: Store, *, cases: Iterable[str] | None = None, systems: Iterable[str] | None = None
) -> dict[str, list[Dissection]]:
    """Stored dissections (of these case and system keys) by the name of their options."""
    tables = Trials(store)
    names = [n for n in tables.evaluators() if n.startswith(_PREFIX)]
    wanted = None if cases is None else list(cases)
    chosen = None if systems is None else list(systems)
    return {
        name: [
            Dissection.model_validate(t.log)
            for t in tables.trials(name, wanted, chosen)
            if t.status != _BROKEN_OFF
        ]
        for name in names
    }


def _why(found: Dissection) -> str:
    messages = Counter(t.message for s in found.stages for t in s.tries if t.message)
    return messages.most_common(1)[0][0] if messages else "no verdict"
