"""Details of sessions on the page: the conversation with its calls, and the deviations."""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
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
    round_robin,
)
from agenteval.reporting.text import cut
from agenteval.text import plural
from agenteval.workflows.conformance import Deviation
from agenteval.workflows.judges import GoalsVerdict, GoalVerdict, JudgeFailure
from agenteval.workflows.results import SessionResult, SessionVerdict, TurnResult, flow_signs
from agenteval.workflows.session import DECIDED_BY, ENDS, SessionCall, SessionLog

MOST_ITEMS = 80  # messages and calls of one conversation
MOST_WORDS = 2_000  # characters of a message
MOST_TEXT = 900  # characters of arguments, a result, a goal, a detail
MOST_NAME = 200  # characters of a name or value
MOST_LISTED = 40
_MOST_MARKS = 8  # deviations in the list next to the conversation (which shows all of them)
_MOST_NODES = 120
_OUTCOMES = {
    False: badge("failed", "drop"),
    None: badge("undecided", "undecided"),
    True: badge("succeeded", "keep"),
}
_STATUSES = {"bad_arguments": "refused", "unknown_tool": "no such tool"}
_ANSWERED = {
    "backend": "answered by the backend",
    "recorded": "answered as recorded",
    "model": "answered by a model",
    "generated": "answered by a generator",
    "refused": "refused",
}
_CHART = {True: "all calls follow it", False: "departed from", None: "no call was made"}


def chosen(results: Sequence[SessionResult], most: int) -> tuple[list[SessionResult], int]:
    """Return the sessions to show, and how many have a verdict.

    Failed ones come first, then undecided ones; systems alternate, each starting with its shortest
    sessions, which are the easiest to understand.
    """
    queues: dict[bool | None, list[tuple[int, str, int, SessionResult]]] = defaultdict(list)
    for r in results:
        if r.verdict is not None and isinstance(r.log, SessionLog):
            queues[r.verdict.success].append((len(r.log.messages), r.case.id, r.trial, r))
    ordered: list[SessionResult] = []
    for success in _OUTCOMES:
        shortest = [r for *_, r in sorted(queues[success], key=lambda row: row[:3])]
        ordered += round_robin(rows for _, rows in sorted(by_system(shortest).items()))
    return ordered[:most], len(ordered)


def unique_id(kind: str, result: SessionResult | TurnResult, seen: Counter[str]) -> str:
    """Return the id of a trial, the same on every page."""
    case = result.case
    id = f"{kind}-{content_hash([case.id, case.version, result.system, result.trial])[:12]}"
    seen[id] += 1
    return id if seen[id] == 1 else f"{id}-{seen[id]}"


def heading(*parts: object) -> str:
    """Return the parts of a heading, truncated."""
    return " · ".join(cut(p, MOST_NAME) for p in parts if str(p))


def json_text(value: JsonValue) -> str:
    """Return a value as JSON, or a text unchanged."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def session_items(results: Sequence[SessionResult]) -> list[Foldout]:
    """Return the details of sessions with a verdict."""
    seen: Counter[str] = Counter()
    return [_session(unique_id("session", result, seen), result) for result in results]


def _session(id: str, result: SessionResult) -> Foldout:
    verdict, log = result.verdict, result.log
    assert verdict is not None
    assert isinstance(log, SessionLog)
    cards = _conversation(id, log, verdict.deviations)
    shown, more = cards[:MOST_ITEMS], len(cards) - MOST_ITEMS
    chat: list[Block] = [Cards(shown, form="chat") if cards else Text("There are no messages.")]
    if more > 0:
        chat.append(Text(f"… and {more} more", "note"))
    anchors = {card.id for card in shown if card.id}
    about = heading(
        verdict.cause.replace("_", " ") if verdict.cause else "",
        plural(log.turns, "turn"),
        plural(len(log.calls), "call"),
        f"trial {result.trial}" if result.trial else "",
    )
    return Foldout(
        id,
        heading(result.case.id, result.system),
        [Columns(chat, list(_annotations(id, result, log, verdict, anchors)), "talk")],
        [_OUTCOMES[verdict.success]],
        about,
        kind="case",
        signs=flow_signs(result) or (),
    )


# ---- what was found ------------------------------------------------------------------------------


def _annotations(
    id: str, result: SessionResult, log: SessionLog, verdict: SessionVerdict, anchors: set[str]
) -> Iterator[Block]:
    """Yield the annotations next to the conversation."""
    if result.case.persona:
        yield Text(cut(result.case.persona, MOST_TEXT), title="The user")
    yield Lines(_goals(result.case.goals, verdict), "Goals", "plain", "None.")
    if note := _judge_note(verdict):
        yield Text(note, "note")
    deviations = verdict.deviations
    lines: list[Words] = []
    for d in deviations[:_MOST_MARKS]:
        number = _call_number(d, log)
        before = "before " if d.cause == "missing_step" else ""
        place = f"{before}call {number}" if number else "at the end"
        anchor = _anchor(id, number)
        link = Fragment(place, link=anchor if anchor in anchors else "")
        lines.append([link, ": ", *_mark(d, tool=True)])
    yield Lines(lines, "Deviations", empty="None.")
    if (more := len(deviations) - _MOST_MARKS) > 0:
        yield Text(f"… and {more} more, shown at their calls in the conversation", "note")
    off = {d.node for d in deviations} | {n for d in deviations for n in d.edge or ()}
    nodes = [
        [Fragment(cut(node, 80), "off" if node in off else "")]
        for node in verdict.nodes[:_MOST_NODES]
    ]
    yield Lines(nodes, "Walk through the chart", "nodes", "No node was reached.")
    if verdict.unchecked:
        yield Text(
            f"{verdict.unchecked} of {plural(len(verdict.edges), 'transition')} depend on the "
            "user's choice or on values that no call returned, and could not be checked.",
            "note",
        )
    yield _final_state(verdict)
    mistakes: list[Words] = []
    for m in log.mistakes[:MOST_LISTED]:
        repaired = "made good" if m.repaired else ""
        head = heading(f"{m.who}: {m.kind}", f"turn {m.turn + 1}", repaired)
        text = f": {cut(m.text, MOST_TEXT)}" if m.text else ""
        mistakes.append([Fragment(head, "strong"), text])
    if mistakes:
        yield Lines(mistakes, "Mistakes of simulators, not charged to the agent")
    calls = f"{verdict.right} right of {verdict.generated} made, {verdict.gold} gold"
    facts = {
        "decided by": DECIDED_BY[verdict.decided_by],
        "end": ENDS[log.ended].sentence,
        "goals": "–" if verdict.progress is None else f"{100 * verdict.progress:.0f}% achieved",
        "calls": calls + (f", {verdict.unjudged} undecided" if verdict.unjudged else ""),
        "chart": _CHART[verdict.conforms] if verdict.charted else "there is none",
    }
    if verdict.fitness is not None:
        facts["fitness"] = f"{verdict.fitness:.2f}"
    yield Facts(list(facts.items()), "In numbers")


def _final_state(verdict: SessionVerdict) -> Block:
    if verdict.differences:
        lines = [[Fragment(cut(d, MOST_TEXT), "code")] for d in verdict.differences[:MOST_LISTED]]
        return Lines(lines, "Final state: session and gold")
    text = "The final state equals that of the gold calls."
    if verdict.state_success is None:
        text = "There is no final state to compare."
    elif not verdict.state_success:
        text = f"{text[:-1]}, but a result that they obtain is missing."
    return Text(text, title="Final state")


def _goals(texts: Sequence[str], verdict: SessionVerdict) -> list[Words]:
    """Return each goal with its verdicts by final state and judge."""
    judged = verdict.judge.goals if isinstance(verdict.judge, GoalsVerdict) else ()
    paired: Sequence[GoalVerdict] = judged if len(judged) == len(texts) else ()
    rows = list(zip_longest(texts, verdict.state_goals[: len(texts)], paired))
    if not paired:
        rows += [(g.goal, None, g) for g in judged]
    return [_goal(*row) for row in rows[:MOST_LISTED]]


def _goal(text: str, state: bool | None, judged: GoalVerdict | None) -> Words:
    words: list[str | Fragment] = []
    for who, achieved in (("final state", state), ("judge", judged and judged.achieved)):
        if achieved is not None:
            words += [badge(who, "keep" if achieved else "drop"), " "]
    words.append(cut(text, MOST_TEXT))
    if judged and judged.evidence:
        words.append(Fragment(f" “{cut(judged.evidence, MOST_TEXT)}”", "quiet"))
        if judged.achieved and not judged.quoted:
            words.append(Fragment(" is not in the conversation", "strong"))
    if judged and judged.reason:
        words.append(Fragment(f" {cut(judged.reason, MOST_TEXT)}", "quiet"))
    return words


def _judge_note(verdict: SessionVerdict) -> str:
    judge = verdict.judge
    if isinstance(judge, JudgeFailure):
        return f"The judge gave no verdict ({judge.status}): {cut(judge.message, MOST_TEXT)}"
    if judge is None:
        return "There was no judge."
    if not judge.goals:
        return f"The judge counts {judge.achieved} of {judge.total} goals as achieved."
    if judge.said == bool(judge.success):
        return ""
    return (
        f"Overall the judge says {'yes' if judge.said else 'no'}, which contradicts its verdicts "
        "on the goals; the lower one counts."
    )


# ---- the conversation ----------------------------------------------------------------------------


def _conversation(id: str, log: SessionLog, deviations: Sequence[Deviation]) -> list[Card]:
    """Return the cards of a conversation.

    Calls are shown at their messages, in the order of the log, with the answer and its source.
    Calls without a message (malformed, or lost by an adapter) are shown at their place in the log.
    """
    marks: dict[int, list[Deviation]] = defaultdict(list)
    for deviation in deviations:
        marks[_call_number(deviation, log)].append(deviation)
    calls, cards, turn = deque(enumerate(log.calls, 1)), list[Card](), 0
    answered: set[str] = set()  # ids of calls whose result is shown
    for message, following in zip_longest(log.messages, log.messages[1:]):
        kind, who, text = _speaker(message, following), "", message.content
        if kind in ("user", "agent"):
            cards += _shown(id, calls, marks, partial(_is_before, turn))
        if message.role == "user":
            turn += 1
            who = f"user, turn {turn}"
        elif message.role != "assistant":
            who, text = "other message", f"{message.role}: {text}" if text.strip() else ""
            text = "" if message.tool_call_id in answered else text
        if text.strip():
            who = who or ("agent" if kind == "agent" else "agent, to itself")
            cards.append(Card(who, [Text(cut(text, MOST_WORDS), "say")], kind))
        for requested in message.tool_calls:
            cards += _shown(id, calls, marks, lambda call: call.status == "malformed")
            answered.add((requested.id or "") if calls else "")
            cards += _shown(id, calls, marks, most=1) or [_unanswered(requested)]
    cards += _shown(id, calls, marks)
    return cards + ([_missing_card(marks[0], _anchor(id, 0))] if marks[0] else [])


def _is_before(turn: int, call: SessionCall) -> bool:
    return call.turn < turn


def _speaker(message: Message, following: Message | None) -> str:
    """Return the kind of card: user, agent (what the user reads) or thought."""
    if message.role == "user":
        return "user"
    last = not message.tool_calls and (following is None or following.role == "user")
    return "agent" if message.role == "assistant" and last else "thought"


def _shown(
    id: str,
    calls: deque[tuple[int, SessionCall]],
    marks: Mapping[int, Sequence[Deviation]],
    take: Callable[[SessionCall], bool] = lambda _: True,
    most: int | None = None,
) -> list[Card]:
    """Remove the next calls while `take` is true, and return their cards."""
    cards: list[Card] = []
    while calls and most != 0 and take(calls[0][1]):
        number, call = calls.popleft()
        cards += _call_cards(_anchor(id, number), number, call, marks.get(number, ()))
        most = None if most is None else most - 1
    return cards


def _unanswered(requested: ToolCall) -> Card:
    name = Text([Fragment(cut(requested.name, MOST_NAME), "strong")])
    arguments = Text(cut(json_text(requested.arguments), MOST_TEXT), "pre")
    return Card("the answer is unknown", [name, arguments], "call")


def _call_cards(
    anchor: str, number: int, call: SessionCall, marks: Sequence[Deviation]
) -> Iterator[Card]:
    """Yield the missing steps before a call, and the call with its answer."""
    if missing := [d for d in marks if d.cause == "missing_step"]:
        yield _missing_card(missing)
    wrong = [d for d in marks if d.cause != "missing_step"]
    name = cut(call.tool, MOST_NAME) or "(no tool could be read)"
    blocks: list[Block] = [Text([Fragment(name, "strong")])]
    arguments = "" if call.arguments is None else json_text(call.arguments)
    if isinstance(call.arguments, dict):
        pairs = ((k, json.dumps(v, ensure_ascii=False)) for k, v in call.arguments.items())
        arguments = "\n".join(f"{key} = {value}" for key, value in pairs)
    blocks += [Text(cut(text, MOST_TEXT), "pre") for text in (arguments, call.result) if text]
    blocks += [Text(_mark(d, tool=False), "warning") for d in wrong]
    kind, answered = "call", _ANSWERED[call.answered]
    if call.status != "ok":
        kind, answered = "call refused", _STATUSES.get(call.status, call.status)
    yield Card(f"call {number}, {answered}", blocks, "call wrong" if wrong else kind, anchor)


def _missing_card(deviations: Sequence[Deviation], anchor: str = "") -> Card:
    marks = [Text(_mark(d, tool=True), "warning") for d in deviations]
    return Card("not done", marks, "missing", anchor)


def _call_number(deviation: Deviation, log: SessionLog) -> int:
    """Return the number (from 1) of the call that deviates or before which a step is missing; 0 for
    the end of the session."""
    return deviation.at + 1 if deviation.at < len(log.calls) else 0


def _anchor(id: str, number: int) -> str:
    return f"{id}-c{number}" if number else f"{id}-end"


def _mark(deviation: Deviation, *, tool: bool) -> list[str | Fragment]:
    words: list[str | Fragment] = [Fragment(deviation.cause.replace("_", " "), "strong")]
    if tool and deviation.tool:
        words.append(f" {cut(deviation.tool, MOST_NAME)}")
    if deviation.detail:
        words.append(f": {cut(deviation.detail, MOST_TEXT)}")
    where = f"node {deviation.node}" if deviation.node else ""
    if deviation.edge:
        where = f"edge {deviation.edge[0]} → {deviation.edge[1]}"
    return [*words, Fragment(f" ({cut(where, MOST_NAME)})", "small")] if where else words
