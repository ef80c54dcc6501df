"""The page of a workflow campaign: one file that loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from agenteval.agents import AgentFailure
from agenteval.errors import InputError
from agenteval.evaluators.workflows.results import SessionResult, TurnResult
from agenteval.evaluators.workflows.session import SessionEnd
from agenteval.evaluators.workflows.tables import result_tables
from agenteval.evaluators.workflows.tallies import CauseShare, SessionTally, Tallies
from agenteval.evaluators.workflows.turn_score import TurnTable
from agenteval.records.table import Estimate, Table, sort_key
from agenteval.records.table import shown as cell_text
from agenteval.report.flows_sessions import chosen, lost_sessions, shown_sessions
from agenteval.report.flows_signs import flow_flags
from agenteval.report.flows_turns import MOST_TURNS, WRONG, lost_turns, outcome_of, wrong_turns
from agenteval.report.grid import Cell, Grid, Head, Span, percent
from agenteval.report.page import policy
from agenteval.report.pictures import Picture
from agenteval.report.sheet import Sheet
from agenteval.report.svg import inline
from agenteval.report.template import environment, part, raw
from agenteval.report.text import shown
from agenteval.stats import Interval
from agenteval.text import plural

_MOST_NAMED = 5
_NOTABLE = 0.1  # of the sessions or calls of a system: more than that is said at the top
_ENDS: dict[SessionEnd, str] = {
    "turns": "limit of turns", "calls": "limit of calls", "agent": "agent stopped or silent",
}  # fmt: skip


def flows_page(  # noqa: PLR0913  each is a part of the page
    sessions: Sequence[SessionResult],
    turns: Sequence[TurnResult],
    *,
    title: str = "Workflows",
    facts: Sequence[tuple[str, str]] = (),
    most_sessions: int = 100,
    counted: Tallies | None = None,
    unfinished: Sequence[str] = (),
) -> str:
    """The page as HTML. The same results in the same order give the same text.

    `facts` are shown at the end as (name, text). At most `most_sessions` sessions can be unfolded,
    failed ones first, and 100 wrong turns; the page says how many there are. `counted` are the
    tallies of these results, where somebody has them already. `unfinished` are sentences on
    campaigns that are not all there, said before everything else.
    """
    told = counted or Tallies(sessions, turns)
    flagged = flow_flags(sessions, turns)
    drawn, left_out = _pictures(told)
    some, known = chosen(sessions, most_sessions)
    wrong, wrong_in_all = wrong_turns(turns, MOST_TURNS)
    lost_grid, lost, gone = lost_sessions(sessions)
    turns_lost, turns_gone = lost_turns(turns)
    style = part("page.css") + "\n" + part("flows.css")
    page: str = environment().get_template("flows.html").render(
        policy=policy(style, ""),
        style=raw(style),
        title=shown(title),
        unfinished=list(map(shown, unfinished)),
        systems=_names(sessions, turns),
        headlines=headlines(sessions, turns, counted=told),
        tiles=[*_tiles(sessions, turns), *([flagged.tile] if flagged.examined else [])],
        flagged=shown(flagged.line),
        left_out=left_out,
        pictures=[{"title": p.title, "caption": p.caption, "svg": raw(p.svg)} for p in drawn],
        sheets=[_sheet(table) for table in result_tables(sessions, turns, told)],
        sessions=shown_sessions(some),
        sessions_count=_count(len(some), known, "sessions with a verdict"),
        wrong=wrong,
        wrong_count=_count(len(wrong), wrong_in_all, "wrong turns"),
        lost=lost,
        lost_grid=lost_grid,
        lost_count=_count(len(lost), gone, "sessions without a verdict"),
        turns_lost=turns_lost,
        turns_lost_count=_count(len(turns_lost), turns_gone, "turns without a prediction"),
        facts=[(shown(name), shown(text)) for name, text in facts],
        version=version("agenteval"),
    )  # fmt: skip
    return page


def headlines(
    sessions: Sequence[SessionResult],
    turns: Sequence[TurnResult],
    *,
    counted: Tallies | None = None,
) -> list[str]:
    """One sentence per system and level."""
    known = counted or Tallies(sessions, turns)
    causes = {c.system: c for c in known.causes}
    found = sorted(known.sessions_by(), key=lambda t: t.system)
    lines = [_session_line(t, causes.get(t.system), _ends(t)) for t in found]
    told = sorted(known.turns_by(), key=lambda t: t[0])
    lines += [_turn_line(system, table) for system, _, table in told]
    return [line.replace(" %", "\u00a0%") for line in lines]  # kept together


def _sheet(table: Table) -> Sheet:
    """The table in the form of the page's template."""
    heads = tuple(Head(c.head.replace("\n", " "), c.hint, c.number) for c in table.columns)
    rows = []
    for row in table.rows:
        cells = []
        for column in table.columns:
            value = row.get(column.key)
            key = sort_key(value)
            unit = isinstance(value, Estimate) and value.value is not None
            span = None
            if isinstance(value, Estimate) and value.value is not None and column.form == "number":
                span = Span(value.value, value.low, value.high) if 0 <= value.value <= 1 else None
            cells.append(Cell(
                shown(cell_text(value, column.form)),
                float(key) if column.number and isinstance(key, int | float) else None,
                column.number, "" if unit or value is not None else "none", span=span,
            ))  # fmt: skip
        rows.append(tuple(cells))
    return Sheet(Grid(table.key, table.title, heads, tuple(rows)), " ".join(table.notes))


def _ends(t: SessionTally) -> list[str]:
    """What must be known of the ends and calls of more than a tenth of the sessions or calls."""
    said = []
    sessions, calls = t.ended.total(), t.statuses.total()
    if t.cut_short > _NOTABLE * sessions:
        how = ", ".join(f"{words} {t.ended[k]:,}" for k, words in _ENDS.items() if t.ended[k])
        said.append(f"{t.cut_short:,} of {plural(sessions, 'session')} ended without the user's "
                    f"goodbye ({how})")  # fmt: skip
    if t.refused > _NOTABLE * calls:
        kinds = [(k, n) for k, n in sorted(t.statuses.items()) if k != "ok"]
        how = ", ".join(f"{k.replace('_', ' ')} {n:,}" for k, n in kinds)
        said.append(f"{t.refused:,} of {plural(calls, 'call')} could not be carried out ({how})")
    return said


def _session_line(t: SessionTally, cause: CauseShare | None, ends: Sequence[str]) -> str:
    gone, name = sum(t.failures.values()), shown(t.system)
    without = [plural(gone, "session") + " without a verdict"] if gone else []
    without += [f"{t.undecided:,} undecided"] if t.undecided else []
    if t.success.mean is None:
        said = f"{name}: no session is decided ({', '.join(without) or 'not judged yet'})"
        return "; ".join([said, *ends]) + "."
    parts = [f"{name} succeeds in {_percent(t.success)} of {_trials(t.success)}"]
    if t.progress.mean is not None:
        parts.append(f"{percent(t.progress.mean).text} of the goals achieved")
    if cause is not None:
        most = max(cause.counts, key=lambda k: cause.counts[k])
        said = f"commonest cause of failure: {most.replace('_', ' ')}"
        parts.append(f"{said} ({cause.counts[most]:,} of {cause.failed:,})")
    parts += ends
    if without:
        parts.append(f"{', '.join(without)}, in no rate")
    return "; ".join(parts) + "."


def _turn_line(system: str, table: TurnTable) -> str:
    name, gone = shown(system), sum(table.failures.values())
    recall, tool = table.tool.recall.known, table.tool
    parts = [f"{name}, single turns: "]
    if recall.mean is None:
        parts[0] += "no due call is decided"
    else:
        due = plural(tool.gold - tool.undecided, "due call")
        parts[0] += f"{_percent(recall)} of {due} are right"
    if table.unreadable:
        parts.append(f"{plural(table.unreadable, 'turn')} unreadable")
    if tool.undecided:
        parts.append(f"{plural(tool.undecided, 'call')} undecided")
    if gone:
        parts.append(f"{plural(gone, 'turn')} without a prediction, in no rate")
    return "; ".join(parts) + "."


def _percent(rate: Interval) -> str:
    assert rate.mean is not None
    text = percent(rate.mean).text
    if rate.low is None or rate.high is None or rate.low == rate.high:
        return f"{text} ({rate.reason or 'no interval'})"
    return f"{text} (95 % interval {100 * rate.low:.0f} to {100 * rate.high:.0f} %)"


def _trials(rate: Interval) -> str:
    users = plural(rate.n_clusters or 0, "user")
    if rate.n == rate.n_clusters:
        return f"{plural(rate.n, 'session')}, one for each user"
    return f"{plural(rate.n, 'session')} with {users}"


def _names(sessions: Sequence[SessionResult], turns: Sequence[TurnResult]) -> str:
    names = sorted({r.agent for r in sessions} | {r.agent for r in turns})
    rest = len(names) - _MOST_NAMED
    return shown(", ".join(names[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else ""))


def _tiles(sessions: Sequence[SessionResult], turns: Sequence[TurnResult]) -> list[tuple[str, str]]:
    success = [r.verdict.success if r.verdict else None for r in sessions]
    outcomes = [outcome_of(r.verdict) if r.verdict else "" for r in turns]
    numbers = [
        ("systems", len({r.system for r in sessions} | {r.system for r in turns})),
        *([
            ("sessions", len(sessions)),
            ("succeeded", success.count(True)),
            ("failed", success.count(False)),
            ("not decided", success.count(None)),
        ] if sessions else []),
        *([
            ("single turns", len(turns)),
            ("right calls", outcomes.count("right")),
            ("wrong turns", sum(o in WRONG for o in outcomes)),
            ("no prediction", sum(isinstance(r.prediction, AgentFailure) for r in turns)),
        ] if turns else []),
    ]  # fmt: skip
    return [(f"{n:,}", name) for name, n in numbers]


def _count(here: int, in_all: int, what: str) -> str:
    things = what if in_all != 1 else what.replace("sessions", "session").replace("turns", "turn")
    if here == in_all:
        return f"The one {things}." if in_all == 1 else f"All {in_all:,} {things}."
    return f"{here:,} of {in_all:,} {things}; systems take turns."


def _pictures(known: Tallies) -> tuple[list[Picture], list[str]]:
    """Figures that the results allow, and a line for each that they do not."""
    from agenteval.figures import svg

    drawn: list[Picture] = []
    left_out: list[str] = []
    for i, (title, caption, draw) in enumerate(_plan(known)):
        try:
            drawn.append(Picture(title, caption, inline(svg(draw()), f"f{i}-")))
        except InputError as error:
            left_out.append(shown(f"{title}: {error}"))
    return drawn, left_out


def _plan(known: Tallies) -> list[tuple[str, str, Callable[[], Any]]]:
    from agenteval.figures import flows

    plan: list[tuple[str, str, Callable[[], Any]]] = []
    if known.sessions:
        what, how = "Share of sessions that succeed", "by how the procedure is told"
        several = len({r.format for r in known.sessions}) > 1
        plan.append((
            "Formats in sessions" if several else "Success in sessions",
            f"{what}, by domain and {how}." if several else f"{what}, by system and domain.",
            lambda: flows.format_comparison(known.sessions, counted=known),
        ))  # fmt: skip
        if several:
            plan.append((
                "Formats on the same users",
                "Paired by user, so that hard users weigh on both sides alike.",
                lambda: flows.format_differences(known.session_pairs),
            ))  # fmt: skip
        plan.append((
            "Why sessions failed",
            "The first deviation of a failed session from chart and gold calls.",
            lambda: flows.cause_bars(known.sessions),
        ))  # fmt: skip
    if known.turns:
        several = len({r.format for r in known.turns}) > 1
        plan.append((
            "Formats at single turns" if several else "Right calls at single turns",
            "Share of due calls that are right, tool and parameters.",
            lambda: flows.format_comparison(known.turns, counted=known),
        ))  # fmt: skip
        if several:
            plan.append((
                "Formats on the same recorded sessions",
                "Paired by recorded session.",
                lambda: flows.format_differences(known.turn_pairs, what="right calls"),
            ))  # fmt: skip
    return plan
