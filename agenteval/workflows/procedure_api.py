"""Check roles for defects, and calls against a chart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agenteval import files
from agenteval.cli.running import Notify, Watch
from agenteval.errors import InputError
from agenteval.records import Run
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report
from agenteval.text import plural
from agenteval.workflows.align import Call
from agenteval.workflows.causes import calls_of
from agenteval.workflows.check import Checked, check_file, check_role
from agenteval.workflows.conformance import Conformance, Deviation
from agenteval.workflows.conformance import conform as aligned
from agenteval.workflows.defects import Defect
from agenteval.workflows.folder import find_role, read_role, read_text, read_tools, role_folders
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.procedure import Procedure, compiled, procedure
from agenteval.workflows.scenario import Role, WorkflowTool
from agenteval.workflows.session import SessionLog

_CHARTS = (".mmd", ".mermaid", ".md", ".markdown")


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
class _DeviationRow:
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
        _DeviationRow(d.at + 1, d.cause, d.tool, _place(d), d.detail or None)
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
        tables=(table_of(_DeviationRow, "deviations", "Deviations", rows),),
        notes=(unchecked,) if verdict.unchecked else (),
        data=verdict.model_dump(mode="json"),
        verdict=verdict,
    )


def _place(where: Deviation | Defect) -> str | None:
    return where.node or (" → ".join(where.edge) if where.edge else None)


@dataclass(frozen=True)
class _CheckedRow:
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
class _DefectRow:
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
    rows = [
        _CheckedRow(
            c.role,
            c.scenario,
            len(c.chart.nodes) if c.chart else None,
            len(c.chart.edges) if c.chart else None,
            c.chart.unchecked if c.chart else None,
            c.count("error"),
            c.count("warning"),
        )
        for c in checked
    ]
    defect_rows = [
        _DefectRow(
            d.severity,
            "/".join(filter(None, (c.role, c.scenario))),
            d.line or None,
            d.kind,
            _place(d),
            d.message,
        )
        for c in checked
        for d in c.defects
    ]
    defects = [row for row in defect_rows if row.severity != "note"]
    notes = [row for row in defect_rows if row.severity == "note"]
    tables = [
        table_of(_CheckedRow, "checked", f"{len(checked)} checked", rows),
        table_of(_DefectRow, "defects", "Defects", defects, group="where"),
    ]
    if notes:
        title = "How charts are read"
        tables.append(table_of(_DefectRow, "notes", title, notes, group="where", detail=True))
    cannot = unread or any(row.kind == "unreadable" for row in defects)
    return Report(
        title="",
        tables=tuple(tables),
        notes=tuple(watch.notes),
        data={"unreadable": unread},
        exit_code=2 if cannot else int(any(row.errors for row in rows)),
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
