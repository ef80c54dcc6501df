"""The page of planning tests: rates, types of errors, every wrong plan with its clauses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenteval.agents import AgentFailure, AgentLog
from agenteval.analysis.system_pairs import by_system
from agenteval.errors import InputError
from agenteval.planning import plots, tallies
from agenteval.planning.capability import bounds
from agenteval.planning.case import Case, clock
from agenteval.planning.evaluator import Attempt
from agenteval.planning.grammar import render_part
from agenteval.planning.oracle import Verdict
from agenteval.planning.suite import in_words, paragraph_of
from agenteval.planning.tables import by_kind, planning_tables
from agenteval.planning.tallies import CaseLabel
from agenteval.planning.words import Lexicon, built_in
from agenteval.records import content_hash
from agenteval.records.table import shown
from agenteval.reporting.charts import share_bars
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
from agenteval.reporting.text import cut, listed
from agenteval.stats import Interval
from agenteval.text import plural

MOST_WRONG = 200
_MOST_REQUEST = 20_000  # characters of a request
_MOST_WORDS = 2_000  # characters of the agent's last words
_MOST_STEPS = 60
_MOST_LINES = 40


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
    """Return the page as HTML. The same trials in the same order give the same text.

    `causes` are (case id, system, label) of dissected cases, `facts` (name, text) for the end.
    `lexicon` has the words of the suite where they are not the built-in ones. At most `most_wrong`
    wrong plans can be unfolded; the page says how many there are.
    """
    trials, labelled = by_kind(tuple(attempts), tuple(causes))
    systems = list(dict.fromkeys(a.system for a in trials))
    tables = [table for table in planning_tables(trials, labelled) if table.rows]
    wrong, total = chosen(trials, most_wrong)
    lost = [
        Lost(a.system, f"{a.case.id}, trial {a.trial}", a.log.status, a.log.message)
        for a in trials
        if isinstance(a.log, AgentFailure)
    ]
    answer = Answer("Planning of", listed(systems, 5), headlines(trials) or [_NOTHING])
    items = [wrong_plan(a, lexicon or built_in()) for a in wrong]
    sections = [
        summary(answer, _tiles(trials, labelled)),
        figures(_plan(trials, labelled)),
        PageSection("tables", "Tables", tables or [Text("There is nothing to count.")], _RATES),
        foldouts("wrong", "Wrong plans", items, total, "wrong plan{s}", _WRONG),
        lost_section({"trial{s} without a verdict": lost}, _LOST),
    ]
    return render(Page("planning report", title, _LEAD, sections, unfinished, facts))


_LEAD = (
    "Every verdict is computed from the order of the agent's calls and the constraints of the "
    "request; no judge is involved."
)
_NOTHING = "There is no trial."
_RATES = (
    "A rate is the share of right plans among trials with a verdict, in brackets its 95% interval. "
    "Trials without a verdict are counted separately and are in no rate."
)
_WRONG = (
    "Systems take turns, smallest cases first. Violated clauses are marked with their number in "
    "the request."
)
_LOST = (
    "The endpoint or the adapter failed, so nothing is known about the agent: counted here and in "
    "no rate."
)


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


def _plan(attempts: Sequence[Attempt], causes: Sequence[CaseLabel]) -> Plan:
    by_actions = tallies.tallies(attempts, tallies.actions)
    errors, labels = (
        {r.system: {p.label: p.count for p in r.parts} for r in shares}
        for shares in (tallies.errors(attempts), tallies.causes(causes))
    )
    causes_drawn = (
        "Causes",
        "What made the same constraints solvable: chance, other words, another topic, another "
        "structure, or nothing.",
        lambda: share_bars(labels, "Causes by system", "dissected case"),
    )
    return [
        (
            "Success by number of actions",
            "The more actions, the harder. The capability bound is the last number of actions with "
            "a success of 20% or more.",
            lambda: plots.success_by_actions(by_actions, bounds(by_actions)),
        ),
        (
            "Types of errors",
            "Each wrong plan has one type, the first that applies.",
            lambda: share_bars(errors, "Types of errors by system", "error"),
        ),
        *([causes_drawn] if causes else ()),
        (
            "Topics",
            "Topics should not matter for planning; intervals of few cases are wide.",
            lambda: plots.success_by_topic(tallies.tallies(attempts, tallies.topic)),
        ),
    ]


def chosen(attempts: Sequence[Attempt], most: int) -> tuple[list[Attempt], int]:
    """Return the wrong trials to show, and how many there are.

    Systems take turns, each beginning with its smallest cases: there it is easiest to see why.
    """
    wrong = [a for a in attempts if a.verdict is not None and a.outcome != "pass"]
    queues = [
        sorted(own, key=lambda a: (a.case.n, len(a.case.constraints), a.case.id, a.trial))
        for own in by_system(wrong).values()
    ]
    return round_robin(queues)[:most], len(wrong)


def pieces(case: Case, violated: frozenset[int], lexicon: Lexicon) -> list[Fragment]:
    """Return the request in pieces, the violated sub-sentences (numbers from 0) by themselves.

    A text outside of the language cannot be taken apart and is one piece.
    """
    known = case.text and case.text in case.request and len(case.request) <= _MOST_REQUEST
    spans = _spans(case, lexicon) if known and violated else []
    if not spans:
        return [Fragment(cut(case.request, _MOST_REQUEST))]
    before, text, after = case.request.partition(case.text)
    parts, at = [Fragment(before)], 0
    for number, (start, end) in enumerate(spans):
        if number in violated:
            parts.append(Fragment(text[at:start]))
            parts.append(Fragment(text[start:end], "mark", note=str(number + 1)))
            at = end
    parts.append(Fragment(text[at:] + after))
    return [p for p in parts if p.text]


def wrong_plan(attempt: Attempt, lexicon: Lexicon) -> Foldout:
    """Return everything about a wrong plan; its id is the same on every page."""
    verdict, case = attempt.verdict, attempt.case
    assert verdict is not None  # `chosen` takes no others
    violated = frozenset(s for v in verdict.violated for s in v.rule.sentences)
    output = attempt.log.output if isinstance(attempt.log, AgentLog) else ""
    steps = [
        s.tool if s.start is None else f"{s.tool} at {clock(s.start)}" for s in verdict.sequence
    ]
    blocks: list[Block] = [
        Text(pieces(case, violated, lexicon), "pre"),
        Lines(bounded(_sentences(attempt, verdict), _MOST_LINES)),
        Lines(bounded(steps, _MOST_STEPS), "The agent's plan", "steps", "No call was carried out."),
        *([Text(cut(output, _MOST_WORDS), "pre", "Its last words")] if output else []),
    ]
    return Foldout(
        f"plan-{content_hash([case.id, attempt.system, attempt.trial])[:12]}",
        f"{case.id} · {attempt.system} · trial {attempt.trial}",
        blocks,
        [badge(attempt.outcome.replace("_", " "), "drop")],
        f"{plural(case.n, 'action')}, {case.topic or 'no topic'}",
        kind="plan",
    )


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
        + (
            f"{clock(p.earliest)} to {clock(p.latest)}"
            if p.earliest <= p.latest
            else f"no hour (the others end at {clock(p.earliest)}, it takes until after 24:00)"
        )
        for p in verdict.parameter_errors
    ]
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
        starts = [
            i
            for form in (phrase, phrase[0].upper() + phrase[1:])
            if (i := case.text.find(form, at)) >= 0
        ]
        if not starts:
            return []
        at = min(starts) + len(phrase)
        spans.append((min(starts), at))
    return spans
