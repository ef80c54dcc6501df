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
from agenteval.records.table import Column, Table
from agenteval.reporting.report import Report
from agenteval.text import plural
from agenteval.workflows.align import Call
from agenteval.workflows.causes import calls_of
from agenteval.workflows.check import Checked, check_file, check_role
from agenteval.workflows.conformance import Conformance
from agenteval.workflows.conformance import conform as aligned
from agenteval.workflows.folder import (
    find_role,
    read_role,
    read_text,
    read_tools,
    role_folders,
)
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.procedure import Procedure, compiled, procedure
from agenteval.workflows.scenario import Role, WorkflowTool
from agenteval.workflows.session import SessionLog

_CHARTS = (".mmd", ".mermaid", ".md", ".markdown")


@dataclass(frozen=True, kw_only=True)
class ConformReport(Report):
    """`verdict` is the best reading of the calls as a walk through the chart, `reasons` a sentence
    on each deviation; without any, `conforms` is true."""

    verdict: Conformance

    @property
    def conforms(self) -> bool:
        """Whether the calls follow the chart."""
        return self.verdict.conforms

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why not; () when they do."""
        return tuple(
            " ".join(
                filter(
                    None,
                    (
                        d.cause.replace("_", " "),
                        f"at call {d.at + 1}:",
                        d.tool,
                        f"({d.detail})" if d.detail else "",
                    ),
                )
            )
            for d in self.verdict.deviations
        )


def conform(
    calls: str | Path | Run | SessionLog | Sequence[Call | Mapping[str, Any]],
    chart: str | Path | Role,
    *,
    scenarios: Sequence[str] | None = None,
    tools: str | Path | Sequence[WorkflowTool] = (),
    complete: bool = True,
) -> ConformReport:
    """Do calls follow a chart, and if not, where not.

    `calls` are records or mappings with `tool`, and `arguments`, `returned`, `carried_out` where
    known; a session's log; a run, whose tool spans are taken; or a JSON file of calls. `chart` is a
    role (by name, folder or record), of whose `scenarios` (all) the charts hold, or a file with a
    Mermaid flowchart (.mmd, .md) with the `tools` that it can call. Without `complete` the walk may
    stop anywhere. How many transitions nothing could be checked of is noted.

    Raises InputError for what cannot be read, and for a chart that has no end.
    """
    made = _calls(calls)
    verdict = aligned(_procedure(chart, scenarios, tools), made, complete=complete)
    deviations = Table(
        "deviations",
        "Deviations",
        (
            Column("call", "call", "count"),
            Column("cause", "cause"),
            Column("tool", "tool"),
            Column("place", "node or edge"),
            Column("detail", "detail"),
        ),
        tuple(
            {
                "call": d.at + 1,
                "cause": d.cause,
                "tool": d.tool,
                "place": d.node or (" → ".join(d.edge) if d.edge else None),
                "detail": d.detail or None,
            }
            for d in verdict.deviations
        ),
    )
    word = "follow" if verdict.conforms else "do not follow"
    fitness = "" if verdict.fitness is None else f", fitness {verdict.fitness:.2f}"
    return ConformReport(
        title=f"{plural(len(made), 'call')} {word} the chart{fitness}",
        tables=(deviations,),
        notes=(
            f"{verdict.unchecked} of {plural(len(verdict.edges), 'transition')} walked could not "
            "be checked: no condition on the edge, or none of its values was returned",
        )
        if verdict.unchecked
        else (),
        data=verdict.model_dump(mode="json"),
        verdict=verdict,
    )


def flow_check(
    roles: Sequence[str | Path] | str | Path | None = None,
    *,
    scenarios: Sequence[str] = (),
    tools: str | Path | None = None,
    notify: Notify | None = None,
) -> Report:
    """Defects of roles by name or folder (None: all that are found), or of files with Mermaid
    flowcharts (.mmd, .md), whose `tools` stand in a tools.json. The exit code is 1 for errors, 2
    for what cannot be read, which is noted and does not keep the others from being checked."""
    watch = Watch(notify)
    names = [str(one) for one in ([roles] if isinstance(roles, str | Path) else roles or ())]
    names = names or [str(folder) for folder in role_folders().values()]
    if not names:
        raise InputError("no role was named, and none is found in tasks/flows")
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
    counts = tuple(
        {
            "role": one.role,
            "scenario": one.scenario,
            "nodes": len(one.chart.nodes) if one.chart else None,
            "edges": len(one.chart.edges) if one.chart else None,
            "unchecked": one.chart.unchecked if one.chart else None,
            "errors": one.count("error"),
            "warnings": one.count("warning"),
        }
        for one in checked
    )
    defects = tuple(
        {
            "where": "/".join(part for part in (one.role, one.scenario) if part),
            "line": d.line or None,
            "severity": d.severity,
            "kind": d.kind,
            "message": d.message,
            "place": d.node or (" → ".join(d.edge) if d.edge else None),
        }
        for one in checked
        for d in one.defects
    )
    columns = (
        Column("severity", "severity"),
        Column("where", "where"),
        Column("line", "line", "count"),
        Column("kind", "kind"),
        Column("place", "node or edge"),
        Column("message", "what is wrong"),
    )
    read = tuple(row for row in defects if row["severity"] == "note")
    numbers = [Column(k, k, "count") for k in ("nodes", "edges")]
    numbers.append(
        Column(
            "unchecked",
            "unchecked",
            "count",
            hint="edges that are one of several "
            "out of their node, without a condition on what a call returned: no "
            "call tells whether they are taken rightly",
        )
    )
    numbers += [Column(k, k, "count") for k in ("errors", "warnings")]
    cannot = unread or any(d.kind == "unreadable" for one in checked for d in one.defects)
    return Report(
        title="",
        tables=(
            Table(
                "checked",
                f"{len(checked)} checked",
                (Column("role", "role"), Column("scenario", "scenario"), *numbers),
                counts,
            ),
            Table(
                "defects",
                "Defects",
                columns,
                tuple(row for row in defects if row["severity"] != "note"),
                group="where",
            ),
            *(
                [Table("notes", "How charts are read", columns, read, group="where", detail=True)]
                if read
                else []
            ),
        ),
        notes=tuple(watch.notes),
        data={"unreadable": unread},
        exit_code=2 if cannot else int(any(one.count("error") for one in checked)),
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
    if isinstance(calls, str | Path):
        path, calls = calls, json.loads(files.read_text(Path(calls)))
    else:
        path = "calls"
    try:
        return TypeAdapter(tuple[Call, ...]).validate_python(calls)
    except ValidationError as error:
        raise InputError(f"no list of calls ({error.errors()[0]['msg']})", str(path)) from error


def _json(text: Any) -> Any:
    """The value of a JSON text; None for words, which are no values."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return None


def _procedure(chart: Any, scenarios: Sequence[str] | None, tools: Any) -> Procedure:
    if isinstance(chart, str | Path) and str(chart).endswith(_CHARTS):
        known = read_tools(Path(tools)) if isinstance(tools, str | Path) else tuple(tools)
        return compiled({Path(chart).stem: parse_chart(read_text(Path(chart)), str(chart))}, known)
    role = read_role(find_role(str(chart))) if isinstance(chart, str | Path) else chart
    return procedure(role, tuple(scenarios or (s.id for s in role.scenarios)))
