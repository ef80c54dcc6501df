"""What the paper prints, as tables to stand below one's own."""

from __future__ import annotations

from agenteval.evaluators.planning import published
from agenteval.report.grid import Grid, Head, count, mean, number, words
from agenteval.report.sheet import Sheet
from agenteval.stats import proportion_interval


def results() -> Sheet:
    """Table 2 with rates and intervals, and the capability bounds of section 6.2."""
    heads = (Head("model, framework"), Head("success [95 %]", "", True), Head("cases", "", True),
             Head("errors", "", True), Head("agent s per case", "", True),
             Head("synthesis s per case", "", True),
             Head("capability bound", "", True))  # fmt: skip
    rows = []
    for r in published.TABLE_2:
        rate = proportion_interval(r.generated - r.errors, r.generated)
        synthesis, _, agent = r.seconds_per_case
        rows.append((
            words(f"{r.model}, {r.framework}"), mean(rate), count(r.generated), count(r.errors),
            number(agent, ".1f"), number(synthesis, ".3f"), count(published.BOUNDS[r.model]),
        ))  # fmt: skip
    note = (
        f"{published.SOURCE}, table 2: {published.CAVEAT}. 3 to 5 actions, 60 minutes each; "
        "intervals are computed here. Mean relative fall of the error rate from GPT-3.5 to GPT-4: "
        f"{100 * published.relative_reduction():.2f} %, as printed there. The bound is stated by "
        "model; which of its two readings is meant is not."
    )
    return Sheet(Grid("published", "Published results", heads, tuple(rows)), note)


def topics() -> Sheet:
    """Table 5."""
    heads = (Head("model"), Head("topics with most errors"),
             Head("topics without errors, of 50", "", True))  # fmt: skip
    rows = [
        (words(model), words(", ".join(f"{t} {n}" for t, n in found.items())),
         count(published.TOPICS_WITHOUT_ERROR[model]))
        for model, found in published.TABLE_5.items()
    ]  # fmt: skip
    note = f"{published.SOURCE}, table 5: {published.CAVEAT}."
    return Sheet(Grid("published-topics", "Published errors by topic", heads, tuple(rows)), note)
