"""Do text, code and flowchart of a scenario tell the same procedure?

Of text and code, names are held against the flowchart: tools and fields that decide; of the text
also the order in which tools come first, of the code parameters and intents. Two flowcharts are
compared by the relation "this call, this returned, that call next".

The code is Python to look at; nothing of it is ever run. `x = tool(name=value)` calls a tool,
`ask("parameter")` and `reply("...")` talk to the user, `user_says("intent")` branches on what the
user wants, in the words of an edge of the chart, `x.field == value` on what a tool returned.
"""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart import WORD, Chart, names_in
from agenteval.evaluators.workflows.chart_check import (
    Defect,
    Kind,
    Severity,
    known_words,
    meant,
    near_name,
    tool_like,
)
from agenteval.evaluators.workflows.mermaid import parse_chart
from agenteval.evaluators.workflows.procedure import Procedure, compiled
from agenteval.evaluators.workflows.scenario import Scenario, WorkflowTool
from agenteval.evaluators.workflows.worlds import END, START, Relation, State, World, relation

_MOST = 8  # differences told; the rest is counted
_TALK = ("ask", "reply", "user_says")
_BUILTINS = ("len", "range", "int", "float", "str", "bool", "list", "print", "round")
_LONGEST = 200_000  # characters of code


@dataclass(frozen=True)
class Code:
    """`tools` in the order of their first calls, `intents` that user_says names, `fields` that are
    read of anything, and what is wrong with the code by itself."""

    tools: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    fields: frozenset[str] = frozenset()
    defects: tuple[Defect, ...] = ()


def consistent(scenario: Scenario) -> tuple[Defect, ...]:
    """All differences of text and code, where they are there, from the flowchart; () when they tell
    the same.

    What cannot be read is a defect of kind `unreadable`.
    """
    try:
        chart = parse_chart(scenario.flowchart)
    except InputError as error:
        return (Defect(kind="unreadable", message=str(error)),)
    defects: list[Defect] = []
    if "code" in scenario.formats:
        code = read_code(scenario.code, scenario.tools, chart.parameters)
        defects += code_defects(code, chart, scenario.tools)
    if "text" in scenario.formats:
        defects += text_defects(scenario.text, chart, scenario.tools)
    return tuple(defects)


def code_defects(code: Code, chart: Chart, tools: Sequence[WorkflowTool]) -> tuple[Defect, ...]:
    """What is wrong with the code, and where the names in it and the chart part."""
    if any(d.severity == "error" for d in code.defects):
        return code.defects
    known = list(dict.fromkeys(e.intent for e in chart.edges if e.intent))
    defects = list(code.defects)
    for intent in code.intents:
        if intent not in known:
            near = difflib.get_close_matches(intent, known, 1)
            hint = f"; is {near[0]!r} meant?" if near else ""
            problem = f"user_says({intent!r}) is the intent of no edge{hint}"
            defects.append(Defect(kind="unknown_intent", message=problem))
    return (*defects, *_named("the code", code.tools, code.fields, chart, tools))


def text_defects(text: str, chart: Chart, tools: Sequence[WorkflowTool]) -> list[Defect]:
    """What the text does not tell as the chart does."""
    names = [t.name for t in tools]
    mentioned = list(dict.fromkeys(names_in(text, names)))
    defects = list(_named("the text", mentioned, set(WORD.findall(text)), chart, tools))
    for word in tool_like(text, names, known_words(tools, chart.parameters)):
        problem = f"the text names {word}, which is no tool, parameter or field"
        defects.append(Defect(kind="unknown_tool", message=problem + near_name(word, names)))
    # Two tools in an order in which no walk through the chart calls them first. Code is not asked:
    # its lines stand in the order of its branches.
    called = [name for name in mentioned if name in chart.called(names)]
    if len(called) > 1 and chart.starts:
        walks = compiled({"": chart}, tools)
        for first, second in combinations(called, 2):
            if _possible(walks, second, first) and not _possible(walks, first, second):
                problem = (
                    f"the text names {first} before {second}; in the chart {second} comes first"
                )
                defects.append(Defect(kind="order", message=problem))
    return defects


def _named(
    what: str,
    mentioned: Sequence[str],
    fields: Container[str],
    chart: Chart,
    tools: Sequence[WorkflowTool],
) -> Iterator[Defect]:
    """Tools that are mentioned, and tested fields, beside the chart's."""
    called = chart.called(t.name for t in tools)
    for name in called:
        if name not in mentioned:
            problem = f"{what} does not name {name}, which the chart calls"
            yield Defect(kind="missing_tool", message=problem)
    for name in mentioned:
        if name not in called:
            problem = f"{what} names {name}, which the chart never calls"
            yield Defect(kind="unknown_tool", message=problem)
    for name in dict.fromkeys(c.field for c in chart.comparisons):
        if name not in fields:
            problem = f"{what} does not name {name}, which edges test"
            yield Defect(kind="missing_field", message=problem)


def _possible(walks: Procedure, first: str, second: str) -> bool:
    """Whether some walk calls `first`, and `second` only after it."""
    positions = walks.positions
    before = walks.reached(*walks.entries, without=second)
    here = [at for at in before if positions[at].tool == first]
    return any(positions[at].tool == second for at in walks.reached(*here))


def chart_against_chart(
    one: tuple[str, Chart], other: tuple[str, Chart], tools: Sequence[WorkflowTool]
) -> list[str]:
    """Sentences on every way that one of two charts has and the other has not; [] when none.

    A way is: this call, this returned, that call next; wording does not count. Where only one of
    the two can come, an earlier difference has led, and that one is told. Raises TooLarge, and
    InputError for a chart without a start.
    """
    world = World.of(tools, [*one[1].comparisons, *other[1].comparisons])
    (ours, mine), (theirs, yours) = (
        (name, relation(compiled({name: chart}, tools), world)) for name, chart in (one, other)
    )
    differences = [
        *_differences(ours, mine, theirs, yours, world),
        *_differences(theirs, yours, ours, mine, world),
    ]
    more = len(differences) - _MOST
    return [*differences[:_MOST], f"and {more} further differences"] if more > 0 else differences


def _differences(
    name: str, mine: Relation, without: str, yours: Relation, world: World
) -> Iterator[str]:
    """One sentence for each (call, next call) that only one has, with the values common to its
    states."""
    missing = sorted(
        (last, to, state)
        for (last, state), nexts in mine.follows.items()
        for to in nexts
        if to not in yours.follows.get((last, state), {to})
    )
    for (last, to), same in groupby(missing, key=lambda way: way[:2]):
        everywhere = [state for tool, state in mine.follows if tool == last]
        values = _common([way[2] for way in same], everywhere, world)
        when = f" ({values})" if values else ""
        after = "from the start" if last == START else f"after {last}"
        on = "to the end" if to == END else f"to {to}"
        yield f"{after}{when}, {name} goes on {on}; {without} does not"


def _common(states: list[State], everywhere: list[State], world: World) -> str:
    """Values of the variables that tell these states from the others after the same call."""
    parts: dict[str, str] = {}
    for i, (tool, field) in enumerate(world.variables):
        here = {state[i] for state in states}
        if here != {state[i] for state in everywhere}:
            shown = " or ".join(world.name(i, value) for value in sorted(here))
            parts.setdefault(field, f"{tool}.{field} is {shown}" if tool else f"{field} is {shown}")
    return ", ".join(parts.values())


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
        problem = f"the code is not Python: {error.msg}, line {error.lineno}"
        return Code(defects=(Defect(kind="unreadable", message=problem),))
    except (ValueError, RecursionError, MemoryError) as error:
        problem = f"the code cannot be read: {error or type(error).__name__}"
        return Code(defects=(Defect(kind="unreadable", message=problem),))
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
        problem = f"line {node.lineno} of the code: {message}"
        self.defects.append((node.lineno, Defect(kind=kind, message=problem, severity=severity)))

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
            problem = f"{', '.join(sorted(tools))} does not return {name}{meant(name, fields)}"
            self._tell("unknown_field", node, problem)

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
                problem = f"ask names {text!r}, which is no parameter of a tool"
                self._tell("parameter", node, problem, "warning")
            elif name == "user_says" and not isinstance(text, str):
                problem = 'user_says needs the intent of an edge: user_says("...")'
                self._tell("unknown_intent", node, problem)
            elif name == "user_says":
                self.intents.append(str(text))
        elif name not in _BUILTINS:
            self._tell("unknown_tool", node, f"{name} is no tool{meant(name, self._tools)}")

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
