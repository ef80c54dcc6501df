"""Are the charts of a role sound, and do recorded calls conform to them?"""

from __future__ import annotations

from functools import cache

from agenteval.workflows.chart import Chart
from agenteval.workflows.check import chart_defects
from agenteval.workflows.conformance import conform
from agenteval.workflows.procedure import Call, procedure
from tests.tasks.flows.flow import Flow

NODES = (7, 13)
TOOLS = (3, 5)


def check_charts(flow: Flow) -> list[str]:
    """Charts have no defects and the size and the shapes that are wanted of a scenario."""
    faults = []
    for scenario in flow.role.scenarios:
        chart = flow.charts[scenario.id]
        told = [
            *(f"line {d.line}: {d.message}" for d in chart_defects(chart, scenario.tools)),
            *_shape(chart),
        ]
        if not TOOLS[0] <= len(scenario.tools) <= TOOLS[1]:
            told.append(f"{len(scenario.tools)} tools")
        if " & " not in scenario.flowchart:
            told.append("no join")
        faults += [f"{scenario.id}: {text}" for text in told]
    return faults


def _shape(chart: Chart) -> list[str]:
    """What a chart lacks: size, calls, a label of several lines, both kinds of branch, a cycle."""
    lacks = []
    if not NODES[0] <= len(chart.nodes) <= NODES[1]:
        lacks.append(f"{len(chart.nodes)} nodes")
    if sum(n.shape == "call" for n in chart.nodes) < 2:
        lacks.append("fewer than two call nodes")
    if not any("\n" in n.text for n in chart.nodes):
        lacks.append("no label of several lines")
    branches = [chart.leaving(n.id) for n in chart.nodes]
    if not any(len(b) > 1 and all(e.condition for e in b) for b in branches):
        lacks.append("no branch on returned values")
    if not any(len(b) > 1 and not any(e.condition for e in b) for b in branches):
        lacks.append("no branch on the user's will")
    if not any(n.id in _after(chart, n.id) for n in chart.nodes):
        lacks.append("no way back")
    return lacks


def _after(chart: Chart, id: str) -> set[str]:
    """Nodes that can be reached from a node in one step or more."""
    found: set[str] = set()
    left = [id]
    while left:
        for edge in chart.leaving(left.pop()):
            if edge.target not in found:
                found.add(edge.target)
                left.append(edge.target)
    return found


def check_conformance(flow: Flow) -> list[str]:
    """The calls of every session conform to the procedure; from back to front they do not."""
    faults, charts = [], cache(lambda scenarios: procedure(flow.role, scenarios))
    for where, session, profile in flow.sessions():
        chart = charts(profile.scenarios)
        calls = [
            Call(tool=t.tool, arguments=t.arguments, returned=t.result)
            for t in session.turns
            if t.kind == "call"
        ]
        faults += [f"{where}: {d.cause} {d.detail}" for d in conform(chart, calls).deviations]
        back = calls[::-1]
        if [c.tool for c in back] != [c.tool for c in calls] and conform(chart, back).conforms:
            faults.append(f"{where}: conforms from back to front as well")
    return faults
