"""Check a role: its charts, users and recorded calls (see `defects`), and its backend."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.agents.toolbox import is_async
from agenteval.errors import InputError
from agenteval.workflows.backend import BACKEND_FILE, fresh_backend, load_backend
from agenteval.workflows.chart import Chart
from agenteval.workflows.defects import (
    Defect,
    Severity,
    chart_defects,
    profile_defects,
    session_defects,
)
from agenteval.workflows.folder import (
    TOOLS_FILE,
    find_role,
    read_role,
    read_text,
    read_tools,
    schemas_rewritten,
)
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
        """Return how many defects there are of a severity."""
        return sum(d.severity == severity for d in self.defects)


def check_file(path: Path, tools: Path | None) -> list[Checked]:
    """Check the chart of a file, or each chart of a Markdown file.

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
        line = f"line {1 + len(text) - len(text.lstrip())}"
        checked.append(_check_chart(str(path), line, text, str(path), defined))
    return checked


def check_role(name: str, wanted: Sequence[str] = ()) -> list[Checked]:
    """Check the scenarios of a role by name or folder (all, or the `wanted`), its users of several
    scenarios, and its backend. Raises InputError for what cannot be read."""
    folder = find_role(name, "ROLE")
    role = read_role(folder)
    ids = tuple(s.id for s in role.scenarios)
    for id in wanted:
        if id not in ids:
            problem = f"{role.id} has no scenario {id!r}; it has {', '.join(ids)}"
            raise InputError(problem, "--scenario")
    charts: dict[str, Chart | None] = {}
    checked = []
    for scenario in role.scenarios:
        result = Checked(role.id, scenario.id, ())
        if "flowchart" in scenario.formats:
            where = f"{role.id}/{scenario.id}/workflow.mmd"
            result = _check_chart(role.id, scenario.id, scenario.flowchart, where, scenario.tools)
        charts[scenario.id] = result.chart
        if not wanted or scenario.id in wanted:
            tools, chart = role.tools_of((scenario.id, *ids)), {scenario.id: result.chart}
            defects = profile_defects(scenario.profiles, tools, chart)
            defects += session_defects(scenario.sessions, tools, chart)
            at = folder / scenario.id if (folder / scenario.id).is_dir() else folder
            defects = (*result.defects, *defects, *_schema_notes(at / TOOLS_FILE))
            checked.append(Checked(role.id, scenario.id, defects, result.chart))
    if role.cross_profiles and not wanted:
        tools = role.tools_of(ids)
        defects = profile_defects(role.cross_profiles, tools, charts)
        defects += session_defects(role.cross_sessions, tools, charts)
        checked.append(Checked(role.id, "cross", defects))
    used = [t for s in role.scenarios if s.id in (wanted or ids) for t in s.tools]
    conflicts = [_defect(words, "warning") for words in role.conflicts]
    if (folder / BACKEND_FILE).exists():
        conflicts += backend_defects(folder, used)
    else:
        message = f"there is no {BACKEND_FILE}: sessions need `--tools model`"
        conflicts.append(_defect(message, "warning"))
    backend = tuple(dict.fromkeys(conflicts))
    return [*checked, Checked(role.id, "backend", backend)]


def _schema_notes(path: Path) -> Iterator[Defect]:
    if names := schemas_rewritten(path):
        message = f"not JSON schemas, read as FlowBench writes them: {', '.join(names)}"
        yield Defect(kind="tools", message=message, severity="note")


def _check_chart(
    role: str, scenario: str, text: str, where: str, tools: Sequence[WorkflowTool]
) -> Checked:
    try:
        chart = parse_chart(text, where)
    except InputError as error:
        return Checked(role, scenario, (Defect(kind="unreadable", message=str(error)),))
    return Checked(role, scenario, chart_defects(chart, tools), chart)


def backend_defects(folder: Path, tools: Sequence[WorkflowTool]) -> tuple[Defect, ...]:
    """Run backend.py and return its defects: it cannot be made, its state is not JSON, a tool has
    no method, or one with other parameters."""
    return tuple(_backend_defects(folder, tools))


def _backend_defects(folder: Path, tools: Sequence[WorkflowTool]) -> Iterator[Defect]:
    try:
        make_backend = load_backend(folder)
        backend = fresh_backend(make_backend)
        shared = fresh_backend(make_backend).state is backend.state
    except InputError as error:
        yield _defect(str(error))
        return
    if shared:
        yield _defect("two sessions share one state: set self.state in __init__", "warning")
    try:
        json.dumps(backend.state, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        yield _defect(f"the state is not a JSON value ({error})")
    for tool in tools:
        method = getattr(backend, tool.name, None)
        if not callable(method):
            yield _defect(f"the backend has no method {tool.name}")
            continue
        if is_async(method):
            yield _defect(f"{tool.name} is an `async def`; it answers at once")
            continue
        try:
            signature = inspect.signature(method)
        except (TypeError, ValueError):
            yield _defect(f"the parameters of {tool.name} cannot be seen", "warning")
            continue
        for names in (tool.properties, tool.required):  # all parameters, then the required ones
            try:
                signature.bind(**dict.fromkeys(names))
            except TypeError as error:
                call = f"{tool.name}({', '.join(names)})"
                yield _defect(f"the backend's method does not take the call {call}: {error}")
                break


def _defect(message: str, severity: Severity = "error") -> Defect:
    return Defect(kind="backend", message=message, severity=severity)
