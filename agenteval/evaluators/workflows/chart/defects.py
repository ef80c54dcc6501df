"""What is wrong with a procedure as it is written."""

from __future__ import annotations

from typing import Literal

from agenteval.evaluators.workflows.chart.nouns import Edge, Node
from agenteval.records import Record

Severity = Literal["error", "warning"]
Kind = Literal[
    "unreadable",  # a format that cannot be read
    # the shape of a chart
    "no_start", "several_starts", "edge_into_start", "unreachable", "dead_end", "no_exit",
    # tools
    "no_tool", "unknown_tool", "tool_in_reply", "repeated_tool", "unused_tool",
    # conditions
    "unknown_field", "field_not_yet", "bad_value", "same_label", "gap", "overlap", "too_large",
    "parameter",
    # one format against another
    "missing_tool", "order", "missing_field", "unknown_intent",
    "annotation", "profile", "backend",
]  # fmt: skip


class Defect(Record):
    """One defect. `node` or `edge` (source, target) says where; `line` is 0 when no line is meant.

    An error makes the procedure wrong; a warning may be meant so.
    """

    kind: Kind
    message: str
    severity: Severity = "error"
    node: str | None = None
    edge: tuple[str, str] | None = None
    line: int = 0


def at_node(kind: Kind, node: Node, message: str, severity: Severity = "error") -> Defect:
    """A defect of a node."""
    return Defect(kind=kind, message=message, severity=severity, node=node.id, line=node.line)


def at_edge(kind: Kind, edge: Edge, message: str, severity: Severity = "error") -> Defect:
    """A defect of an edge."""
    return Defect(
        kind=kind, message=message, severity=severity, edge=(edge.source, edge.target),
        line=edge.line,
    )  # fmt: skip
