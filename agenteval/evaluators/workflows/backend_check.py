"""Does backend.py have what the tools need? It is read, not run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart.defects import Defect, Severity
from agenteval.evaluators.workflows.folder import BACKEND_FILE, read_text
from agenteval.evaluators.workflows.scenario import WorkflowTool


def backend_defects(folder: Path, tools: Sequence[WorkflowTool]) -> tuple[Defect, ...]:
    """What is missing: the file, the class Backend, a method for each tool, its parameters."""
    try:
        tree = ast.parse(read_text(folder / BACKEND_FILE))
    except InputError as error:
        return (_defect(f"{BACKEND_FILE} cannot be read ({error})"),)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return (_defect(f"{BACKEND_FILE} is not Python: {error}"),)
    classes = {s.name: s for s in tree.body if isinstance(s, ast.ClassDef)}
    if "Backend" not in classes:
        return (_defect(f"{BACKEND_FILE} has no class Backend"),)
    methods, whole = _methods("Backend", classes)
    found: list[Defect] = []
    for tool in tools:
        method = methods.get(tool.name)
        if isinstance(method, ast.AsyncFunctionDef):
            found.append(_defect(f"Backend.{tool.name} is an `async def`; it answers at once"))
        elif method is not None:
            found += _signature(tool, method)
        elif whole:
            found.append(_defect(f"the class Backend has no method {tool.name}"))
        else:
            told = f"whether Backend has a method {tool.name} cannot be seen: a base is elsewhere"
            found.append(_defect(told, "warning"))
    return tuple(found)


def _methods(
    name: str, classes: dict[str, ast.ClassDef]
) -> tuple[dict[str, ast.FunctionDef | ast.AsyncFunctionDef], bool]:
    """Methods of the class and of its bases in the file; False when a base is elsewhere."""
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    todo, seen, whole = [name], {name}, True
    while todo:
        current = classes[todo.pop(0)]
        for statement in current.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(statement.name, statement)
        for base in current.bases:
            known = isinstance(base, ast.Name) and base.id in classes
            whole = whole and (known or ast.unparse(base) == "object")
            if isinstance(base, ast.Name) and known and base.id not in seen:
                seen.add(base.id)
                todo.append(base.id)
    return found, whole


def _signature(
    tool: WorkflowTool, method: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Defect]:
    arguments = method.args
    named = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][1:]
    first_default = len(named) - len(arguments.defaults)
    needed = set(named[: max(first_default, 0)])
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        named.append(argument.arg)
        if default is None:
            needed.add(argument.arg)
    properties = tool.parameters.get("properties")
    known = list(properties) if isinstance(properties, dict) else []
    for name in known:
        if name not in named and arguments.kwarg is None:
            yield _defect(f"Backend.{tool.name} does not take the parameter {name}")
    for name in sorted(needed - set(tool.required)):
        told = f"Backend.{tool.name} needs {name}, which a call of the tool need not have"
        yield _defect(told)


def _defect(message: str, severity: Severity = "error") -> Defect:
    return Defect(kind="backend", message=message, severity=severity)
