"""What the page shows of single sessions: the talk, what was found in it, and what got none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from agenteval.evaluators.workflows.results import SessionResult, SessionVerdict
from agenteval.evaluators.workflows.session import SessionFailure, SessionLog
from agenteval.evaluators.workflows.session_judge import GoalsFailure, GoalsVerdict, GoalVerdict
from agenteval.evaluators.workflows.tallies import by_system
from agenteval.records import content_hash
from agenteval.report.flows_chat import Item, Mark, heading, marks_of, talk
from agenteval.report.flows_signs import flow_signs
from agenteval.report.grid import Grid, Head, count, words
from agenteval.report.text import cut
from agenteval.text import plural

_MOST_TEXT = 600
_MOST_LISTED = 40
_MOST_MARKS = 8  # beside the talk, where all of them stand
_MOST_NODES = 120
_MOST_MESSAGES = 20
_ENDED = {
    "user": "the user ended it",
    "turns": "stopped at the limit of turns",
    "calls": "stopped at the limit of calls",
    "agent": "the agent was stopped within a turn, or said nothing",
}
_BY = {
    "limit": "a limit that was passed",
    "state": "the final state",
    "judge": "the judge",
    "simulator": "nobody: simulated tools answered wrongly, so the failure is not the agent's",
}
_CHART = {True: "no call departs from it", False: "departed from", None: "no call was made"}
_RANK: dict[bool | None, int] = {False: 0, None: 1, True: 2}


@dataclass(frozen=True)
class Goal:
    """A goal with what final state and judge say of it; None where they say nothing."""

    text: str
    state: bool | None
    judge: bool | None
    evidence: str = ""
    reason: str = ""
    unquoted: bool = False


@dataclass(frozen=True)
class Node:
    """A node that was walked; `off` where a deviation is about it."""

    name: str
    off: bool


@dataclass(frozen=True)
class ShownSession:
    """A session with a verdict, ready to be shown; `id` is its anchor, the same on every page."""

    id: str
    title: str
    badge: str
    kind: str  # a class of the style sheet
    about: str
    persona: str
    facts: tuple[tuple[str, str], ...]
    items: tuple[Item, ...]
    rest: int
    marks: tuple[Mark, ...]
    more_marks: int
    reachable: frozenset[str]  # anchors that are on the page
    nodes: tuple[Node, ...]
    unchecked: str
    goals: tuple[Goal, ...]
    goals_note: str
    differences: tuple[str, ...]
    state_note: str
    mistakes: tuple[tuple[str, str], ...]
    signs: tuple[str, ...]  # that the text is meant for the judge


@dataclass(frozen=True)
class Lost:
    """A trial without a verdict: what it was and what the failure said."""

    title: str
    message: str


def chosen(results: Sequence[SessionResult], most: int) -> tuple[list[SessionResult], int]:
    """The sessions to be shown, and how many have a verdict.

    Failed ones first, then those that nobody could decide; systems take turns, each beginning with
    its shortest sessions: there it is easiest to see why.
    """
    known = [r for r in results if r.verdict is not None and isinstance(r.log, SessionLog)]
    found: list[SessionResult] = []
    for rank in (0, 1, 2):
        own = [r for r in known if r.verdict is not None and _RANK[r.verdict.success] == rank]
        queues = [sorted(q, key=_shortest) for _, q in sorted(by_system(own).items())]
        found += [r for r in chain.from_iterable(zip_longest(*queues)) if r is not None]
    return found[:most], len(known)


def _shortest(result: SessionResult) -> tuple[int, str, int]:
    assert isinstance(result.log, SessionLog)
    return len(result.log.messages), result.case.id, result.trial


def shown_sessions(results: Sequence[SessionResult]) -> list[ShownSession]:
    """The sessions with everything that the page unfolds of them."""
    seen: Counter[str] = Counter()
    found = []
    for result in results:
        assert result.verdict is not None  # `chosen` takes no others
        assert isinstance(result.log, SessionLog)
        name = [result.case.id, result.case.version, result.system, result.trial]
        id = f"session-{content_hash(name)[:12]}"
        seen[id] += 1
        unique = id if seen[id] == 1 else f"{id}-{seen[id]}"
        found.append(_shown(unique, result, result.log, result.verdict))
    return found


def _shown(
    id: str, result: SessionResult, log: SessionLog, verdict: SessionVerdict
) -> ShownSession:
    marks = marks_of(id, log, verdict.deviations)
    items, rest = talk(id, log, marks)
    badge, kind = _badge(verdict)
    off = {d.node for d in verdict.deviations} | {
        n for d in verdict.deviations for n in d.edge or ()
    }
    goals, goals_note = _goals(result.case.goals, verdict)
    cause = verdict.cause.replace("_", " ") if verdict.cause else ""
    return ShownSession(
        id=id,
        title=heading(result.case.id, result.system),
        badge=badge,
        kind=kind,
        about=heading(cause, plural(log.turns, "turn"), plural(len(log.calls), "call"),
                      f"trial {result.trial + 1}" if result.trial else ""),
        persona=cut(result.case.persona, _MOST_TEXT),
        facts=_facts(log, verdict),
        items=items,
        rest=rest,
        marks=marks[:_MOST_MARKS],
        more_marks=max(len(marks) - _MOST_MARKS, 0),
        reachable=frozenset(item.anchor for item in items if item.anchor),
        nodes=tuple(Node(cut(n, 80), n in off) for n in verdict.nodes[:_MOST_NODES]),
        unchecked=_unchecked(verdict),
        goals=goals,
        goals_note=goals_note,
        differences=tuple(cut(d, _MOST_TEXT) for d in verdict.differences[:_MOST_LISTED]),
        state_note=_state_note(verdict),
        mistakes=tuple(
            (heading(f"{m.who}: {m.kind}", f"turn {m.turn + 1}"), cut(m.text, _MOST_TEXT))
            for m in log.mistakes[:_MOST_LISTED]
        ),
        signs=flow_signs(result) or (),
    )  # fmt: skip


def _badge(verdict: SessionVerdict) -> tuple[str, str]:
    words = {True: "succeeded", False: "failed", None: "undecided"}[verdict.success]
    kind = {True: "keep", False: "drop", None: "undecided"}[verdict.success]
    return words, kind


def _facts(log: SessionLog, verdict: SessionVerdict) -> tuple[tuple[str, str], ...]:
    decided = _BY[verdict.decided_by] if verdict.decided_by else "nobody could"
    facts = [
        ("decided by", decided),
        ("end", _ENDED[log.ended]),
        ("goals", "–" if verdict.progress is None else f"{100 * verdict.progress:.0f} % achieved"),
        ("calls", f"{verdict.right} right of {verdict.generated} made, {verdict.gold} gold"
         + (f", {verdict.unjudged} undecided" if verdict.unjudged else "")),
        ("chart", _CHART[verdict.conforms]),
    ]  # fmt: skip
    if verdict.fitness is not None:
        facts.append(("fitness", f"{verdict.fitness:.2f}"))
    return tuple(facts)


def _unchecked(verdict: SessionVerdict) -> str:
    if not verdict.unchecked:
        return ""
    return (
        f"{verdict.unchecked} of {plural(len(verdict.edges), 'transition')} hang on the user's "
        "will or on what no call returned, and could not be checked."
    )


def _state_note(verdict: SessionVerdict) -> str:
    if verdict.state_success is None:
        return "There is no final state to compare."
    if verdict.differences:
        return ""
    if verdict.state_success:
        return "The final state is that of the gold calls."
    return (
        "The final state is that of the gold calls, but a result that they obtain was never "
        "obtained."
    )


def _goals(texts: Sequence[str], verdict: SessionVerdict) -> tuple[tuple[Goal, ...], str]:
    judge = verdict.judge
    told = judge.goals if isinstance(judge, GoalsVerdict) else ()
    state = verdict.state_goals
    if isinstance(judge, GoalsFailure):
        note = f"The judge gave no verdict ({judge.status}): {cut(judge.message, _MOST_TEXT)}"
    elif judge is None:
        note = "No judge was asked."
    elif not judge.goals:
        note = f"The judge counts {judge.achieved} of {judge.total} goals as achieved."
    else:
        note = "" if judge.said == bool(judge.success) else (
            f"For the whole the judge says {'yes' if judge.said else 'no'}, against its verdicts "
            "on the goals: the lesser counts."
        )  # fmt: skip
    paired = len(told) == len(texts)
    goals = [
        _goal(text, state[i] if i < len(state) else None, told[i] if paired else None)
        for i, text in enumerate(texts[:_MOST_LISTED])
    ]
    if not paired:
        goals += [_goal(g.goal, None, g) for g in told[:_MOST_LISTED]]
    return tuple(goals), note


def _goal(text: str, state: bool | None, judged: GoalVerdict | None) -> Goal:
    if judged is None:
        return Goal(cut(text, _MOST_TEXT), state, None)
    return Goal(
        cut(text, _MOST_TEXT), state, judged.achieved, cut(judged.evidence, _MOST_TEXT),
        cut(judged.reason, _MOST_TEXT), judged.achieved and not judged.quoted,
    )  # fmt: skip


def lost_sessions(results: Sequence[SessionResult]) -> tuple[Grid | None, list[Lost], int]:
    """Sessions without a verdict: their numbers by kind, some messages, and how many in all."""
    gone = [(r, _why(r)) for r in results if r.verdict is None]
    if not gone:
        return None, [], 0
    kinds = Counter((r.system, kind) for r, (kind, _) in gone)
    heads = (Head("system"), Head("what happened"), Head("sessions", "", True))
    rows = tuple((words(s), words(kind), count(n)) for (s, kind), n in sorted(kinds.items()))
    some = [
        Lost(
            heading(r.case.id, r.system, f"trial {r.trial + 1}"),
            heading(kind) + (f": {cut(message, 2_000)}" if message else ""),
        )
        for r, (kind, message) in gone[:_MOST_MESSAGES]
    ]
    return Grid("lost-sessions", "Sessions without a verdict", heads, rows), some, len(gone)


def _why(result: SessionResult) -> tuple[str, str]:
    if isinstance(result.log, SessionFailure):
        who = {"agent": "agent", "user": "simulated user", "tools": "simulated tools"}
        return f"{who[result.log.who]}, {result.log.status}", result.log.message
    return "not judged yet", ""
