"""What the plan commands print: the tables of a campaign, causes, and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agenteval.cli.console import clean, out

if TYPE_CHECKING:
    from agenteval.evaluators.planning.dissect import Dissection
    from agenteval.evaluators.planning.dsl.lexicon import Lexicon
    from agenteval.evaluators.planning.run import Attempt
    from agenteval.evaluators.planning.tallies import Cause
    from agenteval.stats import Interval


def print_tables(
    attempts: Sequence[Attempt],
    causes: Sequence[Cause] = (),
    lexicon: Lexicon | None = None,
    *,
    brief: bool = False,
    threshold: float | None = None,
) -> None:
    """All tables of the campaign, or the most important ones."""
    from agenteval.evaluators.planning.tables import planning_tables
    from agenteval.report.terminal import print_table

    for table in planning_tables(attempts, causes, lexicon, threshold=threshold):
        if not (brief and table.detail):
            print_table(table, out())


def attempts_json(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Every trial: case, system, outcome, and the verdict or what failed."""
    from agenteval.agents import AgentFailure

    rows = []
    for a in attempts:
        row: dict[str, Any] = {
            "case": a.case.id, "topic": a.case.topic, "actions": a.case.n, "system": a.system,
            "trial": a.trial, "outcome": a.outcome,
        }  # fmt: skip
        if a.verdict is not None:
            row["verdict"] = a.verdict.model_dump(mode="json")
        if isinstance(a.log, AgentFailure):
            row["failure"] = a.log.message
        rows.append(row)
    return rows


def causes_of(found: Sequence[Dissection]) -> list[Cause]:
    """Case, system and label of each dissection."""
    return [(d.case, d.system, d.label) for d in found]


def _share(share: Interval) -> str:
    low, high = share.low, share.high
    if share.mean is None:
        return "unknown"
    limits = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
    return f"{share.mean:.2f}{limits}"


def print_dissections(found: Sequence[Dissection]) -> None:
    """Causes with their shares, then one line per case with the rate of each stage."""
    from agenteval.evaluators.planning.tallies import causes

    if not found:
        return
    for shares in causes(causes_of(found)):
        out().print(f"[bold]{clean(shares.system)}[/bold]: causes of {shares.total} failures")
        for part in shares.parts:
            out().print(f"  {clean(part.label):<12} {part.count:>4}  {_share(part.share)}")
    for d in found:
        stages = ", ".join(
            f"{s.name} {s.passes}/{len(s.tries) - s.unknown}"
            + (f" ({s.unknown} without verdict)" if s.unknown else "")
            for s in d.stages
        )
        others = [name for name in d.labels if name != d.label]
        more = f"; also {', '.join(others)}" if others else ""
        out().print(f"{clean(d.case)}: [bold]{d.label}[/bold]{more} [dim]({stages})[/dim]")
