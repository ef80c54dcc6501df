"""What the page shows of single trials: plans that were wrong, and trials without a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from agenteval.agents import AgentFailure, AgentLog
from agenteval.errors import InputError
from agenteval.evaluators.planning.case import Case, clock
from agenteval.evaluators.planning.checker import Step, Verdict
from agenteval.evaluators.planning.dsl.lexicon import Lexicon, built_in
from agenteval.evaluators.planning.dsl.render import render_part
from agenteval.evaluators.planning.run import Attempt
from agenteval.evaluators.planning.suite import paragraph_of, told
from agenteval.evaluators.planning.tallies import by_system
from agenteval.records import content_hash
from agenteval.report.grid import Grid, Head, count, words
from agenteval.report.text import cut, shown
from agenteval.text import plural

MOST_TEXT = 20_000  # characters of a request
_MOST_WORDS = 2_000  # of the agent's last words, or of a message
_MOST_STEPS = 60
_MOST_LINES = 40
_MOST_MESSAGES = 20


@dataclass(frozen=True)
class Piece:
    """A piece of the request; `number` (from 1) where it is a sub-sentence that was violated."""

    text: str
    number: int | None = None


@dataclass(frozen=True)
class WrongPlan:
    """A trial that failed, ready to be shown; `id` is its anchor, the same on every page."""

    id: str
    title: str
    about: str
    outcome: str
    request: tuple[Piece, ...]
    steps: tuple[str, ...]
    nearest: tuple[str, ...]
    sentences: tuple[str, ...]
    output: str


@dataclass(frozen=True)
class Lost:
    """A trial without a verdict: what it was and what the failure said."""

    title: str
    message: str


def chosen(attempts: Sequence[Attempt], most: int) -> tuple[list[Attempt], int]:
    """The trials to be shown, and how many were wrong in all.

    Systems take turns, each beginning with its smallest cases: there it is easiest to see why.
    """
    wrong = [a for a in attempts if a.verdict is not None and a.outcome != "pass"]
    queues = [
        sorted(own, key=lambda a: (a.case.n, len(a.case.constraints), a.case.id, a.trial))
        for own in by_system(wrong).values()
    ]
    turns = chain.from_iterable(zip_longest(*queues))
    return [a for a in turns if a is not None][:most], len(wrong)


def wrong_plans(attempts: Sequence[Attempt], lexicon: Lexicon | None = None) -> list[WrongPlan]:
    """The trials with everything that the page unfolds of them."""
    return [_wrong(a, lexicon or built_in()) for a in attempts]


def pieces(case: Case, violated: frozenset[int], lexicon: Lexicon) -> tuple[Piece, ...]:
    """The request in pieces, the violated sub-sentences (numbers from 0) by themselves.

    A text outside of the language cannot be taken apart and is one piece.
    """
    known = case.text and case.text in case.request and len(case.request) <= MOST_TEXT
    spans = _spans(case, lexicon) if known and violated else []
    if not spans:
        return (Piece(cut(case.request, MOST_TEXT)),)
    before, text, after = case.request.partition(case.text)
    found, at = [Piece(shown(before))], 0
    for number, (start, end) in enumerate(spans):
        if number in violated:
            found += [Piece(shown(text[at:start])), Piece(shown(text[start:end]), number + 1)]
            at = end
    found.append(Piece(shown(text[at:] + after)))
    return tuple(p for p in found if p.text)


def lost_trials(attempts: Sequence[Attempt]) -> tuple[Grid | None, list[Lost], int]:
    """Trials without a verdict: their numbers by kind, some messages, and how many in all."""
    gone = [(a, a.log) for a in attempts if isinstance(a.log, AgentFailure)]
    if not gone:
        return None, [], 0
    kinds = Counter((a.system, log.status) for a, log in gone)
    heads = (Head("system"), Head("what happened"), Head("trials", "", True))
    rows = tuple((words(s), words(kind), count(n)) for (s, kind), n in kinds.items())
    some = [
        Lost(shown(f"{a.case.id}, {a.system}, trial {a.trial}"), cut(log.message, _MOST_WORDS))
        for a, log in gone[:_MOST_MESSAGES]
    ]
    return Grid("lost", "Trials without a verdict", heads, rows), some, len(gone)


def _wrong(attempt: Attempt, lexicon: Lexicon) -> WrongPlan:
    verdict, case = attempt.verdict, attempt.case
    assert verdict is not None  # `chosen` takes no others
    violated = frozenset(s for v in verdict.violated for s in v.rule.sentences)
    output = attempt.log.output if isinstance(attempt.log, AgentLog) else ""
    return WrongPlan(
        id=f"plan-{content_hash([case.id, attempt.system, attempt.trial])[:12]}",
        title=shown(f"{case.id} · {attempt.system} · trial {attempt.trial}"),
        about=shown(f"{plural(case.n, 'action')}, {case.topic or 'no topic'}"),
        outcome=attempt.outcome.replace("_", " "),
        request=pieces(case, violated, lexicon),
        steps=_steps(verdict.sequence),
        nearest=_steps(verdict.nearest),
        sentences=tuple(_bounded(_sentences(attempt, verdict), _MOST_LINES)),
        output=cut(output, _MOST_WORDS),
    )


def _steps(steps: Sequence[Step]) -> tuple[str, ...]:
    listed = [s.tool if s.start is None else f"{s.tool} at {clock(s.start)}" for s in steps]
    return tuple(_bounded([shown(name) for name in listed], _MOST_STEPS))


def _bounded(lines: Sequence[str], most: int) -> list[str]:
    rest = len(lines) - most
    return [*lines[:most], *([f"… and {rest:,} more"] if rest > 0 else [])]


def _sentences(attempt: Attempt, verdict: Verdict) -> list[str]:
    """What was found, as sentences; those that decided the outcome are among them."""
    lines = []
    if isinstance(attempt.log, AgentLog) and attempt.log.ending != "finished":
        what = "time" if attempt.log.ending == "timeout" else "turns"
        lines.append(f"stopped at the limit of {what}")
    lines += [f"call {s.call} of {shown(s.name)!r}: {shown(s.why)}" for s in verdict.slips]
    if verdict.lost:
        lines.append(f"never carried out: {', '.join(map(shown, verdict.lost))}")
    lines += [
        f"call {p.call}: {shown(p.tool)} was started at {clock(p.given)}, possible was "
        + (f"{clock(p.earliest)} to {clock(p.latest)}" if p.earliest <= p.latest
           else f"no hour (the others end at {clock(p.earliest)}, it takes until after 24:00)")
        for p in verdict.parameter_errors
    ]  # fmt: skip
    lines += [f"{shown(told(v.rule))}: {shown(v.why)}" for v in verdict.violated]
    if verdict.repeated:
        lines.append(f"called more than once: {', '.join(map(shown, verdict.repeated))}")
    if len(verdict.core) > 1:
        numbers = ", ".join(str(n + 1) for n in verdict.core)
        lines.append(f"clauses that suffice to show the violation: {numbers}")
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
    found, at = [], 0
    for part in parts:
        said = render_part(part, phrases, lexicon)
        # at the start of a sentence the first letter is a capital
        starts = [i for form in (said, said[0].upper() + said[1:])
                  if (i := case.text.find(form, at)) >= 0]  # fmt: skip
        if not starts:
            return []
        at = min(starts) + len(said)
        found.append((min(starts), at))
    return found
