"""What a campaign says of assistants at workflows: rates by system, group and format.

A trial that ended in a failure is in no rate and counted beside it; so is one that nobody can
decide. Repeated trials of a task are not independent: tasks are the units of every interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from agenteval.agents import AgentFailure
from agenteval.agents.protocol import CallStatus
from agenteval.analysis.system_pairs import Pair, by_system, holm, pairs
from agenteval.records import Usage
from agenteval.stats import (
    Interval,
    Kappa,
    PassK,
    cohen_kappa,
    mean_interval,
    proportion_interval,
    sign_flip_test,
)
from agenteval.stats.bounded import bounded_interval
from agenteval.stats.vectors import Floats
from agenteval.workflows.conformance import CAUSES
from agenteval.workflows.rates import MatchCounts, Rates, pass_powers, rates
from agenteval.workflows.results import (
    CaseInfo,
    SessionResult,
    SessionVerdict,
    TurnResult,
)
from agenteval.workflows.session import SessionEnd, SessionFailure, SessionLog
from agenteval.workflows.session_judge import GoalsVerdict
from agenteval.workflows.turn_score import (
    TurnFailure,
    TurnTable,
    TurnVerdict,
    turn_table,
)

ALL = "all"
_MOST_K = 8
Group = Callable[[CaseInfo], str]
Result = TypeVar("Result", SessionResult, TurnResult)
_V = TypeVar("_V")
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
    `bounds` is success with all sessions without a verdict failed, and succeeded. Sessions that a
    simulator spoiled are in no rate of calls. `undecided` are verdicts without success, `failures`
    trials without a session, by status, those for a simulator apart in `simulators`; `pending` are
    sessions that are not judged yet. Of sessions with a log, `ended` counts how they
    ended and `statuses` what became of their calls. `turns`, `calls` are means per session; `usage`
    is the agent's, `simulated` the simulators', `judging` that of judges.
    `agreement` is that of judge and final state, where both said something.
    """

    system: str
    group: str
    tasks: int
    success: Interval
    bounds: tuple[float, float]
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
    simulators: int
    ended: Counter[SessionEnd]
    statuses: Counter[CallStatus]
    unjudged: int
    usage: Usage
    simulated: Usage
    judging: Usage
    powers: tuple[PassK, ...]
    agreement: Kappa | None

    @property
    def without_verdict(self) -> int:
        """Sessions in no rate of successes."""
        return self.failures.total() + self.undecided + self.pending

    @property
    def success_low(self) -> float | None:
        """Success with all sessions without a verdict failed; None where there is none."""
        return self.bounds[0] if self.without_verdict else None

    @property
    def success_high(self) -> float | None:
        """Success with all sessions without a verdict succeeded; None where there is none."""
        return self.bounds[1] if self.without_verdict else None

    @property
    def cut_short(self) -> int:
        """Sessions that ended otherwise than by the user's goodbye."""
        return self.ended.total() - self.ended["user"]

    @property
    def refused(self) -> int:
        """Calls that could not be carried out."""
        return self.statuses.total() - self.statuses["ok"]


@dataclass(frozen=True, slots=True)
class CauseShare:
    """Why sessions of a system failed: the first deviation's cause, over failed sessions."""

    system: str
    failed: int
    counts: dict[str, int]


def groups_of(
    results: Iterable[Result], group: Group | None = None
) -> list[tuple[str, str, list[Result]]]:
    """(system, group, its results in their order), systems as they come, groups by name."""
    grouped = []
    for system, results_of in by_system(results).items():
        groups: dict[str, list[Result]] = {}
        for result in results_of:
            groups.setdefault(group(result.case) if group else ALL, []).append(result)
        grouped += [(system, name, groups[name]) for name in sorted(groups)]
    return grouped


def session_tally(results: Sequence[SessionResult], group: str = ALL) -> SessionTally:
    """Return the tally of these sessions, all of one system."""
    judged = [(r.case.task, r.verdict) for r in results if r.verdict is not None]
    logs = [(r.case.task, r.log) for r in results if isinstance(r.log, SessionLog)]
    lost = [r.log for r in results if isinstance(r.log, SessionFailure)]
    fair = [(task, v) for task, v in judged if v.decided_by != "simulator"]
    outcomes = [(r.case.task, r.verdict.success if r.verdict else None) for r in results]
    decided = [(task, float(success)) for task, success in outcomes if success is not None]
    # (successes, sessions with a verdict, sessions) of each task
    tasks = {
        task: (outcome.count(True), len(outcome) - outcome.count(None), len(outcome))
        for task, outcome in _by_task(outcomes).items()
    }
    low = float(np.mean([yes / n for yes, _, n in tasks.values()]))
    high = float(np.mean([(yes + n - decided_n) / n for yes, decided_n, n in tasks.values()]))
    counts = [MatchCounts(v.right, v.unjudged, v.generated, v.gold) for _, v in fair]
    return SessionTally(
        system=results[0].system,
        group=group,
        tasks=len(tasks),
        success=share(decided),
        bounds=(low, high),
        progress=_mean([(task, v.progress) for task, v in judged]),
        tool=rates(counts, [task for task, _ in fair]),
        sequence=_mean([(task, v.sequence) for task, v in fair]),
        conforms=share([(task, float(v.conforms)) for task, v in fair if v.conforms is not None]),
        fitness=_mean([(task, v.fitness) for task, v in fair]),
        turns=_mean([(task, float(log.turns)) for task, log in logs], bounds=None),
        calls=_mean([(task, float(len(log.calls))) for task, log in logs], bounds=None),
        undecided=sum(v.success is None for _, v in judged),
        failures=Counter(f.status for f in lost),
        pending=sum(r.verdict is None for r in results) - len(lost),
        simulators=sum(f.who != "agent" for f in lost),
        ended=Counter(log.ended for _, log in logs),
        statuses=Counter(call.status for _, log in logs for call in log.calls),
        unjudged=sum(v.unjudged for _, v in judged),
        usage=sum((r.log.usage for r in results), Usage()),
        simulated=sum((r.log.simulator_usage for r in results), Usage()),
        judging=sum((v.usage for _, v in judged), Usage()),
        powers=pass_powers([(yes, decided_n) for yes, decided_n, _ in tasks.values()], _MOST_K),
        agreement=_agreement(judged),
    )


def _by_task(values: Iterable[tuple[str, _V]]) -> dict[str, list[_V]]:
    tasks: dict[str, list[_V]] = {}
    for task, value in values:
        tasks.setdefault(task, []).append(value)
    return tasks


def share(values: Sequence[tuple[str, float]]) -> Interval:
    """Return the share of yes over (task, 0 or 1): Wilson's interval where no task comes twice,
    else the mean over tasks of each one's share."""
    tasks = _by_task(values)
    if len(tasks) == len(values):
        interval = proportion_interval(int(sum(v for _, v in values)), len(values))
    else:
        interval = bounded_interval(np.array([np.mean(v) for v in tasks.values()]), (0.0, 1.0))
    return replace(interval, n=len(values), n_clusters=len(tasks))


def _mean(
    values: Sequence[tuple[str, float | None]], bounds: tuple[float, float] | None = (0.0, 1.0)
) -> Interval:
    present = [(task, v) for task, v in values if v is not None]
    return mean_interval([v for _, v in present], [task for task, _ in present], bounds=bounds)


def _agreement(judged: Sequence[tuple[str, SessionVerdict]]) -> Kappa | None:
    """Return how judge and final state agree, whatever limits were passed; None without both."""
    ratings = [
        (task, (v.judge.success, v.state_success))
        for task, v in judged
        if isinstance(v.judge, GoalsVerdict) and None not in (v.judge.success, v.state_success)
    ]
    if not ratings:
        return None
    both = np.array([pair for _, pair in ratings], dtype=np.float64)
    return cohen_kappa(both, categories=(0.0, 1.0), clusters=[task for task, _ in ratings])


def causes(results: Iterable[SessionResult]) -> list[CauseShare]:
    """Failed sessions of each system by cause; a system without any is left out."""
    shares = []
    for system, own in by_system(results).items():
        failed = [r.verdict for r in own if r.verdict is not None and r.verdict.success is False]
        counts: Counter[str] = Counter(v.cause or "other" for v in failed)
        if failed:
            ordered = {name: counts[name] for name in (*CAUSES, "other")}
            shares.append(CauseShare(system, len(failed), ordered))
    return shares


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


def format_pairs(results: Iterable[SessionResult] | Iterable[TurnResult]) -> list[Pair]:
    """Every two formats of one agent that share tasks: a sign-flip test over tasks of successes
    (sessions) or right calls (turns), corrected over all pairs (Holm)."""
    agents: dict[str, dict[str, dict[str, list[float]]]] = {}
    for r in results:
        value = _worth(r)
        if value is not None:
            formats = agents.setdefault(r.agent, {})
            formats.setdefault(r.format, {}).setdefault(r.case.task, []).append(value)
    return holm(
        [pair for agent, formats in agents.items() for pair in pairs(formats, _flips, agent)]
    )


def _flips(apart: Floats, single: bool) -> tuple[float | None, str, str | None]:
    test = sign_flip_test(apart, rng=np.random.default_rng(0))
    return test.p, test.method, test.reason


def _worth(result: SessionResult | TurnResult) -> float | None:
    """1 or 0 for a session that succeeded or a due call that is right; None: not decided."""
    verdict = result.verdict
    if isinstance(verdict, SessionVerdict):
        return None if verdict.success is None else float(verdict.success)
    if verdict is None or not verdict.gold_call or verdict.call == "undecided":
        return None
    return float(verdict.call == "right")


class Tallies:
    """The tallies of one set of results, each worked out when it is first asked for.

    Groups of the same members (the role of an only domain) are worked out once as well.
    """

    def __init__(
        self, sessions: Sequence[SessionResult] = (), turns: Sequence[TurnResult] = ()
    ) -> None:
        self.sessions, self.turns = tuple(sessions), tuple(turns)
        # By the identity of the members: they live as long as the two tuples above.
        self._known: dict[tuple[int, ...], Any] = {}

    def sessions_by(self, name: str = "") -> list[SessionTally]:
        """One tally for each system, or for each system and group of this name (one of GROUPS),
        groups by name."""
        return [
            replace(self._once(session_tally, own), group=group)
            for _, group, own in groups_of(self.sessions, GROUPS[name] if name else None)
        ]

    def turns_by(self, name: str = "") -> list[tuple[str, str, TurnTable]]:
        """(system, group, table), as `sessions_by`."""
        return [
            (system, group, self._once(turn_tally, own))
            for system, group, own in groups_of(self.turns, GROUPS[name] if name else None)
        ]

    def _once(self, make: Callable[[Sequence[Any]], Any], own: Sequence[Any]) -> Any:
        key = tuple(map(id, own))
        if key not in self._known:
            self._known[key] = make(own)
        return self._known[key]

    @cached_property
    def causes(self) -> list[CauseShare]:
        """Why sessions failed, by system."""
        return causes(self.sessions)

    @cached_property
    def session_pairs(self) -> list[Pair]:
        """Formats compared on the same users."""
        return format_pairs(self.sessions)

    @cached_property
    def turn_pairs(self) -> list[Pair]:
        """Formats compared on the same recorded sessions."""
        return format_pairs(self.turns)
