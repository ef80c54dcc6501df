"""Check calls against a chart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agenteval import files
from agenteval.errors import InputError
from agenteval.records import Run
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report
from agenteval.text import plural
from agenteval.workflows.check import CHART_FILES
from agenteval.workflows.conformance import Conformance, Deviation, calls_of
from agenteval.workflows.conformance import conform as aligned
from agenteval.workflows.folder import find_role, read_role, read_text, read_tools
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.procedure import Call, Procedure, compiled, procedure
from agenteval.workflows.scenario import Role, WorkflowTool
from agenteval.workflows.session import SessionLog


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
        """One sentence for each deviation."""
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


def _place(deviation: Deviation) -> str | None:
    return deviation.node or (" → ".join(deviation.edge) if deviation.edge else None)


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
    """Return the value of a JSON text, None for other texts."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return None


def _procedure(chart: Any, scenarios: Sequence[str] | None, tools: Any) -> Procedure:
    if isinstance(chart, str | Path) and str(chart).endswith(CHART_FILES):
        callable_tools = read_tools(Path(tools)) if isinstance(tools, str | Path) else tuple(tools)
        return compiled(
            {Path(chart).stem: parse_chart(read_text(Path(chart)), str(chart))}, callable_tools
        )
    role = read_role(find_role(str(chart))) if isinstance(chart, str | Path) else chart
    return procedure(role, tuple(scenarios or (s.id for s in role.scenarios)))
