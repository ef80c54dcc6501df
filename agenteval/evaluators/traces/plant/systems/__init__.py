"""The systems that come with the package: tasks over real tools, each with its small model."""

from __future__ import annotations

from agenteval.evaluators.traces.plant.system import TracedSystem
from agenteval.evaluators.traces.plant.systems.calendar import CALENDAR
from agenteval.evaluators.traces.plant.systems.coder import CODER
from agenteval.evaluators.traces.plant.systems.figures import FIGURES
from agenteval.evaluators.traces.plant.systems.notes import NOTES
from agenteval.evaluators.traces.plant.systems.orders import ORDERS
from agenteval.evaluators.traces.plant.systems.travel import TRAVEL


def systems() -> dict[str, TracedSystem]:
    """All systems by their names."""
    made = (ORDERS, NOTES, CALENDAR, FIGURES, TRAVEL, CODER)
    return {system.name: system for system in made}
