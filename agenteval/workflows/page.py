"""The page of workflows: who follows the procedure, sessions with their talk, wrong turns."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.agents import AgentFailure
from agenteval.records.table import Table, shown
from agenteval.reporting.charts import share_bars
from agenteval.reporting.page import (
    Answer,
    Lost,
    Page,
    PageSection,
    Plan,
    Text,
    Tile,
    figures,
    foldouts,
    lost_section,
    rate_words,
    render,
    summary,
)
from agenteval.reporting.text import listed
from agenteval.stats import Interval
from agenteval.text import plural
from agenteval.workflows import plots
from agenteval.workflows.flags import flow_flags
from agenteval.workflows.page_sessions import (
    MOST_TURNS,
    WRONG,
    chosen,
    heading,
    outcome_of,
    session_items,
    wrong_turns,
)
from agenteval.workflows.results import SessionResult, TurnResult
from agenteval.workflows.session import SessionEnd, SessionFailure
from agenteval.workflows.tables import result_tables
from agenteval.workflows.tallies import CauseShare, SessionTally, Tallies
from agenteval.workflows.turn_score import TurnTable

_NOTABLE = 0.1  # of the sessions or calls of a system: more than that is said at the top
_ENDS: dict[SessionEnd, str] = {
    "turns": "limit of turns",
    "calls": "limit of calls",
    "turn_calls": "limit of calls in a turn",
    "agent": "agent stopped or silent",
}
_WHO = {"agent": "agent", "user": "simulated user", "tools": "simulated tools"}


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
    """Return the page as HTML. The same results in the same order give the same text.

    `facts` are (name, text) for the end. At most `most_sessions` sessions can be unfolded, failed
    ones first, and 100 wrong turns; the page says how many there are. `tables` are those of these
    results, if they are known already.
    """
    known = Tallies(sessions, turns)
    systems = sorted({r.agent for r in sessions} | {r.agent for r in turns})
    made = result_tables(sessions, turns, known) if tables is None else tables
    shown_sessions, decided = chosen(sessions, most_sessions)
    some = session_items(shown_sessions)
    wrong, wrong_in_all = wrong_turns(turns, MOST_TURNS)
    lost = {
        "session{s} without a verdict": [_lost_session(r) for r in sessions if r.verdict is None],
        "turn{s} without a prediction": [
            Lost(
                r.system,
                heading(r.case.id, f"trial {r.trial}"),
                r.prediction.status,
                r.prediction.message,
            )
            for r in turns
            if isinstance(r.prediction, AgentFailure)
        ],
    }
    answer = Answer(
        "Workflows followed by", listed(systems, 5), headlines(known) or ["There is no trial."]
    )
    sections = [
        summary(answer, _tiles(sessions, turns), flow_flags(sessions, turns)),
        figures(_plan(known)),
        PageSection("tables", "Tables", made or [Text("There is nothing to count.")], _RATES),
        foldouts("sessions", "Sessions", some, decided, "session{s} with a verdict", _SESSIONS),
        foldouts("wrong", "Wrong turns", wrong, wrong_in_all, "wrong turn{s}", _TURNS),
        lost_section(lost, _LOST),
    ]
    return render(Page("workflow report", title, _LEAD, sections, unfinished, facts))


_LEAD = (
    "Deviations are computed from the chart and the gold calls. Success is decided by a limit that "
    "was passed, else by the final state, else by a judge."
)
_RATES = (
    "Brackets hold 95% intervals. Trials without a verdict are counted beside the rates and are in "
    "none of them."
)
_SESSIONS = (
    "Systems take turns; failed sessions come first, the shortest of each system before the "
    "others. Deviations are shown at their call."
)
_TURNS = (
    "Systems take turns. Each is one turn of a recorded session, predicted from the conversation "
    "before it."
)
_LOST = (
    "An endpoint, an adapter or a simulator failed, so nothing is known about the agent: counted "
    "here and in no rate."
)


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
        remarks.append(
            f"{t.cut_short:,} of {plural(sessions, 'session')} ended without the user's "
            f"goodbye ({how})"
        )
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


def _tiles(sessions: Sequence[SessionResult], turns: Sequence[TurnResult]) -> list[Tile]:
    tiles: list[Tile] = [(len({r.system for r in sessions} | {r.system for r in turns}), "systems")]
    if sessions:
        success = [r.verdict.success if r.verdict else None for r in sessions]
        tiles += [
            (len(sessions), "sessions"),
            (success.count(True), "succeeded"),
            (success.count(False), "failed"),
            (success.count(None), "not decided"),
        ]
    if turns:
        outcomes = [outcome_of(r.verdict) if r.verdict else "" for r in turns]
        tiles += [
            (len(turns), "single turns"),
            (outcomes.count("right"), "right calls"),
            (sum(o in WRONG for o in outcomes), "wrong turns"),
            (sum(isinstance(r.prediction, AgentFailure) for r in turns), "no prediction"),
        ]
    return tiles


def _plan(known: Tallies) -> Plan:
    plan: Plan = ()
    if known.sessions:
        several = len({r.format for r in known.sessions}) > 1
        causes = {c.system: c.counts for c in sorted(known.causes, key=lambda c: c.system)}
        pairs = (
            "Formats on the same users",
            "Paired by user, so that hard users weigh equally on both sides.",
            lambda: plots.format_differences(known.session_pairs),
        )
        plan = [
            (
                "Formats in sessions" if several else "Success in sessions",
                "Share of sessions that succeed, by domain and "
                + ("format of the procedure." if several else "system."),
                lambda: plots.format_points(known, "sessions"),
            ),
            *([pairs] if several else ()),
            (
                "Why sessions failed",
                "The first deviation of a failed session from chart and gold calls.",
                lambda: share_bars(causes, "Why sessions failed, by system", "failed session"),
            ),
        ]
    if known.turns:
        several = len({r.format for r in known.turns}) > 1
        pairs = (
            "Formats on the same recorded sessions",
            "Paired by recorded session.",
            lambda: plots.format_differences(known.turn_pairs, "right calls"),
        )
        plan = [
            *plan,
            (
                "Formats at single turns" if several else "Right calls at single turns",
                "Share of due calls that are right, tool and parameters.",
                lambda: plots.format_points(known, "turns"),
            ),
            *([pairs] if several else ()),
        ]
    return plan


def _lost_session(result: SessionResult) -> Lost:
    trial, log = heading(result.case.id, f"trial {result.trial}"), result.log
    if isinstance(log, SessionFailure):
        return Lost(result.system, trial, f"{_WHO[log.who]}, {log.status}", log.message)
    return Lost(result.system, trial, "not judged yet", "")
