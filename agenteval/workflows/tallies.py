"""Rates of an agent's trials by system, by group of cases, and by format.

A failed trial is excluded from rates and counted separately, and so is an undecided one. Repeated
trials of a task are not independent: tasks are the units of every interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from agenteval.agents import AgentFailure
from agenteval.agents.protocol import CallStatus
from agenteval.analysis.system_pairs import Pair, by_system, holm, pairs
from agenteval.records import Usage
from agenteval.records.table import column
from agenteval.stats import (
    Interval,
    Kappa,
    PassK,
    bootstrap_mean,
    cohen_kappa,
    mean_interval,
    pass_hat_k,
    proportion_interval,
    sign_flip_test,
)
from agenteval.stats.bounded import bounded_interval
from agenteval.stats.paired import PairedTest
from agenteval.stats.vectors import Floats
from agenteval.workflows.conformance import CAUSES
from agenteval.workflows.judges import GoalsVerdict
from agenteval.workflows.results import CaseInfo, SessionResult, SessionVerdict, TurnResult
from agenteval.workflows.scores import (
    MatchCounts,
    Rates,
    Resampling,
    TurnFailure,
    TurnTable,
    TurnVerdict,
    rates,
    turn_table,
)
from agenteval.workflows.session import ENDS, SessionEnd, SessionFailure, SessionLog

_MOST_K = 8
_Result = TypeVar("_Result", SessionResult, TurnResult)
_T = TypeVar("_T")
_Values = Sequence[tuple[str, float | None]]  # by task
GROUPS: dict[str, Callable[[CaseInfo], str]] = {
    "domain": lambda case: case.domain,
    "role": lambda case: case.role,
    "scenario": lambda case: f"{case.role}/{'+'.join(case.scenarios)}",
    "task": lambda case: "cross" if case.cross else "single",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tally:
    """The trials of one system, or of one group of its cases."""

    group: str = column("group")
    system: str = column("system")
    agent: str = column("agent")
    format: str = column("format", hint="format of the procedure")
    f1: Interval = column("tool F1\n[95%]", "number")
    f1_low: float | None = column("F1\nlow", "number", "if all undecided calls are wrong")
    f1_high: float | None = column("F1\nhigh", "number", "if all undecided calls are correct")


def _common(results: Sequence[SessionResult] | Sequence[TurnResult], tool: Rates) -> dict[str, Any]:
    """Return the fields of all tallies, except the group."""
    return {
        "system": results[0].system,
        "agent": results[0].agent,
        "format": results[0].format,
        "f1": tool.f1.known,
        "f1_low": tool.f1.low if tool.undecided else None,
        "f1_high": tool.f1.high if tool.undecided else None,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTally(_Tally):
    """The sessions of one system, or of one group of its cases; its columns are those of tables.

    `success`, `progress`, `conforms`, `fitness` and `order` are over trials with a verdict that has
    them. Sessions with simulator mistakes are excluded from the rates of calls.
    `undecided_sessions` are verdicts without success, `failures` trials without a session, by
    status; `pending` are sessions that are not judged yet. `ended` counts the ends of sessions,
    `statuses` those of their calls, `causes` the first deviations of failed sessions. `usage` is
    that of the agent, `simulated` of simulators, `judging` of judges. `judge` is the agreement of
    judge and final state.
    """

    success: Interval = column(
        "success\n[95%]", "number", "share of sessions that end in the state the goals require"
    )
    success_low: float | None = column(
        "success\nlow", "number", "if all sessions without a verdict failed"
    )
    success_high: float | None = column("success\nhigh", "number", "if all of them succeeded")
    progress: Interval = column("progress\n[95%]", "number", "share of goals achieved")
    sessions: int = column("ses-\nsions", "count", "sessions with a verdict on success")
    tasks: int | None = column("tasks", "count", "users of these sessions")
    without_verdict: int = column(
        "no\nverdict",
        "count",
        "endpoint, adapter or simulator failed, undecided, or not judged yet; excluded from rates",
    )
    conforms: Interval = column(
        "follows the\nchart [95%]",
        "number",
        "share of sessions with calls, all of which follow the procedure",
    )
    with_calls: int = column("sessions\nwith a call", "count")
    fitness: Interval = column("fitness", "number", "1 − cost of the best walk / cost of the worst")
    order: Interval = column(
        "order F1", "number", "longest common subsequence of tool names with gold, mean"
    )
    precision: Interval = column("tool P\n[95%]", "number", "calls that match gold calls")
    recall: Interval = column("tool R\n[95%]", "number", "matched gold calls")
    right: int = column("right", "count")
    made: int = column("made", "count")
    gold: int = column("gold", "count", "calls due")
    undecided: int = column("un-\ndecided", "count", "calls that need a judge to compare values")
    turns: Interval = column("replies per\nsession", "number")
    calls: Interval = column("calls per\nsession", "number")
    tool: Rates
    undecided_sessions: int
    failures: Counter[str]
    pending: int
    ended: Counter[SessionEnd]
    statuses: Counter[CallStatus]
    causes: dict[str, int]
    usage: Usage
    simulated: Usage
    judging: Usage
    powers: tuple[PassK, ...]
    judge: Kappa | None

    @property
    def cut_short(self) -> int:
        """Sessions that did not end with the user's goodbye."""
        return sum(self.ended[key] for key, end in ENDS.items() if end.cut_short)

    @property
    def refused(self) -> int:
        """Calls that could not be executed."""
        return self.statuses.total() - self.statuses["ok"]


def session_tally(results: Sequence[SessionResult], group: str = "") -> SessionTally:
    """Return the tally of these sessions, all of one system."""
    judged = [(r.case.task, r.verdict) for r in results if r.verdict is not None]
    logs = [(r.case.task, r.log) for r in results if isinstance(r.log, SessionLog)]
    failures = Counter(r.log.status for r in results if isinstance(r.log, SessionFailure))
    valid = [(task, v) for task, v in judged if v.decided_by != "simulator"]
    outcomes = [(r.case.task, r.verdict.success if r.verdict else None) for r in results]
    # (successes, sessions with a verdict, sessions) of each task
    tasks = [
        (outcome.count(True), len(outcome) - outcome.count(None), len(outcome))
        for outcome in _by_task(outcomes).values()
    ]
    success = share(outcomes)
    without = len(outcomes) - success.n
    conforms = share([(task, v.conforms) for task, v in valid])
    counts = [MatchCounts(v.right, v.unjudged, v.generated, v.gold) for _, v in valid]
    tool = rates(counts, [task for task, _ in valid])
    failed: Counter[str] = Counter(v.cause or "other" for _, v in judged if v.success is False)
    low = float(np.mean([yes / n for yes, _, n in tasks]))
    high = float(np.mean([(yes + n - decided) / n for yes, decided, n in tasks]))
    return SessionTally(
        **_common(results, tool),
        group=group,
        success=success,
        success_low=low if without else None,
        success_high=high if without else None,
        progress=_mean([(task, v.progress) for task, v in judged]),
        sessions=success.n,
        tasks=success.n_clusters,
        without_verdict=without,
        conforms=conforms,
        with_calls=conforms.n,
        fitness=_mean([(task, v.fitness) for task, v in valid]),
        order=_mean([(task, v.sequence) for task, v in valid]),
        precision=tool.precision.known,
        recall=tool.recall.known,
        right=tool.right,
        made=tool.predicted,
        gold=tool.gold,
        undecided=sum(v.unjudged for _, v in judged),
        turns=_mean([(task, log.turns) for task, log in logs], bounds=None),
        calls=_mean([(task, len(log.calls)) for task, log in logs], bounds=None),
        tool=tool,
        undecided_sessions=sum(v.success is None for _, v in judged),
        failures=Counter(failures),
        pending=len(results) - len(judged) - failures.total(),
        ended=Counter(log.ended for _, log in logs),
        statuses=Counter(call.status for _, log in logs for call in log.calls),
        causes={name: failed[name] for name in (*CAUSES, "other")} if failed else {},
        usage=sum((r.log.usage for r in results), Usage()),
        simulated=sum((r.log.simulator_usage for r in results), Usage()),
        judging=sum((v.usage for _, v in judged), Usage()),
        powers=pass_powers([(yes, decided) for yes, decided, _ in tasks], _MOST_K),
        judge=_agreement(judged),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTally(_Tally):
    """The predicted turns of one system, or of one group of its cases: see `TurnTable`."""

    recall: Interval = column("right of due\ncalls [95%]", "number", "tool and parameters")
    turns: int = column("turns", "count", "with a prediction")
    unreadable: int = column("unread-\nable", "count", "neither a call nor a reply")
    undecided: int = column("un-\ndecided", "count", "calls that need a judge")
    lost: int = column("lost", "count", "endpoint or adapter failed; excluded from rates")
    table: TurnTable
    node: Interval = column("node right\n[95%]", "number", "share of named nodes")
    named: int = column("named", "count", "turns that name a node")
    due: int = column("of", "count", "turns that have a node")
    response: Interval | None = column("response\n0–10 [95%]", "number", "mean grade by the judge")
    graded: int = column("graded", "count")
    not_graded: int = column("not\ngraded", "count", "the judge failed")
    no_reply: int = column("no\nreply", "count", "a due reply is missing")

    @property
    def due_calls(self) -> int:
        """Decided due calls: the denominator of `recall`."""
        return self.table.tool.gold - self.table.tool.undecided


def turn_tally(results: Sequence[TurnResult], group: str = "") -> TurnTally:
    """Return the tally of these turns, all of one system; it has grades if any was graded."""
    verdicts: list[TurnVerdict | TurnFailure] = []
    grades = []
    for r in results:
        if isinstance(r.prediction, AgentFailure):
            turn = int(r.case.id.rpartition(":")[2])
            status, message = r.prediction.status, r.prediction.message
            verdicts.append(
                TurnFailure(session=r.case.task, turn=turn, status=status, message=message)
            )
        elif r.verdict is not None:
            verdicts.append(r.verdict)
        else:
            continue
        grades.append(r.grade)
    table = turn_table(verdicts, grades if any(r.grade for r in results) else None)
    response = table.response
    return TurnTally(
        **_common(results, table.tool),
        group=group,
        recall=table.tool.recall.known,
        turns=table.turns,
        unreadable=table.unreadable,
        undecided=table.tool.undecided,
        lost=sum(table.failures.values()),
        table=table,
        node=table.node.accuracy,
        named=table.node.accuracy.n,
        due=table.node.turns,
        response=response.mean if response else None,
        graded=response.mean.n if response else 0,
        not_graded=sum(response.failures.values()) if response else 0,
        no_reply=response.no_reply if response else 0,
    )


def _by_task(values: Iterable[tuple[str, _T]]) -> dict[str, list[_T]]:
    tasks: dict[str, list[_T]] = {}
    for task, value in values:
        tasks.setdefault(task, []).append(value)
    return tasks


def share(values: _Values) -> Interval:
    """Return the share of yes over (task, yes or no), ignoring None: with Wilson's interval if no
    task is repeated, else as the mean of the shares of tasks."""
    present = [(task, float(v)) for task, v in values if v is not None]
    tasks = _by_task(present)
    if len(tasks) == len(present):
        interval = proportion_interval(int(sum(v for _, v in present)), len(present))
    else:
        interval = bounded_interval(np.array([np.mean(v) for v in tasks.values()]), (0.0, 1.0))
    return replace(interval, n=len(present), n_clusters=len(tasks))


def _mean(values: _Values, bounds: tuple[float, float] | None = (0.0, 1.0)) -> Interval:
    present = [(task, float(v)) for task, v in values if v is not None]
    return mean_interval([v for _, v in present], [task for task, _ in present], bounds=bounds)


def pass_powers(tasks: Sequence[tuple[int, int]], most: int) -> tuple[PassK, ...]:
    """Return pass^1 to pass^most, as long as a task has enough attempts with a verdict.

    `tasks` as (successes, attempts with a verdict). Each is the mean over tasks of `pass_hat_k`,
    with an interval by resampling tasks, or by `bounded_interval` for few or nearly identical
    tasks. Tasks with fewer attempts are left out, not counted as 0 or 1.
    """
    powers = []
    for k in range(1, min(most, max((n for _, n in tasks), default=0)) + 1):
        values = [v for c, n in tasks if (v := pass_hat_k(c, n, k)) is not None]
        rate = bootstrap_mean(values, how=Resampling().bootstrap())
        if rate.low is None:
            rate = bounded_interval(np.array(values), (0.0, 1.0))
        powers.append(PassK(rate, k, len(tasks) - len(values)))
    return tuple(powers)


def _agreement(judged: Sequence[tuple[str, SessionVerdict]]) -> Kappa | None:
    """Return the agreement of judge and final state, ignoring limits; None without both."""
    ratings = [
        (task, (v.judge.success, v.state_success))
        for task, v in judged
        if isinstance(v.judge, GoalsVerdict) and None not in (v.judge.success, v.state_success)
    ]
    if not ratings:
        return None
    both = np.array([pair for _, pair in ratings], dtype=np.float64)
    return cohen_kappa(both, categories=(0.0, 1.0), clusters=[task for task, _ in ratings])


def format_pairs(results: Iterable[SessionResult] | Iterable[TurnResult]) -> list[Pair]:
    """Compare every two formats of one agent that share tasks.

    A sign-flip test over tasks of successes (sessions) or right calls (turns), corrected over all
    pairs (Holm).
    """
    agents: dict[str, dict[str, dict[str, list[float]]]] = {}
    for r in results:
        value: bool | None = None
        if isinstance(r.verdict, SessionVerdict):
            value = r.verdict.success
        elif r.verdict is not None and r.verdict.gold_call and r.verdict.call != "undecided":
            value = r.verdict.call == "right"
        if value is not None:
            formats = agents.setdefault(r.agent, {})
            formats.setdefault(r.format, {}).setdefault(r.case.task, []).append(float(value))

    def flips(differences: Floats, _: bool) -> PairedTest:
        return sign_flip_test(differences, rng=np.random.default_rng(0))

    return holm(
        [pair for agent, formats in agents.items() for pair in pairs(formats, flips, agent)]
    )


class Tallies:
    """The tallies of one set of results, each computed on first use."""

    def __init__(
        self, sessions: Sequence[SessionResult] = (), turns: Sequence[TurnResult] = ()
    ) -> None:
        self.sessions, self.turns = tuple(sessions), tuple(turns)
        self._sessions: dict[str, list[SessionTally]] = {}
        self._turns: dict[str, list[TurnTally]] = {}

    def sessions_by(self, name: str = "") -> list[SessionTally]:
        """Return a tally for each system, or for each system and group of this name (of GROUPS),
        groups in alphabetical order."""
        if name not in self._sessions:
            self._sessions[name] = [session_tally(*g) for g in _grouped(self.sessions, name)]
        return self._sessions[name]

    def turns_by(self, name: str = "") -> list[TurnTally]:
        """Return the tallies of turns, as `sessions_by`."""
        if name not in self._turns:
            self._turns[name] = [turn_tally(*g) for g in _grouped(self.turns, name)]
        return self._turns[name]


def _grouped(results: Sequence[_Result], name: str) -> list[tuple[list[_Result], str]]:
    """Return (results, group), with systems in order and groups in alphabetical order."""
    grouped = []
    for results_of in by_system(results).values():
        groups: dict[str, list[_Result]] = {}
        for result in results_of:
            groups.setdefault(GROUPS[name](result.case) if name else "", []).append(result)
        grouped += [(groups[group], group) for group in sorted(groups)]
    return grouped
