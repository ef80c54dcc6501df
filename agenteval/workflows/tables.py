"""Tables of workflow results for terminal, JSON, page and export: rates and their caveats (missing
results, recorded rewards that contradict verdicts, invalid comparisons)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agenteval.agents import AgentFailure
from agenteval.analysis.system_pairs import Pair, by_system
from agenteval.records.table import (
    Cell,
    Column,
    Estimate,
    Table,
    column,
    columns_headed,
    columns_of,
    table_of,
)
from agenteval.stats import Interval
from agenteval.text import plural
from agenteval.workflows.conformance import CAUSES
from agenteval.workflows.judges import JudgeFailure
from agenteval.workflows.results import SessionResult, TurnResult
from agenteval.workflows.session import ENDS, Prediction, SessionFailure, SessionLog
from agenteval.workflows.tallies import GROUPS, SessionTally, Tallies, TurnTally, format_pairs

_SESSIONS = "success success_low success_high progress sessions tasks without_verdict"
_PROCEDURE = "conforms with_calls fitness order"
_CALLS = "precision recall f1 f1_low f1_high right made gold undecided turns calls"
_TURNS = "recall f1 f1_low f1_high turns unreadable undecided lost"
_REPLIES = "node named due response graded not_graded no_reply"
_GROUP = "success progress f1 f1_low f1_high conforms sessions tasks without_verdict"
_BOUNDS = ("success_low", "success_high", "f1_low", "f1_high")
_MEANS = {  # columns of groups without their intervals
    "progress": Column("progress", "progress", "number", "mean"),
    "conforms": Column("conforms", "follows\nthe chart", "number"),
}
_NO_VERDICT = (
    "Success excludes sessions without a verdict; low and high count all of them as failed and as "
    "successful. The reasons are listed below."
)
_UNDECIDED = (
    "Undecided calls need a judge. Matching values are decided by rule and differing ones are not, "
    "so the F1 of decided calls is optimistic: use the bounds."
)
_SUFFIX = re.compile(r" \[[0-9a-f]{6}\]")
_WHOLE = 1e-6  # the tolerance of tau-bench for a reward of 1
_MOST_LISTED, _MOST_TEXT = 100, 80


def result_tables(
    sessions: Sequence[SessionResult], turns: Sequence[TurnResult]
) -> tuple[Table, ...]:
    """Return all tables that have a row, the rates of each agent and format first."""
    tallies = Tallies(sessions, turns)
    tables: list[Table] = []
    if sessions:
        tables += _session_tables(tallies)
    if turns:
        tables += _turn_tables(tallies)
    return tuple(sorted((t for t in tables if t.rows), key=lambda table: table.detail))


# ---- sessions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _AgentColumns:
    agent: str = column("agent")
    format: str = column("format", hint="format of the procedure")


_CALL_STATUSES = (
    Column("calls", "calls", "count", "in these sessions"),
    Column("malformed", "malformed", "count", "calls that could not be read"),
    Column(
        "bad_arguments",
        "refused",
        "count",
        "calls with undeclared arguments, or refused by the tool",
    ),
    Column("unknown_tool", "unknown\ntool", "count", "calls of a tool that does not exist"),
)


@dataclass(frozen=True, slots=True)
class _PowerColumns(_AgentColumns):
    k: int = column("k", "count")
    rate: Interval = column("pass^k [95%]", "number", "all of k succeed")
    tasks: int = column("tasks", "count")
    left_out: int = column("left out", "count", "tasks with fewer than k")


@dataclass(frozen=True, slots=True)
class _JudgeAgreement(_AgentColumns):
    agreement: Interval = column("agree [95%]", "number", "share of sessions")
    kappa: Interval = column("kappa [95%]", "number", "Cohen's")
    sessions: int = column("sessions", "count", "with both")


@dataclass(frozen=True, slots=True)
class _EffortColumns(_AgentColumns):
    requests_agent: int = column("requests,\nagent", "count")
    tokens_agent: int | None = column("tokens,\nagent", "count")
    requests_simulators: int = column("requests,\nsimu-\nlators", "count")
    tokens_simulators: int | None = column("tokens,\nsimu-\nlators", "count")
    requests_judges: int = column("requests,\njudges", "count")
    tokens_judges: int | None = column("tokens,\njudges", "count")
    cost: float | None = column("cost,\nagent", "money", "in the currency of the prices given")


@dataclass(frozen=True)
class _FormatPairColumns:
    agent: str = column("agent")
    first: str = column("first")
    second: str = column("second")
    difference: Interval = column("first less\nsecond [95%]", "signed")
    tasks: int = column("tasks", "count", "with both")
    left_out: int = column("left\nout", "count", "tasks with a verdict on one side only")
    p: float | None = column("p", "p")
    corrected: float | None = column("p cor-\nrected", "p", "Holm, over all pairs")


def _session_tables(all_tallies: Tallies) -> Iterator[Table]:
    sessions, tallies = all_tallies.sessions, all_tallies.sessions_by()
    yield _rates(
        tallies,
        "sessions",
        "Whole sessions",
        _SESSIONS,
        "Success is the mean over tasks, progress over sessions. Intervals treat tasks as units: "
        "repeated sessions of a user do not add units.",
        _NO_VERDICT if any(t.without_verdict for t in tallies) else "",
        _unequal(sessions, "tasks"),
        _suffixes(tallies),
        detail=False,
    )
    lost = [loss for r in sessions for loss in _losses_of_session(r)]
    title = "Missing verdicts and simulator mistakes"
    yield _lost("lost", title, lost, "None of these count against the agent.")
    yield _rates(
        tallies,
        "procedure",
        "Do sessions follow the procedure?",
        _PROCEDURE,
        "An incomplete walk also follows the chart; the causes show what is missing.",
        *_unchecked(sessions),
    )
    yield from _reward_tables(sessions)
    yield _rates(
        tallies,
        "session_calls",
        "Calls in sessions",
        _CALLS,
        "A call is correct if its tool and parameters equal those of a gold call; each gold call "
        "counts once.",
        _undecided(tallies),
    )
    yield _ends(tallies)
    for name in GROUPS:
        groups = sorted(all_tallies.sessions_by(name), key=lambda t: t.group)
        if len({t.group for t in groups}) > 1:
            title = f"Sessions by {name}"
            yield _rates(groups, f"sessions_by_{name}", title, _GROUP, _undecided(groups), by=name)
    yield _formats(format_pairs(sessions), "sessions", "share of successes")
    yield table_of(
        _AgentColumns,
        "causes",
        "Why sessions failed",
        [(t, {"failed": sum(t.causes.values()), **t.causes}) for t in tallies if t.causes],
        notes=[
            "The first deviation of a failed session from chart and gold calls (without a judge)."
        ],
        group="agent",
        detail=True,
        more=[
            Column("failed", "failed", "count", "sessions"),
            *columns_headed({c: c.replace("_", "\n") for c in (*CAUSES, "other")}, "count"),
        ],
    )
    repeated = [(p, t) for t in tallies if len(t.powers) > 1 for p in t.powers]
    yield table_of(
        _PowerColumns,
        "powers",
        "Repeated sessions",
        [(p, {"agent": t.agent, "format": t.format, "tasks": p.rate.n}) for p, t in repeated],
        notes=[
            "Unbiased: mean over tasks of C(successes, k) / C(sessions, k). Intervals treat tasks "
            "as units."
        ],
        group="agent",
    )
    agreements = [
        _JudgeAgreement(t.agent, t.format, j.agreement, j.coefficient, j.coefficient.n)
        for t in tallies
        if (j := t.judge) is not None
    ]
    title = "Judge's success against the final state"
    yield table_of(_JudgeAgreement, "judge", title, agreements, group="agent", detail=True)
    efforts = [(t, effort) for t in tallies if any((effort := _effort(t)).values())]
    title = "Cost of the sessions"
    yield table_of(_EffortColumns, "effort", title, efforts, group="agent", detail=True)


def _unchecked(sessions: Sequence[SessionResult]) -> Iterator[str]:
    """Yield the numbers of sessions without a chart and of unchecked transitions."""
    verdicts = [r.verdict for r in sessions if r.verdict]
    if without := sum(not v.charted for v in verdicts):
        yield f"{plural(without, 'session')} without a chart: not applicable."
    if unchecked := sum(v.unchecked for v in verdicts):
        walked = sum(len(v.edges) for v in verdicts)
        reason = "the user's choice, or a value that no call returned"
        yield f"{unchecked:,} of {walked:,} transitions could not be checked: {reason}."


def _ends(tallies: Sequence[SessionTally]) -> Table:
    """Return how sessions ended, with a column for each end, and the statuses of their calls."""
    columns = (
        *columns_of(_AgentColumns),
        Column("sessions", "sessions", "count"),
        *(Column(end.column, end.head, "count", end.hint) for end in ENDS.values()),
        *_CALL_STATUSES,
    )
    notable = [t for t in tallies if t.cut_short or t.refused]
    rows: list[dict[str, Cell]] = []
    for t in notable:
        cells: dict[str, Cell] = {"agent": t.agent, "format": t.format}
        cells["sessions"] = t.ended.total()
        cells |= {end.column: t.ended[key] for key, end in ENDS.items()}
        cells["calls"] = t.statuses.total()
        cells["malformed"] = t.statuses["malformed"]
        cells["bad_arguments"] = t.statuses["bad_arguments"]
        cells["unknown_tool"] = t.statuses["unknown_tool"]
        rows.append(cells)
    omitted = (
        "Agents whose sessions all ended with the user's goodbye and without refused calls are "
        "omitted."
    )
    notes = (omitted,) if len(notable) < len(tallies) else ()
    return Table("ended", "How sessions ended", columns, tuple(rows), notes, "agent", detail=True)


def _effort(t: SessionTally) -> dict[str, Cell]:
    """Return the usage of each party; the sum is unknown if either kind of token is."""
    cells: dict[str, Cell] = {"cost": t.usage.cost}
    for party, usage in (("agent", t.usage), ("simulators", t.simulated), ("judges", t.judging)):
        prompt, reply = usage.prompt_tokens, usage.completion_tokens
        cells[f"requests_{party}"] = usage.requests
        cells[f"tokens_{party}"] = None if prompt is None or reply is None else prompt + reply
    return cells


def _formats(pairs: Sequence[Pair], level: str, what: str) -> Table:
    rows = [(p, {"p": Estimate(None, reason=p.reason or "")} if p.p is None else {}) for p in pairs]
    return table_of(
        _FormatPairColumns,
        f"formats_{level}",
        f"Formats of the procedure compared, {level}",
        rows,
        notes=[f"Paired by task: {what}. p: sign flips over tasks."],
        group="agent",
        detail=True,
    )


# ---- single turns --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _TurnCalls(_AgentColumns):
    precision: Interval = column("tool P\n[95%]", "number", "calls that match gold calls")
    recall: Interval = column("tool R\n[95%]", "number", "matched gold calls")
    f1: Interval = column("tool F1\n[95%]", "number")
    parameters: Interval = column(
        "parameters\nF1 [95%]", "number", "credited only if the tool is correct"
    )
    parameters_free: Interval = column("with any tool\nF1 [95%]", "number")


def _turn_tables(all_tallies: Tallies) -> Iterator[Table]:
    turns, tallies = all_tallies.turns, all_tallies.turns_by()
    yield _rates(
        tallies,
        "turns",
        "Single turns of recorded sessions",
        _TURNS,
        "Intervals resample recorded sessions. Lost: no prediction; excluded from rates.",
        _unequal(turns, "turns"),
        _suffixes(tallies),
        _undecided(tallies),
        detail=False,
    )
    losses = [loss for r in turns for loss in _losses_of_turn(r)]
    yield _lost("turns_lost", "Missing predictions and grades", losses)
    calls = [
        (
            t,
            {
                "precision": t.table.tool.precision.known,
                "parameters": t.table.parameters.f1.known,
                "parameters_free": t.table.parameters_free.f1.known,
            },
        )
        for t in tallies
    ]
    title = "Calls and parameters at single turns"
    yield table_of(_TurnCalls, "turn_calls", title, calls, group="agent", detail=True)
    replies = [t for t in tallies if t.named or t.graded]
    yield _rates(replies, "turn_replies", "Nodes and replies", _REPLIES)
    for name in GROUPS:
        groups = sorted(all_tallies.turns_by(name), key=lambda t: t.group)
        if len({t.group for t in groups}) > 1:
            title = f"Single turns by {name}"
            yield _rates(groups, f"turns_by_{name}", title, _TURNS, _undecided(groups), by=name)
    yield _formats(format_pairs(turns), "turns", "share of correct due calls")


# ---- columns of tallies, and notes ---------------------------------------------------------------


def _rates(
    tallies: Sequence[SessionTally] | Sequence[TurnTally],
    key: str,
    title: str,
    names: str,
    *notes: str,
    by: str = "",
    detail: bool = True,
) -> Table:
    """Return a table of some columns of tallies, by agent and format or by group and system.

    Bounds without values are left out, and a note explains missing intervals.
    """
    kind = TurnTally if tallies and isinstance(tallies[0], TurnTally) else SessionTally
    full = table_of(kind, key, title, tallies, drop_empty=_BOUNDS)
    columns = {c.key: c for c in full.columns}
    lead = ("group", "system") if by else ("agent", "format")
    keys = [k for k in (*lead, *names.split()) if k in columns]
    if by:
        columns |= _MEANS | {"group": Column(by, by)}
    rows: list[dict[str, Cell]] = []
    for row in full.rows:
        cells = {columns[k].key: row[k] for k in keys}
        for k, cell in cells.items():
            if isinstance(cell, Estimate) and (k not in columns or "[95%]" not in columns[k].head):
                cells[k] = cell.value
        rows.append(cells)
    shown = tuple(columns[k] for k in keys)
    notes = tuple(filter(None, (*notes, _without_interval(shown, rows))))
    return Table(key, title, shown, tuple(rows), notes, by or "agent", detail)


def _without_interval(columns: Sequence[Column], rows: Sequence[dict[str, Cell]]) -> str:
    """Return which rates have no interval and why, "" if all have one."""
    reasons, heads, complete = set[str](), list[str](), True
    estimated = [c for c in columns if any(isinstance(row[c.key], Estimate) for row in rows)]
    for c in estimated:
        cells = [cell for row in rows if isinstance(cell := row[c.key], Estimate)]
        missing = [e for e in cells if e.value is not None and (e.low is None or e.low == e.high)]
        if missing:
            heads.append(c.head.replace("[95%]", "").replace("\n", " ").strip())
        complete = complete and len(missing) == len(cells)
        for estimate in missing:
            if (estimate.units or estimate.n or 0) < 2:
                reasons.add("a single task")
            elif not estimate.reason or estimate.reason.startswith("no variation"):
                reasons.add("no variation between tasks")
            else:
                few = "too few" in estimate.reason
                reasons.add("too few tasks" if few else estimate.reason)
    if not reasons:
        return ""
    rows_named = " in some rows" if len(rows) > 1 else ""
    which = "" if complete else f" for {', '.join(heads)}{rows_named}"
    return f"No interval{which}: {' or '.join(sorted(reasons))}."


def _undecided(tallies: Sequence[SessionTally] | Sequence[TurnTally]) -> str:
    return _UNDECIDED if any(t.f1_low is not None for t in tallies) else ""


def _suffixes(tallies: Sequence[SessionTally] | Sequence[TurnTally]) -> str:
    """Return the explanation of hash suffixes, "" if no name has one."""
    if not any(_SUFFIX.search(t.system) for t in tallies):
        return ""
    return (
        "A suffix […] distinguishes systems with the same name but different settings, source or "
        "procedure."
    )


def _unequal(results: Sequence[SessionResult] | Sequence[TurnResult], what: str) -> str:
    """Return a warning if the systems did not all get the same `what`, else ""."""
    cases: dict[str, set[str]] = {}
    for r in results:
        cases.setdefault(r.system, set()).add(r.case.id)
    sets = list(cases.values())
    if all(ids == sets[0] for ids in sets):
        return ""
    common, sizes = len(set.intersection(*sets)), sorted(map(len, sets))
    each = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
    formats = {(r.agent, r.format) for r in results}
    paired = len({agent for agent, _ in formats}) < len(formats)
    return (
        f"Systems were not run on the same {what} ({each} each, {common or 'none'} of them common "
        "to all): differences between rows may come from the tasks. Compare only systems run on "
        "the same ones" + ("; formats of one agent are paired below." if paired else ".")
    )


# ---- what is missing -----------------------------------------------------------------------------


class _Loss(NamedTuple):
    """The reason for a missing result of a trial, with its message if there is one."""

    system: str
    what: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class _LostColumns:
    system: str = column("system")
    what: str = column("what")
    times: int = column("times", "count")
    example: str | None = column("for example", hint="the beginning of a message")


def _lost(key: str, title: str, losses: Sequence[_Loss], *notes: str) -> Table:
    """Return the count of each loss by system, with the first message."""
    times = Counter((loss.system, loss.what) for loss in losses)
    messages = {(loss.system, loss.what): loss.message for loss in losses[::-1] if loss.message}
    systems = list(dict.fromkeys(loss.system for loss in losses))
    ordered = sorted(times, key=lambda pair: (systems.index(pair[0]), pair[1]))
    rows = [
        _LostColumns(*pair, times[pair], _line(messages.get(pair, "")) or None) for pair in ordered
    ]
    return table_of(_LostColumns, key, title, rows, notes=notes, group="system")


def _losses_of_session(r: SessionResult) -> Iterator[_Loss]:
    """Yield the missing results of a session, and simulators' mistakes in it."""
    log = r.log.log if isinstance(r.log, SessionFailure) else r.log
    if isinstance(r.log, SessionFailure):
        yield _Loss(r.system, f"no session: {r.log.status}", r.log.message)
    elif r.verdict is None:
        yield _Loss(r.system, "not judged yet")
    elif r.verdict.success is None:
        who = " and ".join(r.log.invalidated_by) or "undecided"
        yield _Loss(r.system, f"no verdict: {who}")
    for m in log.mistakes if log else ():
        repaired = ", repaired" if m.repaired else ""
        yield _Loss(r.system, f"simulator's mistake{repaired}, {m.who}: {m.kind}", m.text)
    for status in r.verdict.failures if r.verdict else ():
        judge = r.verdict.judge if r.verdict else None
        failed = isinstance(judge, JudgeFailure) and judge.status == status
        message = judge.message if failed and isinstance(judge, JudgeFailure) else ""
        yield _Loss(r.system, f"a judge failed: {status}", message)


def _losses_of_turn(r: TurnResult) -> Iterator[_Loss]:
    if isinstance(r.prediction, AgentFailure):
        yield _Loss(r.system, f"no prediction: {r.prediction.status}", r.prediction.message)
    if r.grade is not None and r.grade.status is not None:
        yield _Loss(r.system, f"no grade: {r.grade.status}", r.grade.message)
    if r.verdict is None and isinstance(r.prediction, Prediction):
        yield _Loss(r.system, "not judged yet")
    for judgement in r.verdict.parameters if r.verdict else ():
        if judgement.status is not None:
            what = f"a judge of a value failed: {judgement.status}"
            yield _Loss(r.system, what, judgement.message)


def _line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _MOST_TEXT else f"{line[: _MOST_TEXT - 1]}…"


# ---- recorded rewards ----------------------------------------------------------------------------


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
        "can not be\ncompared", "count", "other rewards, or no verdict", default=0
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
    call: int = column("call", "count", "number of the call in the session, from 1")
    tool: str = column("tool")
    arguments: str = column("arguments")
    recorded: str = column("recorded answer", hint="the beginning")


def _reward_tables(sessions: Sequence[SessionResult]) -> Iterator[Table]:
    """Yield the agreement of recorded rewards and verdicts, the sessions where they contradict each
    other, and the calls that the backend answers differently.

    The tables are empty if no reward is recorded and every call was answered as before.
    """
    rows, contradictions, answers = list[_Rewards](), list[_Contradiction](), list[_OtherAnswer]()
    for system, results in by_system(sessions).items():
        replays = [
            (r, r.log)
            for r in results
            if isinstance(r.log, SessionLog) and r.log.changes is not None
        ]
        if not any(log.reward is not None or log.differing for _, log in replays):
            continue
        row = _Rewards(system)
        rows.append(row)
        for r, log in replays:
            row.calls += len(log.calls)
            row.differing += len(log.differing)
            answers += _other_answers(r, log)
            if log.reward is None:
                continue
            row.rewards += 1
            rewarded = abs(log.reward - 1) <= _WHOLE
            success = r.verdict and r.verdict.success
            if success is None or not (rewarded or log.reward == 0):
                row.neither += 1
            elif rewarded is success:
                row.agree += 1
            else:
                row.reward_only += rewarded
                row.state_only += not rewarded
                about = (system, r.case.id, r.trial, log.reward, "yes" if success else "no")
                contradictions.append(_Contradiction(*about, _why(r, log)))
    title, note = "Recorded rewards against success", "Rewards are not verdicts and enter no rate."
    yield table_of(_Rewards, "rewards", title, rows, notes=[note], group="system")
    title = "Sessions whose reward contradicts the verdict"
    yield _first(_Contradiction, "contradictions", title, contradictions)
    yield _first(_OtherAnswer, "answers", "Calls that the backend answers differently", answers)


def _first(kind: type, key: str, title: str, rows: Sequence[object]) -> Table:
    """Return a table of the first rows, with a note on the number of omitted rows."""
    more = len(rows) - _MOST_LISTED
    notes = [f"{more:,} more are not listed; see --json or `export`."] if more > 0 else []
    return table_of(kind, key, title, rows[:_MOST_LISTED], notes=notes, group="system")


def _other_answers(r: SessionResult, log: SessionLog) -> Iterator[_OtherAnswer]:
    for at in log.differing:
        call = log.calls[at]
        arguments = _line(json.dumps(call.arguments, ensure_ascii=False))
        about = (r.system, r.case.id, r.trial, at + 1, call.tool)
        yield _OtherAnswer(*about, arguments, _line(call.result))


def _why(r: SessionResult, log: SessionLog) -> str:
    reasons = list(r.verdict.differences[:1]) if r.verdict else []
    if ENDS[log.ended].decided_by:
        reasons = ["the session was cut off"]
    if log.differing:
        first = log.calls[log.differing[0]]
        reasons.append(f"{first.tool} answers differently in the replay")
    return "; ".join(reasons) or "the state is the expected one"
