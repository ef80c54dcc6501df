"""Check a role: its charts, users and recorded calls (see `defects`), and its backend."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.agents.toolbox import is_async
from agenteval.errors import InputError
from agenteval.evaluators.workflows.backend import fresh_backend, load_backend
from agenteval.evaluators.workflows.chart import Chart
from agenteval.evaluators.workflows.defects import (
    Defect,
    Severity,
    chart_defects,
    profile_defects,
    session_defects,
)
from agenteval.evaluators.workflows.folder import find_role, read_role, read_text, read_tools
from agenteval.evaluators.workflows.mermaid import charts_in, parse_chart
from agenteval.evaluators.workflows.scenario import Role, Scenario, WorkflowTool


@dataclass(frozen=True, slots=True)
class Checked:
    """A scenario (or a chart, or the backend of a role) with its defects; see `Chart.unchecked`."""

    role: str
    scenario: str
    nodes: int | None
    edges: int | None
    unchecked: int | None
    defects: tuple[Defect, ...]

    def count(self, severity: Severity) -> int:
        """How many defects there are of a severity."""
        return sum(d.severity == severity for d in self.defects)


def check_file(path: Path, tools: Path | None) -> list[Checked]:
    """A chart alone, or each of those in a Markdown file; without the tools.json `tools` only
    their shape. Raises InputError, but for one of several charts that cannot be read."""
    known = () if tools is None else read_tools(tools)
    texts = charts_in(read_text(path))
    checked = []
    for text in texts:
        place = f"line {1 + len(text) - len(text.lstrip())}" if len(texts) > 1 else ""
        try:
            chart = parse_chart(text, str(path))
        except InputError as error:
            if not place:
                raise
            checked.append(_checked(str(path), place, None, [_unread(error)]))
        else:
            checked.append(_checked(str(path), place, chart, chart_defects(chart, known)))
    return checked


def check_role(name: str, wanted: Sequence[str] = ()) -> list[Checked]:
    """Check the scenarios of a role by name or folder (all, or the `wanted`), its users of several
    scenarios, and its backend. Raises InputError for what cannot be read."""
    folder = find_role(name, "ROLE")
    role = read_role(folder)
    ids = [s.id for s in role.scenarios]
    for id in wanted:
        if id not in ids:
            raise InputError(
                f"{role.id} has no scenario {id!r}; it has {', '.join(ids)}", "--scenario"
            )
    charts: dict[str, Chart | None] = {}
    checked = []
    for scenario in role.scenarios:
        chart, defects = _chart(role, scenario)
        charts[scenario.id] = chart
        if wanted and scenario.id not in wanted:
            continue
        tools, own = role.tools_of((scenario.id, *ids)), {scenario.id: chart}
        defects += profile_defects(scenario.profiles, tools, own)
        defects += session_defects(scenario.sessions, tools, own)
        checked.append(_checked(role.id, scenario.id, chart, defects))
    if role.cross_profiles and not wanted:
        tools = role.tools_of(tuple(ids))
        defects = profile_defects(role.cross_profiles, tools, charts)
        defects += session_defects(role.cross_sessions, tools, charts)
        checked.append(_checked(role.id, "cross", None, defects))
    asked = [t for s in role.scenarios if s.id in (wanted or ids) for t in s.tools]
    conflicts = [_defect(words, "warning") for words in role.conflicts]
    backend = tuple(dict.fromkeys((*conflicts, *backend_defects(folder, asked))))
    checked.append(_checked(role.id, "backend", None, backend))
    return checked


def _chart(role: Role, scenario: Scenario) -> tuple[Chart | None, tuple[Defect, ...]]:
    """The chart of a scenario, None without one that can be read, and its defects."""
    if "flowchart" not in scenario.formats:
        return None, ()
    try:
        chart = parse_chart(scenario.flowchart, f"{role.id}/{scenario.id}/workflow.mmd")
    except InputError as error:
        return None, (_unread(error),)
    return chart, chart_defects(chart, scenario.tools)


def _checked(role: str, scenario: str, chart: Chart | None, defects: Sequence[Defect]) -> Checked:
    if chart is None:
        return Checked(role, scenario, None, None, None, tuple(defects))
    nodes, edges = len(chart.nodes), len(chart.edges)
    return Checked(role, scenario, nodes, edges, chart.unchecked, tuple(defects))


def _unread(error: InputError) -> Defect:
    return Defect(kind="unreadable", message=str(error))


def backend_defects(folder: Path, tools: Sequence[WorkflowTool]) -> tuple[Defect, ...]:
    """What is wrong with the backend as it is when made, which runs its file: it cannot be made,
    its state is none, a tool has no method, or one with other parameters."""
    try:
        make_backend = load_backend(folder)
        backend = fresh_backend(make_backend)
        shared = fresh_backend(make_backend).state is backend.state
    except InputError as error:
        return (_defect(str(error)),)
    defects = []
    if shared:
        problem = "two sessions share one state: set self.state in __init__"
        defects.append(_defect(problem, "warning"))
    try:
        json.dumps(backend.state, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        defects.append(_defect(f"the state is no JSON value ({error})"))
    for tool in tools:
        method = getattr(backend, tool.name, None)
        if not callable(method):
            defects.append(_defect(f"the backend has no method {tool.name}"))
        elif is_async(method):
            defects.append(_defect(f"{tool.name} is an `async def`; it answers at once"))
        else:
            defects += _signature(tool, method)
    return tuple(defects)


def _signature(tool: WorkflowTool, method: Callable[..., object]) -> Iterator[Defect]:
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        yield _defect(f"the parameters of {tool.name} cannot be seen", "warning")
        return
    named = {p.name: p.default for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD,
                                                                 p.KEYWORD_ONLY)}  # fmt: skip
    for name in tool.properties:
        if name not in named and not any(p.kind is p.VAR_KEYWORD for p in parameters):
            yield _defect(f"{tool.name} does not take the parameter {name}")
    for name, default in sorted(named.items(), key=lambda item: item[0]):
        if default is inspect.Parameter.empty and name not in tool.required:
            yield _defect(f"{tool.name} needs {name}, which a call of the tool need not have")


def _defect(message: str, severity: Severity = "error") -> Defect:
    return Defect(kind="backend", message=message, severity=severity)
