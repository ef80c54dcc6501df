"""Detectors: rules that find errors in a trace without a model, each certain by its form.

`detect(run)` returns findings; `RULES` holds the rules by name, with what makes each certain and
what it does not cover.
"""

from agenteval.evaluators.traces.detectors import (  # noqa: F401  each registers its rules
    claims,
    execution,
    obedience,
    parsing,
    repeats,
    tool_calls,
)
from agenteval.evaluators.traces.detectors.registry import (
    RULES,
    Hit,
    Rule,
    TraceView,
    detect,
    texts,
)

__all__ = ["RULES", "Hit", "Rule", "TraceView", "detect", "texts"]
