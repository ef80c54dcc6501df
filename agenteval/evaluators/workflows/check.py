"""What is wrong with a role: its charts, texts, code, users, recorded calls, and its backend.

The backend is read, not run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart import Chart
from agenteval.evaluators.workflows.chart_check import Defect, Severity, check_chart
from agenteval.evaluators.workflows.consistency import consistent
from agenteval.evaluators.workflows.folder import (
    BACKEND_FILE,
    find_role,
    read_role,
    read_text,
    read_tools,
)
from agenteval.evaluators.workflows.mermaid import charts_in, parse_chart
from agenteval.evaluators.workflows.profile_check import (
    annotation_defects,
    profile_defects,
    session_defects,
)
from agenteval.evaluators.workflows.scenario import (
    Profile,
    RecordedSession,
    Role,
    Scenario,
    WorkflowTool,
)

_Method = ast.FunctionDef | ast.AsyncFunctionDef


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
            checked.append(_checked(str(path), place, chart, check_chart(chart, known)))
    return checked


def check_role(name: str, wanted: Sequence[str] = ()) -> list[Checked]:
    """The scenarios of a role by name or folder (all, or the `wanted`), its users across them, and
    its backend. Raises InputError for what cannot be read."""
    folder = find_role(name, "ROLE")
    role = read_role(folder)
    ids = [s.id for s in role.scenarios]
    for id in wanted:
        if id not in ids:
            raise InputError(f"{role.id} has no scenario {id!r}; it has {', '.join(ids)}",
                             "--scenario")  # fmt: skip
    checked = [_scenario(role, one) for one in role.scenarios if not wanted or one.id in wanted]
    readable = not any(
        d.kind == "unreadable" and one.nodes is None for one in checked for d in one.defects
    )
    if role.cross_profiles and not wanted and readable:
        charts = {
            s.id: parse_chart(s.flowchart, f"{role.id}/{s.id}")
            for s in role.scenarios if "flowchart" in s.formats
        }  # fmt: skip
        defects = annotation_defects(role.cross_profiles, role.cross_sessions, charts)
        people = _people(role, ids, role.cross_profiles, role.cross_sessions)
        checked.append(_checked(role.id, "cross", None, (*defects, *people)))
    tools = [t for s in role.scenarios if s.id in (wanted or ids) for t in s.tools]
    two = [_defect(words, "warning") for words in role.conflicts]
    unsound = dict.fromkeys((*two, *backend_defects(folder, tools)))
    checked.append(_checked(role.id, "backend", None, tuple(unsound)))
    return checked


def _scenario(role: Role, one: Scenario) -> Checked:
    people = _people(role, [one.id, *(s.id for s in role.scenarios)], one.profiles, one.sessions)
    if "flowchart" not in one.formats:
        return _checked(role.id, one.id, None, people)
    try:
        chart = parse_chart(one.flowchart, f"{role.id}/{one.id}/workflow.mmd")
    except InputError as error:
        return _checked(role.id, one.id, None, (_unread(error), *people))
    annotations = annotation_defects(one.profiles, one.sessions, {one.id: chart})
    defects = (*check_chart(chart, one.tools), *consistent(one), *annotations, *people)
    return _checked(role.id, one.id, chart, defects)


def _people(
    role: Role,
    scenarios: Sequence[str],
    profiles: Sequence[Profile],
    sessions: Sequence[RecordedSession],
) -> tuple[Defect, ...]:
    """What is wrong with users and recorded calls, whatever the chart says, by the tools of these
    scenarios."""
    tools = role.tools_of(tuple(scenarios))
    return (*profile_defects(profiles, tools, role.now), *session_defects(sessions, tools))


def _checked(role: str, scenario: str, chart: Chart | None, defects: Sequence[Defect]) -> Checked:
    if chart is None:
        return Checked(role, scenario, None, None, None, tuple(defects))
    nodes, edges = len(chart.nodes), len(chart.edges)
    return Checked(role, scenario, nodes, edges, chart.unchecked, tuple(defects))


def _unread(error: InputError) -> Defect:
    return Defect(kind="unreadable", message=str(error))


def backend_defects(folder: Path, tools: Sequence[WorkflowTool]) -> tuple[Defect, ...]:
    """What is missing: the file, the class Backend, its state, a method for each tool, its
    parameters."""
    try:
        tree = ast.parse(read_text(folder / BACKEND_FILE))
    except InputError as error:
        return (_defect(f"{BACKEND_FILE} cannot be read ({error})"),)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return (_defect(f"{BACKEND_FILE} is not Python: {error}"),)
    classes = {s.name: s for s in tree.body if isinstance(s, ast.ClassDef)}
    if "Backend" not in classes:
        return tuple(_module_defects(tree, tools))
    family, whole = _family("Backend", classes)
    methods = {
        s.name: s
        for one in reversed(family)
        for s in reversed(one.body)
        if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    whole = whole and not _dynamic(tree, methods)
    _, needed = _parameters(methods["__init__"]) if "__init__" in methods else ((), set[str]())
    found = [
        _defect(f"Backend.__init__ needs {name}, and is given nothing") for name in sorted(needed)
    ]
    found += _state(family, methods, whole)
    for tool in tools:
        method = methods.get(tool.name)
        if isinstance(method, ast.AsyncFunctionDef):
            found.append(_defect(f"Backend.{tool.name} is an `async def`; it answers at once"))
        elif method is not None:
            found += _signature(tool, method)
        elif whole:
            found.append(_defect(f"the class Backend has no method {tool.name}"))
        else:
            told = f"whether Backend has a method {tool.name} cannot be seen in its class"
            found.append(_defect(told, "warning"))
    return tuple(found)


def _module_defects(tree: ast.Module, tools: Sequence[WorkflowTool]) -> Iterator[Defect]:
    """Without a class Backend the module is one: with a `state`, and a function for each tool."""
    named = {n.id for s in tree.body if isinstance(s, ast.Assign | ast.AnnAssign)
             for n in ast.walk(s) if isinstance(n, ast.Name)}  # fmt: skip
    if "state" not in named:
        yield _defect(f"{BACKEND_FILE} has no class Backend")
        return
    functions = {s.name for s in tree.body if isinstance(s, ast.FunctionDef)}
    for tool in tools:
        if tool.name not in functions:
            yield _defect(f"{BACKEND_FILE} has no function {tool.name}")


def _dynamic(tree: ast.Module, methods: Mapping[str, _Method]) -> bool:
    """Whether methods may be added while the file runs."""
    return bool({"__getattr__", "__getattribute__"} & methods.keys()) or any(
        isinstance(node, ast.Name) and node.id == "setattr" for node in ast.walk(tree)
    )


def _family(name: str, classes: dict[str, ast.ClassDef]) -> tuple[list[ast.ClassDef], bool]:
    """The class and its bases in the file; False when a base is elsewhere."""
    found, todo, seen, whole = [], [name], {name}, True
    while todo:
        current = classes[todo.pop(0)]
        found.append(current)
        for base in current.bases:
            known = isinstance(base, ast.Name) and base.id in classes
            whole = whole and (known or ast.unparse(base) == "object")
            if isinstance(base, ast.Name) and known and base.id not in seen:
                seen.add(base.id)
                todo.append(base.id)
    return found, whole


def _state(
    family: Sequence[ast.ClassDef], methods: Mapping[str, _Method], whole: bool
) -> Iterator[Defect]:
    """Whether there is a `state`: a method sets it, it is a property, or a dataclass makes it."""
    if "state" in methods and methods["state"].decorator_list:
        return
    if any(
        isinstance(node, ast.Attribute) and node.attr == "state" and isinstance(node.ctx, ast.Store)
        for one in family
        for node in ast.walk(one)
    ):
        return
    holders = [
        one
        for one in family
        for statement in one.body
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
        and any(isinstance(n, ast.Name) and n.id == "state" and isinstance(n.ctx, ast.Store)
                for n in ast.walk(statement))
    ]  # fmt: skip
    if holders:
        if not any(one.decorator_list for one in holders):  # not as a dataclass, which makes copies
            told = "state belongs to the class Backend, so that all sessions share it"
            yield _defect(f"{told}: set self.state in __init__", "warning")
    elif whole:
        yield _defect("the class Backend has no state: set self.state, a dict, in __init__")
    else:
        told = "whether Backend has a state cannot be seen: a base is elsewhere"
        yield _defect(told, "warning")


def _parameters(method: _Method) -> tuple[Sequence[str], set[str]]:
    """Names beside `self`, and those without a default."""
    arguments = method.args
    named = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][1:]
    first_default = len(named) - len(arguments.defaults)
    needed = set(named[: max(first_default, 0)])
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        named.append(argument.arg)
        if default is None:
            needed.add(argument.arg)
    return named, needed


def _signature(tool: WorkflowTool, method: _Method) -> Iterator[Defect]:
    named, needed = _parameters(method)
    for name in tool.properties:
        if name not in named and method.args.kwarg is None:
            yield _defect(f"Backend.{tool.name} does not take the parameter {name}")
    for name in sorted(needed - set(tool.required)):
        told = f"Backend.{tool.name} needs {name}, which a call of the tool need not have"
        yield _defect(told)


def _defect(message: str, severity: Severity = "error") -> Defect:
    return Defect(kind="backend", message=message, severity=severity)
