"""Results of workflows as tables, for terminal, JSON, page and export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from agenteval.analysis.system_pairs import Pair
from agenteval.records.table import (
    Cell,
    Column,
    Estimate,
    Table,
    cells_of,
    column,
    columns_headed,
    columns_of,
    table_of,
)
from agenteval.stats import Interval
from agenteval.text import plural
from agenteval.workflows.caveat_tables import (
    losses_of_session,
    losses_of_turn,
    lost_table,
    reward_tables,
    suffixes,
    unequal,
    without_interval,
)
from agenteval.workflows.conformance import CAUSES
from agenteval.workflows.results import SessionResult, TurnResult
from agenteval.workflows.session import ENDS
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


@dataclass(frozen=True, slots=True)
class _AgentColumns:
    agent: str = column("agent")
    format: str = column("format", hint="format of the procedure")


@dataclass(frozen=True, slots=True)
class _SessionCount(_AgentColumns):
    sessions: int = column("sessions", "count")


@dataclass(frozen=True, slots=True)
class _FailedCount(_AgentColumns):
    failed: int = column("failed", "count", "sessions")


@dataclass(frozen=True, slots=True)
class _CallStatuses:
    calls: int = column("calls", "count", "in these sessions")
    malformed: int = column("malformed", "count", "calls that could not be read")
    bad_arguments: int = column(
        "refused",
        "count",
        "calls with undeclared arguments, or refused by the tool",
    )
    unknown_tool: int = column("unknown\ntool", "count", "calls of a tool that does not exist")


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


@dataclass(frozen=True, slots=True)
class _TurnCalls(_AgentColumns):
    precision: Interval = column("tool P\n[95%]", "number", "calls that match gold calls")
    recall: Interval = column("tool R\n[95%]", "number", "matched gold calls")
    f1: Interval = column("tool F1\n[95%]", "number")
    parameters: Interval = column(
        "parameters\nF1 [95%]", "number", "credited only if the tool is correct"
    )
    parameters_free: Interval = column("with any tool\nF1 [95%]", "number")


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


def _session_tables(all_tallies: Tallies) -> Iterator[Table]:
    sessions, tallies = all_tallies.sessions, all_tallies.sessions_by()
    missing = any(t.without_verdict for t in tallies)
    undecided = any(t.f1_low is not None for t in tallies)
    yield _table(
        tallies,
        "sessions",
        "Whole sessions",
        _SESSIONS,
        "Success is the mean over tasks, progress over sessions. Intervals treat tasks as units: "
        "repeated sessions of a user do not add units.",
        _NO_VERDICT if missing else "",
        without_interval(i for t in tallies for i in (t.success, t.progress)),
        unequal(sessions, "tasks"),
        suffixes(t.system for t in tallies),
        detail=False,
    )
    yield lost_table(
        "lost",
        "Missing verdicts and simulator mistakes",
        [loss for r in sessions for loss in losses_of_session(r)],
        "None of these count against the agent.",
    )
    yield _table(
        tallies,
        "procedure",
        "Do sessions follow the procedure?",
        _PROCEDURE,
        "An incomplete walk also follows the chart; the causes show what is missing.",
        *_unchecked(sessions),
        without_interval(t.conforms for t in tallies),
    )
    yield from reward_tables(sessions)
    yield _table(
        tallies,
        "session_calls",
        "Calls in sessions",
        _CALLS,
        "A call is correct if its tool and parameters equal those of a gold call; each gold call "
        "counts once.",
        _UNDECIDED if undecided else "",
        without_interval(t.f1 for t in tallies),
    )
    yield _ends(tallies)
    for name in GROUPS:
        if _several(name, sessions):
            groups = sorted(all_tallies.sessions_by(name), key=lambda t: t.group)
            notes = [
                _UNDECIDED if any(t.f1_low is not None for t in groups) else "",
                without_interval(i for t in groups for i in (t.success, t.f1)),
            ]
            yield _table(
                groups, f"sessions_by_{name}", f"Sessions by {name}", _GROUP, *notes, by=name
            )
    yield _formats(format_pairs(sessions), "sessions", "share of successes")
    yield _causes([t for t in tallies if t.causes])
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


def _turn_tables(all_tallies: Tallies) -> Iterator[Table]:
    turns, tallies = all_tallies.turns, all_tallies.turns_by()
    undecided = any(t.undecided for t in tallies)
    yield _table(
        tallies,
        "turns",
        "Single turns of recorded sessions",
        _TURNS,
        "Intervals resample recorded sessions. Lost: no prediction; excluded from rates.",
        unequal(turns, "turns"),
        suffixes(t.system for t in tallies),
        _UNDECIDED if undecided else "",
        without_interval(t.f1 for t in tallies),
        detail=False,
    )
    losses = [loss for r in turns for loss in losses_of_turn(r)]
    yield lost_table("turns_lost", "Missing predictions and grades", losses)
    calls = [
        _TurnCalls(
            t.agent,
            t.format,
            t.table.tool.precision.known,
            t.recall,
            t.f1,
            t.table.parameters.f1.known,
            t.table.parameters_free.f1.known,
        )
        for t in tallies
    ]
    title = "Calls and parameters at single turns"
    yield table_of(_TurnCalls, "turn_calls", title, calls, group="agent", detail=True)
    replies = [t for t in tallies if t.named or t.graded]
    yield _table(replies, "turn_replies", "Nodes and replies", _REPLIES)
    for name in GROUPS:
        if _several(name, turns):
            groups = sorted(all_tallies.turns_by(name), key=lambda t: t.group)
            notes = [
                _UNDECIDED if any(t.undecided for t in groups) else "",
                without_interval(t.f1 for t in groups),
            ]
            title = f"Single turns by {name}"
            yield _table(groups, f"turns_by_{name}", title, _TURNS, *notes, by=name)
    yield _formats(format_pairs(turns), "turns", "share of correct due calls")


def _table(
    tallies: Sequence[SessionTally] | Sequence[TurnTally],
    key: str,
    title: str,
    names: str,
    *notes: str,
    by: str = "",
    detail: bool = True,
) -> Table:
    """Return a table of some columns of tallies, by agent and format or by group and system.

    Bounds that no row has are left out.
    """
    kind = TurnTally if tallies and isinstance(tallies[0], TurnTally) else SessionTally
    full = table_of(kind, key, title, tallies, notes=filter(None, notes), drop_empty=_BOUNDS)
    columns = {c.key: c for c in full.columns}
    lead = ("group", "system") if by else ("agent", "format")
    keys = [k for k in (*lead, *names.split()) if k in columns]
    if by:
        columns |= _MEANS | {"group": Column(by, by)}
    plain = {"fitness", "order", "turns", "calls", *(_MEANS if by else ())}
    rows: list[dict[str, Cell]] = []
    for row in full.rows:
        cells = {columns[k].key: row[k] for k in keys}
        for k in plain & cells.keys():
            cell = cells[k]
            cells[k] = cell.value if isinstance(cell, Estimate) else cell
        rows.append(cells)
    shown = tuple(columns[k] for k in keys)
    return replace(full, columns=shown, rows=tuple(rows), group=by or "agent", detail=detail)


def _several(name: str, results: Sequence[SessionResult] | Sequence[TurnResult]) -> bool:
    return len({GROUPS[name](r.case) for r in results}) > 1


def _unchecked(sessions: Sequence[SessionResult]) -> Iterator[str]:
    """Yield how many sessions have no chart, and how many transitions could not be checked."""
    verdicts = [r.verdict for r in sessions if r.verdict]
    if without := sum(not v.charted for v in verdicts):
        yield f"{plural(without, 'session')} without a chart: not applicable."
    unchecked, walked = sum(v.unchecked for v in verdicts), sum(len(v.edges) for v in verdicts)
    if unchecked:
        reason = "the user's choice, or a value that no call returned"
        yield f"{unchecked:,} of {walked:,} transitions could not be checked: {reason}."


def _ends(tallies: Sequence[SessionTally]) -> Table:
    """Return how sessions ended, with a column for each end, and what became of their calls."""
    columns = (
        *columns_of(_SessionCount),
        *(Column(end.column, end.head, "count", end.hint) for end in ENDS.values()),
        *columns_of(_CallStatuses),
    )
    notable = [t for t in tallies if t.cut_short or t.refused]
    rows: list[dict[str, Cell]] = []
    for t in notable:
        counts = _SessionCount(t.agent, t.format, t.ended.total())
        kinds = (t.statuses[k] for k in ("malformed", "bad_arguments", "unknown_tool"))
        ends = {end.column: t.ended[key] for key, end in ENDS.items()}
        rows.append(asdict(counts) | ends | asdict(_CallStatuses(t.statuses.total(), *kinds)))
    left_out = (
        "Agents whose sessions all ended with the user's goodbye and without refused calls are "
        "omitted."
    )
    notes = (left_out,) if len(notable) < len(tallies) else ()
    return Table("ended", "How sessions ended", columns, tuple(rows), notes, "agent", detail=True)


def _causes(tallies: Sequence[SessionTally]) -> Table:
    """Return the table of causes, which has a column for each."""
    heads = {cause: cause.replace("_", "\n") for cause in (*CAUSES, "other")}
    return table_of(
        _FailedCount,
        "causes",
        "Why sessions failed",
        [(t, {"failed": sum(t.causes.values()), **t.causes}) for t in tallies],
        notes=[
            "The first deviation of a failed session from chart and gold calls (without a judge)."
        ],
        group="agent",
        detail=True,
        more=columns_headed(heads, "count"),
    )


def _effort(t: SessionTally) -> dict[str, Cell]:
    """Return what each party took; the sum is unknown where either kind of token is."""
    cells: dict[str, Cell] = {"cost": t.usage.cost}
    for party, usage in (("agent", t.usage), ("simulators", t.simulated), ("judges", t.judging)):
        prompt, reply = usage.prompt_tokens, usage.completion_tokens
        cells[f"requests_{party}"] = usage.requests
        cells[f"tokens_{party}"] = None if prompt is None or reply is None else prompt + reply
    return cells


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


def _formats(pairs: Sequence[Pair], level: str, what: str) -> Table:
    columns = tuple(
        replace(c, hint=what) if c.key == "difference" else c
        for c in columns_of(_FormatPairColumns)
    )
    rows = []
    for pair in pairs:
        p = Estimate(None, reason=pair.reason or "") if pair.p is None else pair.p
        rows.append(cells_of(pair, columns, p=p))
    title = f"Formats of the procedure compared, {level}"
    note = f"Paired by task: {what}. p: sign flips over tasks."
    return Table(f"formats_{level}", title, columns, tuple(rows), (note,), "agent", detail=True)
