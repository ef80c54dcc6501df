"""Conformance of calls with a procedure, and the names of the deviations of the best reading.

The reading is the optimal alignment of `align`. Its moves that cost something are named after the
failure causes of arXiv 2406.14884, table 7:

- a call that was refused, that no node calls, or without a required parameter: tool_use. When the
  step it stood for is left out afterwards, that is the same deviation;
- a step left out: missing_step; with an extra call of the same tool: one wrong_order, at the call;
- over several scenarios, a step left out in one run of a scenario that comes in its next run, where
  the call that took its place does not come again: one wrong_order, at that call;
- an edge whose condition is false: wrong_transition, at the call that comes next; when no step
  follows and, by what was returned, the only way on leads back: missing_step of that way;
- any other extra call: wrong_order when its tool was a step before (repeated, and no edge leads
  back at no cost) or can still come (too early); otherwise it belongs to a branch that the walk
  did not take: wrong_transition.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from pydantic import Field

from agenteval.records import Record
from agenteval.workflows.align import (
    Alignment,
    Call,
    Move,
    align,
    lacking,
    returned_before,
    steppable,
)
from agenteval.workflows.conditions import written
from agenteval.workflows.procedure import Procedure

# Four causes of failure of the paper's table, computed here instead of asked of a model.
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
    walk missing), 1 when nothing deviates, None when there was nothing to do and nothing was done.
    `nodes` and `edges` are those walked, in order, also where a step was left out. `unchecked`
    counts the transitions walked that no returned value decides: they have a label or alternatives,
    and no condition, or one on values that were not returned.
    """

    deviations: tuple[Deviation, ...] = ()
    fitness: float | None = Field(default=None, ge=0, le=1)
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    unchecked: int = Field(default=0, ge=0)

    @property
    def conforms(self) -> bool:
        """True without a single deviation."""
        return not self.deviations

    @property
    def cause(self) -> Cause | None:
        """The cause of the first deviation, None when it conforms."""
        return self.deviations[0].cause if self.deviations else None


def conform(procedure: Procedure, calls: Sequence[Call], *, complete: bool = True) -> Conformance:
    """Return how well calls follow the procedure; deviations in order of position.

    `complete` and what is raised are as in `align`.
    """
    return conformance(procedure, calls, align(procedure, calls, complete=complete))


def conformance(procedure: Procedure, calls: Sequence[Call], reading: Alignment) -> Conformance:
    """Return what a reading of these calls says."""
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
    """Names the moves of a reading; `skips` are the steps left out that nothing explains so far."""

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
        """Find two swapped calls that were read as two runs of a scenario, each without one.

        A step is left out in a run and comes in the next run of the scenario, but the call that
        came in its place does not come there again. What this explains is taken from `skips`.
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
        """Return the steps done or left out in each run of a scenario, with those of its next
        run."""
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
        else:  # the node that calls the tool, when there is only one
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
