"""agenteval flow check: defects of procedures, and whether their three formats tell the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, clean, note, out, print_json, warn
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.chart.check import Defect
    from agenteval.evaluators.workflows.chart.nouns import Chart
    from agenteval.evaluators.workflows.scenario import (
        Profile,
        RecordedSession,
        Role,
        Scenario,
        WorkflowTool,
    )

_CHART = ".mmd"


@dataclass(frozen=True)
class Checked:
    """A scenario (or a chart, or the backend of a role) with its defects."""

    role: str
    scenario: str
    nodes: int | None
    edges: int | None
    defects: tuple[Defect, ...]

    def count(self, severity: str) -> int:
        """How many defects there are of a severity."""
        return sum(d.severity == severity for d in self.defects)


def check(
    roles: Annotated[
        list[str] | None,
        typer.Argument(help="Roles by name or folder, or .mmd files. Default: all roles found."),
    ] = None,
    scenario: Annotated[
        list[str] | None, typer.Option("--scenario", help="Only this one; several allowed.")
    ] = None,
    tools: Annotated[
        Path | None, typer.Option("--tools", help="For .mmd files: a tools.json to check against.")
    ] = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Check charts, their tools and conditions, users and recorded calls, the backend, and that
    text, code and flowchart agree. Exit code 1 for errors, 2 for what cannot be read."""
    Verbosity.level = -1 if quiet else Verbosity.level
    found: list[Checked] = []
    unread: list[str] = []
    for name in roles or _all_roles():
        try:
            found += (
                _chart_file(Path(name), tools)
                if name.endswith(_CHART)
                else _role(name, scenario or [])
            )
        except InputError as error:
            unread.append(str(error))
    if as_json:
        rows = [_json(one) for one in found]
        print_json({"checked": rows, "unreadable": unread})
    else:
        _print(found)
    for problem in unread:
        warn(f"agenteval: {problem}")
    if unread or any(d.kind == "unreadable" for one in found for d in one.defects):
        raise typer.Exit(2)
    if any(one.count("error") for one in found):
        raise typer.Exit(1)


def _all_roles() -> list[str]:
    from agenteval.evaluators.workflows.folder import role_folders

    found = [str(folder) for folder in role_folders().values()]
    if not found:
        raise InputError("no role was named, and none is found in tasks/flows")
    return found


def _chart_file(path: Path, tools: Path | None) -> Iterator[Checked]:
    from agenteval.evaluators.workflows.chart.check import check_chart
    from agenteval.evaluators.workflows.chart.parse import parse_chart
    from agenteval.evaluators.workflows.folder import read_text

    chart = parse_chart(read_text(path), str(path))
    yield _checked(str(path), "", chart, check_chart(chart, _tools(tools)))


def _tools(path: Path | None) -> Sequence[WorkflowTool]:
    if path is None:
        note("without --tools, only the shape of the chart is checked")
        return ()
    from agenteval.evaluators.workflows.folder import read_tools

    return read_tools(path)


def _role(name: str, wanted: Sequence[str]) -> Iterator[Checked]:
    from agenteval.evaluators.workflows.backend_check import backend_defects
    from agenteval.evaluators.workflows.folder import find_role, read_role

    folder = find_role(name, "ROLE")
    role = read_role(folder)
    ids = [s.id for s in role.scenarios]
    for id in wanted:
        if id not in ids:
            raise InputError(f"{role.id} has no scenario {id!r}; it has {', '.join(ids)}",
                             "--scenario")  # fmt: skip
    found = [_scenario(role, one) for one in role.scenarios if not wanted or one.id in wanted]
    yield from found
    readable = not any(
        d.kind == "unreadable" and one.nodes is None for one in found for d in one.defects
    )
    if role.cross_profiles and not wanted and readable:
        yield _cross(role)
    defects = backend_defects(folder, role.tools_of(tuple(wanted or ids)))
    yield _checked(role.id, "backend", None, defects)


def _scenario(role: Role, one: Scenario) -> Checked:
    from agenteval.evaluators.workflows.chart.check import Defect, check_chart
    from agenteval.evaluators.workflows.chart.parse import parse_chart
    from agenteval.evaluators.workflows.consistency import consistent
    from agenteval.evaluators.workflows.profile_check import annotation_defects

    people = _people(role, one.profiles, one.sessions)
    try:
        chart = parse_chart(one.flowchart, f"{role.id}/{one.id}/workflow.mmd")
    except InputError as error:
        unread = Defect(kind="unreadable", message=str(error))
        return _checked(role.id, one.id, None, (unread, *people))
    annotations = annotation_defects(one.profiles, one.sessions, {one.id: chart})
    defects = (*check_chart(chart, one.tools), *consistent(one), *annotations, *people)
    return _checked(role.id, one.id, chart, defects)


def _cross(role: Role) -> Checked:
    """The users and sessions that need several scenarios."""
    from agenteval.evaluators.workflows.chart.parse import parse_chart
    from agenteval.evaluators.workflows.profile_check import annotation_defects

    charts = {s.id: parse_chart(s.flowchart, f"{role.id}/{s.id}") for s in role.scenarios}
    defects = annotation_defects(role.cross_profiles, role.cross_sessions, charts)
    people = _people(role, role.cross_profiles, role.cross_sessions)
    return _checked(role.id, "cross", None, (*defects, *people))


def _people(
    role: Role, profiles: Sequence[Profile], sessions: Sequence[RecordedSession]
) -> tuple[Defect, ...]:
    """What is wrong with users and recorded calls, whatever the chart says."""
    from agenteval.evaluators.workflows.profile_check import profile_defects, session_defects

    tools = role.tools_of(tuple(s.id for s in role.scenarios))
    return (*profile_defects(profiles, tools, role.now), *session_defects(sessions, tools))


def _checked(role: str, scenario: str, chart: Chart | None, defects: Sequence[Defect]) -> Checked:
    nodes, edges = (len(chart.nodes), len(chart.edges)) if chart else (None, None)
    return Checked(role, scenario, nodes, edges, tuple(defects))


def _json(one: Checked) -> dict[str, Any]:
    return {
        "role": one.role,
        "scenario": one.scenario,
        "nodes": one.nodes,
        "edges": one.edges,
        "errors": one.count("error"),
        "warnings": one.count("warning"),
        "defects": [d.model_dump(mode="json") for d in one.defects],
    }


def _print(found: Sequence[Checked]) -> None:
    from agenteval.cli.plan_table import print_table
    from agenteval.report.sheet import PlainTable

    columns = ("role", "scenario", "nodes", "edges", "errors", "warnings")
    rows = tuple(
        (one.role, one.scenario, _shown(one.nodes), _shown(one.edges),
         str(one.count("error")), str(one.count("warning")))
        for one in found
    )  # fmt: skip
    if rows:
        right = (False, False, True, True, True, True)
        print_table(PlainTable(f"{len(rows)} checked", columns, rows, right, ""))
    for one in found:
        for d in one.defects:
            colour = "red" if d.severity == "error" else "yellow"
            name = "/".join(part for part in (one.role, one.scenario) if part)
            where = f" line {d.line}" if d.line else ""
            head = f"[{colour}]{d.severity}[/{colour}] {clean(name)}{where} ({d.kind}): "
            out().print(head + clean(d.message), soft_wrap=True)


def _shown(number: int | None) -> str:
    return "–" if number is None else str(number)
