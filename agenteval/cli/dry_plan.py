"""What `plan test`, `plan capability` and `plan dissect` would ask with --dry-run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.cli.dry import planned_store
from agenteval.cli.dry_bill import Amount, Asked, Bill

if TYPE_CHECKING:
    from agenteval.agents import System
    from agenteval.api.planning import AgentSetup, Dissect, Test
    from agenteval.evaluators.planning.case import Case
    from agenteval.store import Store

_REPLY = 40  # tokens of a reply with a call
_LONGEST = 4096  # tokens that are reserved for a reply without --max-tokens
_WHY = (
    "a trial is one request at least, usually one for each call and one for the last words, at "
    "most one more than --turns"
)


def test_bill(asked: Test) -> Bill:
    """What `plan test` would ask, from what is stored."""
    from agenteval.evaluators.planning.trials import plan_trials

    setup, cases = asked.setup, [case for suite in asked.suites.values() for case in suite]
    system = setup.system()
    with planned_store(asked.store if isinstance(asked.store, Path) else None) as store:
        plan = plan_trials(
            store, cases, system, asked.trials, setup.rules, retry_failed=asked.retry_failed
        )
        work = plan.units
        trials = _trials(setup, Counter(case.sha256 for case, _ in work), cases)
        about = (*_about(system, cases, len(work)),)
        return _bill("plan test", setup, system, store, about, trials)


def capability_bill(asked: Test) -> Bill:
    """What `plan capability` would ask. It goes on to more actions as long as enough pass: certain
    is the first number of actions that is not stored whole."""
    from agenteval.evaluators.planning.trials import plan_trials

    setup = asked.setup
    system = setup.system()
    reached: list[Case] = []
    certain, possible = 0, 0
    least: Counter[str] = Counter()
    most: Counter[str] = Counter()
    with planned_store(asked.store if isinstance(asked.store, Path) else None) as store:
        for size, suite in asked.suites.items():
            work = plan_trials(store, suite, system, asked.trials, setup.rules).units
            reached += suite
            most.update(case.sha256 for case, _ in work)
            possible += len(work)
            if work and not certain:
                certain = len(work)
                least = Counter(case.sha256 for case, _ in work)
            if not work and not certain and not asked.goes_on(store, size):
                break
        about = (*_about(system, reached, possible), f"trials that are certain: {certain}")
        trials = _trials(setup, most, reached, least)
        return _bill("plan capability", setup, system, store, about, trials)


def dissect_bill(asked: Dissect) -> Bill:
    """What `plan dissect` would ask of the failed cases."""
    from agenteval.api.running import opened

    with opened(asked.store, create=False) as store:
        return _dissect_bill(asked, store, asked.failed(store))


def _dissect_bill(asked: Dissect, store: Store, failed: Sequence[Case]) -> Bill:
    from agenteval.evaluators.planning.dissections import plan_dissections

    setup, how = asked.setup, asked.options
    system = setup.system()
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
    runs = _runs(setup, work, first, most, why)
    return _bill("plan dissect", setup, system, store, about, runs)


def _about(system: System, cases: Sequence[Case], open_: int) -> Iterator[str]:
    yield f"agent: {system.name}"
    yield f"cases: {len(cases)}; trials to run: {open_}"
    sizes = Counter(case.n for case in cases)
    yield "cases by actions: " + ", ".join(f"{n}: {k}" for n, k in sorted(sizes.items()))


def _bill(
    command: str, setup: AgentSetup, system: System, store: Store, about: tuple[str, ...],
    asked: Sequence[Asked],
) -> Bill:  # fmt: skip
    setup.limits.budget()  # a cap without a price is told
    adapter = system.parameters.get("adapter")
    notes: tuple[str, ...] = ()
    if adapter == "scripted":
        asked, notes = (), ("the agent is a script: it asks nobody",)
    elif adapter in ("python", "command", "mcp"):
        asked, notes = (), ("the agent spends whatever it spends itself; none is counted here",)
    return Bill(command, about, tuple(asked), setup.limits, setup.spent(store), notes)


def _trials(
    setup: AgentSetup, most: Mapping[str, int], cases: Sequence[Case],
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
        high += _longest(setup) * number
        largest = max(largest, (3 * (_first(case) + 30 * case.n), setup.max_tokens or _LONGEST))
    return (Asked("agent", low, high, _WHY, likely=usual, largest=largest),)


def _runs(
    setup: AgentSetup, cases: Sequence[Case], least: int, most: int, why: str
) -> tuple[Asked, ...]:
    low = sum((Amount(1, _first(case), None) * least for case in cases), Amount())
    usual = sum((Amount(c.n + 1, _tokens(c), (c.n + 1) * _REPLY) * least for c in cases), Amount())
    high = _longest(setup) * (most * len(cases))
    largest = max((3 * (_first(c) + 30 * c.n) for c in cases), default=0)
    return (Asked("agent", low, high, why, usual, (largest, setup.max_tokens or _LONGEST)),)


def _longest(setup: AgentSetup) -> Amount:
    """A trial at most: with the request whose calls are beyond the turns."""
    requests = setup.turns + 1
    reply = None if setup.max_tokens is None else requests * setup.max_tokens
    return Amount(requests, None, reply)


def _first(case: Case) -> int:
    """Prompt tokens of the first request: the request and the tools, three bytes a token."""
    size = len(case.request.encode()) + sum(len(t.model_dump_json()) for t in case.tools)
    return size // 3


def _tokens(case: Case) -> int:
    """Prompt tokens of a usual trial: request and tools in every turn, and what was said."""
    return (case.n + 1) * (_first(case) + 30 * case.n)
