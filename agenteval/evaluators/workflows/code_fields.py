"""What the code of a procedure tests: returned fields against constants."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agenteval.evaluators.workflows.chart.check_conditions import value_problem
from agenteval.evaluators.workflows.chart.defects import Defect, Kind, Severity
from agenteval.evaluators.workflows.chart.nouns import Comparison
from agenteval.evaluators.workflows.chart.schemas import schema_of, types_of
from agenteval.evaluators.workflows.scenario import WorkflowTool

Op = Literal["=", "!=", "<", "<=", ">", ">="]
_OPS: dict[type[ast.cmpop], Op] = {
    ast.Eq: "=", ast.Is: "=", ast.NotEq: "!=", ast.IsNot: "!=",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_SWAPPED: dict[Op, Op] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


@dataclass(frozen=True)
class FieldRef:
    """A returned field: of a tool, or (None) of whichever returned it last."""

    tool: str | None
    field: str


@dataclass
class Names:
    """Variables of the code: results of tools, their fields, and all others."""

    tools: Mapping[str, WorkflowTool]
    results: dict[str, set[str]] = field(default_factory=dict)
    fields: dict[str, set[FieldRef]] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)
    found: list[tuple[int, Defect]] = field(default_factory=list)

    def tell(self, kind: Kind, node: ast.AST, message: str, severity: Severity = "error") -> None:
        """Note a defect at a line of the code."""
        line = getattr(node, "lineno", 0)
        told = f"line {line} of the code: {message}" if line else f"the code: {message}"
        self.found.append((line, Defect(kind=kind, message=told, severity=severity)))

    @property
    def defects(self) -> tuple[Defect, ...]:
        """What was noted, by line, each once."""
        ordered = sorted(self.found, key=lambda entry: entry[0])
        return tuple(dict.fromkeys(defect for _, defect in ordered))

    def learn(self, body: ast.AST) -> None:
        """Go through all assignments."""
        for node in ast.walk(body):
            if isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                targets, value = [node.target], node.value
            else:
                continue
            for target in targets:
                if isinstance(target, ast.Name):
                    self._bind(target.id, value)

    def _bind(self, name: str, value: ast.expr) -> None:
        tool = self.called(value)
        ref = None if tool else self._ref(value)
        if tool:
            self.results.setdefault(name, set()).add(tool)
        elif isinstance(value, ast.Name) and value.id in self.results:
            self.results.setdefault(name, set()).update(self.results[value.id])
        elif ref:
            self.fields.setdefault(name, set()).add(ref)
        else:
            self.helpers.add(name)

    def called(self, value: ast.expr) -> str | None:
        """The tool that an expression calls."""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            return value.func.id if value.func.id in self.tools else None
        return None

    def _ref(self, value: ast.expr) -> FieldRef | None:
        """The returned field that an expression names, None for anything else."""
        if isinstance(value, ast.Name):
            refs = self.fields.get(value.id, set()) if value.id not in self.helpers else set()
            return next(iter(refs)) if len(refs) == 1 else None
        if isinstance(value, ast.Attribute):
            owner, name = value.value, value.attr
        elif isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
            owner, name = value.value, str(value.slice.value)
        else:
            return None
        tools = {tool} if (tool := self.called(owner)) else set[str]()
        if isinstance(owner, ast.Name):
            tools = self.results.get(owner.id, set())
        if not tools:
            return None
        return FieldRef(next(iter(tools)) if len(tools) == 1 else None, name)

    def field_of(self, value: ast.expr) -> FieldRef | None:
        """As `_ref`; a field that the tool does not return is noted as a defect."""
        ref = self._ref(value)
        if ref is None:
            return None
        owners = [t for t in self.tools.values() if ref.tool in (None, t.name)]
        if not any(ref.field in t.fields for t in owners):
            known = {f for t in owners for f in t.fields}
            near = difflib.get_close_matches(ref.field, known, 1)
            hint = f"; is {near[0]} meant?" if near else ""
            self.tell("unknown_field", value, f"{ref.tool} does not return {ref.field}{hint}")
            return None
        return ref

    def truth(self, ref: FieldRef) -> Comparison | None:
        """What `if result.field` tests, by the type of the field."""
        types = {
            name
            for t in self.tools.values()
            if ref.tool in (None, t.name)
            for name in types_of(schema_of(t, ref.field))
        }
        if types == {"boolean"}:
            return _comparison(ref, "=", True)
        if types and types <= {"integer", "number"}:
            return _comparison(ref, "!=", 0.0)
        return _comparison(ref, "!=", "") if types == {"string"} else None


def _comparison(ref: FieldRef, op: Op, value: str | float | bool) -> Comparison:
    return Comparison(field=ref.field, tool=ref.tool, op=op, value=value)


def comparisons_in(names: Names, test: ast.Compare) -> Iterator[tuple[Comparison, ...] | None]:
    """One entry for each link of a comparison, all of which must hold.

    An entry holds when one of its comparisons does. None stands for what no returned value
    decides, such as a counter.
    """
    left = test.left
    for op, right in zip(test.ops, test.comparators, strict=True):
        yield _link(names, left, op, right)
        left = right


def _link(
    names: Names, left: ast.expr, op: ast.cmpop, right: ast.expr
) -> tuple[Comparison, ...] | None:
    found = _tested(names, left, op, right)
    for c in found or ():
        owners = [
            t for t in names.tools.values() if c.tool in (None, t.name) and c.field in t.fields
        ]
        problems = [value_problem(c, schema_of(t, c.field)) for t in owners]
        if problems and all(problems):
            names.tell("bad_value", left, f"{c.field} {problems[0]}")
    return found


def _tested(
    names: Names, left: ast.expr, op: ast.cmpop, right: ast.expr
) -> tuple[Comparison, ...] | None:
    first, second = names.field_of(left), names.field_of(right)
    if first is None and second is None:
        return None
    if isinstance(op, ast.In) and first is not None:
        values = [_constant(e) for e in getattr(right, "elts", ())]
        known = [v for v in values if v is not None]
        if known and len(known) == len(values):
            return tuple(_comparison(first, "=", v) for v in known)
    said = _OPS.get(type(op))
    ref, other, turn = (first, right, False) if first is not None else (second, left, True)
    value = _constant(other)
    if said is None or value is None or ref is None:
        told = "a returned value is compared with something that is no constant"
        names.tell("outside_dialect", left, told, "warning")
        return None
    return (_comparison(ref, _SWAPPED[said] if turn else said, value),)


def _constant(value: ast.expr) -> str | float | bool | None:
    """A text, number or truth value; None for anything else."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        number = _constant(value.operand)
        return -number if isinstance(number, float) else None
    if not isinstance(value, ast.Constant):
        return None
    found = value.value
    if isinstance(found, bool | str):
        return found
    if isinstance(found, int | float) and abs(found) < 1e300:
        return float(found)
    return None
