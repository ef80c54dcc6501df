"""Made-up trials for the tests of tables, figures and page; verdicts by the real checker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from agenteval.agents import AgentFailure, AgentLog, ToolEvent
from agenteval.planning.case import Activity, Case, OrderRule, Size, mock_tools
from agenteval.planning.evaluator import Attempt
from agenteval.planning.oracle import CheckRules, check
from agenteval.planning.solver import plans, schedule
from agenteval.planning.synthesis import Generator, Shape
from agenteval.records import Usage

LETTERS = "abcdefghij"


def case(
    identity: str,
    n: int = 2,
    rules: Sequence[str] = ("ab",),
    *,
    valid: int | None = 1,
    topic: str = "Baker",
    words: int | None = None,
) -> Case:
    """n actions a, b, ...; "ab" says a before b, stated in the sub-sentence of its number."""
    size = Size(actions=n, sub_sentences=len(rules), constraints=len(rules), words=words or 8)
    made = Case(
        id=identity,
        topic=topic,
        actions=tuple(Activity(phrase=f"work {x}", tool=x) for x in LETTERS[:n]),
        constraints=tuple(
            OrderRule(first=r[0], second=r[1], sentences=(i,)) for i, r in enumerate(rules)
        ),
        request=f"do {n} things",
        valid_plans=valid,
        size=size,
    )
    return made.model_copy(update={"tools": mock_tools(made)})


def log(calls: Sequence[str], **more: object) -> AgentLog:
    """One call per turn; a name in capitals is a tool that does not exist."""
    events = tuple(
        ToolEvent(name=c, arguments={}, turn=i, status="unknown_tool" if c.isupper() else "ok")
        for i, c in enumerate(calls)
    )
    return AgentLog.model_validate({"events": events, "turns": len(events), **more})


def attempt(
    one: Case, calls: Sequence[str], *, system: str = "s", trial: int = 0, **more: object
) -> Attempt:
    """A trial with its verdict."""
    kept = log(calls, **more)
    return Attempt(one, system, trial, kept, check(one, kept, CheckRules()))


def failure(one: Case, *, system: str = "s", trial: int = 0) -> Attempt:
    """A trial whose endpoint failed."""
    gone = AgentFailure(status="error:infrastructure", message="connection <refused>", seconds=1.0)
    return Attempt(one, system, trial, gone, None)


def campaign(
    sizes: Mapping[int, int],
    skills: Mapping[str, float],
    *,
    seed: int = 1,
    trials: int = 1,
    extended: bool = False,
) -> Iterator[Attempt]:
    """Synthesized cases; a system is right with probability skill^(n - 1), else errs somehow."""
    rng = np.random.default_rng(seed)
    for n, count in sizes.items():
        cases = list(Generator(Shape(actions=(n, n), extended=extended), seed=seed).cases(count))
        for system, skill in skills.items():
            for one in cases:
                for trial in range(trials):
                    yield _trial(one, system, trial, skill ** (n - 1), rng)


def _trial(one: Case, system: str, trial: int, chance: float, rng: np.random.Generator) -> Attempt:
    if rng.random() < 0.01:
        return failure(one, system=system, trial=trial)
    plan: list[tuple[int, int]] = [(int(i), -1) for i in rng.permutation(one.n)]
    if rng.random() < chance:
        plan = _right(one, plan[0][0])
    slip, ending = rng.random(), "finished"
    if slip < 0.03:
        plan = plan[:-1]  # an action is lost
    elif slip < 0.035:
        ending = "timeout"
    events, now = [], 0
    for turn, (i, start) in enumerate(plan):
        tool = one.actions[i].tool
        given = {}
        if one.durations is not None:
            start = max(now - int(rng.random() < 0.05), 0) if start < 0 else start
            given, now = {"start_time": start}, start + one.durations[tool]
        events.append(ToolEvent(name=tool, arguments=given, turn=turn))
    if 0.02 < slip < 0.03:  # and an unknown tool called in its place
        events.append(ToolEvent(name="no_tool", turn=len(events), status="unknown_tool"))
    kept = AgentLog(
        events=tuple(events), output="All done.", ending=ending, turns=len(events),
        seconds=float(rng.gamma(4, 1)),
        usage=Usage(requests=len(events), prompt_tokens=900, completion_tokens=60, cost=0.004),
    )  # fmt: skip
    return Attempt(one, system, trial, kept, check(one, kept, CheckRules()))


def _right(one: Case, number: int) -> list[tuple[int, int]]:
    """One of the first valid plans: actions with start hours (-1 in a base case)."""
    rules = [s.constraint for s in one.stated]
    if one.hours is not None:
        starts = schedule(one.n, rules, one.hours) or ()
        return sorted(enumerate(starts), key=lambda step: step[1])
    valid = list(islice(plans(one.n, rules), 4))
    return [(i, -1) for i in valid[number % len(valid)]]
