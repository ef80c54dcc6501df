"""A session as a talk to be read: who spoke, calls with results, deviations where they are."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from agenteval.evaluators.workflows.conformance import Deviation
from agenteval.evaluators.workflows.session import SessionCall, SessionLog
from agenteval.records import Message, ToolCall
from agenteval.report.text import cut, shown

MOST_ITEMS = 80  # of one talk: what is said, and calls
_MOST_WORDS = 2_000  # of one message
_MOST_JSON = 900  # of arguments, and of a result
_MOST_DETAIL = 400
_ANSWERED = {
    "backend": "answered by the backend",
    "recorded": "answered as recorded",
    "model": "answered by a model",
    "generated": "answered by a generator",
    "refused": "refused",
}


@dataclass(frozen=True)
class Mark:
    """A deviation. `call` is the number (from 1) of the call it is about, or before which a step
    is missing; 0 for the end of the session. `anchor` is the id of that place on the page."""

    cause: str
    tool: str
    text: str
    where: str
    call: int
    missing: bool
    anchor: str = ""


@dataclass(frozen=True)
class Called:
    """A call with its answer; `number` counts the calls of the session from 1 (0: not carried
    over into the log, so nothing is known of its answer)."""

    number: int
    tool: str
    arguments: str
    refused: bool
    answered: str
    result: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Item:
    """One thing in a talk, in its order. `turn` counts what the user says, from 1."""

    kind: Literal["user", "agent", "thought", "call", "missing", "other"]
    text: str = ""
    turn: int = 0
    called: Called | None = None
    marks: tuple[Mark, ...] = ()
    anchor: str = ""


@dataclass
class _Making:
    """The talk as it grows; `left` are the calls of the log that have not been told yet."""

    id: str
    calls: Sequence[SessionCall]
    marks: dict[int, list[Mark]]
    items: list[Item] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    told: set[str] = field(default_factory=set)  # ids of calls whose result is shown
    turn: int = 0


def marks_of(id: str, log: SessionLog, deviations: Sequence[Deviation]) -> tuple[Mark, ...]:
    """The deviations in their order, ready to be shown; `id` is the anchor of the session."""
    return tuple(_mark(id, d, len(log.calls)) for d in deviations)


def talk(id: str, log: SessionLog, marks: Sequence[Mark]) -> tuple[tuple[Item, ...], int]:
    """The talk, at most 80 items of it, and how many more there are.

    Calls stand where the messages have them, and as the log has them: with the answer and who gave
    it. Those that no message has (they could not be read, or an adapter lost them) stand where the
    log has them.
    """
    at: dict[int, list[Mark]] = defaultdict(list)
    for mark in marks:
        at[mark.call].append(mark)
    making = _Making(id, log.calls, at, left=list(range(len(log.calls))))
    for i, message in enumerate(log.messages):
        following = log.messages[i + 1] if i + 1 < len(log.messages) else None
        _add(making, message, following)
    _flush(making, None)
    missing = tuple(at.get(0, ()))
    if missing:
        making.items.append(Item("missing", marks=missing, anchor=f"{id}-end"))
    rest = max(len(making.items) - MOST_ITEMS, 0)
    return tuple(making.items[:MOST_ITEMS]), rest


def json_text(value: JsonValue) -> str:
    """A value as JSON; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def call_text(tool: str, arguments: JsonValue) -> str:
    """A call in one line, bounded."""
    given = "" if arguments is None else json_text(arguments)
    return f"{cut(tool, 100)}({cut(given, _MOST_JSON)})"


def _mark(id: str, found: Deviation, calls: int) -> Mark:
    number = found.at + 1 if found.at < calls else 0
    missing = found.cause == "missing_step"
    where = f"node {found.node}" if found.node else ""
    if found.edge:
        where = f"edge {found.edge[0]} → {found.edge[1]}"
    anchor = f"{id}-c{number}" if number else f"{id}-end"
    return Mark(
        cause=found.cause.replace("_", " "),
        tool=cut(found.tool, 100),
        text=cut(found.detail, _MOST_DETAIL),
        where=cut(where, 200),
        call=number,
        missing=missing,
        anchor=anchor,
    )


def _add(making: _Making, message: Message, following: Message | None) -> None:
    text = cut(message.content, _MOST_WORDS) if message.content.strip() else ""
    if message.role == "user":
        _flush(making, making.turn)  # calls of turns that are over
        making.turn += 1
        making.items.append(Item("user", text, making.turn))
    elif message.role == "assistant":
        reply = not message.tool_calls and (following is None or following.role == "user")
        if reply:
            _flush(making, making.turn)
        if text:
            making.items.append(Item("agent" if reply else "thought", text, making.turn))
        for call in message.tool_calls:
            _call(making, call)
    elif message.tool_call_id not in making.told and text:
        making.items.append(Item("other", f"{message.role}: {text}", making.turn))


def _flush(making: _Making, turns: int | None) -> None:
    """Tell the calls left of the first so many turns of the agent, of all of them for None."""
    while making.left and (turns is None or making.calls[making.left[0]].turn < turns):
        _tell(making, making.left.pop(0))


def _call(making: _Making, call: ToolCall) -> None:
    """The call of a message with its answer: of those asked for at once the one that is equal,
    else that of the same tool, else the first."""
    while making.left and making.calls[making.left[0]].status == "malformed":
        _tell(making, making.left.pop(0))
    if not making.left:
        arguments = cut(json_text(call.arguments), _MOST_JSON)
        lost = Called(0, cut(call.name, 100), arguments, False, "no answer is known", "", ())
        making.items.append(Item("call", turn=making.turn, called=lost))
        return
    first = making.calls[making.left[0]]
    step = (first.turn, first.step)
    at_once = [i for i in making.left if (making.calls[i].turn, making.calls[i].step) == step]
    same = [i for i in at_once if making.calls[i].tool == call.name]
    equal = [i for i in same if making.calls[i].arguments == call.arguments]
    chosen = (equal or same or at_once)[0]
    making.left.remove(chosen)
    if call.id is not None:
        making.told.add(call.id)
    _tell(making, chosen)


def _tell(making: _Making, index: int) -> None:
    call, number = making.calls[index], index + 1
    marks = making.marks.get(number, [])
    missing = tuple(m for m in marks if m.missing)
    if missing:
        making.items.append(Item("missing", marks=missing))
    called = Called(
        number=number,
        tool=cut(call.tool, 100) or "(no tool could be read)",
        arguments=_lines(call.arguments),
        refused=call.status != "ok",
        answered=call.status.replace("_", " ") if call.status != "ok"
        else _ANSWERED[call.answered],
        result=cut(call.result, _MOST_JSON),
        marks=tuple(m for m in marks if not m.missing),
    )  # fmt: skip
    anchor = f"{making.id}-c{number}"
    making.items.append(Item("call", turn=making.turn, called=called, anchor=anchor))


def _lines(arguments: JsonValue) -> str:
    """One line for each argument."""
    if not isinstance(arguments, dict):
        return "" if arguments is None else cut(json_text(arguments), _MOST_JSON)
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items()]
    return cut("\n".join(lines), _MOST_JSON)


def heading(*parts: object) -> str:
    """Parts of a heading, bounded."""
    return " · ".join(cut(p, 200) for p in parts if shown(p))
