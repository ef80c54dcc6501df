"""What `plan test`, `plan capability` and `plan dissect` would ask with --dry-run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from agenteval.cli import plan_job
from agenteval.cli.dry import planned_store
from agenteval.cli.dry_bill import Amount, Asked, Bill

if TYPE_CHECKING:
    from agenteval.agents import System
    from agenteval.cli.plan_job import PlanJob
    from agenteval.evaluators.planning.case import Case
    from agenteval.evaluators.planning.dissect import DissectOptions
    from agenteval.store import Store

_REPLY = 40  # tokens of a reply with a call
_LONGEST = 4096  # tokens that are reserved for a reply without --max-tokens
_WHY = (
    "a trial is one request at least, usually one for each call and one for the last words, at "
    "most one more than --turns"
)


def test_bill(job: PlanJob, cases: Sequence[Case]) -> Bill:
    """What `plan test` would ask, from what is stored."""
    from agenteval.evaluators.planning.trials import plan_trials

    system = plan_job.make_system(job)
    with planned_store(job.store) as store:
        work = plan_trials(
            store, cases, system, job.trials, job.rules, retry_failed=job.retry_failed
        ).units
        asked = _trials(job, system, Counter(case.sha256 for case, _ in work), cases)
        return _bill("plan test", job, system, store, (*_about(system, cases, len(work)),), asked)


def capability_bill(job: PlanJob, suites: Mapping[int, Sequence[Case]], threshold: float) -> Bill:
    """What `plan capability` would ask. It goes on to more actions as long as enough pass: certain
    is the first number of actions that is not stored whole."""
    from agenteval.evaluators.planning.trials import plan_trials

    system = plan_job.make_system(job)
    reached: list[Case] = []
    certain, possible = 0, 0
    least: Counter[str] = Counter()
    most: Counter[str] = Counter()
    with planned_store(job.store) as store:
        for suite in suites.values():
            work = plan_trials(store, suite, system, job.trials, job.rules).units
            reached += suite
            most.update(case.sha256 for case, _ in work)
            possible += len(work)
            if work and not certain:
                certain = len(work)
                least = Counter(case.sha256 for case, _ in work)
            if not work and not certain and not _goes_on(job, store, suite, threshold):
                break
        about = (*_about(system, reached, possible), f"trials that are certain: {certain}")
        asked = _trials(job, system, most, reached, least)
        return _bill("plan capability", job, system, store, about, asked)


def _goes_on(job: PlanJob, store: Store, suite: Sequence[Case], threshold: float) -> bool:
    """Whether the stored trials of a number of actions lead to the next."""
    from agenteval.evaluators.planning.capability import goes_on
    from agenteval.evaluators.planning.trials import load_attempts

    key = plan_job.make_system(job).sha256
    found = load_attempts(
        store, job.rules.check, cases=[case.sha256 for case in suite], systems=[key]
    )
    judged = [a.verdict for a in found if a.trial < job.trials and a.verdict is not None]
    return bool(judged) and goes_on(sum(v.passed for v in judged) / len(judged), threshold)


def dissect_bill(job: PlanJob, store: Store, failed: Sequence[Case], how: DissectOptions) -> Bill:
    """What `plan dissect` would ask of these failed cases."""
    from agenteval.evaluators.planning.dissections import plan_dissections

    system = plan_job.make_system(job)
    work = plan_dissections(store, failed, system, how).units
    last = 1 if how.paper_literal else how.tries
    every = how.original + 2 * how.tries + last
    first = every if how.full else 1 if how.paper_literal else how.original
    most = every * (1 + how.retries)
    about: tuple[str, ...] = (
        f"agent: {system.name}",
        f"failed cases: {len(failed)}, of them to dissect: {len(work)}",
        f"runs of the agent for each: at least {first}, at most {most}",
    )
    why = (
        f"{first} runs of each case at least; at most {every}, where no stage before the last "
        f"succeeds, each with up to {how.retries} more without a verdict; a run is up to one "
        "request more than --turns"
    )
    asked = _runs(job, work, first, most, why)
    return _bill("plan dissect", job, system, store, about, asked)


def _about(system: System, cases: Sequence[Case], open_: int) -> Iterator[str]:
    yield f"agent: {system.name}"
    yield f"cases: {len(cases)}; trials to run: {open_}"
    sizes = Counter(case.n for case in cases)
    yield "cases by actions: " + ", ".join(f"{n}: {k}" for n, k in sorted(sizes.items()))


def _bill(
    command: str, job: PlanJob, system: System, store: Store, about: tuple[str, ...],
    asked: Sequence[Asked],
) -> Bill:  # fmt: skip
    job.limits.budget()  # a cap without a price is told
    adapter = system.parameters.get("adapter")
    notes: tuple[str, ...] = ()
    if adapter == "scripted":
        asked, notes = (), ("the agent is a script: it asks nobody",)
    elif adapter in ("python", "command", "mcp"):
        asked, notes = (), ("the agent spends whatever it spends itself; none is counted here",)
    spent = plan_job.spent(store, system.sha256)
    return Bill(command, about, tuple(asked), job.limits, spent, notes)


def _trials(
    job: PlanJob, system: System, most: Mapping[str, int], cases: Sequence[Case],
    least: Mapping[str, int] | None = None,
) -> tuple[Asked, ...]:  # fmt: skip
    """Trials by the key of their case: all that there may be, and those that are certain."""
    certain = most if least is None else least
    by_key = {case.sha256: case for case in cases}
    low, usual, high, largest = Amount(), Amount(), Amount(), (0, 0)
    for key, number in most.items():
        case = by_key[key]
        low += Amount(1, _first(case), None) * certain.get(key, 0)
        requests = case.n + 1
        usual += Amount(requests, _tokens(case), requests * _REPLY) * number
        high += _longest(job) * number
        largest = max(largest, (3 * (_first(case) + 30 * case.n), job.max_tokens or _LONGEST))
    return (Asked("agent", low, high, _WHY, likely=usual, largest=largest),)


def _runs(
    job: PlanJob, cases: Sequence[Case], least: int, most: int, why: str
) -> tuple[Asked, ...]:
    low = sum((Amount(1, _first(case), None) * least for case in cases), Amount())
    usual = sum((Amount(c.n + 1, _tokens(c), (c.n + 1) * _REPLY) * least for c in cases), Amount())
    high = _longest(job) * (most * len(cases))
    largest = max((3 * (_first(c) + 30 * c.n) for c in cases), default=0)
    return (Asked("agent", low, high, why, usual, (largest, job.max_tokens or _LONGEST)),)


def _longest(job: PlanJob) -> Amount:
    """A trial at most: with the request whose calls are beyond the turns."""
    requests = job.rules.limits.turns + 1
    return Amount(requests, None, None if job.max_tokens is None else requests * job.max_tokens)


def _first(case: Case) -> int:
    """Prompt tokens of the first request: the request and the tools, three bytes a token."""
    size = len(case.request.encode()) + sum(len(t.model_dump_json()) for t in case.tools)
    return size // 3


def _tokens(case: Case) -> int:
    """Prompt tokens of a usual trial: request and tools in every turn, and what was said."""
    return (case.n + 1) * (_first(case) + 30 * case.n)
