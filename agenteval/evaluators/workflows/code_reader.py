"""Read the code of a procedure. It is Python to look at; nothing of it is ever run.

The dialect: one function. `x = tool(name=value)` calls a tool, `ask("parameter")` and
`reply("...")` talk to the user, `user_says("intent")` branches on what the user wants, in the words
of an edge of the chart, `x.field == value` on what a tool returned. Besides: if, elif, else, while,
for, break, continue, return, pass, and helper variables, which may stop a loop and decide nothing
that can be followed.
"""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agenteval.evaluators.workflows.chart.defects import Defect
from agenteval.evaluators.workflows.chart.follow import ChartProcedure, Choices, State, Step
from agenteval.evaluators.workflows.chart.nouns import Comparison, Condition
from agenteval.evaluators.workflows.chart.world import World
from agenteval.evaluators.workflows.code_fields import Names, comparisons_in
from agenteval.evaluators.workflows.scenario import WorkflowTool

_BUILTINS = frozenset(("len", "range", "int", "float", "str", "bool", "list", "print", "round"))
_LONGEST = 200_000  # characters


@dataclass(frozen=True, slots=True)
class Op:
    """One instruction: `kind` is call, talk, says, test, any or end.

    `to` are the instructions that may follow: for says and test the one when it holds and the one
    when it does not, for any all that may.
    """

    kind: str
    to: tuple[int, ...] = ()
    name: str = ""  # of a tool; the intent of says
    alternatives: tuple[Comparison, ...] = ()


@dataclass
class Code:
    """A procedure read from code, with what is wrong with it."""

    ops: list[Op] = field(default_factory=list)
    entry: int = 0
    defects: tuple[Defect, ...] = ()

    @property
    def asked(self) -> tuple[str, ...]:
        """Intents that user_says names."""
        return tuple(dict.fromkeys(op.name for op in self.ops if op.kind == "says"))

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All tests of returned values."""
        return tuple(c for op in self.ops for c in op.alternatives)

    @property
    def tools(self) -> tuple[str, ...]:
        """Tools that are called."""
        return tuple(dict.fromkeys(op.name for op in self.ops if op.kind == "call"))


def read_code(text: str, tools: Sequence[WorkflowTool], parameters: Iterable[str] = ()) -> Code:
    """The procedure; what cannot be read stands in its `defects`, and nothing is raised.

    `parameters` are those that `ask` may name beside the tools' own.
    """
    names = Names({t.name: t for t in tools})
    try:
        if len(text) > _LONGEST:
            raise ValueError(f"longer than {_LONGEST:,} characters")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's remarks on "x is 3" and the like
            tree = ast.parse(text)
        body = _body(tree, names)
        names.learn(tree)
        code = _Compiler(names, set(parameters)).compile(body)
    except SyntaxError as error:
        told = f"the code is not Python: {error.msg}, line {error.lineno}"
        return Code(defects=(Defect(kind="unreadable", message=told),))
    except (ValueError, RecursionError, MemoryError) as error:
        told = f"the code cannot be read: {error or type(error).__name__}"
        return Code(defects=(Defect(kind="unreadable", message=told),))
    code.defects = names.defects
    return code


def _body(tree: ast.Module, names: Names) -> list[ast.stmt]:
    functions = [s for s in tree.body if isinstance(s, ast.FunctionDef)]
    if not functions:
        return tree.body
    for extra in functions[1:]:
        names.tell(
            "outside_dialect", extra, "there is a second function; write the procedure as one"
        )
    for other in tree.body:
        if not isinstance(other, ast.FunctionDef) and not _is_text(other):
            names.tell("outside_dialect", other, "something stands outside the function", "warning")
    return functions[0].body


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@dataclass(frozen=True)
class _Loop:
    after: int
    again: int


class _Compiler:
    """From the last statement to the first, so that what follows is known."""

    def __init__(self, names: Names, parameters: set[str]) -> None:
        self._names = names
        self._ops: list[Op] = []
        self._known = parameters | {
            name for t in names.tools.values() for name in _parameters_of(t)
        }

    def compile(self, body: Sequence[ast.stmt]) -> Code:
        self._end = self._add(Op("end"))
        entry = self._block(body, self._end, None)
        return Code(self._ops, entry)

    def _add(self, op: Op) -> int:
        self._ops.append(op)
        return len(self._ops) - 1

    def _block(self, body: Sequence[ast.stmt], after: int, loop: _Loop | None) -> int:
        for statement in reversed(body):
            after = self._statement(statement, after, loop)
        return after

    def _statement(self, statement: ast.stmt, after: int, loop: _Loop | None) -> int:
        match statement:
            case ast.If():
                yes = self._block(statement.body, after, loop)
                no = self._block(statement.orelse, after, loop)
                return self._test(statement.test, yes, no)
            case ast.While() | ast.For():
                return self._loop(statement, after)
            case ast.Return():
                return self._effects(statement.value, self._end)
            case ast.Expr() | ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                return self._effects(statement.value, after)
            case ast.Pass():
                return after
            case ast.Break() | ast.Continue() if loop is not None:
                return loop.after if isinstance(statement, ast.Break) else loop.again
        what = type(statement).__name__.lower()
        self._names.tell("outside_dialect", statement, f"`{what}` cannot be followed here")
        return after

    def _loop(self, statement: ast.While | ast.For, after: int) -> int:
        if statement.orelse:
            self._names.tell("outside_dialect", statement, "a loop with else cannot be followed")
        head = self._add(Op("any"))
        body = self._block(statement.body, head, _Loop(after, head))
        if isinstance(statement, ast.While):
            to: tuple[int, ...] = (self._test(statement.test, body, after),)
        else:  # so many times at most
            to = (body, after)
        self._ops[head] = Op("any", to)
        return head if isinstance(statement, ast.While) else self._effects(statement.iter, head)

    def _test(self, test: ast.expr, yes: int, no: int) -> int:
        """The first instruction of a test that goes on at `yes` or `no`."""
        match test:
            case ast.BoolOp():
                for part in reversed(test.values):
                    entry = self._test(part, yes, no)
                    yes, no = (entry, no) if isinstance(test.op, ast.And) else (yes, entry)
                return entry
            case ast.UnaryOp(op=ast.Not()):
                return self._test(test.operand, no, yes)
            case ast.Constant():
                return yes if test.value else no
            case ast.Call(func=ast.Name(id="user_says")):
                return self._says(test, yes, no)
            case ast.Compare():
                return self._effects(test, self._compare(test, yes, no))
        ref = self._names.field_of(test)
        holds = self._names.truth(ref) if ref else None
        if holds is None:
            return self._effects(test, self._add(Op("any", (yes, no))))
        return self._effects(test, self._add(Op("test", (yes, no), alternatives=(holds,))))

    def _compare(self, test: ast.Compare, yes: int, no: int) -> int:
        if len(test.ops) == 1 and isinstance(test.ops[0], ast.NotIn):
            test = ast.copy_location(ast.Compare(test.left, [ast.In()], test.comparators), test)
            yes, no = no, yes
        for link in reversed(list(comparisons_in(self._names, test))):
            if link is None:
                yes = self._add(Op("any", (yes, no)))
            else:
                yes = self._add(Op("test", (yes, no), alternatives=link))
        return yes

    def _says(self, call: ast.Call, yes: int, no: int) -> int:
        intent = _text(call)
        if intent is None:
            told = 'user_says needs the intent of an edge: user_says("...")'
            self._names.tell("outside_dialect", call, told)
            return self._add(Op("any", (yes, no)))
        return self._add(Op("says", (yes, no), name=intent))

    def _effects(self, value: ast.expr | None, after: int) -> int:
        """Calls and talk within an expression, in the order in which they are evaluated."""
        calls: list[ast.Call] = []
        if value is not None:
            self._collect(value, calls)
        for call in reversed(calls):
            assert isinstance(call.func, ast.Name)
            kind = "call" if call.func.id in self._names.tools else "talk"
            after = self._add(Op(kind, (after,), name=call.func.id))
        return after

    def _collect(self, value: ast.AST, calls: list[ast.Call]) -> None:
        if isinstance(value, ast.IfExp | ast.BoolOp | ast.Lambda | ast.NamedExpr) or hasattr(
            value, "generators"
        ):
            inner: list[ast.Call] = []
            for child in ast.iter_child_nodes(value):
                self._collect(child, inner)
            if inner:
                told = "a call within an expression that may not be evaluated; use if"
                self._names.tell("outside_dialect", value, told)
            return
        for child in ast.iter_child_nodes(value):
            self._collect(child, calls)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            self._call(value, value.func.id, calls)

    def _call(self, call: ast.Call, name: str, calls: list[ast.Call]) -> None:
        if name in self._names.tools:
            self._arguments(call, self._names.tools[name])
            calls.append(call)
        elif name in ("ask", "reply"):
            asked = _text(call)
            if name == "ask" and asked not in self._known:
                told = f"ask names {asked!r}, which is no parameter of a tool"
                self._names.tell("parameter", call, told, "warning")
            calls.append(call)
        elif name == "user_says":
            self._names.tell("outside_dialect", call, "user_says stands only in conditions")
        elif name not in _BUILTINS:
            near = difflib.get_close_matches(name, self._names.tools, 1)
            hint = f"; is {near[0]} meant?" if near else ""
            self._names.tell("unknown_tool", call, f"{name} is no tool{hint}")

    def _arguments(self, call: ast.Call, tool: WorkflowTool) -> None:
        known = _parameters_of(tool)
        given = set(known[: len(call.args)]) | {k.arg for k in call.keywords if k.arg}
        if any(k.arg is None for k in call.keywords):
            return  # **values: nobody can see which
        for name in sorted(given - set(known)):
            self._names.tell("parameter", call, f"{tool.name} has no parameter {name}")
        for name in tool.required:
            if name not in given:
                self._names.tell("parameter", call, f"{tool.name} is called without {name}")


def _parameters_of(tool: WorkflowTool) -> list[str]:
    properties = tool.parameters.get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _text(call: ast.Call) -> str | None:
    values = [*call.args, *(k.value for k in call.keywords)]
    if len(values) != 1 or not isinstance(values[0], ast.Constant):
        return None
    return values[0].value if isinstance(values[0].value, str) else None


class CodeProcedure:
    """Code to walk through. What the user may say comes from the chart,
    which has to be walked through before: the intents that may be chosen after the same call.

    A place is (instruction, (set of intents, the one said) or None). What was said stands until the
    agent speaks or calls again. `alone` are intents beside which nothing else can be chosen where
    the code asks for them: its other way is never taken.
    """

    def __init__(self, code: Code, world: World, chart: ChartProcedure) -> None:
        self._code, self._world, self._chart = code, world, chart
        self.entry: object = (code.entry, None)
        self._beside: dict[str, set[str]] = {}

    @property
    def alone(self) -> list[str]:
        """See the class; known after the walk."""
        return [intent for intent, others in self._beside.items() if others == {intent}]

    def steps(self, place: object, last: str, state: State) -> Iterable[Step]:
        """See `follow.Procedure`."""
        assert isinstance(place, tuple)
        at, said = place
        op = self._code.ops[at]
        if op.kind == "end":
            yield Step(end=True)
        elif op.kind == "call":
            yield Step(to=(op.to[0], None), tool=op.name)
        elif op.kind == "talk":
            yield Step(to=(op.to[0], None))
        elif op.kind == "any":
            for to in op.to:
                yield Step(to=(to, said))
        elif op.kind == "test":
            condition = Condition(alternatives=tuple((c,) for c in op.alternatives))
            holds = self._world.holds(condition, state)
            for to, wanted in zip(op.to, (True, False), strict=True):
                if holds in (None, wanted):
                    yield Step(to=(to, said))
        else:
            yield from self._says(op, said, last, state)

    def _says(
        self, op: Op, said: tuple[Choices, str] | None, last: str, state: State
    ) -> Iterable[Step]:
        yes, no = op.to
        if said is not None and op.name in said[0]:
            yield Step(to=(yes if said[1] == op.name else no, said))
            return
        groups = [g for g in self._chart.groups(last, state) if op.name in g] or [
            g for g in self._chart.all_groups if op.name in g
        ]
        if not groups:  # an intent that the chart does not know: told elsewhere
            yield Step(to=(yes, None))
            yield Step(to=(no, None))
        for group in groups:
            self._beside.setdefault(op.name, set()).update(group)
            for intent in sorted(group):
                to = yes if intent == op.name else no
                yield Step(to=(to, (group, intent)), choice=intent)
