"""Figures: a table in, matplotlib Axes out. matplotlib is loaded when the first one is drawn.

Every function takes `ax=` to draw into axes of the caller; without it a new figure of print
width (16 cm) is made, which belongs to no window: `save(axes, "radar.svg")` writes it, `svg(axes)`
gives its text for a page or a notebook.
"""

from agenteval.figures.bars import success_bars
from agenteval.figures.boxes import repeat_boxes
from agenteval.figures.coverage import cost_panel, coverage_and_cost, coverage_bars
from agenteval.figures.curves import unique_curve_grid, unique_curves
from agenteval.figures.dose import dose_grid, dose_response
from agenteval.figures.heatmap import correlation_map
from agenteval.figures.perturbed import perturbation_bars
from agenteval.figures.radar import radar
from agenteval.figures.repeats import repeat_bands, repeat_grid
from agenteval.figures.saving import save, svg
from agenteval.figures.verdicts import CriterionPoint, Estimate, criteria_map

__all__ = [
    "CriterionPoint",
    "Estimate",
    "correlation_map",
    "cost_panel",
    "coverage_and_cost",
    "coverage_bars",
    "criteria_map",
    "dose_grid",
    "dose_response",
    "perturbation_bars",
    "radar",
    "repeat_bands",
    "repeat_boxes",
    "repeat_grid",
    "save",
    "success_bars",
    "svg",
    "unique_curve_grid",
    "unique_curves",
]
