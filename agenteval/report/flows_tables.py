"""The tables of a campaign of workflows, for the page and, as plain text, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agenteval.evaluators.workflows import tallies
from agenteval.evaluators.workflows.conformance import CAUSES
from agenteval.evaluators.workflows.counted import Counted
from agenteval.evaluators.workflows.rates import Rate, Rates
from agenteval.evaluators.workflows.results import SessionResult, TurnResult
from agenteval.evaluators.workflows.tallies import CauseShare, FormatPair, SessionTally
from agenteval.evaluators.workflows.turn_score import TurnTable
from agenteval.records import Usage
from agenteval.report.flows_lost import ended_sheet, lost_sheet, part, turns_lost_sheet
from agenteval.report.flows_notes import bare, joined, suffixes, unequal
from agenteval.report.grid import (
    Cell,
    Grid,
    Head,
    count,
    difference,
    mean,
    number,
    p_value,
    plain,
    words,
)
from agenteval.report.sheet import Sheet
from agenteval.stats import Interval

_SUCCESS = Head("success [95 %]", "share of sessions that left the state which the goals ask for",
                True)  # fmt: skip
_SESSIONS = Head("sessions / tasks", "with a word on success, and the users they are of", True)
_WITHOUT = Head("no verdict", "endpoint, adapter, simulator failed, undecided, or not judged yet: "
                "in no rate", True)  # fmt: skip
_TOOLS = (
    Head("tool P", "calls that are gold calls", True),
    Head("R", "gold calls that were made", True),
    Head("F1 [95 %]", "", True),
)
_BOUNDS = Head("F1 low / high", "with all that is undecided wrong, and right", True)
_OPEN = (
    "* Calls are undecided for want of a judge's word. Values that agree are decided by rule and "
    "those that differ wait for it, so the F1 of decided calls is optimistic: believe the bounds."
)
_NOTE_TASKS = "Tasks are the units of all intervals: repeated sessions of a user add none."
_NOTE_CHART = (
    "Follows the chart: of the sessions that made a call. A beginning of a walk follows the chart "
    "too; what is missing is told by the causes."
)


def session_sheets(
    results: Sequence[SessionResult], *, brief: bool = False, counted: Counted | None = None
) -> list[Sheet]:
    """All tables that the sessions have something for; `brief`: without those by group. `counted`
    are the tallies of these results, where somebody has them already."""
    if not results:
        return []
    known = counted or Counted(sessions=results)
    whole = known.sessions_by()
    notes = joined(unequal(results, "tasks"), suffixes(t.system for t in whole))
    made = [
        _sessions(whole, notes),
        ended_sheet(known.endings),
        _calls(whole),
        *([] if brief else [_grouped(name, known) for name in tallies.GROUPS]),
        _formats(known.session_pairs, "sessions", "share of successes"),
        _causes(known.causes),
        _powers(whole),
        _judged(whole),
        lost_sheet(results),
        _effort(whole),
    ]
    return [sheet for sheet in made if sheet is not None]


def turn_sheets(
    results: Sequence[TurnResult], *, brief: bool = False, counted: Counted | None = None
) -> list[Sheet]:
    """All tables that the predicted turns have something for; the rest as `session_sheets`."""
    if not results:
        return []
    known = counted or Counted(turns=results)
    whole = known.turns_by()
    notes = joined(
        "Intervals resample recorded sessions. Lost: no prediction; in no rate.",
        unequal(results, "turns"),
        suffixes(system for system, _, _ in whole),
    )
    by = [] if brief else [name for name in tallies.GROUPS if _several(name, results)]
    made = [
        _turns(("turns", "Single turns of recorded sessions"), whole, "", notes),
        _words(whole),
        *(_turns((f"turns-by-{name}", f"Single turns by {name}"), known.turns_by(name), name)
          for name in by),
        _formats(known.turn_pairs, "turns", "share of due calls that are right"),
        turns_lost_sheet(results),
    ]  # fmt: skip
    return [sheet for sheet in made if sheet is not None]


def _several(name: str, results: Sequence[SessionResult] | Sequence[TurnResult]) -> bool:
    return len({tallies.GROUPS[name](r.case) for r in results}) > 1


def _sessions(rows: Sequence[SessionTally], notes: str) -> Sheet:
    heads = (Head("system"), _SUCCESS, Head("progress [95 %]", "goals achieved of all goals", True),
             Head("follows the chart [95 %]",
                  "sessions with a call of which none departs from the procedure", True),
             Head("fitness", "1 − cost of the best walk / cost of the worst, mean", True),
             _SESSIONS, _WITHOUT)  # fmt: skip
    cells = tuple(
        (words(t.system), mean(t.success), mean(t.progress), _conforms(t),
         number(t.fitness.mean), _sizes(t.success), count(_without(t)))
        for t in rows
    )  # fmt: skip
    note = joined(_NOTE_TASKS, _NOTE_CHART, bare(i for t in rows for i in (t.success, t.progress)),
                  notes)  # fmt: skip
    return Sheet(Grid("sessions", "Whole sessions by system", heads, cells), note)


def _conforms(t: SessionTally) -> Cell:
    """With the number of sessions that it is of: those that made a call."""
    cell = mean(t.conforms)
    return replace(cell, text=f"{cell.text} of {t.conforms.n:,}") if t.conforms.n else cell


def _calls(rows: Sequence[SessionTally]) -> Sheet:
    some = any(t.unjudged for t in rows)
    heads = (Head("system"), *_TOOLS, *((_BOUNDS,) if some else ()),
             Head("order F1", "longest common subsequence of tool names with gold, mean", True),
             Head("right / made / gold", "calls", True),
             Head("undecided", "calls whose values only a judge could compare", True),
             Head("turns", "replies per session, mean", True),
             Head("calls", "per session, mean", True))  # fmt: skip
    cells = tuple(
        (words(t.system), *_rates(t.tool), *((_bounds(t.tool.f1),) if some else ()),
         number(t.sequence.mean),
         Cell(f"{t.tool.right:,} / {t.tool.predicted:,} / {t.tool.gold:,}", float(t.tool.right),
              True), count(t.unjudged),
         number(t.turns.mean, ".1f"), number(t.calls.mean, ".1f"))
        for t in rows
    )  # fmt: skip
    note = "A call is right when tool and parameters equal a gold call's, each gold call once."
    note = joined(note, _OPEN if some else "", bare(t.tool.f1.known for t in rows))
    return Sheet(Grid("session-calls", "Calls in sessions", heads, cells), note)


def _grouped(name: str, known: Counted) -> Sheet | None:
    if not _several(name, known.sessions):
        return None
    rows = known.sessions_by(name)
    heads = (Head(name), Head("system"), _SUCCESS, Head("progress", "mean", True),
             Head("tool F1 [95 %]", "", True), Head("follows the chart", "", True), _SESSIONS,
             _WITHOUT)  # fmt: skip
    cells = tuple(
        (words(t.group), words(t.system), mean(t.success), number(t.progress.mean),
         plain(_rate(t.tool.f1)), number(t.conforms.mean), _sizes(t.success),
         count(_without(t)))
        for t in sorted(rows, key=lambda t: t.group)
    )  # fmt: skip
    note = joined(
        _OPEN if any(t.tool.undecided for t in rows) else "",
        bare(i for t in rows for i in (t.success, t.tool.f1.known)),
    )
    return Sheet(Grid(f"sessions-by-{name}", f"Sessions by {name}", heads, cells), note)


def _formats(pairs: Sequence[FormatPair], level: str, what: str) -> Sheet | None:
    if not pairs:
        return None
    heads = (Head("agent"), Head("first"), Head("second"),
             Head("first less second [95 %]", what, True), Head("tasks", "with both", True),
             Head("left out", "tasks with a verdict on one only", True), Head("p", "", True),
             Head("p corrected", "Holm, over all pairs", True))  # fmt: skip
    cells = tuple(
        (words(p.agent), words(p.first), words(p.second), difference(p.difference),
         count(p.tasks), count(p.left_out), p_value(p.p, p.reason), p_value(p.corrected))
        for p in pairs
    )  # fmt: skip
    note = f"Paired by task: {what}. p: sign flips over tasks."
    caption = f"Formats of the procedure compared, {level}"
    return Sheet(Grid(f"formats-{level}", caption, heads, cells), note)


def _causes(rows: Sequence[CauseShare]) -> Sheet | None:
    if not rows:
        return None
    labels = (*CAUSES, "other")
    heads = (Head("system"), Head("failed", "sessions", True),
             *(Head(label.replace("_", " "), "", True) for label in labels))  # fmt: skip
    cells = tuple(
        (words(r.system), count(r.failed), *(part(r.counts[k], r.failed) for k in labels))
        for r in rows
    )
    note = "The first deviation of a failed session, from chart and gold calls; no judge."
    return Sheet(Grid("causes", "Why sessions failed", heads, cells), note)


def _powers(rows: Sequence[SessionTally]) -> Sheet | None:
    found = [(t.system, p) for t in rows for p in t.powers if p.k > 1]
    if not found:
        return None
    heads = (Head("system"), Head("k", "", True), Head("pass^k [95 %]", "all of k succeed", True),
             Head("tasks", "", True),
             Head("left out", "tasks with fewer than k", True))  # fmt: skip
    cells = tuple(
        (words(system), count(p.k), mean(p.rate), count(p.rate.n), count(p.few))
        for system, p in found
    )
    return Sheet(Grid("powers", "Repeated sessions", heads, cells))


def _judged(rows: Sequence[SessionTally]) -> Sheet | None:
    found = [(t.system, t.agreement) for t in rows if t.agreement is not None]
    if not found:
        return None
    heads = (Head("system"), Head("agree [95 %]", "share of sessions", True),
             Head("kappa [95 %]", "Cohen's", True),
             Head("sessions", "with both", True))  # fmt: skip
    cells = tuple(
        (words(system), mean(k.agreement), mean(k.coefficient), count(k.coefficient.n))
        for system, k in found
    )
    return Sheet(Grid("judge", "Judge's success against the final state", heads, cells))


def _effort(rows: Sequence[SessionTally]) -> Sheet | None:
    """None where nothing was asked of any model."""
    if not any(_took(u) for t in rows for u in (t.usage, t.simulated, t.judging)):
        return None
    heads = (Head("system"), Head("requests", "of the agent", True), Head("tokens", "", True),
             Head("cost", "in the currency of the prices given", True),
             Head("requests of simulators", "", True), Head("tokens", "", True),
             Head("requests of judges", "", True), Head("tokens", "", True))  # fmt: skip
    cells = tuple(
        (words(t.system), count(t.usage.requests), number(_tokens(t.usage), ",.0f"),
         number(t.usage.cost, ",.4f"), count(t.simulated.requests),
         number(_tokens(t.simulated), ",.0f"), count(t.judging.requests),
         number(_tokens(t.judging), ",.0f"))
        for t in rows
    )  # fmt: skip
    return Sheet(Grid("effort", "What the sessions took", heads, cells))


def _turns(
    title: tuple[str, str], rows: Sequence[tuple[str, str, TurnTable]], by: str, note: str = ""
) -> Sheet:
    """`title` is id and caption; `by` the name of the groups, nothing where there are none."""
    some = any(table.tool.undecided for _, _, table in rows)
    heads = (*((Head(by),) if by else ()), Head("system"), *_TOOLS, *((_BOUNDS,) if some else ()),
             Head("parameters F1", "only where the tool is right", True),
             Head("turns", "with a prediction", True),
             Head("unreadable", "no call and no reply", True),
             Head("undecided", "calls only a judge could decide", True),
             Head("lost", "endpoint or adapter failed: in no rate", True))  # fmt: skip
    cells = tuple(
        (*((words(group),) if by else ()), words(system), *_rates(table.tool),
         *((_bounds(table.tool.f1),) if some else ()),
         number(table.parameters.f1.known.mean), count(table.turns), count(table.unreadable),
         count(table.tool.undecided), count(sum(table.failures.values())))
        for system, group, table in (sorted(rows, key=lambda r: r[1]) if by else rows)
    )  # fmt: skip
    note = joined(note, _OPEN if some else "", bare(table.tool.f1.known for _, _, table in rows))
    return Sheet(Grid(*title, heads, cells), note)


def _words(whole: Sequence[tuple[str, str, TurnTable]]) -> Sheet | None:
    """Nodes named and replies graded; None where no turn has either."""
    rows = [(system, table) for system, _, table in whole]
    if not any(t.node.accuracy.n or (t.response and t.response.mean.n) for _, t in rows):
        return None
    heads = (Head("system"), Head("node right [95 %]", "share of named nodes", True),
             Head("named", "turns that name a node", True),
             Head("response 0–10 [95 %]", "a judge's mean", True), Head("graded", "", True),
             Head("not graded", "the judge failed", True),
             Head("no reply", "a reply was due and none came", True))  # fmt: skip
    cells = tuple(
        (words(system), mean(t.node.accuracy),
         Cell(f"{t.node.accuracy.n:,} of {t.node.turns:,}", float(t.node.accuracy.n), True),
         mean(t.response.mean) if t.response else number(None),
         count(t.response.mean.n if t.response else 0),
         count(sum(t.response.failures.values()) if t.response else 0),
         count(t.response.no_reply if t.response else 0))
        for system, t in rows
    )  # fmt: skip
    return Sheet(Grid("turns-words", "Nodes and replies", heads, cells))


def _rates(found: Rates) -> tuple[Cell, Cell, Cell]:
    return number(found.precision.known.mean), number(found.recall.known.mean), _rate(found.f1)


def _rate(rate: Rate) -> Cell:
    cell = mean(rate.known)
    if rate.low is None or rate.high is None or rate.low == rate.high:
        return cell
    note = f"{rate.low:.2f} to {rate.high:.2f} with all that is undecided wrong, or right"
    return Cell(cell.text + "*", cell.key, True, cell.kind, note, cell.span)


def _bounds(rate: Rate) -> Cell:
    if rate.low is None or rate.high is None:
        return number(None)
    return Cell(f"{rate.low:.2f} / {rate.high:.2f}", rate.low, True)


def _sizes(rate: Interval) -> Cell:
    tasks = rate.n_clusters or 0
    return Cell(f"{rate.n:,} / {tasks:,}", float(rate.n), True, "" if rate.n else "zero")


def _without(t: SessionTally) -> int:
    return sum(t.failures.values()) + t.undecided + t.pending


def _took(usage: Usage) -> bool:
    return bool(usage.requests or usage.cost or _tokens(usage))


def _tokens(usage: object) -> float | None:
    prompt = getattr(usage, "prompt_tokens", None)
    reply = getattr(usage, "completion_tokens", None)
    return None if prompt is None or reply is None else prompt + reply
