"""What finders found in traces, and what traces hold, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from agenteval.records import GRADES, Findings, Run
from agenteval.records.table import Cell, Column, Table, cells_of
from agenteval.traces.annotations import OVERALL
from agenteval.traces.condense import Options, condense
from agenteval.traces.outline import tokens_of
from agenteval.traces.taxonomy import Taxonomy


@dataclass(frozen=True)
class FinderFindings:
    """One finder and its findings by trace id; `gold` for the people it is measured against."""

    name: str
    findings: Mapping[str, Findings]
    gold: bool = False

    @property
    def title(self) -> str:
        """Its name in tables."""
        return f"{self.name} (gold)" if self.gold else self.name

    def known(self) -> list[Findings]:
        """Return the findings of the traces that it could examine."""
        return [findings for findings in self.findings.values() if findings.status is None]

    def failures(self) -> Counter[str]:
        """Return the traces that it could not examine, counted by status."""
        return Counter(f.status for f in self.findings.values() if f.status is not None)

    def named(self, taxonomy: Taxonomy) -> list[tuple[str, str]]:
        """Return category and trace of every finding."""
        return [
            (category_of(finding.category, taxonomy), findings.trace)
            for findings in self.known()
            for finding in findings.findings
        ]


def category_of(name: str, taxonomy: Taxonomy) -> str:
    """Return the leaf of a spelling; the spelling itself if the taxonomy does not know it."""
    leaf = taxonomy.find(name)
    return leaf.name if leaf else name


def categories_of(finders: Sequence[FinderFindings], taxonomy: Taxonomy) -> list[str]:
    """Return all categories named, in the taxonomy's order, then the unknown ones."""
    used = {category for finder in finders for category, _ in finder.named(taxonomy)}
    ordered = [leaf.name for leaf in taxonomy.leaves if leaf.name in used]
    return [*ordered, *sorted(used - set(ordered))]


def finding_tables(
    finders: Sequence[FinderFindings], taxonomy: Taxonomy, traces: int
) -> tuple[Table, ...]:
    """Return who examined how many of the `traces`, errors by category, and grades if any."""
    tables = [_coverage(finders, traces), _categories(finders, taxonomy), _grades(finders)]
    return tuple(table for table in tables if table.rows)


def _coverage(finders: Sequence[FinderFindings], traces: int) -> Table:
    columns = [
        Column("finder", "finder"),
        Column("examined", "examined", "count", "traces about which it said something"),
        Column("failed", "failed", "count", "traces that it could not examine"),
        Column("not_tried", "not\ntried", "count"),
        Column("errors", "errors\nfound", "count"),
        Column("per_trace", "per\ntrace", "seconds", "errors for each trace examined"),
        Column("clean", "without\nerrors", "count", "traces examined in which it found none"),
        Column(
            "rejected",
            "rejected",
            "count",
            "said, and not taken: no such span, or words that do not stand there",
        ),
    ]
    some_failed = any(finder.failures() for finder in finders)
    if some_failed:
        columns.append(Column("why", "why failed"))
    rows = []
    for finder in finders:
        examined, failed = finder.known(), finder.failures()
        errors = sum(len(f.findings) for f in examined)
        row: dict[str, Cell] = {
            "finder": finder.title,
            "examined": len(examined),
            "failed": failed.total(),
            "not_tried": traces - len(finder.findings),
            "errors": errors,
            "per_trace": errors / len(examined) if examined else None,
            "clean": sum(not f.findings for f in examined),
            "rejected": sum(len(f.rejected) for f in finder.findings.values()),
        }
        if some_failed:
            row["why"] = ", ".join(f"{status} {n:,}" for status, n in failed.most_common())
        rows.append(row)
    note = (
        "A trace that a finder could not examine is no trace without errors: it is in none of the "
        "other tables."
    )
    return Table("coverage", f"Finders on {traces:,} traces", tuple(columns), tuple(rows), (note,))


def _categories(finders: Sequence[FinderFindings], taxonomy: Taxonomy) -> Table:
    columns = [Column("category", "category"), Column("area", "area")]
    rows: dict[str, dict[str, Cell]] = {}
    for name in categories_of(finders, taxonomy):
        leaf = taxonomy.find(name)
        rows[name] = {"category": name, "area": leaf.area if leaf else "not in the taxonomy"}
    if rows:
        rows["all"] = {"category": "all", "area": ""}
    for i, finder in enumerate(finders):
        named = finder.named(taxonomy)
        columns += [
            Column(f"errors_{i}", finder.title, "count", "errors"),
            Column(f"traces_{i}", "traces", "count", "traces that hold them"),
        ]
        for name, row in rows.items():
            holding = [trace for category, trace in named if name in (category, "all")]
            row |= {f"errors_{i}": len(holding), f"traces_{i}": len(set(holding))}
    note = "Errors of each finder, and beside them the number of traces that hold them."
    title = "Errors by category"
    return Table("categories", title, tuple(columns), tuple(rows.values()), (note,))


def _grades(finders: Sequence[FinderFindings]) -> Table:
    names = (*GRADES, OVERALL)
    columns = [Column("finder", "finder")]
    for name in names:
        columns += [
            Column(name, name.replace("_", "\n"), "number", "mean"),
            Column(f"{name}_n", "traces", "count", "traces graded"),
        ]
    rows: list[dict[str, Cell]] = []
    for finder in finders:
        row: dict[str, Cell] = {"finder": finder.title}
        for name in names:
            grades = [f.grades[name].value for f in finder.known() if name in f.grades]
            if values := [value for value in grades if value is not None]:
                row |= {name: sum(values) / len(values), f"{name}_n": len(values)}
        if len(row) > 1:
            rows.append(row)
    note = "Means on the scale of 1 (bad) to 5 (good), and beside them the number of traces graded."
    table = Table("grades", "Grades of whole traces", tuple(columns), tuple(rows), (note,))
    return replace(table, detail=True)


# -- what traces hold ------------------------------------------------------------------------------


@dataclass(frozen=True)
class TraceStats:
    """Figures of one trace; tokens are estimated except `reported`, which LLM spans tell."""

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

    @property
    def ratio(self) -> float | None:
        """Share of the tokens that is left after condensing."""
        return self.condensed / self.tokens if self.tokens else None


def trace_stats(run: Run, budget: int | None = None) -> TraceStats:
    """Figures of a trace, condensed within `budget` tokens (None: texts are not cut)."""
    condensed = condense(run, Options(budget=budget, piece=1 << 40 if budget is None else 3000))
    reported = [n for n in map(tokens_of, run.spans) if n is not None]
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


def stats_tables(stats: Sequence[TraceStats]) -> tuple[Table, ...]:
    """Return a table of all traces together, and one of each of them."""
    columns = (
        Column("trace", "trace"),
        Column("spans", "spans", "count"),
        *(Column(kind, kind, "count") for kind in sorted({k for s in stats for k in s.kinds})),
        Column("depth", "depth", "count"),
        Column("errors", "errors", "count", "spans with status error"),
        Column("reported", "tokens\ntold", "count", "as LLM spans report them"),
        Column("tokens", "tokens", "count", "estimated, every repetition counted"),
        Column("condensed", "condensed", "count"),
        Column("ratio", "ratio", "share"),
    )
    rows = tuple(cells_of(s, columns, **s.kinds) for s in stats)
    notes = ["Tokens are estimated, every repetition counted; told: as LLM spans report them."]
    if len(stats) == 1:
        return (Table("traces", "1 trace", columns, rows, tuple(notes)),)
    sums: dict[str, Cell] = {
        name: sum(getattr(s, name) for s in stats)
        for name in ("spans", "errors", "tokens", "condensed")
    }
    tokens, condensed = (sum(getattr(s, name) for s in stats) for name in ("tokens", "condensed"))
    reported = [s.reported for s in stats if s.reported is not None]
    kinds: Counter[str] = Counter()
    for s in stats:
        kinds.update(s.kinds)
    whole: dict[str, Cell] = {
        "trace": "all",
        **kinds,
        **sums,
        "depth": max((s.depth for s in stats), default=0),
        "reported": sum(reported) if reported else None,
        "ratio": condensed / tokens if tokens else None,
    }
    sizes, spans = [s.tokens for s in stats], [s.spans for s in stats]
    notes.append(
        f"Of a trace {min(sizes):,} to {max(sizes):,} tokens, median {median(sizes):,.0f}; "
        f"{min(spans):,} to {max(spans):,} spans, median {median(spans):,.0f}."
    )
    return (
        Table("all", f"{len(stats):,} traces", columns, (whole,), tuple(notes)),
        Table("traces", "Each trace", columns, rows, detail=True),
    )
