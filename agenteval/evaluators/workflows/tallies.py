"""What a campaign says of assistants at workflows: rates by system, group and format.

A trial that ended in a failure is in no rate and counted beside it; so is one that nobody can
decide. Repeated trials of a task are not independent: tasks are the units of every interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from agenteval.agents import AgentFailure
from agenteval.evaluators.workflows.conformance import CAUSES
from agenteval.evaluators.workflows.rates import Rates, Resampling
from agenteval.evaluators.workflows.results import (
    CaseInfo,
    SessionResult,
    SessionVerdict,
    TurnResult,
)
from agenteval.evaluators.workflows.session import SessionFailure, SessionLog
from agenteval.evaluators.workflows.session_judge import GoalsVerdict, agreement
from agenteval.evaluators.workflows.session_score import session_table
from agenteval.evaluators.workflows.turn_score import (
    TurnFailure,
    TurnTable,
    TurnVerdict,
    turn_table,
)
from agenteval.records import Usage
from agenteval.stats import (
    Interval,
    Kappa,
    adjust,
    bootstrap_mean,
    mean_interval,
    pass_hat_k,
    proportion_interval,
    sign_flip_test,
)
from agenteval.stats.bounded import bounded_interval

ALL = "all"
_MOST_K = 8
Group = Callable[[CaseInfo], str]
Result = TypeVar("Result", SessionResult, TurnResult)
GROUPS: dict[str, Group] = {
    "domain": lambda case: case.domain,
    "role": lambda case: case.role,
    "scenario": lambda case: f"{case.role}/{'+'.join(case.scenarios)}",
    "task": lambda case: "cross" if case.cross else "single",
}


@dataclass(frozen=True, slots=True)
class SessionTally:
    """The sessions of one system in one group.

    `success`, `progress`, `conforms` and `fitness` are over trials with a verdict that says it;
    `undecided` are verdicts without success, `failures` trials without a session, by status, those
    for a simulator apart in `simulators`; `pending` are sessions that are not judged yet, `judges`
    what judges failed to say, by status. `mistakes` counts what simulators did wrong on the way.
    `turns`, `calls` are means per session; `usage` is the agent's, `simulated` the simulators',
    `judging` that of judges.
    `agreement` is that of judge and final state, where both said something.
    """

    system: str
    group: str
    tasks: int
    success: Interval
    progress: Interval
    tool: Rates
    sequence: Interval
    conforms: Interval
    fitness: Interval
    turns: Interval
    calls: Interval
    undecided: int
    failures: Counter[str]
    pending: int
    judges: Counter[str]
    simulators: int
    mistakes: Counter[str]
    unjudged: int
    usage: Usage
    simulated: Usage
    judging: Usage
    powers: tuple[PassPower, ...]
    agreement: Kappa | None


@dataclass(frozen=True, slots=True)
class CauseShare:
    """Why sessions of a system failed: the first deviation's cause, over failed sessions."""

    system: str
    failed: int
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class FormatPair:
    """Two formats under one agent, on the tasks that both have a verdict on.

    `difference` is the mean over tasks of first less second, of the share of successes (sessions)
    or right calls (turns); `p` of a sign-flip test over tasks, `corrected` over all pairs shown.
    `left_out` are tasks with a verdict in one only.
    """

    agent: str
    first: str
    second: str
    tasks: int
    left_out: int
    difference: Interval
    p: float | None
    corrected: float | None
    reason: str | None


def by_system(results: Iterable[SessionResult]) -> dict[str, list[SessionResult]]:
    """Results of each system, in the order in which they come."""
    found: dict[str, list[SessionResult]] = {}
    for result in results:
        found.setdefault(result.system, []).append(result)
    return found


def groups_of(
    results: Iterable[Result], group: Group | None = None
) -> list[tuple[str, str, list[Result]]]:
    """(system, group, its results in their order), systems as they come, groups by name."""
    chosen: Group = group or (lambda case: ALL)
    systems: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        own = systems.setdefault(result.system, {})
        own.setdefault(chosen(result.case), []).append(result)
    return [(system, name, own[name]) for system, own in systems.items() for name in sorted(own)]


def session_tallies(
    results: Iterable[SessionResult], group: Group | None = None
) -> list[SessionTally]:
    """One tally for each system, or for each system and group, groups by name."""
    return [session_tally(*found) for found in groups_of(results, group)]


def session_tally(system: str, group: str, own: Sequence[SessionResult]) -> SessionTally:
    """The tally of these sessions, all of one system."""
    judged = [(r, r.verdict) for r in own if r.verdict is not None]
    logs = [(r.case.task, r.log) for r in own if isinstance(r.log, SessionLog)]
    lost = [r.log for r in own if isinstance(r.log, SessionFailure)]
    seen = [log for _, log in logs] + [f.log for f in lost if f.log is not None]
    attempts: dict[str, list[bool | None]] = {}
    for r in own:
        attempts.setdefault(r.case.task, []).append(r.verdict.success if r.verdict else None)
    return SessionTally(
        system=system,
        group=group,
        tasks=len(attempts),
        success=success_rate(own),
        progress=_mean([(r.case.task, v.progress) for r, v in judged]),
        tool=session_table([v for _, v in judged], [r.case.task for r, _ in judged]).tool,
        sequence=_mean([(r.case.task, v.sequence) for r, v in judged]),
        conforms=share(
            [(r.case.task, float(v.conforms)) for r, v in judged if v.conforms is not None]
        ),
        fitness=_mean([(r.case.task, v.fitness) for r, v in judged]),
        turns=_mean([(task, float(log.turns)) for task, log in logs], bounds=None),
        calls=_mean([(task, float(len(log.calls))) for task, log in logs], bounds=None),
        undecided=sum(v.success is None for _, v in judged),
        failures=Counter(f.status for f in lost),
        pending=sum(r.verdict is None for r in own) - len(lost),
        judges=Counter(status for _, v in judged for status in v.failures),
        simulators=sum(f.who != "agent" for f in lost),
        mistakes=Counter(f"{m.who}: {m.kind}" for log in seen for m in log.mistakes),
        unjudged=sum(v.unjudged for _, v in judged),
        usage=sum((r.log.usage for r in own), Usage()),
        simulated=sum((r.log.simulator_usage for r in own), Usage()),
        judging=sum((v.usage for _, v in judged), Usage()),
        powers=pass_powers(attempts, _MOST_K),
        agreement=_agreement(own),
    )


def success_rate(own: Sequence[SessionResult]) -> Interval:
    """Share of successes of the sessions with a word on it; see `share`."""
    return share([
        (r.case.task, float(r.verdict.success))
        for r in own
        if r.verdict is not None and r.verdict.success is not None
    ])  # fmt: skip


def share(values: Sequence[tuple[Hashable, float]]) -> Interval:
    """Share of yes over (task, 0 or 1): Wilson's interval where no task comes twice, else the mean
    over tasks of each one's share."""
    tasks: dict[Hashable, list[float]] = {}
    for task, value in values:
        tasks.setdefault(task, []).append(value)
    if len(tasks) == len(values):
        found = proportion_interval(int(sum(v for _, v in values)), len(values))
    else:
        found = bounded_interval(np.array([np.mean(v) for v in tasks.values()]), (0.0, 1.0))
    return replace(found, n=len(values), n_clusters=len(tasks))


def _mean(
    values: Sequence[tuple[Hashable, float | None]],
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Interval:
    known = [(task, v) for task, v in values if v is not None]
    return mean_interval([v for _, v in known], [task for task, _ in known], bounds=bounds)


def _agreement(own: Sequence[SessionResult]) -> Kappa | None:
    """Judge against final state, without the limits, which both pass by."""
    pairs = [
        (r.case.task, r.verdict.judge.success, r.verdict.state_success)
        for r in own
        if r.verdict is not None
        and isinstance(r.verdict.judge, GoalsVerdict)
        and None not in (r.verdict.judge.success, r.verdict.state_success)
    ]
    if not pairs:
        return None
    tasks, judge, state = zip(*pairs, strict=True)
    return agreement(judge, state, list(tasks))


def causes(results: Iterable[SessionResult]) -> list[CauseShare]:
    """Failed sessions of each system by cause; a system without any is left out."""
    found = []
    for system, own in by_system(results).items():
        failed = [r.verdict for r in own if r.verdict is not None and r.verdict.success is False]
        counts: Counter[str] = Counter(v.cause or "other" for v in failed)
        if failed:
            ordered = {name: counts[name] for name in (*CAUSES, "other")}
            found.append(CauseShare(system, len(failed), ordered))
    return found


def turn_tallies(
    results: Iterable[TurnResult], group: Group | None = None
) -> list[tuple[str, str, TurnTable]]:
    """(system, group, table) for each system and group, groups by name."""
    return [(system, name, turn_tally(own)) for system, name, own in groups_of(results, group)]


def turn_tally(own: Sequence[TurnResult]) -> TurnTable:
    """The table of these turns; grades are in it where any of them was graded."""
    verdicts = [v for r in own if (v := _turn(r)) is not None]
    graded = any(r.grade is not None for r in own)
    grades = [r.grade for r in own if _turn(r) is not None] if graded else None
    return turn_table(verdicts, grades)


def _turn(result: TurnResult) -> TurnVerdict | TurnFailure | None:
    if isinstance(result.prediction, AgentFailure):
        return TurnFailure(
            session=result.case.task,
            turn=int(result.case.id.rpartition(":")[2]),
            status=result.prediction.status,
            message=result.prediction.message,
        )
    return result.verdict


def format_pairs(results: Iterable[SessionResult] | Iterable[TurnResult]) -> list[FormatPair]:
    """Every two formats of one agent that share tasks, corrected over all of them (Holm)."""
    shares: dict[str, dict[str, dict[str, list[float]]]] = {}
    for r in results:
        value = _worth(r)
        if value is not None:
            formats = shares.setdefault(r.agent, {})
            formats.setdefault(r.format, {}).setdefault(r.case.task, []).append(value)
    found = []
    for agent, formats in shares.items():
        names = list(formats)
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                pair = _pair(agent, (first, second), (formats[first], formats[second]))
                found += [pair] if pair else []
    adjusted = adjust([p.p for p in found]).adjusted
    return [
        FormatPair(p.agent, p.first, p.second, p.tasks, p.left_out, p.difference, p.p, q, p.reason)
        for p, q in zip(found, adjusted, strict=True)
    ]


def _worth(result: SessionResult | TurnResult) -> float | None:
    """1 or 0 for a session that succeeded or a due call that is right; None: not decided."""
    verdict = result.verdict
    if isinstance(verdict, SessionVerdict):
        return None if verdict.success is None else float(verdict.success)
    if verdict is None or not verdict.gold_call or verdict.call == "undecided":
        return None
    return float(verdict.call == "right")


def _pair(
    agent: str,
    names: tuple[str, str],
    values: tuple[dict[str, list[float]], dict[str, list[float]]],
) -> FormatPair | None:
    first, second = values
    common = [task for task in first if task in second]
    if not common:
        return None
    apart = np.array([np.mean(first[t]) - np.mean(second[t]) for t in common])
    test = sign_flip_test(apart, rng=np.random.default_rng(0))
    left_out = len(set(first) ^ set(second))
    spread = bounded_interval(apart, (-1.0, 1.0))
    return FormatPair(agent, *names, len(common), left_out, spread, test.p, None, test.reason)


@dataclass(frozen=True)
class PassPower:
    """pass^k with its interval over cases.

    `few` counts cases with fewer than k attempts that have a verdict: they are left out, as
    neither 0 nor 1. `unknown` counts attempts without a verdict, in all cases.
    """

    k: int
    rate: Interval
    few: int
    unknown: int


def pass_power(
    attempts: Mapping[str, Sequence[bool | None]], k: int, how: Resampling | None = None
) -> PassPower:
    """Mean over cases of C(c, k) / C(n, k), the interval by resampling cases.

    `attempts` by case: True or False, None where a failure left no verdict. c of n attempts with a
    verdict succeeded (Yao et al., tau-bench, arXiv 2406.12045, section 4). The mean is None where
    no case has k attempts with a verdict. Raises ValueError for k < 1.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    values: list[float] = []
    few = unknown = 0
    for tries in attempts.values():
        known = [one for one in tries if one is not None]
        unknown += len(tries) - len(known)
        value = pass_hat_k(sum(known), len(known), k)
        if value is None:
            few += 1
        else:
            values.append(value)
    return PassPower(k, bootstrap_mean(values, how=(how or Resampling()).bootstrap()), few, unknown)


def pass_powers(
    attempts: Mapping[str, Sequence[bool | None]], most: int, how: Resampling | None = None
) -> tuple[PassPower, ...]:
    """pass^1 to pass^most, as far as some case has that many attempts with a verdict."""
    counts = [sum(one is not None for one in tries) for tries in attempts.values()]
    longest = min(most, max(counts, default=0))
    return tuple(pass_power(attempts, k, how) for k in range(1, longest + 1))
