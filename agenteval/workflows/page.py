"""The page of workflows: rates, sessions with their conversations, wrong turns; and a chart of
rates by domain and format (the comparison of arXiv 2406.14884) with intervals and counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from agenteval.agents import AgentFailure
from agenteval.analysis.system_pairs import by_system
from agenteval.records.table import shown
from agenteval.reporting.charts import share_bars
from agenteval.reporting.page import (
    Answer,
    Facts,
    Foldout,
    Fragment,
    Lines,
    Page,
    PageSection,
    Plan,
    Text,
    Tile,
    Words,
    badge,
    bounded,
    figures,
    foldouts,
    rate_words,
    render,
    round_robin,
    summary,
)
from agenteval.reporting.text import cut, listed
from agenteval.text import plural
from agenteval.workflows.equality import filled
from agenteval.workflows.page_sessions import (
    MOST_LISTED,
    MOST_NAME,
    MOST_TEXT,
    MOST_WORDS,
    chosen,
    heading,
    json_text,
    session_items,
    unique_id,
)
from agenteval.workflows.results import (
    SessionResult,
    TurnJudged,
    TurnResult,
    flow_flags,
    flow_signs,
)
from agenteval.workflows.scores import TurnVerdict
from agenteval.workflows.session import Prediction
from agenteval.workflows.tallies import SessionTally, Tallies, TurnTally

if TYPE_CHECKING:
    from agenteval.workflows.reports import WorkflowReport


from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenteval.errors import InputError
from agenteval.reporting import charts
from agenteval.reporting.charts import Series
from agenteval.reporting.style import LOOKS, plain
from agenteval.stats import Interval
from agenteval.workflows.scenario import EVERY_FORMAT

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MOST_TURNS = 100
_WRONG = {
    "wrong": "wrong call",
    "missed": "no call",
    "spurious": "call instead of a reply",
    "unreadable": "unreadable",
}
_LEAD = (
    "Deviations are computed from the chart and the gold calls. Success is decided by an "
    "exceeded limit, otherwise by the final state, otherwise by a judge."
)
_RATES = (
    "Brackets contain 95% intervals. Trials without a verdict are counted separately and "
    "excluded from rates."
)
_SESSIONS = (
    "Systems alternate. Failed sessions come first, the shortest of each system at the top. "
    "Deviations are shown at their call."
)
_TURNS = (
    "Systems alternate. Each entry is one turn of a recorded session, predicted from the "
    "conversation before it."
)


def workflows_page(report: WorkflowReport, most_sessions: int) -> str:
    """Return the page as HTML. The output is deterministic for the same results in the same order.

    It has details of at most `most_sessions` sessions, failed ones first, and of 100 wrong turns,
    and shows the total numbers.
    """
    sessions, turns = report.sessions, report.turns
    tallies = Tallies(sessions, turns)
    agents = sorted({trial.agent for trial in report.trials})
    lines = [
        *map(_session_line, sorted(tallies.sessions_by(), key=lambda t: t.system)),
        *map(_turn_line, sorted(tallies.turns_by(), key=lambda t: t.system)),
    ]
    answer = Answer("Workflows followed by", listed(agents, 5), lines or ["There are no trials."])
    items, decided = chosen(sessions, most_sessions)
    wrong = _wrong_turns(turns)
    seen: Counter[str] = Counter()
    wrong_items = [turn_item(r, seen) for r in wrong[:_MOST_TURNS]]
    tables = report.tables or [Text("There are no deviations to count.")]
    sections = [
        summary(answer, _tiles(sessions, turns), flow_flags(sessions, turns)),
        figures(_plan(tallies)),
        PageSection("tables", "Tables", tables, _RATES),
        foldouts(
            "sessions",
            "Sessions",
            session_items(items),
            decided,
            "session{s} with a verdict",
            _SESSIONS,
        ),
        foldouts("wrong", "Wrong turns", wrong_items, len(wrong), "wrong turn{s}", _TURNS),
    ]
    return render(Page("workflow report", "Workflows", _LEAD, sections, report.unfinished))


def _session_line(t: SessionTally) -> str:
    lost = t.failures.total()
    without = [plural(lost, "session") + " without a verdict"] if lost else []
    without += [f"{t.undecided_sessions:,} undecided"] if t.undecided_sessions else []
    if t.success.mean is None:
        reason = ", ".join(without) or "not judged yet"
        return f"{t.system}: no session has a verdict ({reason})."
    one_each = t.success.n == t.success.n_clusters
    users = ", one for each user" if one_each else f" with {plural(t.tasks or 0, 'user')}"
    of = plural(t.success.n, "session")
    parts = [f"{t.system} succeeds in {rate_words(t.success)} of {of}{users}"]
    if t.progress.mean is not None:
        parts.append(f"{shown(t.progress.mean, 'share')} of the goals achieved")
    if t.causes:
        most = max(t.causes, key=lambda cause: t.causes[cause])
        counted = f"{t.causes[most]:,} of {sum(t.causes.values()):,}"
        parts.append(f"most common cause of failure: {most.replace('_', ' ')} ({counted})")
    if without:
        parts.append(f"{', '.join(without)}, excluded from rates")
    return "; ".join(parts) + "."


def _turn_line(t: TurnTally) -> str:
    share = "no due call is decided"
    if t.recall.mean is not None:
        share = f"{rate_words(t.recall)} of {plural(t.due_calls, 'due call')} are correct"
    counted = {
        "turn unreadable": t.unreadable,
        "call undecided": t.undecided,
        "turn without a prediction, excluded from rates": t.lost,
    }
    remarks = []
    for name, n in counted.items():
        noun, _, remark = name.partition(" ")
        remarks += [f"{plural(n, noun)} {remark}"] if n else []
    return "; ".join([f"{t.system}, single turns: {share}", *remarks]) + "."


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
        outcomes = [_outcome(r) for r in turns]
        tiles += [
            (len(turns), "single turns"),
            (outcomes.count("right"), "right calls"),
            (sum(o in _WRONG for o in outcomes), "wrong turns"),
            (sum(isinstance(r.prediction, AgentFailure) for r in turns), "no prediction"),
        ]
    return tiles


def _plan(tallies: Tallies) -> Plan:
    """Return the figures, each with title, caption and a function that draws it."""
    plan: list[tuple[str, str, Callable[[], Any]]] = []
    if tallies.sessions:
        several = len({r.format for r in tallies.sessions}) > 1
        title = "Formats in sessions" if several else "Success in sessions"
        kind = "format of the procedure" if several else "system"
        caption = f"Share of sessions that succeed, by domain and {kind}."
        plan.append((title, caption, partial(format_points, tallies, "sessions")))
        by_name = sorted(tallies.sessions_by(), key=lambda t: t.system)
        causes = {t.system: t.causes for t in by_name if t.causes}
        caption = "The first deviation of a failed session from chart and gold calls."
        words = ("Why sessions failed, by system", "failed session")
        plan.append(("Why sessions failed", caption, partial(share_bars, causes, *words)))
    if tallies.turns:
        several = len({r.format for r in tallies.turns}) > 1
        title = "Formats at single turns" if several else "Correct calls at single turns"
        caption = "Share of due calls with the correct tool and parameters."
        plan.append((title, caption, partial(format_points, tallies, "turns")))
    return plan


def _outcome(result: TurnResult) -> str:
    """Return the outcome as stored, "" without a verdict."""
    return "" if result.verdict is None else TurnJudged(turn=result.verdict).outcome


def _wrong_turns(results: Sequence[TurnResult]) -> list[TurnResult]:
    """Return the wrong turns, the systems taking turns."""
    wrong = [
        (r.case.task, r.verdict.turn, r.trial, r)
        for r in results
        if r.verdict is not None and _outcome(r) in _WRONG
    ]
    ordered = [r for *_, r in sorted(wrong, key=lambda row: row[:3])]
    return round_robin(rows for _, rows in sorted(by_system(ordered).items()))


def turn_item(result: TurnResult, seen: Counter[str]) -> Foldout:
    """Return a turn with a verdict: the expected and the predicted step."""
    verdict, prediction, outcome = result.verdict, result.prediction, _outcome(result)
    assert verdict is not None
    assert isinstance(prediction, Prediction)
    facts: list[tuple[str, Words]] = [
        ("before it", cut(result.case.said, MOST_WORDS)),
        ("gold", [Fragment(cut(result.case.gold, MOST_WORDS), "code")]),
        ("predicted", [Fragment(_predicted(prediction), "code")]),
        ("thought", cut(prediction.thought, MOST_WORDS)),
    ]
    lines = bounded(list(_differences(verdict, prediction, result.case.gold)), MOST_LISTED)
    return Foldout(
        unique_id("turn", result, seen),
        heading(result.case.id, result.system, f"trial {result.trial}" if result.trial else ""),
        [Facts([fact for fact in facts if fact[1]]), Lines(lines, "Differs")],
        [badge(_WRONG.get(outcome, outcome), "drop" if outcome in _WRONG else "keep")],
        kind="case",
        signs=flow_signs(result) or (),
    )


def _predicted(prediction: Prediction) -> str:
    if prediction.form == "call":
        arguments = "" if prediction.arguments is None else json_text(prediction.arguments)
        more = f"\nbesides: {', '.join(prediction.further)}" if prediction.further else ""
        call = f"{cut(prediction.tool, MOST_NAME)}({cut(arguments, MOST_TEXT)})"
        return call + cut(more, MOST_WORDS)
    if prediction.form == "reply":
        return cut(prediction.response, MOST_WORDS)
    return cut(prediction.raw, MOST_WORDS) or "(no text)"


def _differences(verdict: TurnVerdict, prediction: Prediction, gold: str) -> Iterator[str]:
    if verdict.form == "unreadable":
        due = "a call" if verdict.gold_call else "a reply"
        yield f"neither a call nor a reply could be read; expected was {due}"
    elif not verdict.gold_call:
        yield "a reply was expected, not a call"
    elif verdict.form == "reply":
        yield "a call was expected, not a reply"
    elif verdict.name_right is False:
        yield "another tool was expected"
    elif verdict.arguments_unreadable:
        yield "the arguments are not a JSON object"
    else:
        yield from _arguments(verdict, prediction, gold)
    if verdict.node_right is False:
        yield f"names the wrong node, {cut(prediction.node, MOST_NAME)}"


def _arguments(verdict: TurnVerdict, prediction: Prediction, gold: str) -> Iterator[str]:
    """Yield the differences between the arguments of a call and of the gold call."""
    for pair in verdict.parameters:
        if pair.verdict != "equal":
            by = " (by a judge)" if pair.by == "judge" else ""
            by = " (undecided)" if pair.verdict == "unjudged" else by
            name = cut(pair.parameter, MOST_NAME)
            yield f"{name}: {_value(pair.given)}, gold {_value(pair.gold)}{by}"
    try:  # a gold call is stored as text, `tool({…})`
        expected = filled(json.loads(gold.partition("(")[2].removesuffix(")")))
    except ValueError:
        expected = {}
    stated = filled(prediction.arguments)
    for name, value in expected.items():
        if name not in stated:
            yield f"{cut(name, MOST_NAME)}: not given, gold {_value(value)}"
    for name, value in stated.items():
        if expected and name not in expected:
            yield f"{cut(name, MOST_NAME)}: {_value(value)}, which is not in gold"


def _value(value: JsonValue) -> str:
    return cut(json.dumps(value, ensure_ascii=False), MOST_NAME)


_MOST_PANELS = 4
_ALL = "all domains"
_SHARE_OF = {"sessions": "successful sessions", "single turns": "correct due calls"}
_COUNTED = {"sessions": "sessions with a verdict", "single turns": "decided calls"}

# Agent, format and domain → the rate and its denominator.
_Rates = dict[tuple[str, str, str], tuple[Interval, int]]


def format_points(tallies: Tallies, level: str = "") -> Figure:
    """Draw the rate of each format in each domain, one panel per agent, for "sessions", "turns" or
    both.

    Rates have 95% intervals: the share of successful sessions, or of correct due calls at single
    turns, as in the tables. The denominator is on the right. Each level has at most four panels:
    agents with more formats come first, then those with more trials, then by name; the others are
    listed. If all agents were run in one format only, a panel has up to seven agents side by side.
    Raises InputError when there are no rates.
    """
    levels = {"sessions": _session_rates(tallies), "single turns": _turn_rates(tallies)}
    names = {"sessions": ["sessions"], "turns": ["single turns"]}.get(level, list(levels))
    drawn = {name: levels[name] for name in names if levels[name]}
    if not drawn:
        raise InputError("there are no rates to draw")
    keys = [key for rates in drawn.values() for key in rates]
    domains = sorted({domain for *_, domain in keys}, key=lambda d: (d != _ALL, d))
    if len(domains) == 2:
        domains = domains[:1]
    panels: dict[str, list[Series]] = {}
    omitted: list[str] = []
    for name, rates in drawn.items():
        agents, formats = _agents(rates), _in_order(format for _, format, _ in rates)
        side_by_side = len(formats) == 1 and len(agents) > 1
        most = len(LOOKS) if side_by_side else _MOST_PANELS
        omitted += agents[most:]
        if side_by_side:
            title = f"{name}, procedure as {formats[0].replace('_', ' ')}"
            panels[title] = [
                _series(a, rates, [(a, formats[0], d) for d in domains]) for a in agents[:most]
            ]
            continue
        for a in agents[:most]:
            panels[f"{a}, {name}"] = [
                _series(f, rates, [(a, f, d) for d in domains])
                for f in formats
                if any((a, f, d) in rates for d in domains)
            ]
    notes = [f"whiskers: 95%; at the right: {' or '.join(_COUNTED[k] for k in drawn)}"]
    if omitted:
        notes.append(f"not shown: {listed([plain(a) for a in omitted])}")
    in_series = any(series.name in EVERY_FORMAT for panel in panels.values() for series in panel)
    several = len({format for _, format, _ in keys}) > 1
    shown = "Formats" if in_series and several else "Systems"
    return charts.rows(
        ["one domain" if domains == [_ALL] else domain for domain in domains],
        panels,
        title=shown if len(domains) == 1 else f"{shown} by domain",
        x="share of " + " or of ".join(_SHARE_OF[k] for k in drawn),
        notes=notes,
    )


def _in_order(formats: Iterable[str]) -> list[str]:
    present = set(formats)
    return [format for format in EVERY_FORMAT if format in present]


def _series(name: str, rates: _Rates, keys: Sequence[tuple[str, str, str]]) -> Series:
    """Return the rates of these keys; a format has the same look in every chart."""
    points = [rates.get(key) for key in keys]
    return Series(
        name,
        [point[0] if point else None for point in points],
        name.replace("_", " "),
        look=LOOKS[list(EVERY_FORMAT).index(name)] if name in EVERY_FORMAT else None,
        counts=[point[1] if point else 0 for point in points],
    )


def _agents(rates: _Rates) -> list[str]:
    """Return agents with more formats first, then those with larger denominators, then by name."""
    formats: defaultdict[str, set[str]] = defaultdict(set)
    total: Counter[str] = Counter()
    for (agent, format, _), (_, n) in rates.items():
        formats[agent].add(format)
        total[agent] += n
    return sorted(formats, key=lambda agent: (-len(formats[agent]), -total[agent], agent))


def _session_rates(tallies: Tallies) -> _Rates:
    return {
        (t.agent, t.format, t.group or _ALL): (t.success, t.success.n)
        for by in ("domain", "")
        for t in tallies.sessions_by(by)
        if t.success.mean is not None
    }


def _turn_rates(tallies: Tallies) -> _Rates:
    return {
        (t.agent, t.format, t.group or _ALL): (t.recall, t.due_calls)
        for by in ("domain", "")
        for t in tallies.turns_by(by)
        if t.recall.mean is not None
    }
