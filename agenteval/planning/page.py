"""The HTML page of planning tests: rates, error types, and wrong plans with their clauses.

Its charts of success are figures 8 and 9 of arXiv 2404.17833 (curves over the number of actions),
with intervals, counts and the success of random orders.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from agenteval.agents import AgentFailure, AgentLog
from agenteval.analysis.system_pairs import by_system
from agenteval.errors import InputError
from agenteval.planning import rates
from agenteval.planning.capability import THRESHOLD, Bound, bounds
from agenteval.planning.case import Case, clock
from agenteval.planning.evaluator import Attempt
from agenteval.planning.grammar import render_part
from agenteval.planning.oracle import Verdict
from agenteval.planning.rates import CaseLabel, LabelShare, SuccessRate
from agenteval.planning.suite import in_words, paragraph_of
from agenteval.planning.tables import by_kind, planning_tables
from agenteval.records import content_hash
from agenteval.records.table import shown
from agenteval.reporting import charts
from agenteval.reporting.charts import Series, share_bars
from agenteval.reporting.page import (
    Answer,
    Block,
    Foldout,
    Fragment,
    Lines,
    Lost,
    Page,
    PageSection,
    Plan,
    Text,
    Tile,
    badge,
    bounded,
    figures,
    foldouts,
    lost_section,
    rate_words,
    render,
    round_robin,
    summary,
)
from agenteval.reporting.style import n_label
from agenteval.reporting.text import cut, listed
from agenteval.text import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_WRONG = 200  # plans shown in full
_MAX_REQUEST = 20_000  # characters of a request
_MAX_OUTPUT = 2_000  # characters of the agent's final message
_MAX_STEPS = 60
_MAX_LINES = 40
_MAX_TOPICS = 60

_LEAD = (
    "Every verdict is computed from the order of the agent's calls and the constraints of the "
    "request; no judge is involved."
)
_RATES = (
    "A rate is the share of correct plans among trials with a verdict, with its 95% interval in "
    "brackets. Trials without a verdict are counted separately and excluded from rates."
)
_WRONG = (
    "Systems alternate, smallest cases first. Violated clauses are marked with their number in "
    "the request."
)
_LOST = (
    "The endpoint or the adapter failed, so these trials say nothing about the agent. They are "
    "counted here and excluded from rates."
)


def planning_page(
    attempts: Iterable[Attempt],
    causes: Iterable[CaseLabel] = (),
    *,
    unfinished: Sequence[str] = (),
) -> str:
    """Return the page as HTML; the output is deterministic.

    `causes` are the labels of dissected cases.
    """
    trials, labelled = by_kind(tuple(attempts), tuple(causes))
    systems = list(dict.fromkeys(a.system for a in trials))
    answer = Answer(
        "Planning of", listed(systems, 5), headlines(trials) or ["There are no trials."]
    )
    tables = [table for table in planning_tables(trials, labelled) if table.rows]
    wrong = wrong_plans(trials)
    items = [plan_item(a) for a in wrong[:MAX_WRONG]]
    lost = [
        Lost(a.system, f"{a.case.id}, trial {a.trial}", a.log.status, a.log.message)
        for a in trials
        if isinstance(a.log, AgentFailure)
    ]
    sections = [
        summary(answer, _tiles(trials, labelled)),
        figures(_figures(trials, labelled)),
        PageSection("tables", "Tables", tables or [Text("There are no errors to count.")], _RATES),
        foldouts("wrong", "Wrong plans", items, len(wrong), "wrong plan{s}", _WRONG),
        lost_section({"trial{s} without a verdict": lost}, _LOST),
    ]
    return render(Page("planning report", "Planning", _LEAD, sections, unfinished))


def headlines(attempts: Sequence[Attempt]) -> list[str]:
    """Return a sentence per system: success, random orders, bound, most common error."""
    bound_of = {b.system: b.sentence for b in bounds(rates.by_actions(attempts))}
    errors = by_system(rates.error_shares(attempts))
    lines = []
    for row in rates.success_rates(attempts):
        without = f"{plural(row.failures, 'trial')} without a verdict" if row.failures else ""
        if row.success.mean is None:
            lines.append(f"{row.system}: no verdict ({without})")
            continue
        cases = plural(row.cases, "case")
        trials = cases if row.trials == row.cases else f"{plural(row.trials, 'trial')} of {cases}"
        parts = [f"{row.system} plans correctly in {rate_words(row.success)} of {trials}"]
        if row.guess is not None:
            parts.append(f"random orders would in {shown(row.guess, 'share')}")
        parts.append(bound_of[row.system])
        most = max(errors[row.system], key=lambda e: e.count)
        if most.count:
            kind = most.label.replace("_", " ")
            parts.append(f"{most.count:,} of {most.total:,} errors are of type {kind}")
        if without:
            parts.append(f"{without}, excluded from rates")
        lines.append("; ".join(parts) + ".")
    return lines


def _tiles(attempts: Sequence[Attempt], causes: Sequence[CaseLabel]) -> list[Tile]:
    graded = [a for a in attempts if a.verdict is not None]
    right = sum(a.outcome == "pass" for a in graded)
    return [
        (len({a.system for a in attempts}), "systems"),
        (len({a.case.id for a in attempts}), "cases"),
        (len(attempts), "trials"),
        (right, "right"),
        (len(graded) - right, "wrong"),
        (len(attempts) - len(graded), "no verdict"),
        *([(len(causes), "dissected")] if causes else ()),
    ]


def _figures(attempts: Sequence[Attempt], causes: Sequence[CaseLabel]) -> Plan:
    by_actions = rates.by_actions(attempts)
    drawn_causes = (
        "Causes",
        "What made the same constraints solvable: chance, other words, another topic, another "
        "structure, or none of these.",
        lambda: share_bars(
            _counts(rates.cause_shares(causes)), "Causes by system", "dissected case"
        ),
    )
    return [
        (
            "Success by number of actions",
            "More actions are harder. The capability bound is the last number of actions with a "
            "success rate of at least 20%.",
            lambda: success_by_actions(by_actions, bounds(by_actions)),
        ),
        (
            "Types of errors",
            "Each wrong plan has one type, the first that applies.",
            lambda: share_bars(
                _counts(rates.error_shares(attempts)), "Types of errors by system", "error"
            ),
        ),
        *([drawn_causes] if causes else ()),
        (
            "Topics",
            "The topic should not matter for planning. Intervals from few cases are wide.",
            lambda: success_by_topic(rates.success_rates(attempts, rates.FEATURES["topic"])),
        ),
    ]


def _counts(shares: Sequence[LabelShare]) -> dict[str, dict[str, int]]:
    rows = by_system(shares)
    return {system: {row.label: row.count for row in rows[system]} for system in rows}


def success_by_actions(rates: Sequence[SuccessRate], bounds: Sequence[Bound] = ()) -> Figure:
    """Plot success against number of actions, a line per system with its bound in the legend.

    The threshold of 20% is dashed, the success of random orders (mean over all trials) dotted.
    Raises InputError without rates, and for too many systems to distinguish.
    """
    graded = _graded(rates)
    legend = {
        b.system: ", no bound"
        if b.bound is None
        else f", bound {'at least ' if b.below is None else ''}{b.bound}"
        for b in bounds
    }
    series = []
    for system, rows in by_system(graded).items():
        rows.sort(key=lambda r: r.place)
        label = system + legend.get(system, "")
        series.append(Series(system, [r.success for r in rows], label, at=[r.place for r in rows]))
    ticks, guesses = {}, []
    for place in sorted({r.place for r in graded}):
        rows = [r for r in graded if r.place == place]
        cases = {r.cases or r.trials for r in rows}
        low, high = min(cases), max(cases)
        ticks[place] = f"{place:g}\n{low:,}" + ("" if low == high else f"–{high:,}")
        trials = sum(r.trials for r in rows)
        guesses.append(
            sum((np.nan if r.guess is None else r.guess) * r.trials / trials for r in rows)
        )
    random_orders = None
    if not np.isnan(guesses).all():
        random_orders = charts.ReferenceCurve(list(ticks), guesses, "random orders")
    return charts.lines(
        {"": series},
        title="Success by number of actions",
        ticks=ticks,
        x="number of actions; below it, cases per system",
        level=(THRESHOLD, "20%"),
        y="share of correct plans\nbands: 95%",
        reference=random_orders,
    )


def success_by_topic(rates: Sequence[SuccessRate]) -> Figure:
    """Plot success by topic, the least successful on top.

    Beyond 60 topics, the most successful are omitted and counted. Raises InputError without rates.
    """
    graded = _graded(rates)
    totals: dict[str, tuple[int, int]] = {}
    for r in graded:
        right, trials = totals.get(r.group, (0, 0))
        totals[r.group] = right + r.right, trials + r.trials
    ordered = sorted(totals, key=lambda g: (totals[g][0] / totals[g][1], g))
    topics, hidden = ordered[:_MAX_TOPICS], len(ordered) - _MAX_TOPICS
    notes = [f"each mark: {n_label([r.success for r in graded if r.group in topics], 'trial')}"]
    if hidden > 0:
        notes.append(f"not shown: {plural(hidden, 'topic')} with higher success")
    series = []
    for system, rows in by_system(graded).items():
        by_group = {r.group: r.success for r in rows}
        series.append(Series(system, [by_group.get(topic) for topic in topics]))
    return charts.rows(
        topics,
        {"": series},
        title="Success by topic",
        notes=notes,
        x="share of correct plans; whiskers: 95%",
    )


def _graded(rates: Sequence[SuccessRate]) -> list[SuccessRate]:
    graded = [r for r in rates if r.success.mean is not None]
    if not graded:
        raise InputError("there are no verdicts to plot")
    return graded


def wrong_plans(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the wrong plans; systems alternate, each starting with its smallest cases."""
    wrong = [a for a in attempts if a.verdict is not None and a.outcome != "pass"]
    queues = [
        sorted(trials, key=lambda a: (a.case.n, len(a.case.constraints), a.case.id, a.trial))
        for trials in by_system(wrong).values()
    ]
    return round_robin(queues)


def plan_item(attempt: Attempt) -> Foldout:
    """Return the details of a plan with a verdict, under an id that is the same on every page."""
    verdict, case = attempt.verdict, attempt.case
    assert verdict is not None
    violated = {s for v in verdict.violated for s in v.rule.sentences}
    output = attempt.log.output if isinstance(attempt.log, AgentLog) else ""
    steps = [
        s.tool if s.start is None else f"{s.tool} at {clock(s.start)}" for s in verdict.sequence
    ]
    blocks: list[Block] = [
        Text(marked_request(case, violated), "pre"),
        Lines(bounded(_sentences(attempt, verdict), _MAX_LINES)),
        Lines(bounded(steps, _MAX_STEPS), "The agent's plan", "steps", "No call was executed."),
        *([Text(cut(output, _MAX_OUTPUT), "pre", "Its final message")] if output else []),
    ]
    return Foldout(
        f"plan-{content_hash([case.id, attempt.system, attempt.trial])[:12]}",
        f"{case.id} · {attempt.system} · trial {attempt.trial}",
        blocks,
        [badge(attempt.outcome.replace("_", " "), "keep" if verdict.passed else "drop")],
        f"{plural(case.n, 'action')}, {case.topic or 'no topic'}",
        kind="plan",
    )


def _sentences(attempt: Attempt, verdict: Verdict) -> list[str]:
    """Return all errors as sentences."""
    lines = []
    if isinstance(attempt.log, AgentLog) and attempt.log.ending != "finished":
        limit = "time" if attempt.log.ending == "timeout" else "turns"
        lines.append(f"stopped at the limit of {limit}")
    lines += [f"call {s.call} of {s.name!r}: {s.why}" for s in verdict.slips]
    if verdict.lost:
        lines.append(f"never executed: {', '.join(verdict.lost)}")
    for e in verdict.parameter_errors:
        earliest = clock(e.earliest)
        possible = (
            f"{earliest} to {clock(e.latest)}"
            if e.earliest <= e.latest
            else f"no hour (the others end at {earliest}, and it would end after 24:00)"
        )
        lines.append(
            f"call {e.call}: {e.tool} was started at {clock(e.given)}; possible: {possible}"
        )
    lines += [f"{in_words(v.rule)}: {v.why}" for v in verdict.violated]
    if verdict.repeated:
        lines.append(f"called more than once: {', '.join(verdict.repeated)}")
    if verdict.attempts > 1:
        lines.append(f"the last of {verdict.attempts} plans was judged")
    return lines


def marked_request(case: Case, violated: Collection[int]) -> list[Fragment]:
    """Return the request in pieces, with the violated sub-sentences (numbers from 0) marked.

    A text without a syntax tree is one piece.
    """
    divisible = case.text and case.text in case.request and len(case.request) <= _MAX_REQUEST
    spans = _spans(case) if divisible and violated else []
    if not spans:
        return [Fragment(cut(case.request, _MAX_REQUEST))]
    before, text, after = case.request.partition(case.text)
    pieces, at = [Fragment(before)], 0
    for number, (start, end) in enumerate(spans):
        if number in violated:
            pieces.append(Fragment(text[at:start]))
            pieces.append(Fragment(text[start:end], "mark", note=str(number + 1)))
            at = end
    pieces.append(Fragment(text[at:] + after))
    return [piece for piece in pieces if piece.text]


def _spans(case: Case) -> list[tuple[int, int]]:
    """Return start and end of each sub-sentence in the case's text; [] if it has no tree."""
    try:
        parts = paragraph_of(case).parts()
    except InputError:
        return []
    phrases = [action.phrase for action in case.actions]
    spans, at = [], 0
    for part in parts:
        phrase = render_part(part, phrases)
        # The first letter may be capitalized.
        starts = [case.text.find(form, at) for form in (phrase, phrase[0].upper() + phrase[1:])]
        start = min(i for i in starts if i >= 0)
        at = start + len(phrase)
        spans.append((start, at))
    return spans
