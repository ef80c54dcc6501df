"""Trials of workflows as the page unfolds them: sessions with their talk and what was found in it,
and wrong turns of recorded sessions with what was due."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from pydantic import JsonValue

from agenteval.analysis.system_pairs import by_system
from agenteval.records import Message, ToolCall, content_hash
from agenteval.reporting.page import (
    Block,
    Card,
    Cards,
    Columns,
    Facts,
    Foldout,
    Fragment,
    Lines,
    Text,
    Words,
    badge,
    bounded,
    round_robin,
)
from agenteval.reporting.text import cut
from agenteval.text import plural
from agenteval.workflows.conformance import Deviation
from agenteval.workflows.flags import flow_signs
from agenteval.workflows.results import (
    SessionResult,
    SessionVerdict,
    TurnJudged,
    TurnResult,
)
from agenteval.workflows.session import Prediction, SessionCall, SessionLog
from agenteval.workflows.session_judge import GoalsFailure, GoalsVerdict, GoalVerdict
from agenteval.workflows.turn_score import TurnVerdict
from agenteval.workflows.values import filled

MOST_ITEMS = 80  # of one talk: what is said, and calls
MOST_TURNS = 100
_MOST_WORDS = 2_000  # characters of a message
_MOST_TEXT = 900  # characters of arguments, a result, a goal, a detail
_MOST_NAME = 200  # characters of a name or value
_MOST_LISTED = 40
_MOST_MARKS = 8  # deviations beside the conversation, where all of them are shown
_MOST_NODES = 120
WRONG = {
    "wrong": "wrong call",
    "missed": "no call",
    "spurious": "call instead of a reply",
    "unreadable": "unreadable",
}
_ANSWERED = {
    "backend": "answered by the backend",
    "recorded": "answered as recorded",
    "model": "answered by a model",
    "generated": "answered by a generator",
    "refused": "refused",
}
_NOT_DONE = {"bad_arguments": "refused", "unknown_tool": "no such tool"}
_ENDED = {
    "user": "the user ended it",
    "turns": "stopped at the limit of turns",
    "calls": "stopped at the limit of calls",
    "turn_calls": "stopped at the limit of calls in one turn",
    "agent": "the agent's time for a turn was over, or it said nothing",
}
_BY = {
    "limit": "a limit that was passed",
    "state": "the final state",
    "judge": "the judge",
    "simulator": "nobody: a simulator made a mistake, which is not charged to the agent",
}
_CHART = {True: "no call departs from it", False: "departed from", None: "no call was made"}
_RANK: dict[bool | None, int] = {False: 0, None: 1, True: 2}


def chosen(results: Sequence[SessionResult], most: int) -> tuple[list[SessionResult], int]:
    """The sessions to be shown, and how many have a verdict.

    Failed ones first, then those that nobody could decide; systems take turns, each beginning with
    its shortest sessions: there it is easiest to see why.
    """
    known = [r for r in results if r.verdict is not None and isinstance(r.log, SessionLog)]
    ordered: list[SessionResult] = []
    for rank in (0, 1, 2):
        own = [r for r in known if r.verdict is not None and _RANK[r.verdict.success] == rank]
        ordered += round_robin(sorted(q, key=_shortest) for _, q in sorted(by_system(own).items()))
    return ordered[:most], len(known)


def _shortest(result: SessionResult) -> tuple[int, str, int]:
    assert isinstance(result.log, SessionLog)
    return len(result.log.messages), result.case.id, result.trial


def session_items(results: Sequence[SessionResult]) -> list[Foldout]:
    """The sessions with everything that the page unfolds of them; an id is the same on every
    page."""
    seen: Counter[str] = Counter()
    return [_session(unique_id("session", result, seen), result) for result in results]


def unique_id(kind: str, result: object, seen: Counter[str]) -> str:
    """The id of a trial on its page, the same on every page."""
    case, system, trial = (getattr(result, name) for name in ("case", "system", "trial"))
    id = f"{kind}-{content_hash([case.id, case.version, system, trial])[:12]}"
    seen[id] += 1
    return id if seen[id] == 1 else f"{id}-{seen[id]}"


def heading(*parts: object) -> str:
    """Parts of a heading, bounded."""
    return " · ".join(cut(p, _MOST_NAME) for p in parts if str(p))


def call_text(tool: str, arguments: JsonValue) -> str:
    """A call in one line, bounded."""
    given = "" if arguments is None else _json_text(arguments)
    return f"{cut(tool, _MOST_NAME)}({cut(given, _MOST_TEXT)})"


def _json_text(value: JsonValue) -> str:
    """A value as JSON; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _session(id: str, result: SessionResult) -> Foldout:
    verdict, log = result.verdict, result.log
    assert verdict is not None  # `chosen` takes no others
    assert isinstance(log, SessionLog)
    cards, more = talk(id, log, verdict.deviations)
    chat: list[Block] = [Cards(cards, form="chat") if cards else Text("Nothing was said.")]
    if more:
        chat.append(Text(f"… and {more} more", "note"))
    outcome = {
        True: badge("succeeded", "keep"),
        False: badge("failed", "drop"),
        None: badge("undecided", "undecided"),
    }[verdict.success]
    about = heading(
        verdict.cause.replace("_", " ") if verdict.cause else "",
        plural(log.turns, "turn"),
        plural(len(log.calls), "call"),
        f"trial {result.trial}" if result.trial else "",
    )
    notes = _annotations(id, result, log, verdict, {card.id for card in cards if card.id})
    return Foldout(
        id,
        heading(result.case.id, result.system),
        [Columns(chat, notes, "talk")],
        [outcome],
        about,
        kind="case",
        signs=flow_signs(result) or (),
    )


def _annotations(
    id: str, result: SessionResult, log: SessionLog, verdict: SessionVerdict, reachable: set[str]
) -> list[Block]:
    """Return the annotations shown next to the conversation."""
    blocks: list[Block] = []
    if result.case.persona:
        blocks.append(Text(cut(result.case.persona, _MOST_TEXT), title="The user"))
    goals, note = _goals(result.case.goals, verdict)
    blocks.append(Lines(goals, "Goals", "plain", "None."))
    blocks += [Text(note, "note")] if note else []
    deviations = verdict.deviations
    lines = [_listed(id, d, len(log.calls), reachable) for d in deviations[:_MOST_MARKS]]
    blocks.append(Lines(lines, "Deviations", empty="None."))
    if len(deviations) > _MOST_MARKS:
        more = len(deviations) - _MOST_MARKS
        blocks.append(Text(f"… and {more} more, each at its call in the conversation", "note"))
    off = {d.node for d in deviations} | {n for d in deviations for n in d.edge or ()}
    nodes = [
        [Fragment(cut(node, 80), "off" if node in off else "")]
        for node in verdict.nodes[:_MOST_NODES]
    ]
    blocks.append(Lines(nodes, "Walk through the chart", "nodes", "No node was reached."))
    if verdict.unchecked:
        edges = plural(len(verdict.edges), "transition")
        blocks.append(
            Text(
                f"{verdict.unchecked} of {edges} hang on the user's will or on what no call "
                "returned, and could not be checked.",
                "note",
            )
        )
    blocks.append(_state(verdict))
    mistakes: list[Words] = [
        [
            Fragment(
                heading(
                    f"{m.who}: {m.kind}", f"turn {m.turn + 1}", "made good" if m.repaired else ""
                ),
                "strong",
            ),
            f": {cut(m.text, _MOST_TEXT)}" if m.text else "",
        ]
        for m in log.mistakes[:_MOST_LISTED]
    ]
    if mistakes:
        blocks.append(Lines(mistakes, "Mistakes of simulators, not charged to the agent"))
    calls = f"{verdict.right} right of {verdict.generated} made, {verdict.gold} gold"
    facts = {
        "decided by": _BY[verdict.decided_by] if verdict.decided_by else "nobody could",
        "end": _ENDED[log.ended],
        "goals": "–" if verdict.progress is None else f"{100 * verdict.progress:.0f}% achieved",
        "calls": calls + (f", {verdict.unjudged} undecided" if verdict.unjudged else ""),
        "chart": _CHART[verdict.conforms] if verdict.charted else "there is none",
    }
    if verdict.fitness is not None:
        facts["fitness"] = f"{verdict.fitness:.2f}"
    return [*blocks, Facts(list(facts.items()), "In numbers")]


def _state(verdict: SessionVerdict) -> Block:
    if verdict.differences:
        lines: list[Words] = [
            [Fragment(cut(d, _MOST_TEXT), "code")] for d in verdict.differences[:_MOST_LISTED]
        ]
        return Lines(lines, "Final state: what the session left, and what gold leaves")
    text = "The final state is that of the gold calls."
    if verdict.state_success is None:
        text = "There is no final state to compare."
    elif not verdict.state_success:
        text = f"{text[:-1]}, but a result that they obtain was never obtained."
    return Text(text, title="Final state")


def _goals(texts: Sequence[str], verdict: SessionVerdict) -> tuple[list[Words], str]:
    """Each goal with what final state and judge say of it, and what must be said of the judge."""
    judge = verdict.judge
    judged = judge.goals if isinstance(judge, GoalsVerdict) else ()
    state = verdict.state_goals
    if isinstance(judge, GoalsFailure):
        note = f"The judge gave no verdict ({judge.status}): {cut(judge.message, _MOST_TEXT)}"
    elif judge is None:
        note = "No judge was asked."
    elif not judge.goals:
        note = f"The judge counts {judge.achieved} of {judge.total} goals as achieved."
    else:
        note = (
            ""
            if judge.said == bool(judge.success)
            else (
                f"Overall the judge says {'yes' if judge.said else 'no'}, against its verdicts on "
                "the goals: the lesser counts."
            )
        )
    paired = len(judged) == len(texts)
    goals = [
        _goal(text, state[i] if i < len(state) else None, judged[i] if paired else None)
        for i, text in enumerate(texts[:_MOST_LISTED])
    ]
    if not paired:
        goals += [_goal(g.goal, None, g) for g in judged[:_MOST_LISTED]]
    return goals, note


def _goal(text: str, state: bool | None, judged: GoalVerdict | None) -> Words:
    words: list[str | Fragment] = []
    for who, achieved in (("final state", state), ("judge", judged and judged.achieved)):
        if achieved is not None:
            words += [badge(who, "keep" if achieved else "drop"), " "]
    words.append(cut(text, _MOST_TEXT))
    if judged and judged.evidence:
        words.append(Fragment(f" “{cut(judged.evidence, _MOST_TEXT)}”", "quiet"))
        if judged.achieved and not judged.quoted:
            words.append(Fragment(" is not in the conversation", "strong"))
    if judged and judged.reason:
        words.append(Fragment(f" {cut(judged.reason, _MOST_TEXT)}", "quiet"))
    return words


def _number(deviation: Deviation, calls: int) -> int:
    """The call (from 1) that a deviation is about, or before which a step is missing; 0 for the end
    of the session."""
    return deviation.at + 1 if deviation.at < calls else 0


def _anchor(id: str, number: int) -> str:
    return f"{id}-c{number}" if number else f"{id}-end"


def _mark(deviation: Deviation, *, tool: bool) -> list[str | Fragment]:
    words: list[str | Fragment] = [Fragment(deviation.cause.replace("_", " "), "strong")]
    if tool and deviation.tool:
        words.append(f" {cut(deviation.tool, _MOST_NAME)}")
    if deviation.detail:
        words.append(f": {cut(deviation.detail, _MOST_TEXT)}")
    where = f"node {deviation.node}" if deviation.node else ""
    if deviation.edge:
        where = f"edge {deviation.edge[0]} → {deviation.edge[1]}"
    return [*words, Fragment(f" ({cut(where, _MOST_NAME)})", "small")] if where else words


def _listed(id: str, deviation: Deviation, calls: int, reachable: set[str]) -> Words:
    number = _number(deviation, calls)
    before = "before " if deviation.cause == "missing_step" else ""
    place, anchor = f"{before}call {number}" if number else "at the end", _anchor(id, number)
    link: str | Fragment = Fragment(place, link=anchor) if anchor in reachable else place
    return [link, ": ", *_mark(deviation, tool=True)]


@dataclass
class _Talk:
    """The talk as it grows; `left` are the calls of the log that have not been told yet."""

    id: str
    calls: Sequence[SessionCall]
    deviations: dict[int, list[Deviation]]
    cards: list[Card] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    answered: set[str | None] = field(default_factory=set)  # ids of calls whose result is shown
    turn: int = 0

    def say(self, kind: str, who: str, text: str) -> None:
        self.cards.append(Card(who, [Text(text, "say")], kind))

    def tell_turns(self, turns: int | None) -> None:
        """Tell the calls left of the first so many turns of the agent, of all of them for None."""
        while self.left and (turns is None or self.calls[self.left[0]].turn < turns):
            self.tell(self.left.pop(0))

    def tell(self, index: int) -> None:
        """A call with its answer, after the steps that are missing before it."""
        call, number = self.calls[index], index + 1
        own = self.deviations.get(number, [])
        if missing := [d for d in own if d.cause == "missing_step"]:
            self.missing(missing)
        wrong = [d for d in own if d.cause != "missing_step"]
        blocks: list[Block] = [
            Text([Fragment(cut(call.tool, _MOST_NAME) or "(no tool could be read)", "strong")]),
            *([Text(lines, "pre")] if (lines := _lines(call.arguments)) else []),
            *([Text(cut(call.result, _MOST_TEXT), "pre")] if call.result else []),
            *(Text(_mark(d, tool=False), "warning") for d in wrong),
        ]
        refused = call.status != "ok"
        answered = _NOT_DONE.get(call.status, call.status) if refused else _ANSWERED[call.answered]
        kind = "call wrong" if wrong else "call refused" if refused else "call"
        head = f"call {number}, {answered}"
        self.cards.append(Card(head, blocks, kind, _anchor(self.id, number)))

    def missing(self, deviations: Sequence[Deviation], id: str = "") -> None:
        words = [Text(_mark(d, tool=True), "warning") for d in deviations]
        self.cards.append(Card("not done", words, "missing", id))

    def match(self, call: ToolCall) -> None:
        """Tell the next call of the log for a call of a message."""
        while self.left and self.calls[self.left[0]].status == "malformed":
            self.tell(self.left.pop(0))
        if self.left:
            self.answered.add(call.id)
            self.tell(self.left.pop(0))
        else:
            name = Text([Fragment(cut(call.name, _MOST_NAME), "strong")])
            arguments = Text(cut(_json_text(call.arguments), _MOST_TEXT), "pre")
            self.cards.append(Card("no answer is known", [name, arguments], "call"))

    def add(self, message: Message, following: Message | None) -> None:
        text = cut(message.content, _MOST_WORDS) if message.content.strip() else ""
        if message.role == "user":
            self.tell_turns(self.turn)  # calls of turns that are over
            self.turn += 1
            self.say("user", f"user, turn {self.turn}", text)
        elif message.role == "assistant":
            reply = not message.tool_calls and (following is None or following.role == "user")
            if reply:
                self.tell_turns(self.turn)
            if text:
                self.say(*(("agent", "agent") if reply else ("thought", "agent, to itself")), text)
            for call in message.tool_calls:
                self.match(call)
        elif text and message.tool_call_id not in self.answered - {None}:
            self.say("thought", "other message", f"{message.role}: {text}")


def talk(id: str, log: SessionLog, deviations: Sequence[Deviation]) -> tuple[list[Card], int]:
    """Return the conversation, at most 80 cards of it, and how many more there are.

    Calls are shown where the messages have them, in the order of the log, with the answer and who
    gave it; those that no message has (malformed, or lost by an adapter) where the log has them.
    """
    at: dict[int, list[Deviation]] = defaultdict(list)
    for deviation in deviations:
        at[_number(deviation, len(log.calls))].append(deviation)
    told = _Talk(id, log.calls, at, left=list(range(len(log.calls))))
    for message, following in zip_longest(log.messages, log.messages[1:]):
        told.add(message, following)
    told.tell_turns(None)
    if at[0]:
        told.missing(at[0], _anchor(id, 0))
    return told.cards[:MOST_ITEMS], max(len(told.cards) - MOST_ITEMS, 0)


def _lines(arguments: JsonValue) -> str:
    """One line for each argument."""
    if not isinstance(arguments, dict):
        return "" if arguments is None else cut(_json_text(arguments), _MOST_TEXT)
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items()]
    return cut("\n".join(lines), _MOST_TEXT)


# ---- turns ---------------------------------------------------------------------------------------


def wrong_turns(results: Sequence[TurnResult], most: int) -> tuple[list[Foldout], int]:
    """Wrong turns to be unfolded, the systems taking turns, and how many are wrong in all."""
    queues: dict[str, list[TurnResult]] = {}
    for r in results:
        if r.verdict is not None and outcome_of(r.verdict) in WRONG:
            queues.setdefault(r.system, []).append(r)
    some = round_robin(
        sorted(own, key=lambda r: (r.case.task, r.verdict.turn if r.verdict else 0, r.trial))
        for _, own in sorted(queues.items())
    )
    seen: Counter[str] = Counter()
    return [_turn(r, seen) for r in some[:most]], len(some)


def outcome_of(verdict: TurnVerdict) -> str:
    """The word that the store has for it."""
    return TurnJudged(turn=verdict).outcome


def _turn(result: TurnResult, seen: Counter[str]) -> Foldout:
    """Return a predicted turn that is wrong; its id is the same on every page."""
    verdict, prediction = result.verdict, result.prediction
    assert verdict is not None  # `wrong_turns` takes no others
    assert isinstance(prediction, Prediction)
    facts: list[tuple[str, Words]] = [
        ("before it", cut(result.case.said, _MOST_WORDS)),
        ("gold", [Fragment(cut(result.case.gold, _MOST_WORDS), "code")]),
        ("predicted", [Fragment(_predicted(prediction), "code")]),
        ("thought", cut(prediction.thought, _MOST_WORDS)),
    ]
    lines = _differences(verdict, prediction, result.case.gold)
    return Foldout(
        unique_id("turn", result, seen),
        heading(result.case.id, result.system, f"trial {result.trial}" if result.trial else ""),
        [Facts([f for f in facts if f[1]]), Lines(lines, "Differs")],
        [badge(WRONG[outcome_of(verdict)], "drop")],
        kind="case",
        signs=flow_signs(result) or (),
    )


def _predicted(prediction: Prediction) -> str:
    if prediction.form == "call":
        more = f"\nbeside it: {', '.join(prediction.further)}" if prediction.further else ""
        return call_text(prediction.tool, prediction.arguments) + cut(more, _MOST_WORDS)
    if prediction.form == "reply":
        return cut(prediction.response, _MOST_WORDS)
    return cut(prediction.raw, _MOST_WORDS) or "(nothing was said)"


def _differences(verdict: TurnVerdict, prediction: Prediction, gold: str) -> list[str]:
    """What differs, in sentences."""
    lines = []
    if verdict.form == "unreadable":
        due = "a call" if verdict.gold_call else "a reply"
        lines.append(f"neither call nor reply could be read; due was {due}")
    elif not verdict.gold_call:
        lines.append("a reply was due, not a call")
    elif verdict.form == "reply":
        lines.append("a call was due, not a reply")
    else:
        lines += _call_lines(verdict, prediction, gold)
    if verdict.node_right is False:
        lines.append(f"says that it stands at node {cut(prediction.node, _MOST_NAME)}: wrong")
    return bounded(lines, _MOST_LISTED)


def _call_lines(verdict: TurnVerdict, prediction: Prediction, gold: str) -> list[str]:
    if verdict.name_right is False:
        return ["another tool was due"]
    if verdict.arguments_unreadable:
        return ["the arguments are no JSON object"]
    lines = []
    for pair in verdict.parameters:
        if pair.verdict == "equal":
            continue
        text = f"{cut(pair.parameter, _MOST_NAME)}: {_value(pair.given)}, gold {_value(pair.gold)}"
        if pair.verdict == "unjudged":
            text += " (undecided)"
        elif pair.by == "judge":
            text += " (by a judge)"
        lines.append(text)
    try:  # a gold call is stored in words, `tool({…})`
        wanted = filled(json.loads(gold.partition("(")[2].removesuffix(")")))
    except ValueError:
        wanted = filled(None)
    given = filled(prediction.arguments)
    lines += [
        f"{cut(k, _MOST_NAME)}: not given, gold {_value(v)}"
        for k, v in wanted.items()
        if k not in given
    ]
    lines += [
        f"{cut(k, _MOST_NAME)}: {_value(v)}, which gold has not"
        for k, v in given.items()
        if wanted and k not in wanted
    ]
    return lines


def _value(value: JsonValue) -> str:
    return cut(json.dumps(value, ensure_ascii=False), _MOST_NAME)
