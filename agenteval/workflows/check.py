"""Check a role: its charts, users and recorded calls (see `defects`), and its backend."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.agents.toolbox import is_async
from agenteval.errors import InputError
from agenteval.workflows.backend import fresh_backend, load_backend
from agenteval.workflows.chart import Chart
from agenteval.workflows.defects import (
    Defect,
    Severity,
    chart_defects,
    profile_defects,
    session_defects,
)
from agenteval.workflows.folder import find_role, read_role, read_text, read_tools
from agenteval.workflows.mermaid import charts_in, parse_chart
from agenteval.workflows.scenario import WorkflowTool


@dataclass(frozen=True, slots=True)
class Checked:
    """A scenario (or a chart, or the backend of a role) with its defects."""

    role: str
    scenario: str
    defects: tuple[Defect, ...]
    chart: Chart | None = None

    def count(self, severity: Severity) -> int:
        """How many defects there are of a severity."""
        return sum(d.severity == severity for d in self.defects)


def check_file(path: Path, tools: Path | None) -> list[Checked]:
    """Check a chart alone, or each of those in a Markdown file.

    Without the tools.json `tools` only their shape is checked. Raises InputError for a file that
    cannot be read; one of several charts that cannot be read is a defect.
    """
    defined = () if tools is None else read_tools(tools)
    texts = charts_in(read_text(path))
    if len(texts) == 1:
        chart = parse_chart(texts[0], str(path))
        return [Checked(str(path), "", chart_defects(chart, defined), chart)]
    checked = []
    for text in texts:
        chart_read, defects = _chart(text, str(path), defined)
        line = 1 + len(text) - len(text.lstrip())
        checked.append(Checked(str(path), f"line {line}", defects, chart_read))
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
        chart: Chart | None = None
        defects: tuple[Defect, ...] = ()
        if "flowchart" in scenario.formats:
            where = f"{role.id}/{scenario.id}/workflow.mmd"
            chart, defects = _chart(scenario.flowchart, where, scenario.tools)
        charts[scenario.id] = chart
        if not wanted or scenario.id in wanted:
            tools, own_chart = role.tools_of((scenario.id, *ids)), {scenario.id: chart}
            defects += profile_defects(scenario.profiles, tools, own_chart)
            defects += session_defects(scenario.sessions, tools, own_chart)
            checked.append(Checked(role.id, scenario.id, defects, chart))
    if role.cross_profiles and not wanted:
        tools = role.tools_of(tuple(ids))
        defects = profile_defects(role.cross_profiles, tools, charts)
        defects += session_defects(role.cross_sessions, tools, charts)
        checked.append(Checked(role.id, "cross", defects))
    used = [t for s in role.scenarios if s.id in (wanted or ids) for t in s.tools]
    conflicts = [_defect(words, "warning") for words in role.conflicts]
    backend = tuple(dict.fromkeys((*conflicts, *backend_defects(folder, used))))
    return [*checked, Checked(role.id, "backend", backend)]


def _chart(
    text: str, where: str, tools: Sequence[WorkflowTool]
) -> tuple[Chart | None, tuple[Defect, ...]]:
    """Return a chart, None if it cannot be read, and its defects."""
    try:
        chart = parse_chart(text, where)
    except InputError as error:
        return None, (Defect(kind="unreadable", message=str(error)),)
    return chart, chart_defects(chart, tools)


def backend_defects(folder: Path, tools: Sequence[WorkflowTool]) -> tuple[Defect, ...]:
    """Return what is wrong with a new backend, which runs its file: it cannot be made, its state is
    no JSON, a tool has no method, or one with other parameters."""
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


def _signature(tool: WorkflowTool, method: Callable[..., object]) -> tuple[Defect, ...]:
    """Bind the calls with all parameters of the tool and with the required ones alone."""
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        return (_defect(f"the parameters of {tool.name} cannot be seen", "warning"),)
    for names in (tool.properties, tool.required):
        try:
            signature.bind(**dict.fromkeys(names))
        except TypeError as error:
            call = f"{tool.name}({', '.join(names)})"
            return (_defect(f"the backend's method does not take the call {call}: {error}"),)
    return ()


def _defect(message: str, severity: Severity = "error") -> Defect:
    return Defect(kind="backend", message=message, severity=severity)
