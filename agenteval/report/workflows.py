"""The page of workflows: who follows the procedure, sessions with their talk, wrong turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agenteval.agents import AgentFailure
from agenteval.evaluators.workflows.results import SessionResult, TurnResult
from agenteval.evaluators.workflows.session import SessionEnd, SessionFailure
from agenteval.evaluators.workflows.tables import result_tables
from agenteval.evaluators.workflows.tallies import CauseShare, SessionTally, Tallies
from agenteval.evaluators.workflows.turn_score import TurnTable
from agenteval.records.table import Table, shown
from agenteval.report import trial_plots as drawn
from agenteval.report.page import (
    Block,
    Items,
    Lines,
    Page,
    Piece,
    Section,
    Text,
    Tiles,
    Verdict,
    Words,
    figures,
    rate_words,
    render,
    some_of,
)
from agenteval.report.sessions import (
    MOST_TURNS,
    WRONG,
    chosen,
    heading,
    outcome_of,
    session_items,
    wrong_turns,
)
from agenteval.report.text import cut
from agenteval.stats import Interval
from agenteval.text import plural
from agenteval.trust.flow_flags import flow_flags

_MOST_MESSAGES = 20
_NOTABLE = 0.1  # of the sessions or calls of a system: more than that is said at the top
_ENDS: dict[SessionEnd, str] = {
    "turns": "limit of turns", "calls": "limit of calls",
    "turn_calls": "limit of calls in a turn", "agent": "agent stopped or silent",
}  # fmt: skip


def workflows_page(  # noqa: PLR0913  each is a part of the page
    sessions: Sequence[SessionResult],
    turns: Sequence[TurnResult],
    *,
    title: str = "Workflows",
    facts: Sequence[tuple[str, str]] = (),
    most_sessions: int = 100,
    tables: Sequence[Table] | None = None,
    unfinished: Sequence[str] = (),
) -> str:
    """The page as HTML. The same results in the same order give the same text.

    `facts` are shown at the end as (name, text). At most `most_sessions` sessions can be unfolded,
    failed ones first, and 100 wrong turns; the page says how many there are. `tables` are those of
    these results, where somebody has them already. `unfinished` are sentences on experiments that
    are not all there, said before everything else.
    """
    known = Tallies(sessions, turns)
    flagged = flow_flags(sessions, turns)
    names = sorted({r.agent for r in sessions} | {r.agent for r in turns})
    tiles = [*_tiles(sessions, turns), *([flagged.tile] if flagged.examined else [])]
    made = result_tables(sessions, turns, known) if tables is None else tables
    rates = (
        "Brackets hold 95% intervals. Trials without a verdict are counted beside the rates and "
        "in none of them."
    )
    sections = [
        Section("summary", "Summary", [
            Verdict("Workflows followed by", some_of(names),
                    headlines(known) or ["There is no trial."]),
            Tiles(tiles),
            *([Text(flagged.line, "warning")] if flagged.line else []),
        ]),
        figures(_plan(known)),
        Section("tables", "Tables", made or [Text("There is nothing to count.")], rates),
        *_sessions(sessions, most_sessions),
        *_wrong(turns),
        *_lost(sessions, turns),
    ]  # fmt: skip
    lead = (
        "Deviations are computed from the chart and the gold calls. Success is decided by a limit "
        "that was passed, else by the final state, else by a judge."
    )
    return render(Page("workflow report", title, lead, sections, unfinished, facts))


def headlines(known: Tallies) -> list[str]:
    """One sentence per system and level."""
    causes = {c.system: c for c in known.causes}
    tallies = sorted(known.sessions_by(), key=lambda t: t.system)
    lines = [_session_line(t, causes.get(t.system), _ends(t)) for t in tallies]
    single = sorted(known.turns_by(), key=lambda t: t[0])
    return lines + [_turn_line(system, table) for system, _, table in single]


def _ends(t: SessionTally) -> list[str]:
    """What must be known of the ends and calls of more than a tenth of the sessions or calls."""
    remarks = []
    sessions, calls = t.ended.total(), t.statuses.total()
    if t.cut_short > _NOTABLE * sessions:
        how = ", ".join(f"{words} {t.ended[k]:,}" for k, words in _ENDS.items() if t.ended[k])
        remarks.append(f"{t.cut_short:,} of {plural(sessions, 'session')} ended without the user's "
                    f"goodbye ({how})")  # fmt: skip
    if t.refused > _NOTABLE * calls:
        kinds = [(k, n) for k, n in sorted(t.statuses.items()) if k != "ok"]
        how = ", ".join(f"{k.replace('_', ' ')} {n:,}" for k, n in kinds)
        remarks.append(f"{t.refused:,} of {plural(calls, 'call')} could not be carried out ({how})")
    return remarks


def _session_line(t: SessionTally, cause: CauseShare | None, ends: Sequence[str]) -> str:
    gone, name = sum(t.failures.values()), t.system
    without = [plural(gone, "session") + " without a verdict"] if gone else []
    without += [f"{t.undecided:,} undecided"] if t.undecided else []
    if t.success.mean is None:
        lead = f"{name}: no session is decided ({', '.join(without) or 'not judged yet'})"
        return "; ".join([lead, *ends]) + "."
    parts = [f"{name} succeeds in {rate_words(t.success)} of {_trials(t.success)}"]
    if t.progress.mean is not None:
        parts.append(f"{shown(t.progress.mean, 'share')} of the goals achieved")
    if cause is not None:
        most = max(cause.counts, key=lambda k: cause.counts[k])
        lead = f"commonest cause of failure: {most.replace('_', ' ')}"
        parts.append(f"{lead} ({cause.counts[most]:,} of {cause.failed:,})")
    parts += ends
    if without:
        parts.append(f"{', '.join(without)}, in no rate")
    return "; ".join(parts) + "."


def _turn_line(system: str, table: TurnTable) -> str:
    name, gone = system, sum(table.failures.values())
    recall, tool = table.tool.recall.known, table.tool
    parts = [f"{name}, single turns: "]
    if recall.mean is None:
        parts[0] += "no due call is decided"
    else:
        due = plural(tool.gold - tool.undecided, "due call")
        parts[0] += f"{rate_words(recall)} of {due} are right"
    if table.unreadable:
        parts.append(f"{plural(table.unreadable, 'turn')} unreadable")
    if tool.undecided:
        parts.append(f"{plural(tool.undecided, 'call')} undecided")
    if gone:
        parts.append(f"{plural(gone, 'turn')} without a prediction, in no rate")
    return "; ".join(parts) + "."


def _trials(rate: Interval) -> str:
    users = plural(rate.n_clusters or 0, "user")
    if rate.n == rate.n_clusters:
        return f"{plural(rate.n, 'session')}, one for each user"
    return f"{plural(rate.n, 'session')} with {users}"


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


def _plan(known: Tallies) -> list[tuple[str, str, Callable[[], Any]]]:
    plan: list[tuple[str, str, Callable[[], Any]]] = []
    if known.sessions:
        what, how = "Share of sessions that succeed", "by how the procedure is told"
        several = len({r.format for r in known.sessions}) > 1
        plan.append((
            "Formats in sessions" if several else "Success in sessions",
            f"{what}, by domain and {how}." if several else f"{what}, by system and domain.",
            lambda: drawn.format_points(known, "sessions"),
        ))  # fmt: skip
        if several:
            plan.append((
                "Formats on the same users",
                "Paired by user, so that hard users weigh on both sides alike.",
                lambda: drawn.format_differences(known.session_pairs),
            ))  # fmt: skip
        plan.append((
            "Why sessions failed",
            "The first deviation of a failed session from chart and gold calls.",
            lambda: drawn.share_bars(
                {c.system: c.counts for c in sorted(known.causes, key=lambda c: c.system)},
                "Why sessions failed, by system", "failed session",
            ),
        ))  # fmt: skip
    if known.turns:
        several = len({r.format for r in known.turns}) > 1
        plan.append((
            "Formats at single turns" if several else "Right calls at single turns",
            "Share of due calls that are right, tool and parameters.",
            lambda: drawn.format_points(known, "turns"),
        ))  # fmt: skip
        if several:
            plan.append((
                "Formats on the same recorded sessions",
                "Paired by recorded session.",
                lambda: drawn.format_differences(known.turn_pairs, "right calls"),
            ))  # fmt: skip
    return plan


def _sessions(sessions: Sequence[SessionResult], most: int) -> list[Section]:
    some, in_all = chosen(sessions, most)
    if not some:
        return []
    lead = (
        f"{_count(len(some), in_all, 'sessions with a verdict')} Failed ones come first, the "
        "shortest of each system before the others. Deviations stand at the call that they are "
        "about."
    )
    return [Section("sessions", "Sessions", [Items(session_items(some))], lead)]


def _wrong(turns: Sequence[TurnResult]) -> list[Section]:
    items, in_all = wrong_turns(turns, MOST_TURNS)
    if not items:
        return []
    lead = (
        f"{_count(len(items), in_all, 'wrong turns')} Each is one turn of a recorded session, "
        "predicted from the talk before it."
    )
    return [Section("wrong", "Wrong turns", [Items(items)], lead)]


def _lost(sessions: Sequence[SessionResult], turns: Sequence[TurnResult]) -> list[Section]:
    """What brought no verdict, with some messages; the table counts all of it."""
    who = {"agent": "agent", "user": "simulated user", "tools": "simulated tools"}
    gone: dict[str, list[Words]] = {"Sessions": [], "Single turns": []}
    for session in sessions:
        if session.verdict is None:
            log, why = session.log, "not judged yet"
            if isinstance(log, SessionFailure):
                why = f"{who[log.who]}, {log.status}" + (f": {log.message}" if log.message else "")
            gone["Sessions"].append(_message(session, why))
    for turn in turns:
        if isinstance(turn.prediction, AgentFailure):
            why = f"{turn.prediction.status}: {turn.prediction.message}"
            gone["Single turns"].append(_message(turn, why))
    what = {"Sessions": "sessions without a verdict", "Single turns": "turns without a prediction"}
    blocks: list[Block] = []
    for title, lines in gone.items():
        if lines:
            count = _count(min(len(lines), _MOST_MESSAGES), len(lines), what[title])
            blocks += [Text(count, title=title), Lines(lines[:_MOST_MESSAGES])]
    lead = (
        "An endpoint, an adapter or a simulator failed, so nothing is known of the agent: counted "
        "here, in no rate."
    )
    return [Section("without", "Without a verdict", blocks, lead)] if blocks else []


def _message(result: SessionResult | TurnResult, text: str) -> Words:
    name = heading(result.case.id, result.system, f"trial {result.trial}")
    return [Piece(name, "strong"), f": {cut(text, 2_000)}"]
