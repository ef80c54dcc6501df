"""The smallest failing request that can be reached from a failing one (delta debugging).

Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE TSE 28 (2002),
on the tree of the request. A step makes it smaller or plainer (see `simplify`), and is kept if the
agent still fails: first whole sub-sentences go, then relative clauses and list members, then clause
forms become "A precedes B", then words become the first of their list. Actions that are not
mentioned any more go with their tools. Every step leaves a subset of the demands, or the same ones
in another form, so that what was satisfiable (and feasible with the durations) stays so.

The result is 1-minimal: no single step from it still fails. As with all delta debugging, the
smallest request may fail for another reason than the first one did.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal

from agenteval.agents import AgentLimits, System
from agenteval.errors import InputError
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.dsl.fill import relabel
from agenteval.evaluators.planning.dsl.lexicon import Lexicon
from agenteval.evaluators.planning.dsl.nodes import Paragraph
from agenteval.evaluators.planning.run import run_case
from agenteval.evaluators.planning.simplify import mentioned, simpler
from agenteval.evaluators.planning.substitute import Base, base_of, rebuilt
from agenteval.evaluators.planning.verdict import CheckRules
from agenteval.records import Record

Ended = Literal["minimal", "budget", "unknown", "not failing"]


@dataclass(frozen=True)
class ShrinkOptions:
    """`tries`: runs that must all fail for a request to count as failing. `budget`: runs in all."""

    tries: int = 2
    budget: int = 300
    lexicon: Lexicon | None = None
    limits: AgentLimits | None = None
    rules: CheckRules | None = None

    def __post_init__(self) -> None:
        if self.tries < 1 or self.budget < self.tries:
            raise InputError("shrinking needs at least 1 try, and a budget of as many runs")


class ShrinkStep(Record):
    """A step that was kept, and the sentences after it."""

    change: str
    text: str


class Shrunk(Record):
    """The smallest failing case found.

    `ended`: "minimal" (no step from it fails), "budget" (the runs were used up before that was
    known), "unknown" (as minimal, but `unknown` requests had no verdict and were not taken), or
    "not failing" (the case did not fail in all tries, or had no verdict: nothing was shrunk).
    `requests` counts different requests that were tried, `runs` all runs of the agent.
    """

    original: str
    case: Case
    steps: tuple[ShrinkStep, ...]
    ended: Ended
    tries: int
    requests: int
    unknown: int
    runs: int


async def shrink(
    case: Case,
    system: System,
    options: ShrinkOptions | None = None,
    *,
    slots: asyncio.Semaphore | None = None,
) -> Shrunk:
    """Shrink a case that the system fails; one run at a time, each in one of the `slots`.

    A request without a verdict (the endpoint failed) is not taken, since nothing is known of it.
    Raises InputError for a case whose text cannot be read (see `base_of`), and what `run_case`
    raises: Unauthorized, BudgetExceeded, ModelUnavailable.
    """
    options = options or ShrinkOptions()
    base = base_of(case, options.lexicon)
    trial = _Trial(system, options, slots)
    steps: list[ShrinkStep] = []
    found, tree = case, base.tree
    ended: Ended = "minimal"
    if await trial.fails(case) is not True:
        ended = "not failing"
    else:
        if len(mentioned(tree)) < case.n and await trial.fails(bare := _case_of(base, tree)):
            steps.append(ShrinkStep(change="actions never mentioned removed", text=bare.text))
            found = bare
        async for change, candidate, smaller in _descend(base, trial):
            steps.append(ShrinkStep(change=change, text=candidate.text))
            found, tree = candidate, smaller
        if trial.exhausted:
            ended = "budget"
        elif any(trial.known.get(c.sha256, False) is None for _, c, _ in _candidates(base, tree)):
            ended = "unknown"
    return Shrunk(
        original=case.id,
        case=found,
        steps=tuple(steps),
        ended=ended,
        tries=options.tries,
        requests=len(trial.known),
        unknown=sum(1 for fails in trial.known.values() if fails is None),
        runs=trial.runs,
    )


class _Trial:
    """Runs requests and remembers which fail."""

    def __init__(
        self, system: System, options: ShrinkOptions, slots: asyncio.Semaphore | None
    ) -> None:
        self.system, self.options = system, options
        self.slots = slots or nullcontext()
        self.known: dict[str, bool | None] = {}
        self.runs = 0
        self.exhausted = False

    async def fails(self, case: Case) -> bool | None:
        """Do all tries fail? None where a try has no verdict, or the budget does not suffice."""
        if case.sha256 in self.known:
            return self.known[case.sha256]
        if self.runs + self.options.tries > self.options.budget:
            self.exhausted = True
            return None
        verdict: bool | None = True
        for _ in range(self.options.tries):
            verdict = await self._once(case)
            if verdict is not True:
                break
        self.known[case.sha256] = verdict
        return verdict

    async def _once(self, case: Case) -> bool | None:
        self.runs += 1
        async with self.slots:
            _, verdict = await run_case(
                case, self.system.make(), self.options.limits, self.options.rules, explain=False
            )
        return None if verdict is None else not verdict.passed


async def _descend(base: Base, trial: _Trial) -> AsyncIterator[tuple[str, Case, Paragraph]]:
    """The steps that were kept, each with the case and the tree after it."""
    tree = base.tree
    while True:
        for change, candidate, smaller in _candidates(base, tree):
            if await trial.fails(candidate):
                yield change, candidate, smaller
                tree = smaller
                break
            if trial.exhausted:
                return
        else:
            return


def _candidates(base: Base, tree: Paragraph) -> Iterator[tuple[str, Case, Paragraph]]:
    """Everything one step away, the largest steps first; trees keep the original's numbers."""
    for change, smaller in simpler(tree, base.lexicon):
        yield change, _case_of(base, smaller), smaller


def _case_of(base: Base, tree: Paragraph) -> Case:
    """The case of the actions that the tree mentions."""
    kept = sorted(mentioned(tree))
    mapping = [kept.index(i) if i in kept else 0 for i in range(base.case.n)]
    hours = base.case.hours
    return rebuilt(
        base,
        "shrunk",
        relabel(tree, mapping),
        [base.case.actions[i] for i in kept],
        durations=None if hours is None else [hours[i] for i in kept],
    )
