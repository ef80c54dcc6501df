"""Why did a session fail? Deviations from the procedure, and from what its user wanted.

Conformance alone sees whether calls follow the chart. Gold calls add what the user wanted: a call
that should have come and did not, a value that is not the user's, a branch that is right by the
chart but not by the user's will. All of it is computed; nothing is asked of a model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from agenteval.evaluators.workflows.align import Alignment, Call, Move, align
from agenteval.evaluators.workflows.conformance import Cause, Deviation, conformance
from agenteval.evaluators.workflows.procedure import Procedure
from agenteval.evaluators.workflows.scenario import Action, Profile
from agenteval.evaluators.workflows.session import SessionCall, SessionLog
from agenteval.evaluators.workflows.values import assigned, equal_by_rule, filled

_MAX_TOLD = 80  # characters of a value in a detail


def calls_of(log: SessionLog) -> tuple[Call, ...]:
    """The calls of a session as conformance sees them.

    `returned` is the result of a call that was carried out, None where it is no JSON.
    """
    return tuple(_call(call) for call in log.calls)


def causes(procedure: Procedure, profile: Profile, log: SessionLog) -> tuple[Deviation, ...]:
    """The deviations of a session, in order of position. At one position those of conformance
    come first, then the others in the order below; but a step left out comes before the call that
    was refused, it may be, for want of it.

    1. Those of conformance, the walk being free to stop anywhere: whether it stopped too early is
       decided by gold, since a user may end a session at any node.
    2. wrong_order: a call that repeats the one before word for word, in the same turn of the agent,
       where an edge leads back. Nothing can have changed in between: a loop.
    3. wrong_transition: a call that gold has not, where a gold call that is missing was possible by
       the chart and the values returned so far: the user's will was not followed.
    4. missing_step: any other gold call without a call of its tool.
    5. tool_use: a gold call and a call of its tool were matched and their arguments differ.
    6. wrong_order instead of tool_use: a call with gold's arguments was refused, and one that gold
       has before it came only afterwards.

    Gold and calls are matched one to one (`values.assigned`): as many with equal arguments as can
    be, then others of the same tool. Arguments are compared by rule (`values.equal_by_rule`);
    those that gold has not, or has empty, are free. What one deviation of a tool explains is not
    told twice.

    Where a simulator answered a call wrongly (a mistake of `tools` in the turn of the call), no
    deviation is charged that rests on the answer: at the calls of that turn, a repeat of one of
    them, a false transition right after them, and all that only gold says of what comes later.
    """
    calls = calls_of(log)
    spoiled = _spoiled(log)
    reading = align(procedure, calls, complete=False)
    found = [
        d
        for d in conformance(procedure, calls, reading).deviations
        if not _rests(d, calls, spoiled)
    ]
    found = _early(found, profile.actions, calls)
    found += _loops(log, calls, {d.at for d in found if d.cause != "missing_step"} | spoiled)
    found += _against_gold(procedure, profile, calls, reading, found, min(spoiled, default=None))
    refused = {at for at, call in enumerate(calls) if not call.carried_out}
    return tuple(sorted(found, key=lambda d: (d.at, _is_before(d, refused))))


def primary(
    deviations: Sequence[Deviation], *, failed: bool = True
) -> Cause | Literal["other"] | None:
    """The cause of the first deviation by position (the first given of several at one position);
    "other" for a failed session without any.

    None for one that did not fail and has no deviation.
    """
    if deviations:
        return min(deviations, key=lambda d: d.at).cause
    return "other" if failed else None


def _call(call: SessionCall) -> Call:
    carried_out = call.status == "ok"
    returned: JsonValue = None
    if carried_out:
        try:
            returned = json.loads(call.result)
        except ValueError:
            returned = None  # words are no values: conditions on them stay unchecked
    return Call(
        tool=call.tool,
        arguments=call.arguments,
        carried_out=carried_out,
        problem="" if carried_out else f"{call.status}: {_short(call.result)}",
        returned=returned,
    )


def _is_before(deviation: Deviation, refused: set[int]) -> int:
    """0 for a step missing before a call that was refused: it comes before the refusal."""
    return int(deviation.cause != "missing_step" or deviation.at not in refused)


def _spoiled(log: SessionLog) -> set[int]:
    """Indices of calls that may have been answered wrongly."""
    turns = {m.turn for m in log.mistakes if m.who == "tools"}
    return {at for at, call in enumerate(log.calls) if call.turn in turns}


def _rests(deviation: Deviation, calls: Sequence[Call], spoiled: set[int]) -> bool:
    """Whether a deviation of conformance rests on an answer that was wrong."""
    at = deviation.at
    if deviation.cause == "missing_step":
        return any(s < at or calls[s].tool == deviation.tool for s in spoiled)
    if at in spoiled or (deviation.cause == "wrong_transition" and at - 1 in spoiled):
        return True
    return at < len(calls) and any(s < at and calls[s].tool == calls[at].tool for s in spoiled)


def _loops(log: SessionLog, calls: Sequence[Call], told: set[int]) -> list[Deviation]:
    found = []
    for at in range(1, len(calls)):
        before, call = calls[at - 1], calls[at]
        if (
            at not in told
            and call.carried_out
            and before.carried_out
            and log.calls[at].turn == log.calls[at - 1].turn
            and (call.tool, call.arguments) == (before.tool, before.arguments)
        ):
            found.append(
                Deviation(
                    cause="wrong_order", at=at, tool=call.tool, detail="repeated in the same turn"
                )
            )
    return found


def _against_gold(
    procedure: Procedure,
    profile: Profile,
    calls: Sequence[Call],
    reading: Alignment,
    found: Sequence[Deviation],
    spoiled: int | None,
) -> list[Deviation]:
    gold = profile.actions
    match = _matched(gold, calls)
    told = {d.at for d in found if d.cause != "missing_step"}
    wrong = [
        deviation
        for index, at in sorted(match.items())
        if at not in told and (deviation := _arguments(gold[index], calls[at], at))
    ]
    explained = [d.tool for d in found if d.cause == "missing_step" or _refusal(d, calls)]
    stood = match | _tried(gold, calls, match)
    missing: list[tuple[int, str]] = []
    for index, action in enumerate(gold):
        if index in match:
            continue
        if action.tool in explained:
            explained.remove(action.tool)
        else:
            missing.append((_due_at(index, stood, len(calls)), action.tool))
    new = _astray(procedure, calls, reading, missing, told | set(match.values()))
    new += [Deviation(cause="missing_step", at=at, tool=tool) for at, tool in missing]
    return [d for d in new + wrong if spoiled is None or d.at < spoiled]


def _matched(gold: Sequence[Action], calls: Sequence[Call]) -> dict[int, int]:
    """Gold calls and the calls that stand for them, by index."""

    def rank(action: Action, call: Call) -> int:
        if not call.carried_out or action.tool != call.tool:
            return 0
        return 1 if _wrong(action, call) else 2

    return dict(assigned([[rank(action, call) for call in calls] for action in gold]))


def _wrong(action: Action, call: Call) -> list[str]:
    """Parameters in which a call differs from gold, as text."""
    given = filled(call.arguments)
    return [
        f"{name}: {_json(given[name]) if name in given else 'not given'}, gold {_json(value)}"
        for name, value in filled(action.arguments).items()
        if name not in given or not equal_by_rule(value, given[name])
    ]


def _arguments(action: Action, call: Call, at: int) -> Deviation | None:
    wrong = _wrong(action, call)
    if not wrong:
        return None
    return Deviation(cause="tool_use", at=at, tool=call.tool, detail="; ".join(wrong))


def _refusal(deviation: Deviation, calls: Sequence[Call]) -> bool:
    return deviation.cause in ("tool_use", "wrong_order") and not calls[deviation.at].carried_out


def _early(
    found: Sequence[Deviation], gold: Sequence[Action], calls: Sequence[Call]
) -> list[Deviation]:
    """With a refusal called wrong_order where the call's arguments are those of gold, and a call
    that gold has before it came only afterwards: nothing else can have been wrong with it."""
    match = _matched(gold, calls)

    def early(at: int) -> bool:
        call = calls[at]
        fits = [i for i, a in enumerate(gold) if a.tool == call.tool and not _wrong(a, call)]
        return bool(fits) and any(match.get(i, -1) > at for i in range(fits[0]))

    return [
        d.model_copy(update={"cause": "wrong_order", "detail": f"too early; {d.detail}"})
        if _refusal(d, calls) and early(d.at)
        else d
        for d in found
    ]


def _tried(gold: Sequence[Action], calls: Sequence[Call], match: dict[int, int]) -> dict[int, int]:
    """Gold calls that were not made, and the refused calls of their tools, in their order.

    They say where a step was due that was left out before: a tool often refuses for want of it.
    """
    refused = [at for at, call in enumerate(calls) if not call.carried_out]
    found: dict[int, int] = {}
    for index, action in enumerate(gold):
        if index not in match:
            at = next((at for at in refused if calls[at].tool == action.tool), None)
            if at is not None:
                refused.remove(at)
                found[index] = at
    return found


def _due_at(index: int, match: dict[int, int], end: int) -> int:
    """Before which call a missing gold call should have come: the next one of gold that is there,
    but not before the last one of gold that is."""
    after = max((at + 1 for i, at in match.items() if i < index), default=0)
    following = [at for i, at in match.items() if i > index and at >= after]
    return min(following, default=end)


def _astray(
    procedure: Procedure,
    calls: Sequence[Call],
    reading: Alignment,
    missing: list[tuple[int, str]],
    told: set[int],
) -> list[Deviation]:
    """Steps that gold has not, in place of a missing one, which is taken from the list."""
    found = []
    chain: list[Move] = []  # since the last step
    for move in reading.moves:
        if move.kind in ("edge", "enter"):
            chain.append(move)
        elif move.kind != "extra":
            if move.kind == "step" and move.at not in told and chain:
                first = chain[0]
                begin = first.position if first.kind == "edge" else first.target
                returned = [
                    (c.tool, c.returned) for c in calls[: move.at] if isinstance(c.returned, dict)
                ]
                possible = () if begin is None else procedure.due(begin, returned)
                instead = next((m for m in missing if m[1] in possible), None)
                if instead is not None:
                    missing.remove(instead)
                    found.append(_not_wanted(calls[move.at], move.at, instead[1], chain[-1]))
            chain = []
    return found


def _not_wanted(call: Call, at: int, wanted: str, way: Move) -> Deviation:
    edge = way.edge
    return Deviation(
        cause="wrong_transition",
        at=at,
        tool=call.tool,
        edge=(edge.source, edge.target) if edge else None,
        detail=f"the user's goals need {wanted} here",
    )


def _json(value: JsonValue) -> str:
    return _short(json.dumps(value, ensure_ascii=False, sort_keys=True))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_TOLD else text[: _MAX_TOLD - 1] + "…"
