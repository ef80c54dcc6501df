"""The page of planning tests: rates, types of errors, every wrong plan with its clauses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agenteval.agents import AgentFailure, AgentLog
from agenteval.errors import InputError
from agenteval.evaluators.planning import tallies
from agenteval.evaluators.planning.capability import bounds
from agenteval.evaluators.planning.case import Case, clock
from agenteval.evaluators.planning.grammar import render_part
from agenteval.evaluators.planning.oracle import PlanStep, Verdict
from agenteval.evaluators.planning.suite import in_words, paragraph_of
from agenteval.evaluators.planning.tables import by_kind, planning_tables
from agenteval.evaluators.planning.tallies import CaseLabel
from agenteval.evaluators.planning.trials import Attempt
from agenteval.evaluators.planning.words import Lexicon, built_in
from agenteval.evaluators.systems import by_system
from agenteval.records import content_hash
from agenteval.records.table import Cell, Column, Table, shown
from agenteval.report import trial_plots as drawn
from agenteval.report.page import (
    Block,
    Item,
    Items,
    Lines,
    Page,
    Piece,
    Section,
    Text,
    Tiles,
    Words,
    badge,
    bounded,
    figures,
    rate_words,
    render,
    some_of,
    taking_turns,
)
from agenteval.report.page import (
    Verdict as Head,
)
from agenteval.report.text import cut
from agenteval.stats import Interval
from agenteval.text import plural

MOST_WRONG = 200
MOST_TEXT = 20_000  # characters of a request
_MOST_WORDS = 2_000  # of the agent's last words, or of a message
_MOST_STEPS = 60
_MOST_LINES = 40
_MOST_MESSAGES = 20


def planning_page(  # noqa: PLR0913  each is a part of the page
    attempts: Iterable[Attempt],
    causes: Iterable[CaseLabel] = (),
    *,
    title: str = "Planning",
    facts: Sequence[tuple[str, str]] = (),
    lexicon: Lexicon | None = None,
    most_wrong: int = MOST_WRONG,
    unfinished: Sequence[str] = (),
) -> str:
    """The page as HTML. The same trials in the same order give the same text.

    `causes` are the labels of dissected cases; `facts` are shown at the end as
    (name, text); `lexicon` has the words of the suite where they are not the built-in ones. At
    most `most_wrong` wrong plans can be unfolded; the page says how many there are. `unfinished`
    are sentences on experiments that are not all there, said before everything else.
    """
    trials, labelled = by_kind(tuple(attempts), tuple(causes))
    names = list(dict.fromkeys(a.system for a in trials))
    blocks: list[Block] = [
        Head("Planning of", some_of(names), headlines(trials) or ["There is no trial."]),
        Tiles(_tiles(trials, labelled)),
    ]
    tables = [table for table in planning_tables(trials, labelled) if table.rows]
    rates = (
        "A rate is the share of right plans among trials with a verdict; brackets hold its 95% "
        "interval. Trials without a verdict are counted beside it and in no rate."
    )
    sections = [
        Section("summary", "Summary", blocks),
        figures(_plan(trials, labelled)),
        Section("tables", "Tables", tables or [Text("There is nothing to count.")], rates),
        *_wrong(trials, most_wrong, lexicon or built_in()),
        *_lost(trials),
    ]
    lead = (
        "Every verdict is computed from the order of the agent's calls and the constraints of the "
        "request: no judge is involved."
    )
    return render(Page("planning report", title, lead, sections, unfinished, facts))


def headlines(attempts: Sequence[Attempt]) -> list[str]:
    """One sentence per system: success, guessing, the bound, the commonest error."""
    known = {b.system: b.sentence for b in bounds(tallies.tallies(attempts, tallies.actions))}
    types = {s.system: s for s in tallies.errors(attempts)}
    lines = []
    for t in tallies.tallies(attempts):
        without = f"{plural(t.failures, 'trial')} without a verdict" if t.failures else ""
        if t.rate.mean is None:
            lines.append(f"{t.system}: no verdict ({without})")
            continue
        parts = [f"{t.system} plans right in {rate_words(t.rate)} of {_trials(t.rate)}"]
        if t.guess is not None:
            parts.append(f"random orders would in {shown(t.guess, 'share')}")
        parts.append(known[t.system])
        most = max(types[t.system].parts, key=lambda p: p.count)
        if most.count:
            kind = most.label.replace("_", " ")
            parts.append(f"{most.count:,} of {types[t.system].total:,} errors are of type {kind}")
        if without:
            parts.append(f"{without}, in no rate")
        lines.append("; ".join(parts) + ".")
    return lines


def _trials(rate: Interval) -> str:
    cases = plural(rate.n_clusters or 0, "case")
    return cases if rate.n == rate.n_clusters else f"{plural(rate.n, 'trial')} of {cases}"


def _tiles(attempts: Sequence[Attempt], causes: Sequence[CaseLabel]) -> list[tuple[str, str]]:
    graded = [a for a in attempts if a.verdict is not None]
    right = sum(a.outcome == "pass" for a in graded)
    numbers = [
        ("systems", len({a.system for a in attempts})),
        ("cases", len({a.case.id for a in attempts})),
        ("trials", len(attempts)),
        ("right", right),
        ("wrong", len(graded) - right),
        ("no verdict", len(attempts) - len(graded)),
        ("dissected", len(causes)),
    ]
    return [(f"{n:,}", name) for name, n in numbers if n or name != "dissected"]


def _plan(
    attempts: Sequence[Attempt], causes: Sequence[CaseLabel]
) -> list[tuple[str, str, Callable[[], Any]]]:
    by_actions = tallies.tallies(attempts, tallies.actions)
    errors, labels = (
        {r.system: {p.label: p.count for p in r.parts} for r in shares}
        for shares in (tallies.errors(attempts), tallies.causes(causes))
    )
    plan: list[tuple[str, str, Callable[[], Any]]] = [
        (
            "Success by number of actions",
            "The more actions, the harder. The capability bound is the last number of actions with "
            "a success of 20% or more.",
            lambda: drawn.success_by_actions(by_actions, bounds(by_actions)),
        ),
        (
            "Types of errors",
            "Each wrong plan has one type, the first that applies.",
            lambda: drawn.share_bars(errors, "Types of errors by system", "error"),
        ),
    ]
    if causes:
        plan.append((
            "Causes",
            "What made the same constraints solvable: chance, other words, another topic, another "
            "structure, or nothing.",
            lambda: drawn.share_bars(labels, "Causes by system", "dissected case"),
        ))  # fmt: skip
    return [
        *plan,
        (
            "Topics",
            "Topics should not matter for planning; intervals of few cases are wide.",
            lambda: drawn.success_by_topic(tallies.tallies(attempts, tallies.topic)),
        ),
    ]


def _wrong(attempts: Sequence[Attempt], most: int, lexicon: Lexicon) -> list[Section]:
    some, in_all = chosen(attempts, most)
    if not some:
        return []
    count = _count(len(some), in_all, "wrong plans")
    lead = f"{count} Marked are the clauses that were violated, with their number in the request."
    items = [wrong_plan(a, lexicon) for a in some]
    return [Section("wrong", "Wrong plans", [Items(items)], lead)]


def _count(here: int, in_all: int, what: str) -> str:
    if here == in_all:
        return f"All {in_all:,} {what}."
    return f"{here:,} of {in_all:,} {what}: the systems take turns, smallest cases first."


def chosen(attempts: Sequence[Attempt], most: int) -> tuple[list[Attempt], int]:
    """The trials to be shown, and how many were wrong in all.

    Systems take turns, each beginning with its smallest cases: there it is easiest to see why.
    """
    wrong = [a for a in attempts if a.verdict is not None and a.outcome != "pass"]
    queues = [
        sorted(own, key=lambda a: (a.case.n, len(a.case.constraints), a.case.id, a.trial))
        for own in by_system(wrong).values()
    ]
    return taking_turns(queues)[:most], len(wrong)


def pieces(case: Case, violated: frozenset[int], lexicon: Lexicon) -> list[Piece]:
    """The request in pieces, the violated sub-sentences (numbers from 0) by themselves.

    A text outside of the language cannot be taken apart and is one piece.
    """
    known = case.text and case.text in case.request and len(case.request) <= MOST_TEXT
    spans = _spans(case, lexicon) if known and violated else []
    if not spans:
        return [Piece(cut(case.request, MOST_TEXT))]
    before, text, after = case.request.partition(case.text)
    parts, at = [Piece(before)], 0
    for number, (start, end) in enumerate(spans):
        if number in violated:
            parts.append(Piece(text[at:start]))
            parts.append(Piece(text[start:end], "mark", note=str(number + 1)))
            at = end
    parts.append(Piece(text[at:] + after))
    return [p for p in parts if p.text]


def wrong_plan(attempt: Attempt, lexicon: Lexicon) -> Item:
    """A trial that failed, with everything that the page unfolds of it; its id is the same on
    every page."""
    verdict, case = attempt.verdict, attempt.case
    assert verdict is not None  # `chosen` takes no others
    violated = frozenset(s for v in verdict.violated for s in v.rule.sentences)
    output = attempt.log.output if isinstance(attempt.log, AgentLog) else ""
    steps = _steps(verdict.sequence)
    title = "The agent's plan"
    blocks: list[Block] = [
        Text(pieces(case, violated, lexicon), "pre"),
        Lines(bounded(_sentences(attempt, verdict), _MOST_LINES)),
        Lines(steps, title, "steps") if steps else Text("No call was carried out.", title=title),
        *([Text(cut(output, _MOST_WORDS), "pre", "Its last words")] if output else []),
    ]
    return Item(
        f"plan-{content_hash([case.id, attempt.system, attempt.trial])[:12]}",
        f"{case.id} · {attempt.system} · trial {attempt.trial}",
        blocks,
        [badge(attempt.outcome.replace("_", " "), "drop")],
        f"{plural(case.n, 'action')}, {case.topic or 'no topic'}",
        kind="plan",
    )


def _steps(steps: Sequence[PlanStep]) -> list[str]:
    listed = [s.tool if s.start is None else f"{s.tool} at {clock(s.start)}" for s in steps]
    return bounded(listed, _MOST_STEPS)


def _lost(attempts: Sequence[Attempt]) -> list[Section]:
    """Trials without a verdict: their numbers by kind, and some messages."""
    gone = [(a, a.log) for a in attempts if isinstance(a.log, AgentFailure)]
    if not gone:
        return []
    kinds = Counter((a.system, log.status) for a, log in gone)
    columns = (Column("system", "system"), Column("status", "what happened"),
               Column("trials", "trials", "count"))  # fmt: skip
    rows: list[Mapping[str, Cell]] = [
        {"system": system, "status": status, "trials": n} for (system, status), n in kinds.items()
    ]
    some = gone[:_MOST_MESSAGES]
    messages: list[Words] = [
        [Piece(f"{a.case.id}, {a.system}, trial {a.trial}", "strong"),
         f": {cut(log.message, _MOST_WORDS)}"]
        for a, log in some
    ]  # fmt: skip
    lead = (
        f"{_count(len(some), len(gone), 'trials without a verdict')} The endpoint or the adapter "
        "failed, so nothing is known of the agent: counted here, in no rate."
    )
    blocks: list[Block] = [Table("lost", "", columns, tuple(rows)), Lines(messages)]
    return [Section("without", "Without a verdict", blocks, lead)]


def _sentences(attempt: Attempt, verdict: Verdict) -> list[str]:
    """What was found, as sentences; those that decided the outcome are among them."""
    lines = []
    if isinstance(attempt.log, AgentLog) and attempt.log.ending != "finished":
        what = "time" if attempt.log.ending == "timeout" else "turns"
        lines.append(f"stopped at the limit of {what}")
    lines += [f"call {s.call} of {s.name!r}: {s.why}" for s in verdict.slips]
    if verdict.lost:
        lines.append(f"never carried out: {', '.join(verdict.lost)}")
    lines += [
        f"call {p.call}: {p.tool} was started at {clock(p.given)}, possible was "
        + (f"{clock(p.earliest)} to {clock(p.latest)}" if p.earliest <= p.latest
           else f"no hour (the others end at {clock(p.earliest)}, it takes until after 24:00)")
        for p in verdict.parameter_errors
    ]  # fmt: skip
    lines += [f"{in_words(v.rule)}: {v.why}" for v in verdict.violated]
    if verdict.repeated:
        lines.append(f"called more than once: {', '.join(verdict.repeated)}")
    if verdict.attempts > 1:
        lines.append(f"the last of {verdict.attempts} plans was judged")
    return lines


def _spans(case: Case, lexicon: Lexicon) -> list[tuple[int, int]]:
    """Where each sub-sentence stands in the case's text; [] if it is outside of the language."""
    try:
        parts = list(paragraph_of(case, lexicon).parts())
    except InputError:
        return []
    phrases = [action.phrase for action in case.actions]
    spans, at = [], 0
    for part in parts:
        phrase = render_part(part, phrases, lexicon)
        # at the start of a sentence the first letter is a capital
        starts = [i for form in (phrase, phrase[0].upper() + phrase[1:])
                  if (i := case.text.find(form, at)) >= 0]  # fmt: skip
        if not starts:
            return []
        at = min(starts) + len(phrase)
        spans.append((min(starts), at))
    return spans
