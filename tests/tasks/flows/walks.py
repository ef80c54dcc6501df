"""Do the annotations of recorded sessions form walks through the charts, and walk all of them?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from agenteval.workflows.chart import Chart, Edge, holds
from agenteval.workflows.scenario import RecordedSession, Turn
from tests.tasks.flows.flow import Flow

OUT_OF_SCOPE = "out of scope"


@dataclass
class Walk:
    """Where a session stands in each chart, what was returned, and what was wrong."""

    charts: dict[str, Chart]
    at: dict[str, str] = field(default_factory=dict)
    returned: list[tuple[str, dict[str, JsonValue]]] = field(default_factory=list)
    edges: set[tuple[str, Edge]] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def step(self, turn: Turn) -> None:
        chart = self.charts[turn.scenario]
        at = self.at.setdefault(turn.scenario, chart.starts[0].id)
        if turn.node not in {n.id for n in chart.nodes}:
            self.faults.append(f"no node {turn.node}")
            return
        self._enter(chart, at, turn)
        self.at[turn.scenario] = turn.node
        node = chart.node(turn.node)
        if turn.kind == "call":
            if node.shape != "call" or turn.tool not in node.text:
                self.faults.append(f"{turn.node} does not call {turn.tool}")
            if isinstance(turn.result, dict):
                self.returned.append((turn.tool, turn.result))

    def _enter(self, chart: Chart, at: str, turn: Turn) -> None:
        if turn.intent in ("", OUT_OF_SCOPE) and turn.node == at != chart.starts[0].id:
            return
        leaving = chart.leaving(at) or chart.leaving(
            chart.starts[0].id
        )  # it is asked for once more
        matching = [e for e in leaving if (e.target, e.intent) == (turn.node, turn.intent)]
        if not matching:
            self.faults.append(f"no edge {turn.intent!r} from {at} to {turn.node}")
        elif not any(self._holds(e) for e in matching):
            self.faults.append(f"the condition of {turn.intent!r} does not hold")
        self.edges |= {(turn.scenario, e) for e in matching if self._holds(e)}

    def _holds(self, edge: Edge) -> bool:
        return edge.condition is None or holds(edge.condition, self.returned) is True


def walk(charts: dict[str, Chart], session: RecordedSession) -> Walk:
    """The walk of a session, with faults naming their turn."""
    done = Walk(charts)
    for i, turn in enumerate(session.turns):
        if turn.kind != "user":
            before = len(done.faults)
            done.step(turn)
            done.faults[before:] = [f"turn {i}: {text}" for text in done.faults[before:]]
    return done


def _unended(done: Walk) -> Iterator[str]:
    for scenario, node in done.at.items():
        if done.charts[scenario].leaving(node):
            yield f"{scenario} is left at {node}, which is no end"


def check_walks(flow: Flow) -> list[str]:
    """Annotated nodes exist, consecutive ones are joined by an edge whose condition holds, every
    call is made at a node that names the tool, and every scenario comes to an end."""
    faults = []
    for where, session, _ in flow.sessions():
        done = walk(flow.charts, session)
        faults += [f"{where} {text}" for text in [*done.faults, *_unended(done)]]
    return faults


def check_coverage(flow: Flow) -> list[str]:
    """The sessions of each scenario walk every node and every edge of its chart."""
    faults = []
    charts = flow.charts
    for group, _, sessions in flow.groups():
        if group not in charts:
            continue
        walked = {edge for s in sessions for _, edge in walk(charts, s).edges}
        faults += [
            f"{group}: {e.source}--{e.label}-->{e.target} is walked in no session"
            for e in charts[group].edges
            if e not in walked
        ]
    return faults
