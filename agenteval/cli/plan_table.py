"""What the plan commands print: the tables of a campaign, causes, and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agenteval.cli.console import clean, clean_lines, out
from agenteval.text import visible_line

if TYPE_CHECKING:
    from rich.table import Table

    from agenteval.cli.table_widths import Part
    from agenteval.evaluators.planning.dissect import Dissection
    from agenteval.evaluators.planning.dsl.lexicon import Lexicon
    from agenteval.evaluators.planning.run import Attempt
    from agenteval.evaluators.planning.tallies import Cause
    from agenteval.report.sheet import PlainTable
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
    from agenteval.report.planning_tables import planning_tables

    for table in planning_tables(attempts, causes, lexicon, brief=brief, threshold=threshold):
        print_table(table)


def print_table(table: PlainTable) -> None:
    """One table with its note below: names broken at their joints, and what does not fit beside
    them in a part of its own."""
    from agenteval.cli.table_widths import EDGES, parts

    table = _one_line_each(table)
    columns = list(zip(table.columns, *table.rows, strict=True))
    for i, found in enumerate(parts(columns, table.right, out().width - EDGES)):
        above, more = ("\n", ", continued") if i else ("", "")
        out().print(f"{above}[italic]{clean(table.title)}{more}[/italic]")
        out().print(_grid(table, found))
    out().print(f"[dim]{clean(table.note)}[/dim]\n" if table.note else "")


def _one_line_each(table: PlainTable) -> PlainTable:
    """The table as it will be seen, so that widths are those of what is printed."""
    from dataclasses import replace

    return replace(
        table,
        columns=tuple(visible_line(head) for head in table.columns),
        rows=tuple(tuple(visible_line(cell) for cell in row) for row in table.rows),
    )


def _grid(table: PlainTable, found: Part) -> Table:
    """The columns of one part as rich prints them."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from agenteval.cli.table_widths import GAP, broken

    grid = Table(box=SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False)

    def text(words: str, i: int, width: int) -> str:
        return clean_lines(broken(words, width, number=table.right[i]))

    own = list(zip(found.columns, found.widths, strict=True))
    for i, width in own:
        # what is longer than its column is folded, not cut: names often differ at their ends
        grid.add_column(text(table.columns[i], i, width), overflow="fold", width=width,
                        justify="right" if table.right[i] else "left")  # fmt: skip
    for row in table.rows:
        grid.add_row(*(text(row[i], i, width) for i, width in own))
    return grid


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
