"""Costs of readings over several scenarios, with refused calls and missing parameters.

The lowest cost is found a second time by relaxing all states until nothing changes, from the words
of `align` alone: costs only, no order among readings of one cost.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from agenteval.workflows.align import Call, align
from agenteval.workflows.chart import Chart, Edge, Node
from agenteval.workflows.conditions import Comparison, Condition
from agenteval.workflows.conformance import conformance
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.procedure import compiled
from agenteval.workflows.scenario import WorkflowTool
from tests.workflows.boats import boats

TOOLS = {"f": "ok", "g": "fine", "h": "good"}  # what each returns
Place = tuple[str, str, int]  # scenario, node, how many of its tools are behind
State = tuple[int, Place | None, Place | None]  # calls behind, where it stands, what waits


def chart(rng: random.Random, letter: str) -> Chart:
    nodes = [Node(id=f"{letter}0", shape="start", text="Start")]
    edges = []
    for i in range(1, rng.randrange(3, 6)):
        tools = rng.sample(sorted(TOOLS), rng.choice([0, 1, 1, 2]))
        nodes.append(
            Node(id=f"{letter}{i}", shape="call" if tools else "reply", text=" ".join(tools))
        )
        edges.append((rng.randrange(i), i))
    last = len(nodes) - 1
    edges += [
        (rng.randrange(last + 1), rng.randrange(1, last + 1)) for _ in range(rng.randrange(3))
    ]
    return Chart(
        nodes=tuple(nodes),
        edges=tuple(
            Edge(
                source=f"{letter}{a}", target=f"{letter}{b}", label="l",
                condition=condition(rng) if rng.random() < 0.5 else None,
            )
            for a, b in dict.fromkeys(edges)
        ),
    )  # fmt: skip


def condition(rng: random.Random) -> Condition:
    tool = rng.choice(sorted(TOOLS))
    compared = Comparison(tool=tool, field=TOOLS[tool], op="=", value=rng.random() < 0.5)
    return Condition(alternatives=((compared,),))


def calls(rng: random.Random) -> list[Call]:
    found = []
    for _ in range(rng.randrange(7)):
        tool = rng.choice([*TOOLS, "unknown"])
        returned = rng.choice([None, {}, {TOOLS.get(tool, "x"): rng.random() < 0.5}])
        arguments = rng.choice([{"p": 1}, {}, None, "text"])
        carried_out = rng.random() < 0.8
        found.append(
            Call(tool=tool, arguments=arguments, carried_out=carried_out, returned=returned)
        )
    return found


class Brute:
    """All states and their moves, as the docstring of `align` tells them."""

    def __init__(self, charts: dict[str, Chart], made: list[Call], complete: bool) -> None:
        self.charts, self.made, self.complete = charts, made, complete
        self.start = {s: c.starts[0].id for s, c in charts.items()}

    def lowest(self) -> int:
        cost: dict[State, int] = {(0, None, None): 0}
        todo: list[State] = [(0, None, None)]
        while todo:
            state = todo.pop()
            for more, target in self.moves(state):
                if cost[state] + more < cost.get(target, 10**6):
                    cost[target] = cost[state] + more
                    todo.append(target)
        return min(c for state, c in cost.items() if self.may_stop(state))

    def may_stop(self, state: State) -> bool:
        at, place, _ = state
        if at < len(self.made):
            return False
        return not self.complete or (place is not None and self.is_end(place))

    def tools(self, place: Place) -> list[str]:
        node = self.charts[place[0]].node(place[1])
        return node.text.split() if node.shape == "call" else []

    def is_end(self, place: Place) -> bool:
        behind = place[2] == len(self.tools(place))
        return behind and not self.charts[place[0]].leaving(place[1])

    def moves(self, state: State) -> Iterator[tuple[int, State]]:
        at, place, waits = state
        if at < len(self.made):
            yield 1, (at + 1, place, waits)  # extra
        if place is None:
            yield from self.between(at, waits)
        elif place[2] < len(self.tools(place)):
            yield from self.before_a_step(at, place, waits)
        else:
            yield from self.behind_a_node(at, place, waits)

    def between(self, at: int, waits: Place | None) -> Iterator[tuple[int, State]]:
        for scenario, node in self.start.items():
            if waits is None or waits[0] != scenario:
                yield 0, (at, (scenario, node, 0), waits)
        if waits is not None:
            yield 0, (at, waits, None)

    def before_a_step(
        self, at: int, place: Place, waits: Place | None
    ) -> Iterator[tuple[int, State]]:
        scenario, node, behind = place
        yield 1, (at, (scenario, node, behind + 1), waits)  # left out
        call = self.made[at] if at < len(self.made) else None
        if call and call.carried_out and call.tool == self.tools(place)[behind]:
            lacks = call.tool == "f" and isinstance(call.arguments, dict)
            yield (
                int(lacks and call.arguments != {"p": 1}),
                (at + 1, (scenario, node, behind + 1), waits),
            )

    def behind_a_node(
        self, at: int, place: Place, waits: Place | None
    ) -> Iterator[tuple[int, State]]:
        scenario, node, _ = place
        for edge in self.charts[scenario].leaving(node):
            yield int(self.is_false(edge, at)), (at, (scenario, edge.target, 0), waits)
        if len(self.charts) == 1 or node == self.start[scenario]:
            return
        if self.is_end(place):
            yield 0, (at, None, waits)
        elif waits is None:
            yield 0, (at, None, place)
        elif not self.complete:
            yield 0, (at, waits, place)

    def is_false(self, edge: Edge, at: int) -> bool:
        if edge.condition is None:
            return False
        wanted = edge.condition.alternatives[0][0]
        values = [
            call.returned[wanted.field]
            for call in self.made[:at]
            if call.carried_out and call.tool == wanted.tool
            if isinstance(call.returned, dict) and wanted.field in call.returned
        ]
        return bool(values) and values[-1] != wanted.value


@pytest.mark.parametrize("scenarios", [1, 2, 3])
def test_the_cost_is_the_lowest(scenarios: int) -> None:
    rng = random.Random(scenarios)
    known = []
    for name, field in TOOLS.items():
        parameters = {"type": "object", "required": ["p"] if name == "f" else []}
        returns = {"type": "object", "properties": {field: {"type": "boolean"}}}
        known.append(
            WorkflowTool.model_validate(
                {"name": name, "description": "", "parameters": parameters, "returns": returns,
                 "effect": "read"}
            )
        )  # fmt: skip
    compared = 0
    for _ in range(120):
        charts = {f"s{i}": chart(rng, "ABC"[i]) for i in range(scenarios)}
        made, complete = calls(rng), rng.random() < 0.5
        walk = compiled(charts, known)
        if complete and walk.shortest is None:
            continue
        reading = align(walk, made, complete=complete)
        assert reading.cost == Brute(charts, made, complete).lowest()
        found = conformance(walk, made, reading)
        assert found.conforms == (reading.cost == 0)
        assert reading.cost <= reading.worst
        compared += 1
    assert compared > 100


def test_what_was_refused_and_is_called_again_is_no_loop() -> None:
    """Both readings cost 2: a step left out (weight 2) is told before an extra call (3)."""
    scenario = boats()
    walk = compiled({scenario.id: parse_chart(scenario.flowchart)}, scenario.tools)
    book = {"tool": "book_boat", "arguments": {"boat": "Heron", "skipper": "Ada"}}
    made = [Call.model_validate({**book, "carried_out": done}) for done in (False, True)]
    reading = align(walk, made, complete=False)
    told = [(m.kind, m.at) for m in reading.moves if m.kind in ("step", "skip", "extra")]
    assert (reading.cost, sorted(told)) == (2, [("extra", 0), ("skip", 1), ("step", 1)])
