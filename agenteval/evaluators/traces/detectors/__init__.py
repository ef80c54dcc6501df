"""Detectors: rules that find errors in a trace without a model.

`detect(run)` returns findings; `RULES` holds the rules by name, with what each covers. A rule is
on where people's annotations have shown it to be better than chance (`Rule.measured`); one that
they could not decide about is applied only when asked for.
"""

from agenteval.evaluators.traces.detectors import (  # noqa: F401  each registers its rules
    execution,
    repeats,
    steps,
    tool_calls,
)
from agenteval.evaluators.traces.detectors.registry import (
    RULES,
    Hit,
    Rule,
    TraceView,
    detect,
    measured,
    texts,
)

__all__ = ["RULES", "Hit", "Rule", "TraceView", "detect", "measured", "texts"]
