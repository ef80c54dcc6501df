"""Pure functions on numbers and arrays; randomness is passed in."""

from agenteval.stats.cluster import complete_link
from agenteval.stats.interval import Interval, mean_interval
from agenteval.stats.unique import UniqueCurve, expected_unique, unique_curve

__all__ = [
    "Interval",
    "UniqueCurve",
    "complete_link",
    "expected_unique",
    "mean_interval",
    "unique_curve",
]
