"""Results of workflows as tables, for terminal, JSON, page and export."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.analysis.system_pairs import Pair
from agenteval.records.table import Cell, Column, Estimate, Table
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
from agenteval.workflows.tallies import GROUPS, SessionTally, Tallies
from agenteval.workflows.turn_score import TurnTable


@dataclass(frozen=True, slots=True)
class _Field:
    """A column, and the attributes that lead from the figures of a row to its value."""

    column: Column
    path: tuple[str, ...]

    def cell(self, figures: Any) -> Cell:
        value = figures
        for name in self.path:
            if isinstance(value, Mapping):
                value = sum(value.values()) if name == "total" else value.get(name, 0)
            else:
                value = getattr(value, name)
        return Estimate.of(value) if isinstance(value, Interval) else value


def _fields(text: str) -> tuple[_Field, ...]:
    """Read columns, one a line: `form | key = path | head | hint`.

    Without a path the key is the name of the attribute; `/` breaks the head into lines. Of counts
    by name, `total` is their sum.
    """
    fields = []
    for line in text.strip().splitlines():
        form, name, head, hint = (part.strip() for part in line.split("|"))
        key, _, path = name.partition(" = ")
        column: Any = {"key": key, "head": head.replace("/", "\n"), "form": form, "hint": hint}
        fields.append(_Field(Column(**column), tuple((path or key).split("."))))
    return tuple(fields)


_AGENT = Column("agent", "agent")
_FORMAT = Column("format", "format", hint="how the procedure is told")
_SUCCESS = _fields("""
number | success | success/[95%] | share of sessions that left the state which the goals ask for
""")
_SUCCESS_BOUNDS = _fields("""
number | success_low  | success/low  | with all sessions without verdict failed
number | success_high | success/high | with all of them succeeded
""")
_SESSIONS = _fields("""
count | sessions = success.n       | ses-/sions | with a word on success
count | tasks = success.n_clusters | tasks      | users that these sessions are of
count | without_verdict            | no/verdict | endpoint, adapter, simulator failed, \
undecided, or not judged yet: in no rate
""")
_PROGRESS = _fields("number | progress | progress/[95%] | goals achieved of all goals")
_GROUP_PROGRESS = _fields("number | progress = progress.mean | progress | mean")
_GROUP_CONFORMS = _fields("number | conforms = conforms.mean | follows/the chart |")
_F1 = _fields("number | f1 = tool.f1.known | tool F1/[95%] |")
_F1_BOUNDS = _fields("""
number | f1_low = tool.f1_low   | F1/low  | with all that is undecided wrong
number | f1_high = tool.f1_high | F1/high | with all that is undecided right
""")
_PRECISION_RECALL = _fields("""
number | precision = tool.precision.known | tool P/[95%] | calls that are gold calls
number | recall = tool.recall.known       | tool R/[95%] | gold calls that were made
""")
_PROCEDURE = _fields("""
number | conforms                | follows the/chart [95%] | sessions with a call of which none \
departs from the procedure
count  | with_calls = conforms.n | sessions/with a call    |
number | fitness = fitness.mean  | fitness  | 1 − cost of the best walk / cost of the worst
number | order = sequence.mean   | order F1 | longest common subsequence of tool names with \
gold, mean
""")
_CALLS = _fields("""
count  | right = tool.right    | right             |
count  | made = tool.predicted | made              |
count  | gold = tool.gold      | gold              | calls due
count  | undecided = unjudged  | un-/decided       | calls whose values only a judge could compare
number | turns = turns.mean    | replies per/session |
number | calls = calls.mean    | calls per/session |
""")
_ENDED = _fields("""
count | sessions = ended.total        | sessions          |
count | user = ended.user             | user said/goodbye |
count | turns = ended.turns           | limit of/turns    |
count | limit = ended.calls           | limit of/calls    |
count | turn_limit = ended.turn_calls | limit in/a turn   | of calls, see --calls-per-turn
count | agent_stopped = ended.agent   | agent/stopped     |
count | calls = statuses.total        | calls             | made in these sessions
count | malformed = statuses.malformed | malformed        | calls that could not be read
count | bad_arguments = statuses.bad_arguments | refused  | calls whose arguments the tool does \
not declare, or that it refused
count | unknown_tool = statuses.unknown_tool | unknown/tool | calls of a tool that there is not
""")
_CAUSES = (
    *_fields("count | failed | failed | sessions"),
    *(
        _Field(Column(cause, cause.replace("_", "\n"), "count"), ("counts", cause))
        for cause in (*CAUSES, "other")
    ),
)
_POWERS = _fields("""
count  | k              | k            |
number | rate           | pass^k [95%] | all of k succeed
count  | tasks = rate.n | tasks        |
count  | left_out       | left out     | tasks with fewer than k
""")
_AGREEMENT = _fields("""
number | agreement                | agree [95%] | share of sessions
number | kappa = coefficient      | kappa [95%] | Cohen's
count  | sessions = coefficient.n | sessions    | with both
""")
_EFFORT = _fields("""
count | requests_agent      | requests,/agent        |
count | tokens_agent        | tokens,/agent          |
count | requests_simulators | requests,/simu-/lators |
count | tokens_simulators   | tokens,/simu-/lators   |
count | requests_judges     | requests,/judges       |
count | tokens_judges       | tokens,/judges         |
money | cost                | cost,/agent            | in the currency of the prices given
""")
_TURNS = _fields("""
count | turns                      | turns       | with a prediction
count | unreadable                 | unread-/able | no call and no reply
count | undecided = tool.undecided | un-/decided | calls only a judge could decide
count | lost = failures.total      | lost        | endpoint or adapter failed: in no rate
""")
_DUE_CALLS = _fields("""
number | recall = tool.recall.known | right of due/calls [95%] | tool and parameters
""")
_PARAMETERS = _fields("""
number | parameters = parameters.f1.known | parameters/F1 [95%] | credited only where the tool \
is right
number | parameters_free = parameters_free.f1.known | with any tool/F1 [95%] |
""")
_REPLIES = _fields("""
number | node       | node right/[95%]   | share of named nodes
count  | named      | named              | turns that name a node
count  | due        | of                 | turns that have a node
number | response   | response/0–10 [95%] | a judge's mean
count  | graded     | graded             |
count  | not_graded | not/graded         | the judge failed
count  | no_reply   | no/reply           | a reply was due and none came
""")
_NO_VERDICT = (
    "Success leaves out sessions without a verdict, whichever way they ended; low and high are its "
    "ends with all of them failed, and succeeded. What they lacked is told below."
)
_UNDECIDED = (
    "Calls are undecided for want of a judge's word. Values that agree are decided by rule and "
    "those that differ wait for it, so the F1 of decided calls is optimistic: believe the bounds."
)


@dataclass(frozen=True, slots=True)
class _Row:
    """Figures of one system, or of one group of its trials."""

    system: str
    group: str
    figures: Any


def result_tables(
    sessions: Sequence[SessionResult], turns: Sequence[TurnResult], tallies: Tallies | None = None
) -> tuple[Table, ...]:
    """Return all tables that have a row, the rates of each agent and format first.

    `tallies` are those of these results, where they exist already.
    """
    tallies = tallies or Tallies(sessions, turns)
    tables: list[Table] = []
    if sessions:
        tables += _SessionTables(tallies, sessions)
    if turns:
        tables += _TurnTables(tallies, turns)
    return tuple(sorted((t for t in tables if t.rows), key=lambda table: table.detail))


class _Tables:
    def __init__(
        self, tallies: Tallies, results: Sequence[SessionResult] | Sequence[TurnResult]
    ) -> None:
        self.tallies = tallies
        self.systems = {r.system: {"agent": r.agent, "format": r.format} for r in results}

    def table(
        self,
        key: str,
        title: str,
        fields: Sequence[_Field],
        rows: Iterable[_Row],
        *notes: str,
        by: str = "",
        detail: bool = True,
    ) -> Table:
        """Return a table by agent and format, or by system and the groups named `by`."""
        first = (Column(by, by), Column("system", "system")) if by else (_AGENT, _FORMAT)
        cells: list[dict[str, Cell]] = []
        for row in rows:
            lead = {by: row.group, "system": row.system} if by else self.systems[row.system]
            cells.append({**lead, **{f.column.key: f.cell(row.figures) for f in fields}})
        columns = (*first, *(f.column for f in fields))
        shown = tuple(note for note in notes if note)
        return Table(key, title, columns, tuple(cells), shown, by or "agent", detail)


class _SessionTables(_Tables):
    def __iter__(self) -> Iterator[Table]:
        sessions, rows = self.tallies.sessions, self.rows()
        tallies: list[SessionTally] = [row.figures for row in rows]
        missing = any(t.without_verdict for t in tallies)
        yield self.table(
            "sessions",
            "Whole sessions",
            (*_SUCCESS, *(_SUCCESS_BOUNDS if missing else ()), *_PROGRESS, *_SESSIONS),
            rows,
            "Success is the mean over tasks, progress over sessions. Tasks are the units of all "
            "intervals: repeated sessions of a user add none.",
            _NO_VERDICT if missing else "",
            without_interval(i for t in tallies for i in (t.success, t.progress)),
            unequal(sessions, "tasks"),
            suffixes(row.system for row in rows),
            detail=False,
        )
        title = "What brought no verdict, and what simulators did wrong"
        losses = [loss for r in sessions for loss in losses_of_session(r)]
        yield lost_table("lost", title, losses, "None of it is charged to the agent.")
        yield self.table(
            "procedure",
            "Do sessions follow the procedure?",
            _PROCEDURE,
            rows,
            "A beginning of a walk follows the chart too; what is missing is told by the causes.",
            _uncharted(sessions),
            _unchecked(sessions),
            without_interval(t.conforms for t in tallies),
        )
        yield from reward_tables(sessions)
        undecided = any(t.tool.undecided for t in tallies)
        yield self.table(
            "session_calls",
            "Calls in sessions",
            (*_PRECISION_RECALL, *_F1, *(_F1_BOUNDS if undecided else ()), *_CALLS),
            rows,
            "A call is right when tool and parameters equal a gold call's, each gold call once.",
            _UNDECIDED if undecided else "",
            without_interval(t.tool.f1.known for t in tallies),
        )
        notable = [t for t in tallies if t.cut_short or t.refused]
        left_out = "Agents whose users all said goodbye, without a refused call, are left out."
        yield self.table(
            "ended",
            "How sessions ended",
            _ENDED,
            [_Row(t.system, "", t) for t in notable],
            "Agent stopped: out of time within a turn, or it said nothing.",
            left_out if len(notable) < len(rows) else "",
        )
        yield from (self.by_group(name) for name in GROUPS if _several(name, sessions))
        yield _formats(self.tallies.session_pairs, "sessions", "share of successes")
        yield self.table(
            "causes",
            "Why sessions failed",
            _CAUSES,
            [_Row(c.system, "", c) for c in self.tallies.causes],
            "The first deviation of a failed session, from chart and gold calls; no judge.",
        )
        powers = [_Row(t.system, "", p) for t in tallies if len(t.powers) > 1 for p in t.powers]
        yield self.table(
            "powers",
            "Repeated sessions",
            _POWERS,
            powers,
            "Unbiased: C(successes, k) / C(sessions, k) of each task, mean over tasks, which are "
            "the units of all intervals.",
            detail=False,
        )
        agreements = [_Row(t.system, "", t.agreement) for t in tallies if t.agreement is not None]
        yield self.table("judge", "Judge's success against the final state", _AGREEMENT, agreements)
        efforts = [
            _Row(t.system, "", effort) for t in tallies if any((effort := _effort(t)).values())
        ]
        yield self.table("effort", "What the sessions took", _EFFORT, efforts)

    def rows(self, group: str = "") -> list[_Row]:
        return [_Row(t.system, t.group, t) for t in self.tallies.sessions_by(group)]

    def by_group(self, name: str) -> Table:
        rows = sorted(self.rows(name), key=lambda row: row.group)
        tallies: list[SessionTally] = [row.figures for row in rows]
        undecided = any(t.tool.undecided for t in tallies)
        bounds = _F1_BOUNDS if undecided else ()
        fields = (*_SUCCESS, *_GROUP_PROGRESS, *_F1, *bounds, *_GROUP_CONFORMS, *_SESSIONS)
        return self.table(
            f"sessions_by_{name}",
            f"Sessions by {name}",
            fields,
            rows,
            _UNDECIDED if undecided else "",
            without_interval(i for t in tallies for i in (t.success, t.tool.f1.known)),
            by=name,
        )


class _TurnTables(_Tables):
    def __iter__(self) -> Iterator[Table]:
        turns, rows = self.tallies.turns, self.rows()
        yield self.turns(
            "turns",
            "Single turns of recorded sessions",
            rows,
            "Intervals resample recorded sessions. Lost: no prediction; in no rate.",
            unequal(turns, "turns"),
            suffixes(row.system for row in rows),
        )
        losses = [loss for r in turns for loss in losses_of_turn(r)]
        yield lost_table("turns_lost", "What brought no prediction or grade", losses)
        fields = (*_PRECISION_RECALL, *_F1, *_PARAMETERS)
        yield self.table("turn_calls", "Calls and parameters at single turns", fields, rows)
        replies = [_Row(row.system, "", _replies(row.figures)) for row in rows]
        named = [row for row in replies if row.figures["named"] or row.figures["graded"]]
        yield self.table("turn_replies", "Nodes and replies", _REPLIES, named)
        for name in GROUPS:
            if _several(name, turns):
                groups = sorted(self.rows(name), key=lambda row: row.group)
                yield self.turns(f"turns_by_{name}", f"Single turns by {name}", groups, by=name)
        yield _formats(self.tallies.turn_pairs, "turns", "share of due calls that are right")

    def rows(self, group: str = "") -> list[_Row]:
        return [_Row(*row) for row in self.tallies.turns_by(group)]

    def turns(self, key: str, title: str, rows: Sequence[_Row], *notes: str, by: str = "") -> Table:
        undecided = any(row.figures.tool.undecided for row in rows)
        fields = (*_DUE_CALLS, *_F1, *(_F1_BOUNDS if undecided else ()), *_TURNS)
        return self.table(
            key,
            title,
            fields,
            rows,
            *notes,
            _UNDECIDED if undecided else "",
            without_interval(row.figures.tool.f1.known for row in rows),
            by=by,
            detail=bool(by),
        )


def _several(name: str, results: Sequence[SessionResult] | Sequence[TurnResult]) -> bool:
    return len({GROUPS[name](r.case) for r in results}) > 1


def _uncharted(sessions: Sequence[SessionResult]) -> str:
    """Return how many sessions have no chart to follow."""
    without = sum(r.verdict is not None and not r.verdict.charted for r in sessions)
    return f"{plural(without, 'session')} without a chart: not applicable." if without else ""


def _unchecked(sessions: Sequence[SessionResult]) -> str:
    """Return how many transitions could not be checked, "" where all could."""
    verdicts = [r.verdict for r in sessions if r.verdict]
    unchecked, walked = sum(v.unchecked for v in verdicts), sum(len(v.edges) for v in verdicts)
    reason = "the user's will, or no value that was returned"
    text = f"{unchecked:,} of {walked:,} transitions walked could not be checked: {reason}."
    return text if unchecked else ""


def _effort(t: SessionTally) -> dict[str, Cell]:
    """Return what each party took; the sum is unknown where either kind of token is."""
    row: dict[str, Cell] = {"cost": t.usage.cost}
    parties = {"agent": t.usage, "simulators": t.simulated, "judges": t.judging}
    for party, usage in parties.items():
        prompt, reply = usage.prompt_tokens, usage.completion_tokens
        row[f"requests_{party}"] = usage.requests
        row[f"tokens_{party}"] = None if prompt is None or reply is None else prompt + reply
    return row


def _replies(t: TurnTable) -> dict[str, Any]:
    accuracy, response = t.node.accuracy, t.response
    row = {"node": accuracy, "named": accuracy.n, "due": t.node.turns}
    if response is None:
        return {**row, "response": None, "graded": 0, "not_graded": 0, "no_reply": 0}
    failed = sum(response.failures.values())
    graded = {"response": response.mean, "graded": response.mean.n, "not_graded": failed}
    return {**row, **graded, "no_reply": response.no_reply}


def _formats(pairs: Sequence[Pair], level: str, what: str) -> Table:
    fields = _fields(f"""
text   | agent      | agent                   |
text   | first      | first                   |
text   | second     | second                  |
signed | difference | first less/second [95%] | {what}
count  | tasks      | tasks                   | with both
count  | left_out   | left/out                | tasks with a verdict on one only
p      | p          | p                       |
p      | corrected  | p cor-/rected           | Holm, over all pairs
""")
    rows: list[dict[str, Cell]] = [{f.column.key: f.cell(pair) for f in fields} for pair in pairs]
    for row, pair in zip(rows, pairs, strict=True):
        row["p"] = Estimate(None, reason=pair.reason or "") if pair.p is None else pair.p
    title, note = f"Formats of the procedure compared, {level}", f"Paired by task: {what}."
    columns = tuple(f.column for f in fields)
    note += " p: sign flips over tasks."
    return Table(f"formats_{level}", title, columns, tuple(rows), (note,), "agent", detail=True)
