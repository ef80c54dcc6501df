"""Defects of a chart: its shape, the tools it names, the conditions on its edges."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from agenteval.evaluators.workflows.chart import (
    WORD,
    Chart,
    Edge,
    Node,
    calls_by_node,
    names_in,
    reached,
)
from agenteval.evaluators.workflows.conditions import Comparison, constant, is_date, plain
from agenteval.evaluators.workflows.procedure import compiled
from agenteval.evaluators.workflows.scenario import WorkflowTool
from agenteval.evaluators.workflows.worlds import (
    State,
    TooLarge,
    World,
    listed,
    relation,
    types_of,
)
from agenteval.records import Record

Severity = Literal["error", "warning", "note"]
Kind = Literal[
    "unreadable",  # a format that cannot be read
    # the shape of a chart
    "no_start", "several_starts", "edge_into_start", "unreachable", "dead_end", "no_exit",
    "no_limit",
    # its text, see `chart.Remark`
    "doubled", "no_label", "no_arrow_head", "skipped",
    # tools
    "no_tool", "unknown_tool", "tool_in_reply", "repeated_tool", "unused_tool",
    # conditions
    "unknown_field", "field_not_yet", "bad_value", "same_label", "gap", "overlap", "too_large",
    "parameter",
    # one format against another
    "missing_tool", "order", "missing_field", "unknown_intent",
    "annotation", "profile", "backend",
]  # fmt: skip
_MOST_COMPARED = 100  # conditions of one node, two by two
_CLOSE = 0.8


class Defect(Record):
    """One defect. `node` or `edge` (source, target) says where; `line` is 0 when no line is meant.

    An error makes the procedure wrong; a warning may be meant so; a note says how it is read.
    """

    kind: Kind
    message: str
    severity: Severity = "error"
    node: str | None = None
    edge: tuple[str, str] | None = None
    line: int = 0


def _at(at: Node | Edge, kind: Kind, message: str, severity: Severity = "error") -> Defect:
    where: dict[str, Any] = (
        {"node": at.id} if isinstance(at, Node) else {"edge": (at.source, at.target)}
    )
    return Defect(kind=kind, message=message, severity=severity, line=at.line, **where)


def check_chart(chart: Chart, tools: Sequence[WorkflowTool]) -> tuple[Defect, ...]:
    """All defects by line, those of no line last. Without `tools` only the shape is checked."""
    defects = [*_remarks(chart), *_starts(chart), *_reach(chart), *_same_labels(chart)]
    if tools:
        defects += _tools(chart, tools)
        defects += _conditions(chart, tools)
        if not any(d.severity == "error" for d in defects):  # else values cannot be gone through
            defects += _values(chart, tools)
    return tuple(sorted(defects, key=lambda d: (d.line == 0, d.line)))


def _remarks(chart: Chart) -> Iterator[Defect]:
    for remark in chart.remarks:
        severity: Severity = "note" if remark.kind == "skipped" else "warning"
        yield Defect(kind=remark.kind, message=remark.message, severity=severity, line=remark.line)


def _starts(chart: Chart) -> Iterator[Defect]:
    starts = chart.starts
    for n in starts[1:]:
        yield _at(n, "several_starts", f"{n.id} is a second start beside {starts[0].id}")
    if not starts:
        yield Defect(kind="no_start", message="no node has the shape (Start)")
    for e in chart.edges:
        if e.target in {n.id for n in starts}:
            message = f"an edge leads back into the start {e.target}"
            severity: Severity = "warning" if chart.begins else "error"
            yield _at(e, "edge_into_start", message, severity)


def _reach(chart: Chart) -> Iterator[Defect]:
    forward: dict[str, list[str]] = {n.id: [] for n in chart.nodes}
    back: dict[str, list[str]] = {n.id: [] for n in chart.nodes}
    for edge in chart.edges:
        forward[edge.source].append(edge.target)
        back[edge.target].append(edge.source)
    starts = [n.id for n in chart.starts]
    seen = reached(starts, forward) if starts else set(forward)
    leads_out = reached([id for id in forward if not forward[id]], back)
    for n in chart.nodes:
        if n.id not in seen:
            yield _at(n, "unreachable", f"{n.id} cannot be reached from the start")
        if n.shape == "call" and not forward[n.id]:
            problem = f"nothing follows {n.id}, which calls a tool"
            yield _at(n, "dead_end", problem, "warning")
    for cycle in _unlimited(chart, forward, back):
        message = (f"nothing says how often {', '.join(n.id for n in cycle)} can be gone through: "
                   "agents are told, with nothing new from the user once at most")  # fmt: skip
        yield _at(cycle[0], "no_limit", message, "note")
    stuck = seen - leads_out
    beside = {id: [n for n in (*forward[id], *back[id]) if n in stuck] for id in stuck}
    told_of: set[str] = set()
    for n in chart.nodes:
        if n.id in stuck - told_of:
            around = reached([n.id], beside)
            told_of |= around
            names = ", ".join(m.id for m in chart.nodes if m.id in around)
            yield _at(n, "no_exit", f"a cycle without exit: no end follows {names}")


def _unlimited(
    chart: Chart, forward: Mapping[str, Iterable[str]], back: Mapping[str, Iterable[str]]
) -> Iterator[list[Node]]:
    """The parts of the chart in which every node leads to every other one, but for those with an
    edge on an ordered value (`tries < 3`), which can count how often."""
    seen: set[str] = set()
    for node in chart.nodes:
        if node.id in seen or node.id not in (ahead := reached(forward[node.id], forward)):
            continue
        ids = ahead & reached([node.id], back)
        seen |= ids
        inside = [e for e in chart.edges if e.source in ids and e.target in ids and e.condition]
        if all(c.op in ("=", "!=") for e in inside if e.condition for c in e.condition.comparisons):
            yield [n for n in chart.nodes if n.id in ids]


def _same_labels(chart: Chart) -> Iterator[Defect]:
    first: dict[tuple[str, str], Edge] = {}
    for edge in chart.edges:
        known = first.setdefault((edge.source, edge.label.casefold()), edge)
        if known is not edge:
            twice = known.target == edge.target
            label = f"the label {edge.label!r}" if edge.label else "no label"
            what = "the same edge twice" if twice else f"to {known.target} and to {edge.target}"
            problem = f"{edge.source} has two edges with {label}: {what}"
            severity: Severity = "error" if edge.label and not twice else "warning"
            yield _at(edge, "same_label", problem, severity)


def _tools(chart: Chart, tools: Sequence[WorkflowTool]) -> Iterator[Defect]:
    """What is wrong with the tools that nodes name, and with the auxiliary parameters."""
    names = [t.name for t in tools]
    known = known_words(tools, chart.parameters)
    calls = calls_by_node([chart], names)
    drawn = any(node.shape == "call" for node in chart.nodes)
    for node in chart.nodes:
        here = names_in(node.text, names)
        if node.shape == "call":
            yield from _call_node(node, here, names, known)
            continue
        for name in dict.fromkeys(here) if drawn else ():
            read = "it is read as a call" if name in calls[node.id] else "only those call it"
            message = f"{node.id} names {name} and is no >call]: {read}"
            yield _at(node, "tool_in_reply", message, "warning")
    called = chart.called(names)
    for name in names:
        if name not in called:
            yield Defect(kind="unused_tool", message=f"no node calls {name}", severity="warning")
    for name, description in chart.parameters.items():
        owner = next((t.name for t in tools if name in t.properties), None)
        problem = f"the auxiliary parameter {name} has no description"
        if owner:
            problem = f"the auxiliary parameter {name} is one of {owner}; its schema describes it"
        if owner or not description:
            yield Defect(kind="parameter", message=problem, severity="warning")


def _call_node(
    node: Node, here: Sequence[str], names: Sequence[str], known: set[str]
) -> Iterator[Defect]:
    strange = list(tool_like(node.text, names, known))
    if not here:
        words = dict.fromkeys([*strange, *(w for w in WORD.findall(node.text) if len(w) > 3)])
        hint = next((h for w in words if (h := near_name(w, names))), "")
        hint = hint or f"; known: {', '.join(names)}"
        unknown = f" ({', '.join(strange)} is none)" if strange else ""
        yield _at(node, "no_tool", f"{node.id} names no known tool{unknown}{hint}")
        return
    for word in strange:
        unknown = f"{node.id} names {word}, which is no tool{near_name(word, names)}"
        yield _at(node, "unknown_tool", unknown)
    for name, count in Counter(here).items():
        if count > 1:
            unknown = f"{node.id} names {name} {count} times, which is read as one call"
            yield _at(node, "repeated_tool", unknown, "warning")


def near_name(word: str, names: Iterable[str]) -> str:
    """`; is NAME meant?` of the tool whose name the word nearly is, whatever the case, else ""."""
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(word.lower()[:80], by_lower, 1, _CLOSE)
    return f"; is {by_lower[near[0]]} meant?" if near else ""


def meant(word: str, names: Iterable[str]) -> str:
    """`; is NAME meant?` of the name that is nearest, "" when none is near."""
    near = difflib.get_close_matches(word, list(names), 1)
    return f"; is {near[0]} meant?" if near else ""


_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]+)+")


def tool_like(text: str, names: Sequence[str], known: set[str]) -> Iterator[str]:
    """Words that look like names of tools and are none, each once.

    Those with an underscore; and those like checkStatus, where tools are named in that way.
    """
    camel = any(_CAMEL.fullmatch(name) for name in names)
    for word in dict.fromkeys(WORD.findall(text)):
        looks = "_" in word.strip("_") or (camel and _CAMEL.fullmatch(word))
        if looks and word not in known:
            yield word


def known_words(tools: Iterable[WorkflowTool], parameters: Iterable[str] = ()) -> set[str]:
    """Names that a procedure may write: tools, parameters, returned fields, enumerated values."""
    known = set(parameters)
    for tool in tools:
        known |= {tool.name, *tool.fields, *tool.properties}
        schemas = [*tool.properties.values(), *map(tool.returned, tool.fields)]
        values = [v for s in schemas if isinstance(s, dict) for v in listed(s) or ()]
        known |= {word for value in values for word in WORD.findall(str(value))}
    return known


def _conditions(chart: Chart, tools: Sequence[WorkflowTool]) -> Iterator[Defect]:
    """Fields that nobody returns, or not yet; values that cannot be returned."""
    names = [t.name for t in tools]
    before = {
        id: set(own) for id, own in calls_by_node([chart], names).items()
    }  # on some way there
    size = -1
    while size != (size := sum(map(len, before.values()))):
        for edge in chart.edges:
            before[edge.target] |= before[edge.source]
    for edge in chart.edges:
        for comparison in edge.condition.comparisons if edge.condition else ():
            yield from _comparison(edge, comparison, tools, before[edge.source])


def _comparison(
    edge: Edge, c: Comparison, tools: Sequence[WorkflowTool], before: set[str]
) -> Iterator[Defect]:
    if c.tool and c.tool not in {t.name for t in tools}:
        yield _at(edge, "unknown_field", f"the condition names {c.tool}, which is no tool")
        return
    owners = [t for t in tools if c.field in t.fields and c.tool in (None, t.name)]
    if not owners:
        fields = {f for t in tools if c.tool in (None, t.name) for f in t.fields}
        who = f"{c.tool} does not return" if c.tool else "no tool returns"
        yield _at(edge, "unknown_field", f"{who} {c.field}{meant(c.field, fields)}")
        return
    callers = [t for t in owners if t.name in before]
    if not callers:
        names = " or ".join(t.name for t in owners)
        problem = f"{c.name} is tested at {edge.source}, which no call of {names} comes before"
        yield _at(edge, "field_not_yet", problem)
        return
    problems = [value_problem(c, t.returned(c.field)) for t in callers]
    if all(problems):
        yield _at(edge, "bad_value", f"{c.name} {problems[0]}")


def value_problem(c: Comparison, schema: Mapping[str, Any]) -> str | None:
    """Why the schema's values cannot be compared so; None when they can."""
    values = listed(schema)
    if values is not None and c.op in ("=", "!="):
        if plain(c.value) in [plain(v) for v in values]:
            return None
        return f"is never {constant(c.value)}: it is one of {', '.join(map(str, values))}"
    problems = [_type_problem(c, name) for name in sorted(types_of(schema) - {"null"})]
    return problems[0] if problems and all(problems) else None


def _type_problem(c: Comparison, type_: str) -> str | None:
    value, ordered, written = plain(c.value), c.op not in ("=", "!="), constant(c.value)
    if type_ == "boolean":
        if ordered:
            return f"is true or false: {c.op} has no meaning for it"
        return None if value in ("true", "false") else f"is true or false, never {written}"
    if type_ in ("integer", "number"):
        if not isinstance(value, float):
            return f"is a number, never {written}"
        whole = type_ == "number" or ordered or value.is_integer()
        return None if whole else f"is a whole number, never {written}"
    if type_ == "string":
        fits = not ordered or (isinstance(c.value, str) and is_date(c.value))
        return None if fits else f"is text: only ISO dates can be ordered, not {written}"
    return f"is of type {type_}, which has no comparisons"


def _values(chart: Chart, tools: Sequence[WorkflowTool]) -> Iterator[Defect]:
    """Gaps and overlaps of conditions, for values that can be returned before the node.

    Values are gone through as far as conditions tell them apart: booleans, enumerated values,
    numbers around the constants. Edges without a condition stand for everything else.
    """
    try:
        world = World.of(tools, chart.comparisons)
        visited = relation(compiled({"": chart}, tools), world).visited
    except TooLarge as error:
        problem = f"conditions were not checked for gaps and overlaps: {error}"
        yield Defect(kind="too_large", message=problem, severity="warning")
        return
    states: dict[str, set[State]] = {}
    for (_, state), nodes in visited.items():
        for id in nodes:
            states.setdefault(id, set()).add(state)
    for node in chart.nodes:
        edges = chart.leaving(node.id)
        here = sorted(states.get(node.id, ()))
        tested = [e for e in edges if e.condition is not None]
        if tested == list(edges):
            yield from _gap(node, tested, world, here)
        if len(tested) > _MOST_COMPARED:
            problem = f"{node.id} has over {_MOST_COMPARED} conditions: not checked for overlaps"
            yield _at(node, "too_large", problem, "warning")
        else:
            yield from _overlaps(tested, world, here)


def _right(edge: Edge, world: World, state: State) -> bool | None:
    return world.holds(edge.condition, state) if edge.condition else None


def _told(edges: Sequence[Edge], world: World, state: State) -> str:
    return world.told([c for e in edges if e.condition for c in e.condition.comparisons], state)


def _gap(node: Node, edges: Sequence[Edge], world: World, states: list[State]) -> Iterator[Defect]:
    for state in states:
        if edges and all(_right(e, world, state) is False for e in edges):
            problem = f"no edge of {node.id} is right when {_told(edges, world, state)}"
            yield _at(node, "gap", problem, "warning")
            return


def _overlaps(edges: Sequence[Edge], world: World, states: list[State]) -> Iterator[Defect]:
    reported: set[int] = set()  # edges with one overlap need no second
    for one, other in combinations(edges, 2):
        if id(other) in reported or one.target == other.target:
            continue
        for state in states:
            if _right(one, world, state) and _right(other, world, state):
                reported.add(id(other))
                yield _at(
                    other, "overlap",
                    f"the edges of {one.source} to {one.target} and {other.target} are both right "
                    f"when {_told([one, other], world, state)}", "warning",
                )  # fmt: skip
                break
