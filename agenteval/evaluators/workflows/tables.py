"""Results of workflows as tables, for terminal, JSON, page and export alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agenteval.evaluators.systems import Pair
from agenteval.evaluators.workflows.caveat_tables import (
    losses_of_session,
    losses_of_turn,
    lost_table,
    reward_tables,
    suffixes,
    unequal,
    without_interval,
)
from agenteval.evaluators.workflows.conformance import CAUSES
from agenteval.evaluators.workflows.rates import Rates, rate_cells
from agenteval.evaluators.workflows.results import SessionResult, TurnResult
from agenteval.evaluators.workflows.tallies import GROUPS, SessionTally, Tallies
from agenteval.evaluators.workflows.turn_score import TurnTable
from agenteval.records import Usage
from agenteval.records.table import Cell, Column, Estimate, Table
from agenteval.text import plural

_AGENT = Column("agent", "agent")
_FORMAT = Column("format", "format", hint="how the procedure is told")
_SYSTEM = Column("system", "system")
_SUCCESS = Column("success", "success\n[95%]", "number",
                  "share of sessions that left the state which the goals ask for")  # fmt: skip
_SESSIONS = Column("sessions", "ses-\nsions", "count", "with a word on success")
_TASKS = Column("tasks", "tasks", "count", "users that these sessions are of")
_WITHOUT = Column("without_verdict", "no\nverdict", "count", "endpoint, adapter, simulator failed, "
                  "undecided, or not judged yet: in no rate")  # fmt: skip
_TOOLS = (
    Column("precision", "tool P\n[95%]", "number", "calls that are gold calls"),
    Column("recall", "tool R\n[95%]", "number", "gold calls that were made"),
    Column("f1", "tool F1\n[95%]", "number"),
)
_BOUNDS = (
    Column("f1_low", "F1\nlow", "number", "with all that is undecided wrong"),
    Column("f1_high", "F1\nhigh", "number", "with all that is undecided right"),
)
_ENDS = (
    Column("success_low", "success\nlow", "number", "with all sessions without verdict failed"),
    Column("success_high", "success\nhigh", "number", "with all of them succeeded"),
)
_MISSING = (
    "Success leaves out sessions without a verdict, whichever way they ended; low and high are its "
    "ends with all of them failed, and succeeded. What they lacked is told below."
)
_OPEN = (
    "Calls are undecided for want of a judge's word. Values that agree are decided by rule and "
    "those that differ wait for it, so the F1 of decided calls is optimistic: believe the bounds."
)

_Row = Mapping[str, Cell]


def result_tables(
    sessions: Sequence[SessionResult], turns: Sequence[TurnResult], tallies: Tallies | None = None
) -> tuple[Table, ...]:
    """All tables that the results have something for, the rates of each agent and format first.

    `tallies` are those of these results, where somebody has them already.
    """
    known = tallies or Tallies(sessions, turns)
    made = (
        *(_session_tables(known) if sessions else ()),
        *(_turn_tables(known) if turns else ()),
    )
    return tuple(sorted((t for t in made if t.rows), key=lambda table: table.detail))


def _session_tables(known: Tallies) -> Iterator[Table]:
    whole, who = known.sessions_by(), _who(known.sessions)
    sizes = {t.system: _sizes(t) for t in whole}
    some = any(row["without_verdict"] for row in sizes.values())
    yield Table(
        "sessions",
        "Whole sessions",
        (_AGENT, _FORMAT, _SUCCESS, *(_ENDS if some else ()),
         Column("progress", "progress\n[95%]", "number", "goals achieved of all goals"),
         _SESSIONS, _TASKS, _WITHOUT),
        tuple(
            {**who[t.system], "success": Estimate.of(t.success),
             "progress": Estimate.of(t.progress), **sizes[t.system],
             **(dict(zip(("success_low", "success_high"), t.bounds, strict=True))
                if sizes[t.system]["without_verdict"] else {})}
            for t in whole
        ),
        _notes("Success is the mean over tasks, progress over sessions. Tasks are the units of all "
               "intervals: repeated sessions of a user add none.",
               _MISSING if some else "",
               without_interval(i for t in whole for i in (t.success, t.progress)),
               unequal(known.sessions, "tasks"), suffixes(who)),
        "agent",
    )  # fmt: skip
    lost = [loss for r in known.sessions for loss in losses_of_session(r)]
    yield lost_table("lost", "What brought no verdict, and what simulators did wrong", lost,
                "None of it is charged to the agent.")  # fmt: skip
    yield Table(
        "procedure",
        "Do sessions follow the procedure?",
        (_AGENT, _FORMAT,
         Column("conforms", "follows the\nchart [95%]", "number",
                "sessions with a call of which none departs from the procedure"),
         Column("with_calls", "sessions\nwith a call", "count"),
         Column("fitness", "fitness", "number", "1 − cost of the best walk / cost of the worst"),
         Column("order", "order F1", "number",
                "longest common subsequence of tool names with gold, mean")),
        tuple(
            {**who[t.system], "conforms": Estimate.of(t.conforms), "with_calls": t.conforms.n,
             "fitness": t.fitness.mean, "order": t.sequence.mean}
            for t in whole
        ),
        _notes("A beginning of a walk follows the chart too; what is missing is told by the "
               "causes.", _uncharted(known.sessions), _unchecked(known.sessions),
               without_interval(t.conforms for t in whole)),
        "agent", detail=True,
    )  # fmt: skip
    yield from reward_tables(known.sessions)
    yield _calls(whole, who)
    yield _endings(whole, who)
    for name in GROUPS:
        if _several(name, known.sessions):
            yield _session_group(name, known)
    yield _formats(known.session_pairs, "sessions", "share of successes")
    labels = (*CAUSES, "other")
    yield Table(
        "causes",
        "Why sessions failed",
        (_AGENT, _FORMAT, Column("failed", "failed", "count", "sessions"),
         *(Column(label, label.replace("_", "\n"), "count") for label in labels)),
        tuple({**who[c.system], "failed": c.failed, **c.counts} for c in known.causes),
        ("The first deviation of a failed session, from chart and gold calls; no judge.",),
        "agent", detail=True,
    )  # fmt: skip
    yield Table(
        "powers",
        "Repeated sessions",
        (_AGENT, _FORMAT, Column("k", "k", "count"),
         Column("rate", "pass^k [95%]", "number", "all of k succeed"),
         Column("tasks", "tasks", "count"),
         Column("left_out", "left out", "count", "tasks with fewer than k")),
        tuple(
            {**who[t.system], "k": p.k, "rate": Estimate.of(p.rate), "tasks": p.rate.n,
             "left_out": p.left_out}
            for t in whole for p in t.powers if len(t.powers) > 1
        ),
        ("Unbiased: C(successes, k) / C(sessions, k) of each task, mean over tasks, which are "
         "the units of all intervals.",), "agent",
    )  # fmt: skip
    yield Table(
        "judge",
        "Judge's success against the final state",
        (_AGENT, _FORMAT, Column("agreement", "agree [95%]", "number", "share of sessions"),
         Column("kappa", "kappa [95%]", "number", "Cohen's"),
         Column("sessions", "sessions", "count", "with both")),
        tuple(
            {**who[t.system], "agreement": Estimate.of(k.agreement),
             "kappa": Estimate.of(k.coefficient), "sessions": k.coefficient.n}
            for t in whole if (k := t.agreement) is not None
        ),
        (), "agent", detail=True,
    )  # fmt: skip
    yield _effort(whole, who)


def _turn_tables(known: Tallies) -> Iterator[Table]:
    whole, who = known.turns_by(), _who(known.turns)
    yield _turns("turns", "Single turns of recorded sessions", whole, who, _notes(
        "Intervals resample recorded sessions. Lost: no prediction; in no rate.",
        unequal(known.turns, "turns"), suffixes(who),
    ))  # fmt: skip
    lost = [loss for r in known.turns for loss in losses_of_turn(r)]
    yield lost_table("turns_lost", "What brought no prediction or grade", lost)
    parameters = (Column("parameters", "parameters\nF1 [95%]", "number",
                         "credited only where the tool is right"),
                  Column("parameters_free", "with any tool\nF1 [95%]", "number"))  # fmt: skip
    yield Table(
        "turn_calls",
        "Calls and parameters at single turns",
        (_AGENT, _FORMAT, *_TOOLS, *parameters),
        tuple(
            {**who[system], **rate_cells(t.tool), "parameters": Estimate.of(t.parameters.f1.known),
             "parameters_free": Estimate.of(t.parameters_free.f1.known)}
            for system, _, t in whole
        ),
        (), "agent", detail=True,
    )  # fmt: skip
    yield Table(
        "turn_replies",
        "Nodes and replies",
        (_AGENT, _FORMAT, Column("node", "node right\n[95%]", "number", "share of named nodes"),
         Column("named", "named", "count", "turns that name a node"),
         Column("due", "of", "count", "turns that have a node"),
         Column("response", "response\n0–10 [95%]", "number", "a judge's mean"),
         Column("graded", "graded", "count"),
         Column("not_graded", "not\ngraded", "count", "the judge failed"),
         Column("no_reply", "no\nreply", "count", "a reply was due and none came")),
        tuple(
            {**who[system], "node": Estimate.of(t.node.accuracy), "named": t.node.accuracy.n,
             "due": t.node.turns, **_responses(t)}
            for system, _, t in whole
            if t.node.accuracy.n or (t.response and t.response.mean.n)
        ),
        (), "agent", detail=True,
    )  # fmt: skip
    for name in GROUPS:
        if _several(name, known.turns):
            rows = sorted(known.turns_by(name), key=lambda row: row[1])
            yield _turns(f"turns_by_{name}", f"Single turns by {name}", rows, who, (), name)
    yield _formats(known.turn_pairs, "turns", "share of due calls that are right")


def _who(results: Iterable[SessionResult | TurnResult]) -> dict[str, dict[str, Cell]]:
    """Agent and format of each system, as cells."""
    return {r.system: {"agent": r.agent, "format": r.format} for r in results}


def _several(name: str, results: Sequence[SessionResult] | Sequence[TurnResult]) -> bool:
    return len({GROUPS[name](r.case) for r in results}) > 1


def _sizes(t: SessionTally) -> dict[str, Cell]:
    without = sum(t.failures.values()) + t.undecided + t.pending
    tasks = t.success.n_clusters or 0
    return {"sessions": t.success.n, "tasks": tasks, "without_verdict": without}


def _rates(rates: Rates) -> dict[str, Cell]:
    """Return precision, recall and F1, and the bounds of F1 where anything is undecided."""
    return rate_cells(rates, ("f1",) if rates.undecided else ())


def _f1(rates: Rates) -> dict[str, Cell]:
    return {key: cell for key, cell in _rates(rates).items() if key.startswith("f1")}


def _uncharted(sessions: Sequence[SessionResult]) -> str:
    """Of how many sessions there is nothing to follow."""
    without = sum(r.verdict is not None and not r.verdict.charted for r in sessions)
    return f"{plural(without, 'session')} without a chart: not applicable." if without else ""


def _unchecked(sessions: Sequence[SessionResult]) -> str:
    """Of how many transitions nothing could be checked; nothing where all could be."""
    verdicts = [r.verdict for r in sessions if r.verdict]
    unchecked, walked = sum(v.unchecked for v in verdicts), sum(len(v.edges) for v in verdicts)
    if not unchecked:
        return ""
    return (f"{unchecked:,} of {walked:,} transitions walked could not be checked: the user's "
            "will, or no value that was returned.")  # fmt: skip


def _calls(whole: Sequence[SessionTally], who: Mapping[str, _Row]) -> Table:
    some = any(t.tool.undecided for t in whole)
    return Table(
        "session_calls",
        "Calls in sessions",
        (_AGENT, _FORMAT, *_TOOLS, *(_BOUNDS if some else ()),
         Column("right", "right", "count"), Column("made", "made", "count"),
         Column("gold", "gold", "count", "calls due"),
         Column("undecided", "un-\ndecided", "count",
                "calls whose values only a judge could compare"),
         Column("turns", "replies per\nsession", "number"),
         Column("calls", "calls per\nsession", "number")),
        tuple(
            {**who[t.system], **_rates(t.tool), "right": t.tool.right,
             "made": t.tool.predicted,
             "gold": t.tool.gold, "undecided": t.unjudged, "turns": t.turns.mean,
             "calls": t.calls.mean}
            for t in whole
        ),
        _notes("A call is right when tool and parameters equal a gold call's, each gold call once.",
               _OPEN if some else "", without_interval(t.tool.f1.known for t in whole)),
        "agent", detail=True,
    )  # fmt: skip


def _endings(whole: Sequence[SessionTally], who: Mapping[str, _Row]) -> Table:
    """Nothing where every user said goodbye and every call was carried out."""
    notable = [t for t in whole if t.cut_short or t.refused]
    note = "Agent stopped: out of time within a turn, or it said nothing."
    left_out = "Agents whose users all said goodbye, without a refused call, are left out."
    return Table(
        "ended",
        "How sessions ended",
        (_AGENT, _FORMAT, Column("sessions", "sessions", "count"),
         Column("user", "user said\ngoodbye", "count"), Column("turns", "limit of\nturns", "count"),
         Column("limit", "limit of\ncalls", "count"),
         Column("turn_limit", "limit in\na turn", "count", "of calls, see --calls-per-turn"),
         Column("agent_stopped", "agent\nstopped", "count"),
         Column("calls", "calls", "count", "made in these sessions"),
         Column("malformed", "malformed", "count", "calls that could not be read"),
         Column("bad_arguments", "refused", "count",
                "calls whose arguments the tool does not declare, or that it refused"),
         Column("unknown_tool", "unknown\ntool", "count", "calls of a tool that there is not")),
        tuple(
            {**who[t.system], "sessions": t.ended.total(), "user": t.ended["user"],
             "turns": t.ended["turns"], "limit": t.ended["calls"],
             "turn_limit": t.ended["turn_calls"], "agent_stopped": t.ended["agent"],
             "calls": t.statuses.total(), "malformed": t.statuses["malformed"],
             "bad_arguments": t.statuses["bad_arguments"],
             "unknown_tool": t.statuses["unknown_tool"]}
            for t in notable
        ),
        _notes(note, left_out if len(notable) < len(whole) else ""),
        "agent", detail=True,
    )  # fmt: skip


def _session_group(name: str, known: Tallies) -> Table:
    rows = sorted(known.sessions_by(name), key=lambda t: t.group)
    some = any(t.tool.undecided for t in rows)
    return Table(
        f"sessions_by_{name}",
        f"Sessions by {name}",
        (Column(name, name), _SYSTEM, _SUCCESS, Column("progress", "progress", "number", "mean"),
         _TOOLS[-1], *(_BOUNDS if some else ()),
         Column("conforms", "follows\nthe chart", "number"), _SESSIONS, _TASKS, _WITHOUT),
        tuple(
            {name: t.group, "system": t.system, "success": Estimate.of(t.success),
             "progress": t.progress.mean, "conforms": t.conforms.mean, **_sizes(t),
             **_f1(t.tool)}
            for t in rows
        ),
        _notes(_OPEN if some else "",
               without_interval(i for t in rows for i in (t.success, t.tool.f1.known))),
        name, detail=True,
    )  # fmt: skip


def _formats(pairs: Sequence[Pair], level: str, what: str) -> Table:
    return Table(
        f"formats_{level}",
        f"Formats of the procedure compared, {level}",
        (_AGENT, Column("first", "first"), Column("second", "second"),
         Column("difference", "first less\nsecond [95%]", "signed", what),
         Column("tasks", "tasks", "count", "with both"),
         Column("left_out", "left\nout", "count", "tasks with a verdict on one only"),
         Column("p", "p", "p"), Column("corrected", "p cor-\nrected", "p", "Holm, over all pairs")),
        tuple(
            {"agent": p.agent, "first": p.first, "second": p.second,
             "difference": Estimate.of(p.difference), "tasks": p.tasks, "left_out": p.left_out,
             "p": p.p if p.p is not None else Estimate(None, reason=p.reason or ""),
             "corrected": p.corrected}
            for p in pairs
        ),
        (f"Paired by task: {what}. p: sign flips over tasks.",),
        "agent", detail=True,
    )  # fmt: skip


def _effort(whole: Sequence[SessionTally], who: Mapping[str, _Row]) -> Table:
    """Nothing where no model was asked."""
    parties = {"agent": "agent", "simulators": "simu-\nlators", "judges": "judges"}
    rows = []
    for t in whole:
        used: dict[str, Usage] = {"agent": t.usage, "simulators": t.simulated, "judges": t.judging}
        row: dict[str, Cell] = {}
        for party, usage in used.items():
            prompt, reply = usage.prompt_tokens, usage.completion_tokens
            row[f"requests_{party}"] = usage.requests
            row[f"tokens_{party}"] = None if prompt is None or reply is None else prompt + reply
        row["cost"] = t.usage.cost
        if any(row.values()):
            rows.append({**who[t.system], **row})
    return Table(
        "effort",
        "What the sessions took",
        (_AGENT, _FORMAT,
         *(Column(f"{kind}_{party}", f"{kind},\n{name}", "count")
           for party, name in parties.items() for kind in ("requests", "tokens")),
         Column("cost", "cost,\nagent", "money", "in the currency of the prices given")),
        tuple(rows), (), "agent", detail=True,
    )  # fmt: skip


def _turns(
    key: str,
    title: str,
    rows: Sequence[tuple[str, str, TurnTable]],
    who: Mapping[str, _Row],
    notes: tuple[str, ...],
    by: str = "",
) -> Table:
    """`by` is the name of the groups, "" where there are none."""
    some = any(table.tool.undecided for _, _, table in rows)
    first = (Column(by, by), _SYSTEM) if by else (_AGENT, _FORMAT)
    return Table(
        key,
        title,
        (*first, Column("recall", "right of due\ncalls [95%]", "number", "tool and parameters"),
         _TOOLS[-1], *(_BOUNDS if some else ()),
         Column("turns", "turns", "count", "with a prediction"),
         Column("unreadable", "unread-\nable", "count", "no call and no reply"),
         Column("undecided", "un-\ndecided", "count", "calls only a judge could decide"),
         Column("lost", "lost", "count", "endpoint or adapter failed: in no rate")),
        tuple(
            {**({by: group, "system": system} if by else who[system]),
             "recall": Estimate.of(table.tool.recall.known),
             **_f1(table.tool),
             "turns": table.turns, "unreadable": table.unreadable,
             "undecided": table.tool.undecided, "lost": sum(table.failures.values())}
            for system, group, table in rows
        ),
        _notes(*notes, _OPEN if some else "",
               without_interval(table.tool.f1.known for _, _, table in rows)),
        by or "agent", detail=bool(by),
    )  # fmt: skip


def _responses(table: TurnTable) -> dict[str, Cell]:
    response = table.response
    if response is None:
        return {"graded": 0, "not_graded": 0, "no_reply": 0}
    return {
        "response": Estimate.of(response.mean),
        "graded": response.mean.n,
        "not_graded": sum(response.failures.values()),
        "no_reply": response.no_reply,
    }


def _notes(*notes: str) -> tuple[str, ...]:
    return tuple(note for note in notes if note)
