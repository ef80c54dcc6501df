"""Count the tokens and cost of a trace once, and find model calls among spans.

Frameworks repeat the usage of a model call at enclosing spans: at the agent, at the run, at a
client inside a wrapper. Among nested spans, the innermost one with a figure counts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from agenteval.readers.fields import words
from agenteval.records import Run, Span
from agenteval.text import plural

PROMPT = words("""
    llm.token_count.prompt gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens
    ai.usage.inputTokens ai.usage.promptTokens llm.usage.prompt_tokens
""")
COMPLETION = words("""
    llm.token_count.completion gen_ai.usage.output_tokens gen_ai.usage.completion_tokens
    ai.usage.outputTokens ai.usage.completionTokens llm.usage.completion_tokens
""")
TOTAL = words("""
    llm.token_count.total gen_ai.usage.total_tokens llm.usage.total_tokens ai.usage.totalTokens
""")
COST = words("""
    llm.cost.total operation.cost gen_ai.usage.cost gen_ai.usage.total_cost gen_ai.cost.total_cost
""")
_KNOWN_KINDS = frozenset({"llm", "tool", "agent"})
_MOST_NAMES = 8
_MOST = 10**12  # larger counts are defects of the trace
_Number = TypeVar("_Number", int, float)


def token_count(value: Any) -> int | None:
    """Return a number of tokens from a number or a numeric string; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,12}(\.0+)?", value.strip(), re.A):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < _MOST and value == int(value) else None


def amount(value: Any) -> float | None:
    """Return a finite, non-negative amount from a number or a numeric string, or None."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) else math.nan
    except ValueError:
        return None
    return number if number >= 0 and math.isfinite(number) and value is not True else None


def tokens_stated(span: Span) -> int | None:
    """Return the tokens stated by a span: prompt plus completion, else a total, else None."""
    usage, held = span.usage, span.attributes
    stated = [None, None] if usage is None else [usage.prompt_tokens, usage.completion_tokens]
    if stated == [None, None]:
        counts = ([token_count(held.get(name)) for name in names] for names in (PROMPT, COMPLETION))
        stated = [next((n for n in values if n is not None), None) for values in counts]
    if stated == [None, None]:
        return next(
            (n for n in (token_count(held.get(name)) for name in TOTAL) if n is not None), None
        )
    return sum(n or 0 for n in stated)


def cost_stated(span: Span) -> float | None:
    """Return the cost stated by a span, or None."""
    if span.usage is not None and span.usage.cost is not None:
        return span.usage.cost
    costs = (amount(span.attributes.get(name)) for name in COST)
    return next((cost for cost in costs if cost is not None), None)


def counted_once(
    spans: Sequence[Span], stated: Callable[[Span], _Number | None]
) -> dict[str, _Number]:
    """Return the figures to count by span id, excluding spans that enclose another figure.

    Parents must come before their children.
    """
    figures: dict[str, _Number] = {}
    enclosing: set[str] = set()
    for span in reversed(spans):
        figure = stated(span)
        if figure is not None and span.id not in enclosing:
            figures[span.id] = figure
        if (figure is not None or span.id in enclosing) and span.parent_id is not None:
            enclosing.add(span.parent_id)
    return figures


def models_inside_are_agents(spans: Iterable[Span]) -> list[Span]:
    """Return the spans, with model spans that contain model spans turned into agents.

    Parents must come before their children.
    """
    ordered = list(spans)
    enclosing: set[str] = set()
    for i, span in reversed(list(enumerate(ordered))):
        if span.kind == "llm" and span.id in enclosing:
            ordered[i] = span.model_copy(update={"kind": "agent"})
        if (span.kind == "llm" or span.id in enclosing) and span.parent_id is not None:
            enclosing.add(span.parent_id)
    return ordered


def kinds_line(spans: Sequence[Span]) -> str:
    """Return the number of spans of unknown kind, and their most frequent attributes."""
    unknown = [span for span in spans if span.kind == "chain"]
    attributes = Counter(name for span in unknown for name in span.attributes)
    names = sorted(attributes, key=lambda name: (-attributes[name], name))
    seen = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
    counts = f"{plural(len(spans), 'span')}, {len(unknown):,} of an unknown kind or chains"
    return f"{counts}; attributes seen: {seen or 'none'}"


def without_models(run: Run) -> str:
    """Return a warning about a trace without model spans that is mostly of unknown kinds, or ""."""
    kinds = [span.kind for span in run.spans]
    if not kinds or "llm" in kinds or 2 * kinds.count("chain") < len(kinds):
        return ""
    return f"no recognized model span: {kinds_line(run.spans)}"


def why_not_understood(run: Run) -> str:
    """Return why nothing can be said about a trace without model, tool or agent spans, or ""."""
    if any(span.kind in _KNOWN_KINDS for span in run.spans):
        return ""
    line = kinds_line(run.spans)
    return f"not examined: no recognized model, tool or agent span ({line})"
