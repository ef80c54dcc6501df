"""agenteval trace stats: what traces hold, and what condensing leaves of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, out, print_json
from agenteval.cli.trace_files import Paths, each_trace

if TYPE_CHECKING:
    from agenteval.records import Run
    from agenteval.records.table import Cell


@dataclass(frozen=True)
class Stats:
    """Figures of one trace; tokens are estimated but for `reported`, which LLM spans tell."""

    trace: str
    spans: int
    kinds: dict[str, int]
    depth: int
    roots: int
    errors: int
    exceptions: int
    reported: int | None
    seconds: float | None
    tokens: int
    condensed: int
    kept: int
    dropped: int


def stats(
    paths: Paths,
    budget: Annotated[
        int | None, typer.Option(help="Tokens of a condensed trace; default: no limit.", min=256)
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="One line for each trace.")] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Spans by kind, depth, errors, tokens, and the ratio of condensing."""
    Verbosity.level = -1 if quiet else Verbosity.level
    found = [stats_of(run, budget) for run, _ in each_trace(paths)]
    if as_json:
        print_json([vars(one) for one in found])
        return
    _print(found, each=each)


def stats_of(run: Run, budget: int | None) -> Stats:
    """Figures of a trace, condensed within `budget` tokens (None: texts are not cut)."""
    from agenteval.evaluators.traces.condense import Options, condense
    from agenteval.evaluators.traces.outline import tokens_of

    condensed = condense(run, Options(budget=budget, piece=1 << 40 if budget is None else 3000))
    reported = [n for n in map(tokens_of, run.spans) if n is not None]
    depths = _depths(run)
    starts = [span.start for span in run.spans if span.start is not None]
    ends = [span.end for span in run.spans if span.end is not None]
    return Stats(
        trace=run.id,
        spans=len(run.spans),
        kinds=dict(Counter(span.kind for span in run.spans)),
        depth=max(depths, default=0),
        roots=sum(depth == 1 for depth in depths),
        errors=sum(span.status == "error" for span in run.spans),
        exceptions=sum(e.name == "exception" for span in run.spans for e in span.events),
        reported=sum(reported) if reported else None,
        seconds=max(ends) - min(starts) if starts and ends else None,
        tokens=condensed.source_tokens,
        condensed=condensed.tokens,
        kept=len(condensed.pieces),
        dropped=sum(condensed.dropped.values()),
    )


def _depths(run: Run) -> list[int]:
    """Of every span, 1 for a root; a parent stands before its children."""
    known: dict[str, int] = {}
    depths = []
    for span in run.spans:
        depths.append(known.get(span.parent_id or "", 0) + 1)
        known.setdefault(span.id, depths[-1])
    return depths


def _print(found: list[Stats], *, each: bool) -> None:
    from agenteval.records.table import Column, Table
    from agenteval.report.terminal import print_table

    rows = [_row(one) for one in found] if each or len(found) == 1 else []
    if len(found) > 1:
        rows.append(_total(found))
    columns = (
        Column("trace", "trace"), Column("spans", "spans", "count"), Column("kinds", "by kind"),
        Column("depth", "depth", "count"), Column("errors", "errors", "count"),
        Column("reported", "tokens told", "count"), Column("tokens", "tokens", "count"),
        Column("condensed", "condensed", "count"), Column("ratio", "ratio", "share"),
    )  # fmt: skip
    notes = [
        "errors: spans with status error. Tokens: estimated, every repetition counted; told: as "
        "LLM spans report them."
    ]
    if len(found) > 1:
        from statistics import median

        tokens, spans = [one.tokens for one in found], [one.spans for one in found]
        notes.append(
            f"Of a trace {min(tokens):,} to {max(tokens):,} tokens, median {median(tokens):,.0f}; "
            f"{min(spans):,} to {max(spans):,} spans, median {median(spans):,.0f}."
        )
    print_table(Table("stats", f"{len(found):,} traces", columns, tuple(rows), tuple(notes)), out())


def _row(one: Stats) -> dict[str, Cell]:
    from agenteval.report.traces import kinds_of

    return {
        "trace": one.trace, "spans": one.spans, "kinds": kinds_of(one.kinds), "depth": one.depth,
        "errors": one.errors, "reported": one.reported, "tokens": one.tokens,
        "condensed": one.condensed, "ratio": one.condensed / one.tokens if one.tokens else None,
    }  # fmt: skip


def _total(found: list[Stats]) -> dict[str, Cell]:
    told = [one.reported for one in found if one.reported is not None]
    names = ("spans", "roots", "errors", "exceptions", "tokens", "condensed", "kept", "dropped")
    sums: dict[str, Any] = {name: sum(getattr(one, name) for one in found) for name in names}
    kinds: Counter[str] = Counter()
    for one in found:
        kinds.update(one.kinds)
    total = Stats(
        trace="all", kinds=dict(kinds), depth=max(one.depth for one in found),
        reported=sum(told) if told else None, seconds=None, **sums,
    )  # fmt: skip
    return _row(total)
