"""Check roles for defects, and calls against a chart."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agenteval import files
from agenteval.agents.toolbox import is_async
from agenteval.cli.running import Notify, Watch
from agenteval.errors import InputError
from agenteval.records import Run
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report
from agenteval.text import plural
from agenteval.workflows.align import Call
from agenteval.workflows.backend import BACKEND_FILE, fresh_backend, load_backend
from agenteval.workflows.causes import calls_of
from agenteval.workflows.chart import Chart
from agenteval.workflows.conformance import Conformance, Deviation
from agenteval.workflows.conformance import conform as aligned
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
    role_folders,
    schemas_rewritten,
)
from agenteval.workflows.mermaid import charts_in, parse_chart
from agenteval.workflows.procedure import Procedure, compiled, procedure
from agenteval.workflows.scenario import Role, WorkflowTool
from agenteval.workflows.session import SessionLog

_CHARTS = (".mmd", ".mermaid", ".md", ".markdown")


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


def backend_defects(folder: Path, tools: Sequence[WorkflowTool]) -> Iterator[Defect]:
    """Run backend.py and yield its defects: it cannot be made, its state is not JSON, a tool has
    no method, or one with other parameters."""
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


@dataclass(frozen=True, kw_only=True)
class ConformReport(Report):
    """`verdict` is the best reading of the calls as a walk through the chart."""

    verdict: Conformance

    @property
    def conforms(self) -> bool:
        """Whether the calls follow the chart."""
        return self.verdict.conforms

    @property
    def reasons(self) -> tuple[str, ...]:
        """A sentence on each deviation; () without any."""
        return tuple(
            " ".join(filter(None, (d.cause.replace("_", " "), f"at call {d.at + 1}:", d.tool)))
            + (f" ({d.detail})" if d.detail else "")
            for d in self.verdict.deviations
        )


@dataclass(frozen=True)
class _DeviationColumns:
    call: int = column("call", "count")
    cause: str = column("cause")
    tool: str = column("tool")
    place: str | None = column("node or edge")
    detail: str | None = column("detail")


def conform(
    calls: str | Path | Run | SessionLog | Sequence[Call | Mapping[str, Any]],
    chart: str | Path | Role,
    *,
    scenarios: Sequence[str] | None = None,
    tools: str | Path | Sequence[WorkflowTool] = (),
    complete: bool = True,
) -> ConformReport:
    """Check whether calls follow a chart, and where they deviate.

    `calls` are records or mappings with `tool` and optionally `arguments`, `returned` and
    `carried_out`; the log of a session; a run, whose tool spans are used; or a JSON file of calls.
    `chart` is a role (name, folder or record) with charts of its `scenarios` (default: all), or a
    file with a Mermaid flowchart (.mmd, .md) and the `tools` it can call. With `complete=False` the
    walk may stop at any node.

    Returns the deviations; a note counts the transitions that could not be checked. Raises
    InputError for calls or charts that cannot be read, and for a chart without an end.
    """
    call_list = _calls(calls)
    verdict = aligned(_procedure(chart, scenarios, tools), call_list, complete=complete)
    rows = [
        (d, {"call": d.at + 1, "place": _place(d), "detail": d.detail or None})
        for d in verdict.deviations
    ]
    word = "follow" if verdict.conforms else "do not follow"
    fitness = "" if verdict.fitness is None else f", fitness {verdict.fitness:.2f}"
    unchecked = (
        f"{verdict.unchecked} of {plural(len(verdict.edges), 'transition')} could not be "
        "checked: the edge has no condition, or no call returned its values"
    )
    return ConformReport(
        title=f"{plural(len(call_list), 'call')} {word} the chart{fitness}",
        tables=(table_of(_DeviationColumns, "deviations", "Deviations", rows),),
        notes=(unchecked,) if verdict.unchecked else (),
        data=verdict.model_dump(mode="json"),
        verdict=verdict,
    )


def _place(where: Deviation | Defect) -> str | None:
    return where.node or (" → ".join(where.edge) if where.edge else None)


@dataclass(frozen=True)
class _CheckedColumns:
    role: str = column("role")
    scenario: str = column("scenario")
    nodes: int | None = column("nodes", "count")
    edges: int | None = column("edges", "count")
    unchecked: int | None = column(
        "unchecked",
        "count",
        "edges without a condition on a returned value, at nodes with several edges: calls "
        "cannot show whether they are taken correctly",
    )
    errors: int = column("errors", "count")
    warnings: int = column("warnings", "count")


@dataclass(frozen=True)
class _DefectColumns:
    severity: str = column("severity")
    where: str = column("where")
    line: int | None = column("line", "count")
    kind: str = column("kind")
    place: str | None = column("node or edge")
    message: str = column("what is wrong")


def flow_check(
    roles: Sequence[str | Path] | str | Path | None = None,
    *,
    scenarios: Sequence[str] = (),
    tools: str | Path | None = None,
    notify: Notify | None = None,
) -> Report:
    """Find defects of roles by name or folder (None: all that are found), or of files with Mermaid
    flowcharts (.mmd, .md), whose `tools` are in a tools.json. The exit code is 1 for errors, 2
    for what cannot be read, which is noted and does not keep the others from being checked."""
    watch = Watch(notify)
    names = [str(role) for role in ([roles] if isinstance(roles, str | Path) else roles or ())]
    names = names or [str(folder) for folder in role_folders().values()]
    if not names:
        raise InputError("no role was given, and tasks/flows has none")
    checked: list[Checked] = []
    unread: list[str] = []
    for name in names:
        try:
            if name.endswith(_CHARTS):
                if tools is None:
                    watch.note("without --tools, only the shape of the chart is checked")
                checked += check_file(Path(name), Path(tools) if tools else None)
            else:
                checked += check_role(name, scenarios)
        except InputError as error:
            unread.append(str(error))
            watch.warn(f"agenteval: {error}")
    defects, notes = list[tuple[Defect, dict[str, Any]]](), list[tuple[Defect, dict[str, Any]]]()
    for c in checked:
        where = "/".join(filter(None, (c.role, c.scenario)))
        for d in c.defects:
            cells = {"where": where, "line": d.line or None, "place": _place(d)}
            (notes if d.severity == "note" else defects).append((d, cells))
    rows = [
        (
            c,
            {
                "nodes": c.chart and len(c.chart.nodes),
                "edges": c.chart and len(c.chart.edges),
                "unchecked": c.chart and c.chart.unchecked,
                "errors": c.count("error"),
                "warnings": c.count("warning"),
            },
        )
        for c in checked
    ]
    tables = [
        table_of(_CheckedColumns, "checked", f"{len(checked)} checked", rows),
        table_of(_DefectColumns, "defects", "Defects", defects, group="where"),
    ]
    if notes:
        title = "How charts are read"
        tables.append(table_of(_DefectColumns, "notes", title, notes, group="where", detail=True))
    cannot = unread or any(d.kind == "unreadable" for d, _ in defects)
    return Report(
        title="",
        tables=tuple(tables),
        notes=tuple(watch.notes),
        data={"unreadable": unread},
        exit_code=2 if cannot else int(any(c.count("error") for c in checked)),
    )


def _calls(calls: Any) -> tuple[Call, ...]:
    if isinstance(calls, SessionLog):
        return calls_of(calls)
    if isinstance(calls, Run):
        return tuple(
            Call(
                tool=span.tool or span.name,
                arguments=_json(span.input),
                returned=_json(span.output),
                carried_out=span.status != "error",
            )
            for span in calls.spans
            if span.kind == "tool"
        )
    where = "calls"
    if isinstance(calls, str | Path):
        where, calls = str(calls), json.loads(files.read_text(Path(calls)))
    try:
        return TypeAdapter(tuple[Call, ...]).validate_python(calls)
    except ValidationError as error:
        raise InputError(f"not a list of calls ({error.errors()[0]['msg']})", where) from error


def _json(text: Any) -> Any:
    """Return the value of a JSON text, None for words."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return None


def _procedure(chart: Any, scenarios: Sequence[str] | None, tools: Any) -> Procedure:
    if isinstance(chart, str | Path) and str(chart).endswith(_CHARTS):
        callable_tools = read_tools(Path(tools)) if isinstance(tools, str | Path) else tuple(tools)
        return compiled(
            {Path(chart).stem: parse_chart(read_text(Path(chart)), str(chart))}, callable_tools
        )
    role = read_role(find_role(str(chart))) if isinstance(chart, str | Path) else chart
    return procedure(role, tuple(scenarios or (s.id for s in role.scenarios)))
