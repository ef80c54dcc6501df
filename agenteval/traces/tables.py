"""Tables of findings and of trace statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TypeVar

from agenteval.readers.span_usage import cost_stated, counted_once, tokens_stated
from agenteval.records import GRADES, Findings, Run
from agenteval.records.table import (
    Cell,
    Column,
    Table,
    cells_of,
    column,
    columns_headed,
    columns_of,
    table_of,
)
from agenteval.text import plural
from agenteval.traces.annotations import OVERALL
from agenteval.traces.condense import Options, condense
from agenteval.traces.taxonomy import Taxonomy

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class FinderFindings:
    """One finder with its findings by trace id; `gold` is true for human annotations."""

    name: str
    findings: Mapping[str, Findings]
    gold: bool = False

    @property
    def title(self) -> str:
        """The name shown in tables."""
        return f"{self.name} (gold)" if self.gold else self.name

    def examined(self) -> list[Findings]:
        """Return the findings of the examined traces."""
        return [findings for findings in self.findings.values() if findings.status is None]

    def failures(self) -> Counter[str]:
        """Count the traces that could not be examined, by status."""
        return Counter(f.status for f in self.findings.values() if f.status is not None)

    def labels(self, taxonomy: Taxonomy) -> list[tuple[str, str]]:
        """Return (category, trace) of every finding."""
        return [
            (category_of(finding.category, taxonomy), findings.trace)
            for findings in self.examined()
            for finding in findings.findings
        ]


def category_of(name: str, taxonomy: Taxonomy) -> str:
    """Return the name of the matching leaf, or `name` itself if the taxonomy has none."""
    leaf = taxonomy.find(name)
    return leaf.name if leaf else name


def categories_of(finders: Sequence[FinderFindings], taxonomy: Taxonomy) -> list[str]:
    """Return all categories of findings in taxonomy order, then unknown ones."""
    used = {category for finder in finders for category, _ in finder.labels(taxonomy)}
    ordered = [leaf.name for leaf in taxonomy.leaves if leaf.name in used]
    return [*ordered, *sorted(used - set(ordered))]


def finding_tables(
    finders: Sequence[FinderFindings], taxonomy: Taxonomy, traces: int
) -> tuple[Table, ...]:
    """Return tables of finders, of errors by category, and of grades, if any."""
    tables = [_coverage(finders, traces), _categories(finders, taxonomy), _grades(finders)]
    return tuple(table for table in tables if table.rows)


@dataclass(frozen=True)
class _FinderRow:
    finder: str = column("finder")
    examined: int = column("examined", "count", "examined traces")
    failed: int = column("failed", "count", "traces that could not be examined")
    not_tried: int = column("not\ntried", "count")
    errors: int = column("errors\nfound", "count")
    per_trace: float | None = column("per\ntrace", "seconds", "errors per examined trace")
    clean: int = column("without\nerrors", "count", "examined traces without findings")
    rejected: int = column(
        "rejected",
        "count",
        "rejected findings: the span does not exist, or does not contain the quoted words",
    )
    why: str | None = column("why failed")


def _coverage(finders: Sequence[FinderFindings], traces: int) -> Table:
    rows = []
    some_failed = any(finder.failures() for finder in finders)
    for finder in finders:
        examined, failed = finder.examined(), finder.failures()
        errors = sum(len(f.findings) for f in examined)
        why = ", ".join(f"{status} {n:,}" for status, n in failed.most_common())
        row = _FinderRow(
            finder=finder.title,
            examined=len(examined),
            failed=failed.total(),
            not_tried=traces - len(finder.findings),
            errors=errors,
            per_trace=errors / len(examined) if examined else None,
            clean=sum(not f.findings for f in examined),
            rejected=sum(len(f.rejected) for f in finder.findings.values()),
            why=why if some_failed else None,
        )
        rows.append(row)
    note = (
        "A trace that could not be examined does not count as free of errors; it is excluded "
        "from the other tables."
    )
    title = f"Finders on {plural(traces, 'trace')}"
    return table_of(_FinderRow, "coverage", title, rows, notes=[note], drop_empty=["why"])


def _categories(finders: Sequence[FinderFindings], taxonomy: Taxonomy) -> Table:
    columns = [Column("category", "category"), Column("area", "area")]
    rows: dict[str, dict[str, Cell]] = {}
    for name in categories_of(finders, taxonomy):
        leaf = taxonomy.find(name)
        rows[name] = {"category": name, "area": leaf.area if leaf else "not in the taxonomy"}
    if rows:
        rows["all"] = {"category": "all", "area": ""}
    for i, finder in enumerate(finders):
        labels = finder.labels(taxonomy)
        columns += [
            Column(f"errors_{i}", finder.title, "count", "errors"),
            Column(f"traces_{i}", "traces", "count", "traces with this error"),
        ]
        for name, row in rows.items():
            traces = [trace for category, trace in labels if name in (category, "all")]
            row |= {f"errors_{i}": len(traces), f"traces_{i}": len(set(traces))}
    note = "Errors by finder, with the number of affected traces."
    title = "Errors by category"
    return Table("categories", title, tuple(columns), tuple(rows.values()), (note,))


def _grades(finders: Sequence[FinderFindings]) -> Table:
    columns = [Column("finder", "finder")]
    for name in (*GRADES, OVERALL):
        columns += [
            Column(name, name.replace("_", "\n"), "number", "mean"),
            Column(f"{name}_n", "traces", "count", "traces graded"),
        ]
    rows: list[dict[str, Cell]] = []
    for finder in finders:
        row: dict[str, Cell] = {"finder": finder.title}
        for name in (*GRADES, OVERALL):
            grades = [f.grades[name].value for f in finder.examined() if name in f.grades]
            if values := [value for value in grades if value is not None]:
                row |= {name: sum(values) / len(values), f"{name}_n": len(values)}
        if len(row) > 1:
            rows.append(row)
    note = "Means on the scale of 1 (bad) to 5 (good), with the number of graded traces."
    title = "Grades of traces"
    return Table("grades", title, tuple(columns), tuple(rows), (note,), detail=True)


# -- contents of traces ----------------------------------------------------------------------------


@dataclass(frozen=True)
class TraceStats:
    """Statistics of one trace; `reported` tokens and `cost` come from spans, others are
    estimates."""

    trace: str
    spans: int
    kinds: dict[str, int]
    depth: int
    roots: int
    errors: int
    exceptions: int
    reported: int | None
    cost: float | None
    seconds: float | None
    tokens: int
    condensed: int
    kept: int
    dropped: int

    @property
    def ratio(self) -> float | None:
        """The share of tokens that remains after condensing."""
        return self.condensed / self.tokens if self.tokens else None


def trace_stats(run: Run, budget: int | None = None) -> TraceStats:
    """Return the statistics of a trace, condensed to `budget` tokens (None: texts are not cut)."""
    condensed = condense(run, Options(budget=budget, piece=1 << 40 if budget is None else 3000))
    depths: list[int] = []
    depth_of: dict[str, int] = {}
    for span in run.spans:  # parents come before their children
        depths.append(depth_of.get(span.parent_id or "", 0) + 1)
        depth_of.setdefault(span.id, depths[-1])
    starts = [span.start for span in run.spans if span.start is not None]
    ends = [span.end for span in run.spans if span.end is not None]
    return TraceStats(
        trace=run.id,
        spans=len(run.spans),
        kinds=dict(Counter(span.kind for span in run.spans)),
        depth=max(depths, default=0),
        roots=depths.count(1),
        errors=sum(span.status == "error" for span in run.spans),
        exceptions=sum(e.name == "exception" for span in run.spans for e in span.events),
        reported=_sum(counted_once(run.spans, tokens_stated).values()),
        cost=_sum(counted_once(run.spans, cost_stated).values()),
        seconds=max(ends) - min(starts) if starts and ends else None,
        tokens=condensed.source_tokens,
        condensed=condensed.tokens,
        kept=len(condensed.pieces),
        dropped=sum(condensed.dropped.values()),
    )


def _sum(numbers: Iterable[_Number | None]) -> _Number | None:
    """Return the sum of the numbers that are not None, or None if there are none."""
    stated = [n for n in numbers if n is not None]
    return sum(stated) if stated else None


@dataclass(frozen=True)
class _TraceColumns:
    trace: str = column("trace")
    spans: int = column("spans", "count")


@dataclass(frozen=True)
class _SizeColumns:
    depth: int = column("depth", "count")
    errors: int = column("errors", "count", "spans with status error")
    reported: int | None = column("tokens\nreported", "count", "by spans, each counted once")
    cost: float | None = column("cost", "number", "reported by spans, each counted once")
    tokens: int = column("tokens", "count", "estimated, including repetitions")
    condensed: int = column("condensed", "count")
    ratio: float = column("ratio", "share")


def stats_tables(stats: Sequence[TraceStats]) -> tuple[Table, ...]:
    """Return a table of totals and a table with a row per trace."""
    kinds_of_spans = sorted({kind for s in stats for kind in s.kinds})
    costs = any(s.cost is not None for s in stats)
    columns = (
        *columns_of(_TraceColumns),
        *columns_headed({kind: kind for kind in kinds_of_spans}, "count"),
        *(c for c in columns_of(_SizeColumns) if costs or c.key != "cost"),
    )
    rows = tuple(cells_of(s, columns, **s.kinds) for s in stats)
    notes = ["Tokens are estimated, including repetitions; reported: as stated by spans."]
    if len(stats) == 1:
        return (Table("traces", "1 trace", columns, rows, tuple(notes)),)
    kinds: Counter[str] = Counter()
    for s in stats:
        kinds.update(s.kinds)
    total = replace(
        stats[0],
        trace="all",
        spans=sum(s.spans for s in stats),
        depth=max(s.depth for s in stats),
        errors=sum(s.errors for s in stats),
        reported=_sum(s.reported for s in stats),
        cost=_sum(s.cost for s in stats),
        tokens=sum(s.tokens for s in stats),
        condensed=sum(s.condensed for s in stats),
    )
    sizes, spans = [s.tokens for s in stats], [s.spans for s in stats]
    notes.append(
        f"Per trace, {min(sizes):,} to {max(sizes):,} tokens, median {median(sizes):,.0f}; "
        f"{min(spans):,} to {max(spans):,} spans, median {median(spans):,.0f}."
    )
    row = cells_of(total, columns, **kinds)
    return (
        Table("all", plural(len(stats), "trace"), columns, (row,), tuple(notes)),
        Table("traces", "Each trace", columns, rows, detail=True),
    )
