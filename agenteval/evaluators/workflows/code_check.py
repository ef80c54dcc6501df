"""What the code of a procedure names: tools with their parameters, returned fields, intents.

The code is Python to look at; nothing of it is ever run. `x = tool(name=value)` calls a tool,
`ask("parameter")` and `reply("...")` talk to the user, `user_says("intent")` branches on what the
user wants, in the words of an edge of the chart, `x.field == value` on what a tool returned.
"""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agenteval.evaluators.workflows.chart.nouns import Defect, Kind, Severity
from agenteval.evaluators.workflows.scenario import WorkflowTool

_TALK = ("ask", "reply", "user_says")
_BUILTINS = ("len", "range", "int", "float", "str", "bool", "list", "print", "round")
_LONGEST = 200_000  # characters


@dataclass(frozen=True)
class Code:
    """`tools` in the order of their first calls, `intents` that user_says names, `fields` that are
    read of anything, and what is wrong with the code by itself."""

    tools: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    fields: frozenset[str] = frozenset()
    defects: tuple[Defect, ...] = ()


def read_code(text: str, tools: Sequence[WorkflowTool], parameters: Iterable[str] = ()) -> Code:
    """What the code names; what cannot be read stands in its `defects`, and nothing is raised.

    `parameters` are those that `ask` may name beside the tools' own.
    """
    try:
        if len(text) > _LONGEST:
            raise ValueError(f"longer than {_LONGEST:,} characters")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's remarks on "x is 3" and the like
            tree = ast.parse(text)
        names = _Names(tree, tools, parameters)
        names.visit(tree)
    except SyntaxError as error:
        told = f"the code is not Python: {error.msg}, line {error.lineno}"
        return Code(defects=(Defect(kind="unreadable", message=told),))
    except (ValueError, RecursionError, MemoryError) as error:
        told = f"the code cannot be read: {error or type(error).__name__}"
        return Code(defects=(Defect(kind="unreadable", message=told),))
    ordered = sorted(names.defects, key=lambda entry: entry[0])
    return Code(
        tuple(dict.fromkeys(names.called)),
        tuple(dict.fromkeys(names.intents)),
        frozenset(names.fields),
        tuple(dict.fromkeys(defect for _, defect in ordered)),
    )


class _Names(ast.NodeVisitor):
    """Goes through the code; arguments come before the call that they are given to."""

    def __init__(
        self, tree: ast.AST, tools: Sequence[WorkflowTool], parameters: Iterable[str]
    ) -> None:
        self._tools = {t.name: t for t in tools}
        self._known = {*parameters, *(p for t in tools for p in t.properties)}
        self.called: list[str] = []
        self.intents: list[str] = []
        self.fields: set[str] = set()
        self.defects: list[tuple[int, Defect]] = []
        self._results: dict[str, set[str]] = {}  # variable → tools whose result it may hold
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and (tool := self._tool(node.value)):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self._results.setdefault(target.id, set()).add(tool)

    def _tool(self, value: ast.expr) -> str:
        """The tool that an expression calls, "" for none."""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            return value.func.id if value.func.id in self._tools else ""
        return ""

    def _tell(self, kind: Kind, node: ast.expr, message: str, severity: Severity = "error") -> None:
        told = f"line {node.lineno} of the code: {message}"
        self.defects.append((node.lineno, Defect(kind=kind, message=told, severity=severity)))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """A field of what a tool returned."""
        self.generic_visit(node)
        self._field(node, node.value, node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """The same in brackets."""
        self.generic_visit(node)
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            self._field(node, node.value, node.slice.value)

    def _field(self, node: ast.expr, owner: ast.expr, name: str) -> None:
        self.fields.add(name)
        tools = {tool} if (tool := self._tool(owner)) else set[str]()
        if isinstance(owner, ast.Name):
            tools = self._results.get(owner.id, tools)
        fields = [f for t in sorted(tools) for f in self._tools[t].fields]
        if tools and name not in fields:
            told = f"{', '.join(sorted(tools))} does not return {name}{_hint(name, fields)}"
            self._tell("unknown_field", node, told)

    def visit_Call(self, node: ast.Call) -> None:
        """A call of a tool, talk, or a name that is neither."""
        for child in (*node.args, *node.keywords):
            self.visit(child)
        if not isinstance(node.func, ast.Name):
            self.visit(node.func.value if isinstance(node.func, ast.Attribute) else node.func)
            return  # the method of a value is no field
        name, tool = node.func.id, self._tools.get(node.func.id)
        if tool is not None:
            self.called.append(name)
            self._arguments(node, tool)
        elif name in _TALK:
            values = [*node.args, *(k.value for k in node.keywords)]
            constant = values[0] if len(values) == 1 else None
            text = constant.value if isinstance(constant, ast.Constant) else None
            if name == "ask" and text not in self._known:
                told = f"ask names {text!r}, which is no parameter of a tool"
                self._tell("parameter", node, told, "warning")
            elif name == "user_says" and not isinstance(text, str):
                told = 'user_says needs the intent of an edge: user_says("...")'
                self._tell("unknown_intent", node, told)
            elif name == "user_says":
                self.intents.append(str(text))
        elif name not in _BUILTINS:
            told = f"{name} is no tool{_hint(name, self._tools)}"
            self._tell("unknown_tool", node, told)

    def _arguments(self, call: ast.Call, tool: WorkflowTool) -> None:
        known = list(tool.properties)
        if any(k.arg is None for k in call.keywords):
            return  # **values: nobody can see which
        given = {*known[: len(call.args)], *(k.arg for k in call.keywords if k.arg)}
        for name in sorted(given - set(known)):
            self._tell("parameter", call, f"{tool.name} has no parameter {name}")
        for name in tool.required:
            if name not in given:
                self._tell("parameter", call, f"{tool.name} is called without {name}")


def _hint(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f"; is {near[0]} meant?" if near else ""
