"""Prose against a chart: which tools it names, in which order, and the fields that decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from agenteval.evaluators.workflows.chart.check_tools import known_words, near_name, tool_like
from agenteval.evaluators.workflows.chart.defects import Defect
from agenteval.evaluators.workflows.chart.follow import comparisons_of
from agenteval.evaluators.workflows.chart.graph import reached, successors
from agenteval.evaluators.workflows.chart.names import WORD, calls_in, names_in
from agenteval.evaluators.workflows.chart.nouns import Chart
from agenteval.evaluators.workflows.scenario import WorkflowTool


def text_defects(text: str, chart: Chart, tools: Sequence[WorkflowTool]) -> list[Defect]:
    """What the text does not tell as the chart does."""
    names = [t.name for t in tools]
    called = list(
        dict.fromkeys(c for n in chart.nodes if n.shape == "call" for c in calls_in(n, names))
    )
    mentioned = list(dict.fromkeys(names_in(text, names)))
    found = [
        Defect(kind="missing_tool", message=f"the text does not name {name}, which the chart calls")
        for name in called
        if name not in mentioned
    ]
    found += [
        Defect(kind="unknown_tool", message=f"the text names {name}, which the chart never calls")
        for name in mentioned
        if name not in called
    ]
    for word in tool_like(text, names, known_words(tools, chart.parameters)):
        near = near_name(word, names)
        hint = f"; is {near} meant?" if near else ""
        told = f"the text names {word}, which is no tool, parameter or field{hint}"
        found.append(Defect(kind="unknown_tool", message=told))
    words = set(WORD.findall(text))
    found += [
        Defect(kind="missing_field", message=f"the text does not name {name}, which edges test")
        for name in dict.fromkeys(c.field for c in comparisons_of(chart))
        if name not in words
    ]
    return [*found, *_order([m for m in mentioned if m in called], chart, names)]


def _order(mentioned: Sequence[str], chart: Chart, names: Sequence[str]) -> Iterator[Defect]:
    """Two tools named in an order in which no walk through the chart calls them first."""
    order = _Order(chart, names)
    for first, second in combinations(mentioned, 2):
        if order.possible(second, first) and not order.possible(first, second):
            told = f"the text names {first} before {second}; in the chart {second} comes first"
            yield Defect(kind="order", message=told)


class _Order:
    def __init__(self, chart: Chart, names: Sequence[str]) -> None:
        self._to = _by_call(chart, names)

    def possible(self, first: str, second: str) -> bool:
        """Whether some walk calls `first`, and `second` only after it."""
        without = {
            place: [p for p in places if p.partition(" ")[2] != second]
            for place, places in self._to.items()
        }
        here = [p for p in reached([""], without) if p.partition(" ")[2] == first]
        after = reached(here, self._to)
        return any(p.partition(" ")[2] == second for p in after)


def _by_call(chart: Chart, names: Sequence[str]) -> dict[str, list[str]]:
    """The chart with a place for each call, `node tool`, and `node` behind the last; "" begins."""
    forward = successors(chart)
    places: dict[str, list[str]] = {"": [], **{n.id: [] for n in chart.nodes}}
    entry: dict[str, str] = {}
    for node in chart.nodes:
        calls = calls_in(node, names) if node.shape == "call" else ()
        row = [*(f"{node.id} {call}" for call in calls), node.id]
        entry[node.id] = row[0]
        for one, following in pairwise(row):
            places.setdefault(one, []).append(following)
        if node.shape == "start":
            places[""].append(row[0])
    for id, targets in forward.items():
        places[id] += [entry[t] for t in targets]
    return places
