"""Made-up trials for the tests of rates, figures and page; verdicts by the real checker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from agenteval.agents import AgentFailure, AgentLog, ToolEvent
from agenteval.planning.case import Activity, Case, OrderRule, Size, mock_tools
from agenteval.planning.evaluator import Attempt
from agenteval.planning.oracle import check
from agenteval.planning.scripted import perfect
from agenteval.planning.synthesis import Dice, Generator, Shape

LETTERS = "abcdefghij"


def case(
    identity: str,
    n: int = 2,
    rules: Sequence[str] = ("ab",),
    *,
    valid: int | None = 1,
    topic: str = "Baker",
    words: int = 8,
) -> Case:
    """n actions a, b, ...; "ab" says a before b, stated in the sub-sentence of its number."""
    made = Case(
        id=identity,
        topic=topic,
        actions=tuple(Activity(phrase=f"work {x}", tool=x) for x in LETTERS[:n]),
        constraints=tuple(
            OrderRule(first=r[0], second=r[1], sentences=(i,)) for i, r in enumerate(rules)
        ),
        request=f"do {n} things",
        valid_plans=valid,
        size=Size(actions=n, sub_sentences=len(rules), constraints=len(rules), words=words),
    )
    return made.model_copy(update={"tools": mock_tools(made)})


def attempt(
    tested: Case, calls: Sequence[str], *, system: str = "s", trial: int = 0, **log: object
) -> Attempt:
    """A trial with its verdict: one call per turn; a name in capitals is an unknown tool."""
    events = tuple(
        ToolEvent(name=c, arguments={}, turn=i, status="unknown_tool" if c.isupper() else "ok")
        for i, c in enumerate(calls)
    )
    done = AgentLog.model_validate({"events": events, "turns": len(events), **log})
    return Attempt(tested, system, trial, done, check(tested, done))


def failure(tested: Case, *, system: str = "s", trial: int = 0) -> Attempt:
    """A trial whose endpoint failed."""
    gone = AgentFailure(status="error:infrastructure", message="connection <refused>", seconds=1.0)
    return Attempt(tested, system, trial, gone, None)


def campaign(sizes: Mapping[int, int], skills: Mapping[str, float]) -> Iterator[Attempt]:
    """Generated cases; a system is right with probability skill^(n - 1), else in random order."""
    rng = np.random.default_rng(1)
    for n, count in sizes.items():
        cases = list(Generator(Shape(actions=(n, n)), seed=1).cases(count))
        for system, skill in skills.items():
            for tested in cases:
                steps = [step.tool for step in perfect(tested, Dice(rng))]
                if rng.random() >= skill ** (n - 1):
                    rng.shuffle(steps)
                yield attempt(tested, steps, system=system, output="All done.")
