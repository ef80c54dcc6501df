"""Check roles and charts for defects that would make sessions meaningless.

Charts, users, recorded calls and the backend are checked; the backend is created but not called.
Branches are not checked for conditions that overlap, miss a value, or test a field before a call
returns it.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from agenteval.agents.toolbox import is_async
from agenteval.cli.running import Notify, Watch
from agenteval.errors import InputError
from agenteval.records import Record, canonical_json
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report
from agenteval.text import did_you_mean
from agenteval.workflows.backend import BACKEND_FILE, fresh_backend, load_backend
from agenteval.workflows.chart import (
    WORD,
    Chart,
    Edge,
    FieldComparison,
    Node,
    RemarkKind,
    constant,
    is_date,
    names_in,
    plain,
    reached,
)
from agenteval.workflows.folder import find_role, read_role, read_text, read_tools, role_folders
from agenteval.workflows.mermaid import charts_in, parse_chart
from agenteval.workflows.scenario import Profile, RecordedSession, Turn, WorkflowTool, complaint

CHART_FILES = (".mmd", ".mermaid", ".md", ".markdown")
Severity = Literal["error", "warning"]
_ChartKind = Literal["no_start", "several_starts", "unreachable", "no_exit", "unknown_field"]
_Other = Literal["bad_value", "unreadable", "no_tool", "unknown_tool", "profile", "annotation"]
Charts = Mapping[str, Chart | None]  # by scenario; None without a chart
_Tools = Sequence[WorkflowTool]
_OUT_OF_SCOPE = "out of scope"
_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]+)+")


class Defect(Record):
    """One defect. `place` is its node or edge, or ""; `line` is 0 if unknown.

    An error makes sessions meaningless; a warning may be intended.
    """

    kind: Literal[RemarkKind, _ChartKind, _Other, "backend"]
    message: str
    severity: Severity = "error"
    place: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Checked:
    """A scenario (or a chart, or the backend of a role) with its defects."""

    role: str
    scenario: str
    defects: tuple[Defect, ...]
    chart: Chart | None = None

    def count(self, severity: Severity) -> int:
        """Return the number of defects with this severity."""
        return sum(d.severity == severity for d in self.defects)


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
    flowcharts (.mmd, .md); `tools` is their tools.json. The exit code is 1 for errors. Files that
    cannot be read are noted, the others are checked, and the exit code is 2."""
    watch = Watch(notify)
    names = [str(role) for role in ([roles] if isinstance(roles, str | Path) else roles or ())]
    names = names or [str(folder) for folder in role_folders().values()]
    if not names:
        raise InputError("no role was given, and tasks/flows has none")
    checked: list[Checked] = []
    unread: list[str] = []
    for name in names:
        try:
            if name.endswith(CHART_FILES):
                if tools is None:
                    watch.note("without --tools, only the shape of the chart is checked")
                checked += _check_file(Path(name), Path(tools) if tools else None)
            else:
                checked += check_role(name, scenarios)
        except InputError as error:
            unread.append(str(error))
            watch.warn(f"agenteval: {error}")
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
    defects = [
        (
            d,
            {
                "where": f"{c.role}/{c.scenario}".rstrip("/"),
                "line": d.line or None,
                "place": d.place or None,
            },
        )
        for c in checked
        for d in c.defects
    ]
    tables = (
        table_of(_CheckedColumns, "checked", f"{len(checked)} checked", rows),
        table_of(_DefectColumns, "defects", "Defects", defects, group="where"),
    )
    cannot = unread or any(d.kind == "unreadable" for d, _ in defects)
    return Report(
        title="",
        tables=tables,
        notes=tuple(watch.notes),
        data={"unreadable": unread},
        exit_code=2 if cannot else int(any(c.count("error") for c in checked)),
    )


def _check_file(path: Path, tools: Path | None) -> list[Checked]:
    """Check the chart of a file, or each chart of a Markdown file.

    Raises InputError for a file that cannot be read. In a file of several charts, an unreadable
    chart is a defect.
    """
    defined = () if tools is None else read_tools(tools)
    texts = charts_in(read_text(path))
    if len(texts) == 1:
        chart = parse_chart(texts[0], str(path))
        return [Checked(str(path), "", chart_defects(chart, defined), chart)]
    return [
        _check_chart(str(path), f"line {1 + len(t) - len(t.lstrip())}", t, str(path), defined)
        for t in texts
    ]


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
    for s in role.scenarios:
        result = Checked(role.id, s.id, ())
        if "flowchart" in s.formats:
            where = f"{role.id}/{s.id}/workflow.mmd"
            result = _check_chart(role.id, s.id, s.flowchart, where, s.tools)
        charts[s.id] = result.chart
        if not wanted or s.id in wanted:
            tools, chart = role.tools_of((s.id, *ids)), {s.id: result.chart}
            defects = (
                *result.defects,
                *profile_defects(s.profiles, tools, chart),
                *session_defects(s.sessions, tools, chart),
            )
            checked.append(Checked(role.id, s.id, defects, result.chart))
    if role.cross_profiles and not wanted:
        tools = role.tools_of(ids)
        defects = profile_defects(role.cross_profiles, tools, charts)
        defects += session_defects(role.cross_sessions, tools, charts)
        checked.append(Checked(role.id, "cross", defects))
    backend = [_of_backend(words, "warning") for words in role.conflicts]
    if (folder / BACKEND_FILE).exists():
        used = [t for s in role.scenarios if s.id in (wanted or ids) for t in s.tools]
        backend += backend_defects(folder, used)
    else:
        message = f"there is no {BACKEND_FILE}: sessions need `--tools model`"
        backend.append(_of_backend(message, "warning"))
    return [*checked, Checked(role.id, "backend", tuple(dict.fromkeys(backend)))]


# ---- charts --------------------------------------------------------------------------------------


def _check_chart(role: str, scenario: str, text: str, where: str, tools: _Tools) -> Checked:
    try:
        chart = parse_chart(text, where)
    except InputError as error:
        return Checked(role, scenario, (Defect(kind="unreadable", message=str(error)),))
    return Checked(role, scenario, chart_defects(chart, tools), chart)


def chart_defects(chart: Chart, tools: _Tools) -> tuple[Defect, ...]:
    """Return the defects of a chart by line; those without a line come last.

    Without `tools`, only the shape of the chart is checked.
    """
    defects = [*_shape(chart), *(Defect(severity="warning", **dict(r)) for r in chart.remarks)]
    if tools:
        defects += _call_nodes(chart, tools)
        for edge in chart.edges:
            for comparison in edge.condition.comparisons if edge.condition else ():
                defects += _comparison(edge, comparison, tools)
    return tuple(sorted(defects, key=lambda d: (d.line == 0, d.line)))


def _at(place: Node | Edge, kind: _ChartKind | _Other, message: str) -> Defect:
    at = place.id if isinstance(place, Node) else f"{place.source} → {place.target}"
    return Defect(kind=kind, message=message, line=place.line, place=at)


def _shape(chart: Chart) -> Iterator[Defect]:
    """Yield starts that are missing or too many, unreachable nodes and cycles without exit."""
    forward: dict[str, list[str]] = {n.id: [] for n in chart.nodes}
    back: dict[str, list[str]] = {n.id: [] for n in chart.nodes}
    for edge in chart.edges:
        forward[edge.source].append(edge.target)
        back[edge.target].append(edge.source)
    starts = chart.starts
    if not starts:
        yield Defect(kind="no_start", message="no node has the shape (Start)")
    for node in starts[1:]:
        message = f"{node.id} is a second start; sessions begin at {starts[0].id}"
        yield _at(node, "several_starts", message)
    reachable = reached([n.id for n in starts] or forward, forward)
    ending = reached([id for id in forward if not forward[id]], back)
    for node in chart.nodes:
        if node.id not in reachable:
            yield _at(node, "unreachable", f"{node.id} cannot be reached from the start")
    stuck = [n for n in chart.nodes if n.id in reachable - ending]
    if stuck:
        names = ", ".join(n.id for n in stuck)
        yield _at(stuck[0], "no_exit", f"a cycle without exit: no end can be reached from {names}")


def _call_nodes(chart: Chart, tools: _Tools) -> Iterator[Defect]:
    """Yield the `>call]` nodes that name no tool, or name a tool that does not exist.

    Words with an underscore are read as tool names, and so are words like checkStatus if tools have
    names like that, unless they occur in the definition of a tool.
    """
    names = [t.name for t in tools]
    camel = any(_CAMEL.fullmatch(name) for name in names)
    definitions = json.dumps([t.model_dump() for t in tools], ensure_ascii=False)
    ordinary = {*WORD.findall(definitions), *chart.parameters}
    for node in (n for n in chart.nodes if n.shape == "call"):
        words = dict.fromkeys(WORD.findall(node.text))
        if not names_in(node.text, names):
            hints = filter(None, (_hint(word, names, 0.8) for word in words))
            hint = next(hints, f"; the tools are {', '.join(names)}")
            yield _at(node, "no_tool", f"{node.id} calls none of the tools{hint}")
            continue
        for word in words:
            like_a_tool = "_" in word.strip("_") or (camel and _CAMEL.fullmatch(word))
            if like_a_tool and word not in ordinary:
                message = f"{node.id} names {word}, which is not a tool{_hint(word, names)}"
                yield _at(node, "unknown_tool", message)


def _comparison(edge: Edge, c: FieldComparison, tools: _Tools) -> Iterator[Defect]:
    """Yield the defect of a comparison with a field or value that no tool returns."""
    owners = [t for t in tools if c.tool in (None, t.name)]
    schemas = [t.returned(c.field) for t in owners if c.field in t.fields]
    problems = [_value_problem(c, schema) for schema in schemas]
    if not owners:
        message = f"the condition names {c.tool}, which is not a tool"
        yield _at(edge, "unknown_field", message)
    elif not schemas:
        who = f"{c.tool} does not return" if c.tool else "no tool returns"
        hint = _hint(c.field, [field for t in owners for field in t.fields])
        yield _at(edge, "unknown_field", f"{who} {c.field}{hint}")
    elif all(problems):
        yield _at(edge, "bad_value", f"{c.name} {problems[0]}")


def _value_problem(c: FieldComparison, schema: Mapping[str, Any]) -> str | None:
    """Return why no value of the schema can satisfy this comparison, or None."""
    value, ordered = plain(c.value), c.op not in ("=", "!=")
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(listed, list) and not ordered:
        if value in map(plain, listed):
            return None
        return f"is never {constant(c.value)}: it is one of {', '.join(map(str, listed))}"
    types = schema.get("type", [])
    types = sorted({types} if isinstance(types, str) else set(types) - {"null"})
    number = isinstance(value, float)
    fits = {
        "boolean": not ordered and value in ("true", "false"),
        "number": number,
        "integer": number and (ordered or value.is_integer()),
        "string": not ordered or is_date(str(c.value)),
    }
    if not types or any(fits.get(name) for name in types):
        return None
    order = "; only numbers and ISO dates are ordered" if ordered else ""
    return f"is of type {' or '.join(types)}, never {c.op} {constant(c.value)}{order}"


def _hint(word: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    hint = did_you_mean(word, names, cutoff=cutoff)
    return hint and f"; {hint}"


# ---- users and recorded sessions -----------------------------------------------------------------


def profile_defects(
    profiles: Sequence[Profile], tools: _Tools, charts: Charts
) -> tuple[Defect, ...]:
    """Return the defects of users: gold calls of unknown tools or with invalid arguments, and
    choices that match no label or intent in the profile's scenarios."""
    defects: list[Defect] = []
    for profile in profiles:
        for action in profile.actions:
            if problem := _call_problem(action.tool, action.arguments, tools):
                message = f"profile {profile.id}: gold call {action.tool}: {problem}"
                defects.append(Defect(kind="profile", message=message))
        drawn = [charts.get(id) for id in profile.scenarios]
        labels = {word for chart in drawn if chart for word in _edge_words(chart)}
        for choice in profile.choices if all(drawn) else ():
            if choice not in labels:
                hint = _hint(choice, labels)
                message = f"profile {profile.id}: no edge is labelled {choice!r}{hint}"
                defects.append(Defect(kind="annotation", message=message))
    return tuple(dict.fromkeys(defects))


def session_defects(
    sessions: Sequence[RecordedSession], tools: _Tools, charts: Charts
) -> tuple[Defect, ...]:
    """Return the defects of recorded sessions: calls of unknown tools, invalid arguments or
    results, and nodes and intents that the chart does not have.

    A result that is not an object, such as a refusal in words, is a warning: it is never replayed.
    """
    returns = {tool.name: tool.returns for tool in tools}
    defects: list[Defect] = []
    for session in sessions:
        for index, turn in enumerate(session.turns):
            where = f"session {session.id}, turn {index}"
            if turn.kind != "user" and (problem := _annotation(turn, charts)):
                defects.append(Defect(kind="annotation", message=f"{where}: {problem}"))
            if turn.kind != "call":
                continue
            if problem := _call_problem(turn.tool, turn.arguments, tools):
                message = f"{where}: call {turn.tool}: {problem}"
                defects.append(Defect(kind="profile", message=message))
            if problem := complaint(returns.get(turn.tool, {}), turn.result):
                severity: Severity = "error" if isinstance(turn.result, dict) else "warning"
                message = f"{where}: result of {turn.tool}: {problem}"
                defects.append(Defect(kind="profile", message=message, severity=severity))
    return tuple(defects)


def _call_problem(name: str, arguments: Mapping[str, JsonValue], tools: _Tools) -> str | None:
    """Return why the call cannot be made, or None."""
    schemas = {tool.name: tool.parameters for tool in tools}
    if name not in schemas:
        return f"there is no such tool{_hint(name, schemas)}"
    problem = complaint(schemas[name], dict(arguments))
    return f"{problem} in {canonical_json(arguments)}" if problem else None


def _annotation(turn: Turn, charts: Charts) -> str | None:
    """Return why a turn does not fit its chart, or None."""
    if turn.scenario not in charts:
        return f"there is no scenario {turn.scenario!r}{_hint(turn.scenario, charts)}"
    chart = charts[turn.scenario]
    if chart is None:
        return None
    nodes = [n.id for n in chart.nodes]
    if turn.node not in nodes:
        return f"there is no node {turn.node!r} in the chart{_hint(turn.node, nodes)}"
    labels = _edge_words(chart, turn.node)
    if turn.intent in ("", _OUT_OF_SCOPE, *labels):
        return None
    return f"no edge into {turn.node} is labelled {turn.intent!r}{_hint(turn.intent, labels)}"


def _edge_words(chart: Chart, target: str | None = None) -> set[str]:
    """Return the labels and intents of all edges, or of those into `target`."""
    edges = [e for e in chart.edges if target in (None, e.target)]
    return {word for e in edges for word in (e.label, e.intent) if word}


# ---- the backend ---------------------------------------------------------------------------------


def backend_defects(folder: Path, tools: _Tools) -> Iterator[Defect]:
    """Run backend.py and yield its defects: it cannot be created, its state is not JSON, or a
    method is missing or has different parameters."""
    try:
        make_backend = load_backend(folder)
        backend = fresh_backend(make_backend)
        shared = fresh_backend(make_backend).state is backend.state
    except InputError as error:
        yield _of_backend(str(error))
        return
    if shared:
        yield _of_backend("two sessions share one state: set self.state in __init__", "warning")
    try:
        json.dumps(backend.state, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        yield _of_backend(f"the state is not a JSON value ({error})")
    for tool in tools:
        method = getattr(backend, tool.name, None)
        if not callable(method):
            yield _of_backend(f"the backend has no method {tool.name}")
            continue
        if is_async(method):
            yield _of_backend(f"{tool.name} must not be an `async def`")
            continue
        for names in (tool.properties, tool.required):  # all parameters, then the required ones
            try:
                inspect.signature(method).bind(**dict.fromkeys(names))
            except TypeError as error:
                call = f"{tool.name}({', '.join(names)})"
                yield _of_backend(f"the backend's method does not take the call {call}: {error}")
                break


def _of_backend(message: str, severity: Severity = "error") -> Defect:
    return Defect(kind="backend", message=message, severity=severity)
