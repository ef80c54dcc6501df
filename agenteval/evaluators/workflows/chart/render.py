"""Charts written as Mermaid: nodes first, in their order, then edges."""

from __future__ import annotations

import re

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart.labels import encoded, needs_quotes
from agenteval.evaluators.workflows.chart.nouns import Chart, Edge, Node
from agenteval.evaluators.workflows.chart.parameters import write_parameters
from agenteval.evaluators.workflows.chart.parse import parse_chart

_BRACKETS = {"start": ("(", ")"), "reply": ("[", "]"), "call": (">", "]")}
# What Mermaid or the parser could read within `-- label -->` as something else.
_UNSAFE = re.compile(r'["`]|--|^-|-$|%%|#\w{1,31};|^$')


def render(chart: Chart) -> str:
    """Mermaid text; `parse_chart` of it gives the chart back up to numbers of lines.

    Raises InputError for a chart that no text states: an id that is no word, an edge to nowhere,
    an intent or a condition that its label does not say.
    """
    lines = [f"flowchart {chart.direction}"]
    lines += map(_node, chart.nodes)
    lines += map(_edge, chart.edges)
    text = "\n".join(lines) + "\n" + write_parameters(chart.parameters)
    if without_lines(parse_chart(text, "chart")) != without_lines(chart):
        raise InputError("this chart cannot be written as Mermaid: it would be read otherwise")
    return text


def without_lines(chart: Chart) -> Chart:
    """The chart with all numbers of lines 0: what two charts are compared by."""
    return chart.model_copy(
        update={
            "nodes": tuple(n.model_copy(update={"line": 0}) for n in chart.nodes),
            "edges": tuple(e.model_copy(update={"line": 0}) for e in chart.edges),
        }
    )


def _node(node: Node) -> str:
    opener, closer = _BRACKETS[node.shape]
    label = f'"{encoded(node.text)}"' if needs_quotes(node.text) else node.text
    return f"{node.id}{opener}{label}{closer}"


def _edge(edge: Edge) -> str:
    if not edge.label:
        return f"{edge.source}-->{edge.target}"
    if _UNSAFE.search(edge.label):
        return f'{edge.source}-->|"{encoded(edge.label)}"|{edge.target}'
    # With blanks: Mermaid would take an x or o beside the dashes for the end of the arrow.
    return f"{edge.source}-- {edge.label} -->{edge.target}"
