"""Conformance of calls with a procedure, and what the deviations of the best reading are called.

The reading is the optimal alignment of `search` (Adriansyah, van Dongen, van der Aalst 2011). Its
moves that cost something are named after the failure causes of arXiv 2406.14884, table 7:

- a call that was refused, that no node calls, or without a required parameter: tool_use. When the
  step it stood for is left out thereafter, that is the same deviation;
- a step left out: missing_step; with an extra call of the same tool: one wrong_order, at the call;
- over several scenarios, a step left out in one run of a scenario that comes in its next run, where
  the call that took its place does not come again: one wrong_order, at that call;
- an edge whose condition is false: wrong_transition, at the call that comes next;
- any other extra call: wrong_order when its tool was a step before (repeated, and no edge leads
  back at no cost) or can still come (too early); otherwise it belongs to a branch that the walk
  did not take: wrong_transition.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from agenteval.evaluators.workflows.chart.conditions import written
from agenteval.evaluators.workflows.conformance import CAUSES, Call, Conformance, Deviation
from agenteval.evaluators.workflows.procedure import Procedure
from agenteval.evaluators.workflows.search import Alignment, Move, align, lacking, steppable


def conform(procedure: Procedure, calls: Sequence[Call], *, complete: bool = True) -> Conformance:
    """How well calls follow the procedure; deviations in order of position.

    With `complete=False` the walk may stop anywhere: the session was ended from outside, or the
    user ended it. `nodes` and `edges` are those of the reading, a node whose step was left out
    among them. A transition counts as `unchecked` when it has a label and no condition, or a
    condition on values that were not returned. Raises InputError when the walk must end and the
    procedure has no end that can be reached.
    """
    return conformance(procedure, calls, align(procedure, calls, complete=complete))


def conformance(procedure: Procedure, calls: Sequence[Call], reading: Alignment) -> Conformance:
    """What a reading of these calls says."""
    edges = [m for m in reading.moves if m.kind == "edge" and m.edge is not None]
    entered = [
        procedure.positions[m.target].node
        for m in reading.moves
        if m.kind in ("enter", "edge") and m.target is not None
    ]
    return Conformance(
        deviations=_deviations(procedure, calls, reading.moves),
        fitness=1 - reading.cost / reading.worst if reading.worst else None,
        nodes=tuple(entered),
        edges=tuple((m.edge.source, m.edge.target) for m in edges if m.edge is not None),
        unchecked=sum(m.holds is None and bool(m.edge and m.edge.label) for m in edges),
    )


def ordered(deviations: Sequence[Deviation]) -> tuple[Deviation, ...]:
    """By position, then in the order of CAUSES, then as they came."""
    return tuple(sorted(deviations, key=lambda d: (d.at, CAUSES.index(d.cause))))


def _deviations(
    procedure: Procedure, calls: Sequence[Call], moves: Sequence[Move]
) -> tuple[Deviation, ...]:
    skips = [m for m in moves if m.kind == "skip"]
    found = _swapped(procedure, calls, moves, skips) if procedure.cross else []
    stepped: set[str] = set()
    for move in moves:
        if move.kind == "extra":
            call = calls[move.at]
            skip = _take(procedure, skips, call.tool, move.at)
            found.append(_extra(procedure, calls, move, skip, stepped))
        elif move.kind == "edge" and move.holds is False:
            found.append(_wrong_transition(calls, move))
        elif move.kind == "step":
            stepped.add(calls[move.at].tool)
            found.extend(_incomplete(procedure, calls[move.at], move))
    found.extend(_missing(procedure, skip) for skip in skips)
    return ordered(found)


def _swapped(
    procedure: Procedure, calls: Sequence[Call], moves: Sequence[Move], skips: list[Move]
) -> list[Deviation]:
    """Two swapped calls that were read as two runs of a scenario, each without one of them.

    A step is left out in a run and comes in the next run of the scenario, but the call that came in
    its place does not come there again. What is explained so is taken from `skips`.
    """
    found = []
    for first, second in _runs(procedure, moves):
        again = {calls[m.at].tool for m in second if m.kind == "step"}
        for skip in [m for m in first if m.kind == "skip" and _tool(procedure, m) in again]:
            step = next((m for m in first if m.kind == "step" and m.at >= skip.at), None)
            if step is None or skip not in skips or calls[step.at].tool in again:
                continue
            skips.remove(skip)
            early = calls[step.at].tool
            for other in [m for m in second if m in skips and _tool(procedure, m) == early][:1]:
                skips.remove(other)
            detail = f"too early; due: {_tool(procedure, skip)}"
            node = _node(procedure, step)
            found.append(_deviation("wrong_order", step.at, early, node, detail))
    return found


def _runs(procedure: Procedure, moves: Sequence[Move]) -> list[tuple[list[Move], list[Move]]]:
    """The steps done or left out in each run of a scenario, with those of its next run."""
    runs: dict[str, list[list[Move]]] = {}
    for move in moves:
        place = move.target if move.position is None else move.position
        if place is None:
            continue
        of = runs.setdefault(procedure.positions[place].scenario, [])
        if move.kind == "enter":
            of.append([])
        elif move.kind in ("step", "skip"):
            of[-1].append(move)
    return [pair for of in runs.values() for pair in pairwise(of)]


def _take(procedure: Procedure, skips: list[Move], tool: str, at: int) -> Move | None:
    """The nearest step left out that calls this tool, taken from the list."""
    same = [m for m in skips if _tool(procedure, m) == tool]
    if not same:
        return None
    nearest = min(same, key=lambda m: abs(m.at - at))
    skips.remove(nearest)
    return nearest


def _extra(
    procedure: Procedure,
    calls: Sequence[Call],
    move: Move,
    skip: Move | None,
    stepped: set[str],
) -> Deviation:
    call = calls[move.at]
    node = _node(procedure, skip) if skip else _home(procedure, call.tool)
    if not call.carried_out:
        detail = f"refused: {call.problem}" if call.problem else "refused"
        return _deviation("tool_use", move.at, call.tool, node, detail)
    if not steppable(procedure, call):
        return _deviation("tool_use", move.at, call.tool, node, "no step calls this tool")
    due = _due(procedure, move.position)
    if skip is not None:
        late = "late" if skip.at < move.at else "early"
        return _deviation("wrong_order", move.at, call.tool, node, f"too {late}{due}")
    if call.tool in stepped:
        return _deviation("wrong_order", move.at, call.tool, node, f"repeated{due}")
    if move.position is None or procedure.cross or _reaches(procedure, move.position, call.tool):
        return _deviation("wrong_order", move.at, call.tool, node, f"too early{due}")
    return _deviation("wrong_transition", move.at, call.tool, node, f"of another branch{due}")


def _home(procedure: Procedure, tool: str) -> str | None:
    """The node that calls a tool, when there is only one."""
    nodes = {p.node for p in procedure.positions if p.tool == tool}
    return nodes.pop() if len(nodes) == 1 else None


def _reaches(procedure: Procedure, position: int, tool: str) -> bool:
    return tool in procedure.reachable(position)


def _due(procedure: Procedure, position: int | None) -> str:
    if position is None:
        names = tuple(dict.fromkeys(t for e in procedure.entries for t in procedure.due(e)))
    else:
        names = procedure.due(position)
    return f"; due: {' or '.join(names)}" if names else "; nothing is due"


def _wrong_transition(calls: Sequence[Call], move: Move) -> Deviation:
    edge = move.edge
    assert edge is not None
    assert edge.condition is not None
    return Deviation(
        cause="wrong_transition",
        at=move.at,
        tool=calls[move.at].tool if move.at < len(calls) else "",
        edge=(edge.source, edge.target),
        detail=f"not so: {written(edge.condition)}",
    )


def _incomplete(procedure: Procedure, call: Call, move: Move) -> list[Deviation]:
    names = lacking(procedure, call)
    if not names:
        return []
    detail = f"without required {', '.join(names)}"
    return [_deviation("tool_use", move.at, call.tool, _node(procedure, move), detail)]


def _missing(procedure: Procedure, skip: Move) -> Deviation:
    tool, node = _tool(procedure, skip), _node(procedure, skip)
    return _deviation("missing_step", skip.at, tool, node, "")


def _deviation(cause: str, at: int, tool: str, node: str | None, detail: str) -> Deviation:
    return Deviation.model_validate(
        {"cause": cause, "at": at, "tool": tool, "node": node, "detail": detail}
    )


def _tool(procedure: Procedure, move: Move) -> str:
    assert move.position is not None
    return procedure.positions[move.position].tool or ""


def _node(procedure: Procedure, move: Move) -> str:
    assert move.position is not None
    return procedure.positions[move.position].node
