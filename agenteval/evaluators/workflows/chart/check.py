"""Defects of a chart: its shape, the tools it names, the conditions on its edges."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.evaluators.workflows.chart.check_conditions import condition_defects
from agenteval.evaluators.workflows.chart.check_shape import shape_defects
from agenteval.evaluators.workflows.chart.check_tools import tool_defects
from agenteval.evaluators.workflows.chart.check_values import value_defects
from agenteval.evaluators.workflows.chart.defects import Defect, Kind, Severity
from agenteval.evaluators.workflows.chart.nouns import Chart
from agenteval.evaluators.workflows.scenario import WorkflowTool

__all__ = ["Defect", "Kind", "Severity", "check_chart"]


def check_chart(chart: Chart, tools: Sequence[WorkflowTool]) -> tuple[Defect, ...]:
    """All defects by line, those of no line last. Without `tools` only the shape is checked."""
    found = shape_defects(chart)
    if tools:
        found += tool_defects(chart, tools)
        found += condition_defects(chart, tools)
        if not any(d.severity == "error" for d in found):  # else values cannot be gone through
            found += value_defects(chart, tools)
    return tuple(sorted(found, key=lambda d: (d.line == 0, d.line)))
