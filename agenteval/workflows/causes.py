"""The causes of a failed session: deviations from the procedure, and from what its user wanted.

Conformance alone sees whether calls follow the chart. Gold calls add what the user wanted: a call
that should have come and did not, a value that is not the user's, a branch that is right by the
chart but not what the user chose. Everything is computed; no model is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Literal

from pydantic import JsonValue

from agenteval.workflows.align import Call, Move, align, returned_before
from agenteval.workflows.conformance import Cause, Conformance, Deviation, conformance
from agenteval.workflows.procedure import Procedure
from agenteval.workflows.scenario import Action
from agenteval.workflows.session import SessionLog
from agenteval.workflows.values import assigned, equal_by_rule, filled

_MAX_SHOWN = 80  # characters of a value in a detail


def calls_of(log: SessionLog) -> tuple[Call, ...]:
    """Return the calls of a session as conformance sees them.

    `returned` is the result of a call that was carried out, None where it is not JSON.
    """
    calls = []
    for call in log.calls:
        carried_out, returned = call.status == "ok", None
        if carried_out:
            with suppress(ValueError):  # conditions on words stay unchecked
                returned = json.loads(call.result)
        calls.append(
            Call(
                tool=call.tool,
                arguments=call.arguments,
                carried_out=carried_out,
                problem="" if carried_out else f"{call.status}: {_short(call.result)}",
                returned=returned,
            )
        )
    return tuple(calls)


def primary(deviations: Sequence[Deviation]) -> Cause | Literal["other"]:
    """Return the cause of a failed session: that of its first deviation, the first given of
    several at one position; "other" without any."""
    return min(deviations, key=lambda d: d.at).cause if deviations else "other"


class SessionReading:
    """A session read against the procedure and the gold calls of its user.

    `calls` are those of the session. `followed` is how they follow the chart alone, where the walk
    may stop anywhere; it says nothing without a chart. `match` maps gold calls to the calls that
    stand for them, by index.
    """

    def __init__(
        self, procedure: Procedure | None, gold: Sequence[Action], log: SessionLog
    ) -> None:
        self.procedure, self.gold, self.log = procedure, gold, log
        self.calls = calls_of(log)
        self.followed = Conformance()
        self.moves: tuple[Move, ...] = ()
        if procedure is not None:
            reading = align(procedure, self.calls, complete=False)
            self.followed = conformance(procedure, self.calls, reading)
            self.moves = reading.moves

        def rank(action: Action, call: Call) -> int:
            if not call.carried_out or action.tool != call.tool:
                return 0
            return 1 if _wrong(action, call) else 2

        self.match = dict(assigned([[rank(a, call) for call in self.calls] for a in gold]))

    def deviations(self) -> tuple[Deviation, ...]:
        """Return the deviations of a session, in order of position. At one position those of
        conformance come first, then the others in the order below; but a step left out comes before
        a call that was refused, maybe because the step was missing.

        1. Those of conformance, where the walk may stop anywhere: a user may end a session at any
           node, so gold decides whether it stopped too early.
        2. wrong_order: a call that repeats the one before word for word, in the same turn of the
           agent, where an edge leads back. Nothing can have changed in between: a loop.
        3. wrong_transition: a call that gold does not have, where a missing gold call was possible
           by the chart and the values returned so far: the user's choice was not followed.
        4. missing_step: any other gold call without a call of its tool.
        5. tool_use: a gold call and a call of its tool were matched and their arguments differ.
        6. wrong_order instead of tool_use: a call with gold's arguments was refused, and one that
           gold has before it came only afterwards.

        Gold and calls are matched one to one (`values.assigned`): as many with equal arguments as
        possible, then others of the same tool. Arguments are compared by rule
        (`values.equal_by_rule`); those that gold lacks, or has empty, are free. What one deviation
        of a tool explains is not reported twice. Without a chart only 4, 5 and 6 are looked for.

        A session in which the agent met a simulator's mistake has no deviations.
        """
        if self.log.invalidated_by:
            return ()
        deviations: list[Deviation] = []
        if self.procedure is not None:
            deviations = [self._renamed(d) for d in self.followed.deviations]
            deviations += self._loops({d.at for d in deviations if d.cause != "missing_step"})
        deviations += self._against_gold(deviations)
        refused = {at for at, call in enumerate(self.calls) if not call.carried_out}
        return tuple(
            sorted(
                deviations, key=lambda d: (d.at, d.cause != "missing_step" or d.at not in refused)
            )
        )

    def _renamed(self, deviation: Deviation) -> Deviation:
        """Return wrong_order for a refusal of a call with gold's arguments if a call that gold has
        before it came only afterwards: nothing else can have been wrong with it."""
        if not self._is_refusal(deviation):
            return deviation
        call = self.calls[deviation.at]
        fits = [i for i, a in enumerate(self.gold) if a.tool == call.tool and not _wrong(a, call)]
        if not fits or all(self.match.get(i, -1) <= deviation.at for i in range(fits[0])):
            return deviation
        detail = f"too early; {deviation.detail}"
        return deviation.model_copy(update={"cause": "wrong_order", "detail": detail})

    def _is_refusal(self, deviation: Deviation) -> bool:
        at_call = deviation.cause in ("tool_use", "wrong_order")
        return at_call and not self.calls[deviation.at].carried_out

    def _loops(self, reported: set[int]) -> Iterator[Deviation]:
        turns = [call.turn for call in self.log.calls]
        for at, (before, call) in enumerate(pairwise(self.calls), 1):
            same = (call.tool, call.arguments) == (before.tool, before.arguments)
            both = call.carried_out and before.carried_out and turns[at - 1] == turns[at]
            if same and both and at not in reported:
                detail = "repeated in the same turn"
                yield Deviation(cause="wrong_order", at=at, tool=call.tool, detail=detail)

    def _against_gold(self, by_chart: Sequence[Deviation]) -> list[Deviation]:
        reported = {d.at for d in by_chart if d.cause != "missing_step"}
        explained = [d.tool for d in by_chart if d.cause == "missing_step" or self._is_refusal(d)]
        stood_for = self._stood_for()
        missing: list[tuple[int, str]] = []
        for index, action in enumerate(self.gold):
            if index in self.match:
                continue
            if action.tool in explained:
                explained.remove(action.tool)
                continue
            # Due before the next gold call that is there, not before the last one that is.
            after = max((at + 1 for i, at in stood_for.items() if i < index), default=0)
            following = [at for i, at in stood_for.items() if i > index and at >= after]
            missing.append((min(following, default=len(self.calls)), action.tool))
        new = self._astray(missing, reported | set(self.match.values()))
        new += [Deviation(cause="missing_step", at=at, tool=tool) for at, tool in missing]
        for index, at in sorted(self.match.items()):
            wrong = _wrong(self.gold[index], self.calls[at])
            if wrong and at not in reported:
                tool = self.calls[at].tool
                new.append(Deviation(cause="tool_use", at=at, tool=tool, detail="; ".join(wrong)))
        return new

    def _stood_for(self) -> dict[int, int]:
        """Return the match, and for gold calls that were not made the refused calls of their tools,
        in their order. A tool often refuses because a step before it was left out, so its call says
        where that step was due."""
        stood_for = dict(self.match)
        refused = [at for at, call in enumerate(self.calls) if not call.carried_out]
        for index, action in enumerate(self.gold):
            at = next((at for at in refused if self.calls[at].tool == action.tool), None)
            if index not in self.match and at is not None:
                refused.remove(at)
                stood_for[index] = at
        return stood_for

    def _astray(self, missing: list[tuple[int, str]], reported: set[int]) -> list[Deviation]:
        """Return the steps that gold does not have, each in place of a missing one, which is taken
        from the list."""
        astray: list[Deviation] = []
        if self.procedure is None:
            return astray
        chain: list[Move] = []  # since the last step
        for move in self.moves:
            if move.kind in ("edge", "enter"):
                chain.append(move)
                continue
            if move.kind == "extra":
                continue
            if move.kind == "step" and move.at not in reported and chain:
                begin = chain[0].position if chain[0].kind == "edge" else chain[0].target
                values = returned_before(self.calls, move.at)
                due = () if begin is None else self.procedure.due(begin, values)
                instead = next((m for m in missing if m[1] in due), None)
                if instead is not None:
                    missing.remove(instead)
                    edge = chain[-1].edge
                    astray.append(
                        Deviation(
                            cause="wrong_transition",
                            at=move.at,
                            tool=self.calls[move.at].tool,
                            edge=(edge.source, edge.target) if edge else None,
                            detail=f"the user's goals need {instead[1]} here",
                        )
                    )
            chain = []
        return astray


def _wrong(action: Action, call: Call) -> list[str]:
    """Return the parameters in which a call differs from gold, as text."""
    stated = filled(call.arguments)
    return [
        f"{name}: {_json(stated[name]) if name in stated else 'not given'}, gold {_json(value)}"
        for name, value in filled(action.arguments).items()
        if name not in stated or not equal_by_rule(value, stated[name])
    ]


def _json(value: JsonValue) -> str:
    return _short(json.dumps(value, ensure_ascii=False, sort_keys=True))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
