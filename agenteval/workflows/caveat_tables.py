"""Limits of the rates: missing results and their reasons, recorded rewards that contradict
verdicts, and invalid comparisons."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agenteval.agents import AgentFailure
from agenteval.analysis.system_pairs import by_system
from agenteval.records.table import Table, column, table_of
from agenteval.stats import Interval
from agenteval.workflows.judges import JudgeFailure
from agenteval.workflows.results import SessionResult, TurnResult
from agenteval.workflows.session import ENDS, Prediction, SessionFailure, SessionLog

_MOST_TEXT = 80
_SUFFIX = re.compile(r" \[[0-9a-f]{6}\]")
_WHOLE = 1e-6  # as far from 1 as tau-bench takes a reward for a success
_MOST_LISTED = 100


@dataclass(frozen=True, slots=True)
class Loss:
    """The reason for a missing result of a trial, with its message if there is one."""

    system: str
    what: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Lost:
    system: str = column("system")
    what: str = column("what")
    times: int = column("times", "count")
    example: str | None = column("for example", hint="the beginning of a message")


@dataclass(slots=True)
class _Rewards:
    system: str = column("system")
    rewards: int = column("rewards", "count", "sessions recorded with a reward", default=0)
    agree: int = column("agree", "count", "reward and verdict agree", default=0)
    reward_only: int = column(
        "reward\nalone", "count", "reward 1, but the session failed", default=0
    )
    state_only: int = column(
        "success\nalone", "count", "reward 0, but the session succeeded", default=0
    )
    neither: int = column(
        "can not be\ncompared", "count", "another reward, or no verdict", default=0
    )
    calls: int = column("calls", "count", "replayed", default=0)
    differing: int = column(
        "other\nanswers", "count", "answered differently by the backend", default=0
    )


@dataclass(frozen=True, slots=True)
class _Contradiction:
    system: str = column("system")
    case: str = column("task")
    trial: int = column("trial", "count")
    reward: float = column("reward", "number")
    success: str = column("success")
    why: str = column("why")


@dataclass(frozen=True, slots=True)
class _OtherAnswer:
    system: str = column("system")
    case: str = column("task")
    trial: int = column("trial", "count")
    call: int = column("call", "count", "its place among the calls of the session, from 1")
    tool: str = column("tool")
    arguments: str = column("arguments")
    recorded: str = column("recorded answer", hint="the beginning")


def lost_table(key: str, title: str, losses: Sequence[Loss], *notes: str) -> Table:
    """Return how often each loss happened to each system, with the first message."""
    times = Counter((loss.system, loss.what) for loss in losses)
    messages = {(loss.system, loss.what): loss.message for loss in losses[::-1] if loss.message}
    systems = list(dict.fromkeys(loss.system for loss in losses))
    rows = [
        _Lost(system, what, count, _cut_line(messages.get((system, what), "")) or None)
        for (system, what), count in sorted(
            times.items(), key=lambda item: (systems.index(item[0][0]), item[0][1])
        )
    ]
    return table_of(_Lost, key, title, rows, notes=notes, group="system")


def losses_of_session(r: SessionResult) -> Iterator[Loss]:
    """Yield what was lost of a session, and simulators' mistakes in it."""
    failure = r.log if isinstance(r.log, SessionFailure) else None
    log = failure.log if failure else r.log
    if failure:
        yield Loss(r.system, f"no session: {failure.status}", failure.message)
    elif r.verdict is None:
        yield Loss(r.system, "not judged yet")
    elif r.verdict.success is None:
        who = " and ".join(log.invalidated_by) if isinstance(log, SessionLog) else ""
        yield Loss(r.system, f"no verdict: {who or 'undecided'}")
    for m in log.mistakes if log and not isinstance(log, SessionFailure) else ():
        repaired = ", made good" if m.repaired else ""
        yield Loss(r.system, f"simulator's mistake{repaired}, {m.who}: {m.kind}", m.text)
    for status in r.verdict.failures if r.verdict else ():
        judge = r.verdict.judge if r.verdict else None
        message = ""
        if isinstance(judge, JudgeFailure) and judge.status == status:
            message = judge.message
        yield Loss(r.system, f"a judge failed: {status}", message)


def losses_of_turn(r: TurnResult) -> Iterator[Loss]:
    """Yield what was lost of a turn."""
    if isinstance(r.prediction, AgentFailure):
        yield Loss(r.system, f"no prediction: {r.prediction.status}", r.prediction.message)
    if r.grade is not None and r.grade.status is not None:
        yield Loss(r.system, f"no grade: {r.grade.status}", r.grade.message)
    if r.verdict is None and isinstance(r.prediction, Prediction):
        yield Loss(r.system, "not judged yet")
    for judgement in r.verdict.parameters if r.verdict else ():
        if judgement.status is not None:
            what = f"a judge of a value failed: {judgement.status}"
            yield Loss(r.system, what, judgement.message)


def _cut_line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _MOST_TEXT else f"{line[: _MOST_TEXT - 1]}…"


def reward_tables(sessions: Sequence[SessionResult]) -> Iterator[Table]:
    """Yield how often recorded rewards and verdicts agree, the sessions where they contradict each
    other, and the calls that the backend answers otherwise.

    The tables have no rows where no reward is recorded and every call was answered as before.
    """
    rows: list[_Rewards] = []
    contradictions: list[_Contradiction] = []
    others: list[_OtherAnswer] = []
    for system, results in by_system(sessions).items():
        logged = [(r, r.log) for r in results if isinstance(r.log, SessionLog)]
        replays = [log for _, log in logged if log.changes is not None]
        if not any(log.reward is not None or log.differing for log in replays):
            continue
        row = _Rewards(system)
        row.calls = sum(len(log.calls) for log in replays)
        row.differing = sum(len(log.differing) for log in replays)
        rows.append(row)
        others += [other for r, log in logged for other in _other_answers(system, r, log)]
        for r, log in logged:
            if log.reward is None:
                continue
            row.rewards += 1
            rewarded, success = _rewarded(log.reward), r.verdict and r.verdict.success
            if rewarded is None or success is None:
                row.neither += 1
                continue
            if rewarded is success:
                row.agree += 1
                continue
            row.reward_only += rewarded
            row.state_only += not rewarded
            word = "yes" if success else "no"
            contradictions.append(
                _Contradiction(system, r.case.id, r.trial, log.reward, word, _why(r, log))
            )
    title, note = "Recorded rewards against success", "Rewards are not verdicts and enter no rate."
    yield table_of(_Rewards, "rewards", title, rows, notes=[note], group="system")
    title, listed = "Sessions whose reward contradicts the verdict", contradictions[:_MOST_LISTED]
    notes = _not_listed(len(contradictions))
    yield table_of(_Contradiction, "contradictions", title, listed, notes=notes, group="system")
    title, notes = "Calls that the backend answers differently", _not_listed(len(others))
    listed_calls = others[:_MOST_LISTED]
    yield table_of(_OtherAnswer, "answers", title, listed_calls, notes=notes, group="system")


def _not_listed(number: int) -> list[str]:
    more = number - _MOST_LISTED
    return [f"{more:,} more are not listed; see --json or `export`."] if more > 0 else []


def _other_answers(system: str, r: SessionResult, log: SessionLog) -> Iterator[_OtherAnswer]:
    for at in log.differing:
        call = log.calls[at]
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        shown = (_cut_line(arguments), _cut_line(call.result))
        yield _OtherAnswer(system, r.case.id, r.trial, at + 1, call.tool, *shown)


def _rewarded(reward: float) -> bool | None:
    """Return the success implied by a reward, or None if it is neither 0 nor 1."""
    if abs(reward - 1) <= _WHOLE:
        return True
    return False if reward == 0 else None


def _why(r: SessionResult, log: SessionLog) -> str:
    reasons = list(r.verdict.differences[:1]) if r.verdict else []
    if ENDS[log.ended].decided_by:
        reasons = ["the session was cut off"]
    if log.differing:
        first = log.calls[log.differing[0]]
        reasons.append(f"{first.tool} answers differently in the replay")
    return "; ".join(reasons) or "the state is the expected one"


def suffixes(names: Iterable[str]) -> str:
    """Return what a piece of a hash behind a name means, "" where no name has one."""
    if not any(_SUFFIX.search(name) for name in names):
        return ""
    return (
        "A suffix […] distinguishes systems with the same name but different settings, source or "
        "procedure."
    )


def unequal(results: Sequence[SessionResult] | Sequence[TurnResult], what: str) -> str:
    """Return a warning where the systems did not all get the same `what`, else ""."""
    cases: dict[str, set[str]] = {}
    for r in results:
        cases.setdefault(r.system, set()).add(r.case.id)
    sets = list(cases.values())
    if all(ids == sets[0] for ids in sets):
        return ""
    common, sizes = len(set.intersection(*sets)), sorted(map(len, sets))
    each = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
    shared = f"{common:,} of them common to all" if common else "none of them common to all"
    formats = {(r.agent, r.format) for r in results}
    paired = len({agent for agent, _ in formats}) < len(formats)
    return (
        f"Systems were not run on the same {what} ({each} each, {shared}): differences between "
        "rows may come from the tasks. Compare only systems run on the same ones"
        + ("; formats of one agent are paired below." if paired else ".")
    )


def without_interval(rates: Iterable[Interval]) -> str:
    """Return why some rates have no interval, "" where all have one."""
    reasons = set()
    for rate in rates:
        if rate.mean is None or (rate.low is not None and rate.low != rate.high):
            continue
        if (rate.n_clusters or rate.n) < 2:
            reasons.add("a single task")
        elif rate.reason is None or rate.reason.startswith("no variation"):
            reasons.add("no variation between tasks")
        else:  # of however many there are
            reasons.add("too few tasks" if "too few" in rate.reason else rate.reason)
    return f"No interval: {' or '.join(sorted(reasons))}." if reasons else ""
