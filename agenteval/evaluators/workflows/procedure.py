"""A procedure compiled from the charts of one scenario or several: an automaton over tool calls.

A position stands in a node, before one of the tools that the node calls or behind the last one
(its exit). Only from an exit edges lead on. Nodes of the shape `call` call the tools that their
text names, each once, in the order in which they are first named; all other nodes call nothing.
An exit without edges is an end.

Over several scenarios any of them may begin the session, another may begin after each end, and the
user may put one aside between two nodes for another; see `align` for how such a walk is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic import Field

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart.conditions import attributed, written
from agenteval.evaluators.workflows.chart.nouns import Chart, Comparison, Condition, Edge, calls_in
from agenteval.evaluators.workflows.chart.parse import parse_chart
from agenteval.evaluators.workflows.scenario import Role, WorkflowTool
from agenteval.records import Record

START, END = "START", "END"
_MAX_WAYS = 32  # ways to one position that the table tells apart


@dataclass(frozen=True, slots=True)
class Way:
    """An edge, and the position where it leads. `condition` is that of the edge with the tools
    named whose fields are meant, as far as that is clear within its chart."""

    edge: Edge
    target: int
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """Before `tool`, the next position being behind it; or an exit (`tool` None) with its ways."""

    scenario: str
    node: str
    tool: str | None = None
    ways: tuple[Way, ...] = ()

    @property
    def is_end(self) -> bool:
        """Nothing follows."""
        return self.tool is None and not self.ways


class Next(Record):
    """A tool that may be called next (`END`: the scenario may end), and when.

    Each of `when` is one way to it: what must hold of returned values and what the user says, in
    the order of the way; an empty one holds always. At most 32 ways are listed.
    """

    tool: str
    when: tuple[tuple[str, ...], ...]


class Rule(Record):
    """What the charts say of a tool (or of `START`).

    `required` are parameters that a call must have. `needs` are comparisons of returned values
    that hold on every way to the tool, if all transitions were right. `next` is what may follow.
    """

    tool: str
    required: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    next: tuple[Next, ...] = Field(default=())


@dataclass(frozen=True, eq=False)
class Procedure:
    """The automaton. `entries` are the positions of the start nodes, one for each scenario.

    `required` and `fields` hold parameters and returned values of all tools of the scenarios, by
    tool, whether a node calls them or not.
    """

    scenarios: tuple[str, ...]
    positions: tuple[Position, ...]
    entries: tuple[int, ...]
    required: Mapping[str, tuple[str, ...]]
    fields: Mapping[str, tuple[str, ...]]

    @property
    def cross(self) -> bool:
        """Made of several scenarios."""
        return len(self.scenarios) > 1

    @cached_property
    def steps(self) -> frozenset[str]:
        """The tools that some node calls."""
        return frozenset(p.tool for p in self.positions if p.tool is not None)

    @cached_property
    def shortest(self) -> int | None:
        """The fewest calls from a start to an end, conditions aside; None when no end is reached.

        Breadth-first search with weights 0 and 1.
        """
        best = dict.fromkeys(self.entries, 0)
        queue = deque(self.entries)
        while queue:
            at = queue.popleft()
            position = self.positions[at]
            if position.is_end:
                return best[at]
            for target in _after(position, at):
                calls = best[at] + (position.tool is not None)
                if calls < best.get(target, calls + 1):
                    best[target] = calls
                    (queue.appendleft if position.tool is None else queue.append)(target)
        return None

    def reachable(self, at: int) -> frozenset[str]:
        """Tools that can still be called from a position, within its scenario."""
        return self._reachable[at]

    def due(self, at: int) -> tuple[str, ...]:
        """Tools that may be called next at a position, conditions aside, within its scenario."""
        return tuple(n.tool for n in _next(self.positions, (at,)) if n.tool != END)

    @cached_property
    def follows(self) -> tuple[Rule, ...]:
        """The table of the procedure: a rule for START, then for each tool in order of the charts.

        Over several scenarios END means that the session may end or START again.
        """
        names = dict.fromkeys(p.tool for p in self.positions if p.tool is not None)
        rules = [Rule(tool=START, next=_next(self.positions, self.entries))]
        for name in names:
            behind = tuple(i + 1 for i, p in enumerate(self.positions) if p.tool == name)
            rules.append(
                Rule(
                    tool=name,
                    required=self.required.get(name, ()),
                    needs=self._needs(name),
                    next=_next(self.positions, behind),
                )
            )
        return tuple(rules)

    @cached_property
    def _reachable(self) -> tuple[frozenset[str], ...]:
        found = [{p.tool} - {None} for p in self.positions]
        changed = True
        while changed:
            changed = False
            for at in reversed(range(len(found))):
                before = len(found[at])
                for target in _after(self.positions[at], at):
                    found[at] |= found[target]
                changed |= len(found[at]) != before
        return tuple(frozenset(t for t in tools if t is not None) for tools in found)

    def _needs(self, tool: str) -> tuple[str, ...]:
        """Facts on every way to a tool, as text."""
        known = [f for p, f in zip(self.positions, self._facts, strict=True) if p.tool == tool]
        found = [facts for facts in known if facts is not None]  # None: cannot be reached
        return tuple(sorted(f.text for f in frozenset.intersection(*found))) if found else ()

    @cached_property
    def _facts(self) -> tuple[frozenset[_Fact] | None, ...]:
        """What holds on every way to each position: a forward must-analysis.

        An edge adds its comparisons, a call takes away all that is said of what it returns, and
        where ways meet only what they share stays (Kildall 1973, POPL, section 3: meet over all
        paths by iteration). None where no way leads.
        """
        facts: list[frozenset[_Fact] | None] = [None] * len(self.positions)
        queue = deque(self.entries)
        for entry in self.entries:
            facts[entry] = frozenset()
        while queue:
            at = queue.popleft()
            position, here = self.positions[at], facts[at]
            assert here is not None
            if position.tool is not None:
                kept = frozenset(f for f in here if position.tool not in f.tools)
                arrivals = [(at + 1, kept)]
            else:
                arrivals = [(w.target, here | self._said(w.edge, at)) for w in position.ways]
            for target, new in arrivals:
                old = facts[target]
                met = new if old is None else old & new
                if met != old:
                    facts[target] = met
                    queue.append(target)
        return tuple(facts)

    def _said(self, edge: Edge, at: int) -> frozenset[_Fact]:
        """The facts that an edge states: each comparison of a conjunction, or the disjunction."""
        if edge.condition is None:
            return frozenset()
        named = [
            [self._named(c, at) for c in alternative] for alternative in edge.condition.alternatives
        ]
        conjunction = named[0] if len(named) == 1 else []
        stated = [Condition(alternatives=((c,),)) for c, _ in conjunction] or [
            Condition(alternatives=tuple(tuple(c for c, _ in n) for n in named))
        ]
        about = [tools for _, tools in conjunction] or [
            frozenset[str]().union(*(tools for n in named for _, tools in n))
        ]
        return frozenset(_Fact(written(s), t) for s, t in zip(stated, about, strict=True))

    def _named(self, comparison: Comparison, at: int) -> tuple[Comparison, frozenset[str]]:
        """With its tool, where that is clear (called by the same node, or the only one that
        returns the field), and the tools whose calls make it void."""
        if comparison.tool is not None:
            return comparison, frozenset({comparison.tool})
        node = self.positions[at].node
        own = [p.tool for p in self.positions if p.node == node and p.tool is not None]
        found = [t for t in own if comparison.field in self.fields.get(t, ())][-1:]
        found = found or [t for t, names in self.fields.items() if comparison.field in names]
        tool = found[0] if len(found) == 1 else None
        return comparison.model_copy(update={"tool": tool}), frozenset(found)


@dataclass(frozen=True, slots=True)
class _Fact:
    """A condition as text, and the tools whose calls make it void."""

    text: str
    tools: frozenset[str]


def procedure(role: Role, scenarios: Sequence[str]) -> Procedure:
    """The procedure of one scenario of a role or of several, by their ids.

    Raises InputError for an unknown scenario, a chart outside the subset, one without a start, an
    edge to a node that is not declared, and for a node that two of the scenarios have.
    """
    known = {s.id: s for s in role.scenarios}
    if not scenarios:
        raise InputError("a procedure needs at least one scenario", role.id)
    for id in scenarios:
        if id not in known:
            raise InputError(f"no scenario {id!r}; known: {', '.join(known)}", role.id)
    ids = tuple(dict.fromkeys(scenarios))
    charts = {id: parse_chart(known[id].flowchart, f"{role.id}/{id}") for id in ids}
    return compiled(charts, role.tools_of(ids))


def compiled(charts: Mapping[str, Chart], tools: Sequence[WorkflowTool]) -> Procedure:
    """The procedure of charts, by the ids of their scenarios. Raises InputError, see `procedure`.

    `tools` are those that the charts can call.
    """
    fields = {tool.name: tool.fields for tool in tools}
    positions: list[Position] = []
    entries: list[int] = []
    seen: dict[str, str] = {}
    for scenario, chart in charts.items():
        for node in chart.nodes:
            if node.id in seen:
                raise InputError(f"node {node.id} is a node of {seen[node.id]} too", scenario)
            seen[node.id] = scenario
        _add(scenario, chart, fields, positions, entries)
    return Procedure(
        scenarios=tuple(charts),
        positions=tuple(positions),
        entries=tuple(entries),
        required={tool.name: tool.required for tool in tools},
        fields=fields,
    )


def _add(
    scenario: str,
    chart: Chart,
    fields: Mapping[str, tuple[str, ...]],
    positions: list[Position],
    entries: list[int],
) -> None:
    called = {
        node.id: tuple(dict.fromkeys(calls_in(node, fields))) if node.shape == "call" else ()
        for node in chart.nodes
    }
    own = {tool: fields[tool] for tools in called.values() for tool in tools}
    first: dict[str, int] = {}
    size = len(positions)
    for id, tools in called.items():
        first[id] = size
        size += len(tools) + 1
    for edge in chart.edges:
        for end in (edge.source, edge.target):
            if end not in first:
                raise InputError(f"line {edge.line}: node {end} is not declared", scenario)
    for id, tools in called.items():
        positions.extend(Position(scenario, id, tool) for tool in tools)
        ways = tuple(
            Way(edge, first[edge.target], edge.condition and attributed(edge.condition, tools, own))
            for edge in chart.leaving(id)
        )
        positions.append(Position(scenario, id, None, ways))
    starts = [node.id for node in chart.nodes if node.shape == "start"]
    if not starts:
        raise InputError("the chart has no start", scenario)
    entries.append(first[starts[0]])


def _after(position: Position, at: int) -> tuple[int, ...]:
    if position.tool is not None:
        return (at + 1,)
    return tuple(way.target for way in position.ways)


def _next(positions: Sequence[Position], begin: Sequence[int]) -> tuple[Next, ...]:
    """What can come next from positions, through edges alone, and the ways there."""
    ways: dict[int, list[tuple[str, ...]]] = {}
    found: dict[str, list[tuple[str, ...]]] = {}
    queue: deque[tuple[int, tuple[str, ...]]] = deque((at, ()) for at in begin)
    while queue:
        at, when = queue.popleft()
        met = ways.setdefault(at, [])
        if when in met or len(met) >= _MAX_WAYS:
            continue
        met.append(when)
        position = positions[at]
        if position.tool is not None or position.is_end:
            told = found.setdefault(position.tool or END, [])
            if when not in told and len(told) < _MAX_WAYS:
                told.append(when)
            continue
        for way in position.ways:
            said = _saying(way.edge)
            if not said:
                queue.append((way.target, when))
            elif said not in when:  # once round a loop is enough
                queue.append((way.target, (*when, said)))
    return tuple(Next(tool=tool, when=tuple(when)) for tool, when in found.items())


def _saying(edge: Edge) -> str:
    return written(edge.condition) if edge.condition else edge.intent or edge.label
