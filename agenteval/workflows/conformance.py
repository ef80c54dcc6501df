"""Conformance of calls with a procedure: the deviations of the best reading and their causes.

The reading is the optimal alignment of `align`. Its moves that cost something are named after the
failure causes of arXiv 2406.14884, table 7:

- a call that was refused, that no node calls, or without a required parameter: tool_use. If the
  step it replaced is left out afterwards, that is the same deviation;
- a step left out: missing_step; with an extra call of the same tool: one wrong_order, at the call;
- over several scenarios, a step left out in one run of a scenario that comes in its next run, where
  the call that took its place does not come again: one wrong_order, at that call;
- an edge whose condition is false: wrong_transition, at the call that comes next; when no step
  follows and, by what was returned, the only way on leads back: missing_step of that way;
- any other extra call: wrong_order when its tool was a step before (repeated, and no edge leads
  back at no cost) or can still come (too early); otherwise it belongs to a branch that the walk did
  not take: wrong_transition.

The causes of a failed session: deviations from the procedure and from the user's goals.

Conformance alone checks whether calls follow the chart. Gold calls add the user's goals: a missing
call, a value that is not the user's, a branch that the chart allows but the user did not choose.
Everything is computed without a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Literal

from pydantic import Field, JsonValue

from agenteval.records import Record
from agenteval.workflows.chart import written
from agenteval.workflows.equality import assigned, equal_by_rule, filled
from agenteval.workflows.procedure import (
    Alignment,
    Call,
    Move,
    Procedure,
    align,
    lacking,
    returned_before,
    steppable,
)
from agenteval.workflows.scenario import Action
from agenteval.workflows.session import SessionLog

# Four causes of failure from the paper's table, computed here without a model.
Cause = Literal["missing_step", "wrong_order", "wrong_transition", "tool_use"]
CAUSES: tuple[Cause, ...] = ("missing_step", "wrong_order", "wrong_transition", "tool_use")


class Deviation(Record):
    """One deviation of calls from a procedure.

    `at` is the index of the call, or for a missing step the index before which it was due. `node`
    or `edge` (source, target) is the place in the chart, if there is one.
    """

    cause: Cause
    at: int = Field(ge=0)
    tool: str = ""
    node: str | None = None
    edge: tuple[str, str] | None = None
    detail: str = ""


class Conformance(Record):
    """The best reading of the calls as a walk through the chart.

    `fitness` is 1 − cost / cost of the worst reading (every call extra, every step of the shortest
    walk missing), 1 without deviations, and None if no call was due and none was made. `nodes` and
    `edges` are those of the walk, in order, including steps left out. `unchecked` counts
    transitions with a label or alternatives that could not be checked: they have no condition, or
    its values were not returned.
    """

    deviations: tuple[Deviation, ...] = ()
    fitness: float | None = Field(default=None, ge=0, le=1)
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    unchecked: int = Field(default=0, ge=0)

    @property
    def conforms(self) -> bool:
        """Whether there are no deviations."""
        return not self.deviations

    @property
    def cause(self) -> Cause | None:
        """The cause of the first deviation, or None."""
        return self.deviations[0].cause if self.deviations else None


def conform(procedure: Procedure, calls: Sequence[Call], *, complete: bool = True) -> Conformance:
    """Return how well calls follow the procedure; deviations in order of position.

    `complete` and what is raised are as in `align`.
    """
    return conformance(procedure, calls, align(procedure, calls, complete=complete))


def conformance(procedure: Procedure, calls: Sequence[Call], reading: Alignment) -> Conformance:
    """Return the conformance of these calls by an alignment."""
    positions = procedure.positions
    walked = [(m, m.edge, positions[m.position or 0]) for m in reading.moves if m.edge is not None]
    entered = [m.target for m in reading.moves if m.kind in ("enter", "edge")]
    deviations = _Naming(procedure, calls, reading.moves).deviations()
    return Conformance(
        deviations=tuple(sorted(deviations, key=lambda d: (d.at, CAUSES.index(d.cause)))),
        fitness=1 - reading.cost / reading.worst if reading.worst else None,
        nodes=tuple(positions[at].node for at in entered if at is not None),
        edges=tuple((edge.source, edge.target) for _, edge, _ in walked),
        unchecked=sum(
            move.holds is None and bool(edge.label or len(position.ways) > 1)
            for move, edge, position in walked
        ),
    )


class _Naming:
    """Names the moves of a reading; `skips` are the omitted steps without an explanation so far."""

    def __init__(self, procedure: Procedure, calls: Sequence[Call], moves: Sequence[Move]) -> None:
        self.procedure, self.calls, self.moves = procedure, calls, moves
        self.skips = [m for m in moves if m.kind == "skip"]

    def deviations(self) -> list[Deviation]:
        deviations = self._swapped() if self.procedure.cross else []
        stepped: set[str] = set()
        for number, move in enumerate(self.moves):
            if move.kind == "extra":
                deviations.append(self._extra(move, stepped))
            elif move.edge is not None and move.holds is False:
                last = all(m.kind != "step" for m in self.moves[number:])
                deviations.append(self._false_edge(move, last=last))
            elif move.kind == "step":
                call = self.calls[move.at]
                stepped.add(call.tool)
                if names := lacking(self.procedure, call):
                    detail = f"without required {', '.join(names)}"
                    deviations.append(self._at_call("tool_use", move.at, self._node(move), detail))
        return deviations + [
            Deviation(cause="missing_step", at=m.at, tool=self._tool(m), node=self._node(m))
            for m in self.skips
        ]

    def _false_edge(self, move: Move, *, last: bool) -> Deviation:
        """Name a transition whose condition is false; `last`: no step follows it."""
        assert move.edge is not None
        assert move.edge.condition is not None
        begin, values = move.position or 0, returned_before(self.calls, move.at)
        not_so = f"not so: {written(move.edge.condition)}"
        ways = self.procedure.reached(begin, returned=values)
        due = self.procedure.due(begin, values) if last else ()
        if due and not any(self.procedure.positions[at].is_end for at in ways):
            detail = f"again; {not_so}"
            return Deviation(cause="missing_step", at=move.at, tool=due[0], detail=detail)
        return Deviation(
            cause="wrong_transition",
            at=move.at,
            tool=self.calls[move.at].tool if move.at < len(self.calls) else "",
            edge=(move.edge.source, move.edge.target),
            detail=not_so,
        )

    def _swapped(self) -> list[Deviation]:
        """Find two swapped calls that were read as two incomplete runs of a scenario.

        A step is left out in one run and comes in the next run of the scenario, but the call that
        took its place does not come again there. Explained steps are removed from `skips`.
        """
        swaps = []
        for first, second in self._runs():
            repeated = {self.calls[m.at].tool for m in second if m.kind == "step"}
            for skip in [m for m in first if m.kind == "skip" and self._tool(m) in repeated]:
                step = next((m for m in first if m.kind == "step" and m.at >= skip.at), None)
                if step is None or skip not in self.skips or self.calls[step.at].tool in repeated:
                    continue
                self.skips.remove(skip)
                early = self.calls[step.at].tool
                for other in [m for m in second if m in self.skips and self._tool(m) == early][:1]:
                    self.skips.remove(other)
                detail = f"too early; due: {self._tool(skip)}"
                swaps.append(self._at_call("wrong_order", step.at, self._node(step), detail))
        return swaps

    def _runs(self) -> list[tuple[list[Move], list[Move]]]:
        """Return the steps, done or left out, of each run of a scenario and of its next run."""
        runs: dict[str, list[list[Move]]] = {}
        for move in self.moves:
            place = move.target if move.position is None else move.position
            if place is None:
                continue
            runs_here = runs.setdefault(self.procedure.positions[place].scenario, [])
            if move.kind == "enter":
                runs_here.append([])
            elif move.kind in ("step", "skip"):
                runs_here[-1].append(move)
        return [pair for runs_here in runs.values() for pair in pairwise(runs_here)]

    def _extra(self, move: Move, stepped: set[str]) -> Deviation:
        call, procedure = self.calls[move.at], self.procedure
        same = [m for m in self.skips if self._tool(m) == call.tool]
        skip = min(same, key=lambda m: abs(m.at - move.at), default=None)
        if skip is not None:
            self.skips.remove(skip)
            node: str | None = self._node(skip)
        else:  # the node that calls the tool, if there is only one
            nodes = {p.node for p in procedure.positions if p.tool == call.tool}
            node = nodes.pop() if len(nodes) == 1 else None
        if not call.carried_out:
            detail = f"refused: {call.problem}" if call.problem else "refused"
            return self._at_call("tool_use", move.at, node, detail)
        if not steppable(procedure, call):
            return self._at_call("tool_use", move.at, node, "no step calls this tool")
        begin = procedure.entries if move.position is None else (move.position,)
        values = returned_before(self.calls, move.at)
        names = dict.fromkeys(tool for at in begin for tool in procedure.due(at, values))
        due = f"due: {' or '.join(names)}" if names else "nothing is due"
        cause: Cause = "wrong_order"
        if skip is not None:
            problem = "too late" if skip.at < move.at else "too early"
        elif call.tool in stepped:
            problem = "repeated"
        else:
            later = {procedure.positions[at].tool for at in procedure.reached(*begin)}
            problem = "too early"
            if move.position is not None and not procedure.cross and call.tool not in later:
                cause, problem = "wrong_transition", "of another branch"
        return self._at_call(cause, move.at, node, f"{problem}; {due}")

    def _at_call(self, cause: Cause, at: int, node: str | None, detail: str) -> Deviation:
        return Deviation(cause=cause, at=at, tool=self.calls[at].tool, node=node, detail=detail)

    def _tool(self, move: Move) -> str:
        return self.procedure.positions[move.position or 0].tool or ""

    def _node(self, move: Move) -> str:
        return self.procedure.positions[move.position or 0].node


_MAX_SHOWN = 80  # characters of a value in a detail


def calls_of(log: SessionLog) -> tuple[Call, ...]:
    """Return the calls of a session in the form used for alignment.

    `returned` is the result of an executed call, None if it is not JSON.
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
    """Return the cause of a failed session: that of its first deviation, or "other" without any. If
    several have the same position, the first one listed counts."""
    return min(deviations, key=lambda d: d.at).cause if deviations else "other"


class SessionReading:
    """A session read against the procedure and the gold calls of its user.

    `calls` are those of the session. `followed` is their conformance with the chart if the walk may
    stop anywhere; it is meaningless without a chart. `match` maps gold calls to calls, by index.
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
        """Return the deviations of a session, in order of position. At one position, those of
        conformance come first, then the others in the order below. But an omitted step comes before
        a refused call, because its absence may be the reason for the refusal.

        1. Those of conformance with a walk that may stop anywhere: a user may end a session at any
           node, so gold decides whether it stopped too early.
        2. wrong_order: a call that repeats the previous one exactly in the same turn of the agent,
           although an edge leads back. Nothing can have changed in between, so it is a loop.
        3. wrong_transition: a call that gold does not have, if the chart and the values returned so
           far allowed a missing gold call: the user's choice was not followed.
        4. missing_step: any other gold call without a call of its tool.
        5. tool_use: a gold call and a call of its tool were matched and their arguments differ.
        6. wrong_order instead of tool_use: a call with gold's arguments was refused, and an earlier
           gold call came only afterwards.

        Gold and calls are matched one to one (`equality.assigned`): as many with equal arguments as
        possible, then others of the same tool. Arguments are compared by rule
        (`equality.equal_by_rule`); arguments that are missing or empty in gold may have any value.
        Nothing is reported twice for a tool. Without a chart, only 4, 5 and 6 are checked.

        A session in which the agent saw a simulator's mistake has no deviations.
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
        """Return wrong_order for a refused call with gold's arguments if an earlier gold call came
        only afterwards: nothing else can have been wrong with it."""
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
            # Due before the next gold call that was made, not after the previous one.
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
        """Return the match, extended by refused calls of the same tools for gold calls that were
        not made. A tool often refuses because an earlier step was left out, so its call shows where
        that step was due."""
        stood_for = dict(self.match)
        refused = [at for at, call in enumerate(self.calls) if not call.carried_out]
        for index, action in enumerate(self.gold):
            at = next((at for at in refused if self.calls[at].tool == action.tool), None)
            if index not in self.match and at is not None:
                refused.remove(at)
                stood_for[index] = at
        return stood_for

    def _astray(self, missing: list[tuple[int, str]], reported: set[int]) -> list[Deviation]:
        """Return the steps that gold does not have, each in place of a missing one. Those are
        removed from the list."""
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
