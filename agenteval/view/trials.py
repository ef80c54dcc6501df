"""Page 6 of the viewer: trials of agents and finders, as the pages of their rooms show them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from agenteval.errors import InputError
from agenteval.planning.evaluator import EVALUATOR as PLANNING
from agenteval.planning.evaluator import load_attempts
from agenteval.planning.page import plan_item
from agenteval.records.table import column, table_of
from agenteval.reporting.page import Block, Foldout, Items, Listing, Page, PageSection, Text
from agenteval.reporting.text import cut
from agenteval.store import Store
from agenteval.store.browse import TrialLine, trial_line, trial_lines
from agenteval.store.trials import Trials
from agenteval.traces.api import FindingsReport, by_finder
from agenteval.traces.evaluator import EVALUATOR as TRACES
from agenteval.traces.evaluator import load_findings, load_outlines
from agenteval.traces.input import flags_of_outlines
from agenteval.traces.outline import Bounds
from agenteval.traces.page import trace_item
from agenteval.view.experiments import minute
from agenteval.view.grid import page_number, turn_links
from agenteval.view.server import Viewer, page_path, respond
from agenteval.workflows.page import turn_item
from agenteval.workflows.page_sessions import session_items
from agenteval.workflows.results import EVALUATORS as WORKFLOWS
from agenteval.workflows.results import load_sessions, load_turns

PER_PAGE = 50
_SPANS = 1_000  # of a trace that are drawn
_MOST_LOG = 20_000  # characters of a failure


@dataclass(frozen=True)
class _TrialRow:
    trial: str = column("trial")
    system: str = column("agent or finder")
    outcome: str = column("outcome")
    kind: str = column("kind")
    started: str | None = column("started")


def trials_page(viewer: Viewer, request: Request) -> Response:
    """All trials, the latest first, filtered by kind, outcome and source."""
    query, store = request.query_params, viewer.store
    number = page_number(query, 10**9, PER_PAGE)
    lines, total = trial_lines(
        store,
        evaluator=query.get("evaluator") or None,
        outcome=query.get("outcome") or None,
        source=query.get("system") or None,
        start=(number - 1) * PER_PAGE,
        most=PER_PAGE,
    )
    rows, links = [], {}
    for line in lines:
        name = f"{line.case}, trial {line.trial} ({line.call_id[:6]})"
        links[name] = page_path("/trial", call=line.call_id)
        outcome, started = line.outcome or line.status, line.started and minute(line.started)
        rows.append(_TrialRow(name, line.system, outcome, line.evaluator, started or None))
    table = table_of(_TrialRow, "trials", "Trials", rows)
    nothing = Text("No trial matches. `agenteval plan`, `trace locate` and `flow` store trials.")
    listing: list[Block] = [Listing(table, links, find=True, titled=False)] if rows else [nothing]
    lead = f"{total:,} trials: plans, sessions and turns of procedures, traces with their findings."
    before, after = turn_links(request, number, total, PER_PAGE)
    return respond(
        request,
        "trials.html",
        page=Page("view", "Trials", lead, [PageSection("trials", "", listing)]),
        query=query,
        kinds=Trials(store).evaluators(),
        before=before,
        after=after,
    )


def trial_page(viewer: Viewer, request: Request) -> Page:
    """One trial: a plan with its violated constraints, a session, a turn, or a trace."""
    call_id = request.query_params.get("call", "")
    line = trial_line(viewer.store, call_id)
    if line is None:
        raise InputError("this trial is not in the store, or was removed", call_id[:12] or "call")
    item = _item(viewer.store, line)
    lead = f"{line.system} · trial {line.trial} · {line.outcome or line.status}"
    blocks: list[Block]
    if item is None:
        blocks = [Text("This trial has no verdict.", "warning"), *_log(viewer.store, line)]
    else:
        blocks = [Items([item])]
    return Page("view", line.case, lead, [PageSection("trial", "Trial", blocks)])


def _item(store: Store, line: TrialLine) -> Foldout | None:
    """Return the trial as the page of its room shows it; None without a verdict."""
    if line.evaluator == TRACES:
        return replace(_trace(store, line), id="", open=True)
    if line.status != "done":
        return None
    place: Any = {"cases": [line.case_key], "systems": [line.system_key]}
    item: Foldout | None = None
    if line.evaluator == PLANNING:
        attempt = next(a for a in load_attempts(store, **place) if a.trial == line.trial)
        item = plan_item(attempt) if attempt.verdict else None
    elif line.evaluator == WORKFLOWS["session"]:
        session = next(s for s in load_sessions(store, **place) if s.trial == line.trial)
        item = session_items([session])[0] if session.verdict else None
    elif line.evaluator == WORKFLOWS["turn"]:
        turn = next(t for t in load_turns(store, **place) if t.trial == line.trial)
        item = turn_item(turn, Counter()) if turn.verdict else None
    return item and replace(item, id="", open=True)


def _trace(store: Store, line: TrialLine) -> Foldout:
    """Return a trace with the findings of every finder that examined it."""
    stored = load_findings(store, traces=[line.case_key])
    outline = load_outlines(store, [line.case_key]).get(line.case_key)
    flags = flags_of_outlines([outline] if outline else [])
    report = FindingsReport(title="", tables=(), finders=tuple(by_finder(stored)), flags=flags)
    trace = stored[0].findings.trace
    return trace_item(report, trace, outline, Bounds(spans=_SPANS), first=True)


def _log(store: Store, line: TrialLine) -> list[Block]:
    """Return why a trial has no verdict."""
    for trial in Trials(store).trials(line.evaluator, [line.case_key], [line.system_key]):
        if trial.trial == line.trial:
            message = str(trial.log.get("message") or "")
            return [Text(f"Status: {trial.status}"), Text(cut(message, _MOST_LOG) or "–", "pre")]
    return []
