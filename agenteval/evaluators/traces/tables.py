"""What finders found in traces, and what traces hold, as tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from agenteval.evaluators.traces.condense import Options, condense
from agenteval.evaluators.traces.outline import tokens_of
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.records import GRADES, Findings, Run
from agenteval.records.table import Cell, Column, Table


@dataclass(frozen=True)
class Finder:
    """One finder and its findings by trace id; `gold` for the people it is measured against."""

    name: str
    findings: Mapping[str, Findings]
    gold: bool = False

    @property
    def title(self) -> str:
        """Its name in tables."""
        return f"{self.name} (gold)" if self.gold else self.name

    def known(self) -> Iterator[Findings]:
        """Findings of the traces that it could examine."""
        return (f for f in self.findings.values() if f.status is None)

    def failures(self) -> Counter[str]:
        """Traces that it could not examine, by status."""
        return Counter(f.status for f in self.findings.values() if f.status is not None)


def category_of(name: str, taxonomy: Taxonomy) -> str:
    """The leaf of a spelling; the spelling itself where the taxonomy does not know it."""
    leaf = taxonomy.find(name)
    return leaf.name if leaf else name


def categories_of(finders: Sequence[Finder], taxonomy: Taxonomy) -> list[str]:
    """All categories that somebody named, in the taxonomy's order, then the unknown ones."""
    used = {
        category_of(one.category, taxonomy)
        for finder in finders
        for findings in finder.known()
        for one in findings.findings
    }
    ordered = [leaf.name for leaf in taxonomy.leaves if leaf.name in used]
    return [*ordered, *sorted(used - set(ordered))]


def finding_tables(finders: Sequence[Finder], taxonomy: Taxonomy, traces: int) -> tuple[Table, ...]:
    """Who examined how many of the `traces`, errors by category, and grades where there are any."""
    made = [_coverage(finders, traces), _categories(finders, taxonomy), _grades(finders)]
    return tuple(table for table in made if table is not None)


def _coverage(finders: Sequence[Finder], traces: int) -> Table | None:
    if not finders:
        return None
    columns = (
        Column("finder", "finder"),
        Column("examined", "examined", "count", "traces about which it said something"),
        Column("failed", "failed", "count", "traces that it could not examine"),
        Column("not_tried", "not\ntried", "count"),
        Column("errors", "errors\nfound", "count"),
        Column("per_trace", "per\ntrace", "seconds", "errors for each trace examined"),
        Column("clean", "without\nerrors", "count", "traces examined in which it found none"),
        Column("rejected", "rejected", "count",
               "said, and not taken: no such span, or words that do not stand there"),
        Column("why", "why failed"),
    )  # fmt: skip
    rows: list[dict[str, Cell]] = []
    for finder in finders:
        known, failed = list(finder.known()), finder.failures()
        errors = sum(len(f.findings) for f in known)
        rows.append({
            "finder": finder.title, "examined": len(known), "failed": failed.total(),
            "not_tried": traces - len(finder.findings), "errors": errors,
            "per_trace": errors / len(known) if known else None,
            "clean": sum(not f.findings for f in known),
            "rejected": sum(len(f.rejected) for f in finder.findings.values()),
            "why": ", ".join(f"{status} {n:,}" for status, n in failed.most_common()),
        })  # fmt: skip
    note = (
        "A trace that a finder could not examine is no trace without errors: it is in none of the "
        "other tables."
    )
    if not any(finder.failures() for finder in finders):
        columns = columns[:-1]  # type: ignore[assignment]
        rows = [{key: cell for key, cell in row.items() if key != "why"} for row in rows]
    return Table("coverage", f"Finders on {traces:,} traces", columns, tuple(rows), (note,))


def _categories(finders: Sequence[Finder], taxonomy: Taxonomy) -> Table | None:
    names = categories_of(finders, taxonomy)
    if not names:
        return None
    columns = [Column("category", "category"), Column("area", "area")]
    rows: list[dict[str, Cell]] = []
    for name in names:
        leaf = taxonomy.find(name)
        rows.append({"category": name, "area": leaf.area if leaf else "not in the taxonomy"})
    rows.append({"category": "all", "area": ""})
    for i, finder in enumerate(finders):
        errors: Counter[str] = Counter()
        traces: defaultdict[str, set[str]] = defaultdict(set)
        for findings in finder.known():
            for one in findings.findings:
                name = category_of(one.category, taxonomy)
                errors[name] += 1
                traces[name].add(findings.trace)
        columns += [Column(f"errors_{i}", finder.title, "count", "errors"),
                    Column(f"traces_{i}", "traces", "count", "traces that hold them")]  # fmt: skip
        for row, name in zip(rows, names, strict=False):
            row |= {f"errors_{i}": errors[name], f"traces_{i}": len(traces[name])}
        holding = len(set().union(*traces.values()))
        rows[-1] |= {f"errors_{i}": errors.total(), f"traces_{i}": holding}
    note = "Errors of each finder, and beside them the number of traces that hold them."
    return Table("categories", "Errors by category", tuple(columns), tuple(rows), (note,))


def _grades(finders: Sequence[Finder]) -> Table | None:
    names = (*GRADES, "overall")
    rows: list[dict[str, Cell]] = []
    for finder in finders:
        row: dict[str, Cell] = {"finder": finder.title}
        for name in names:
            given = [g.value for f in finder.known() if (g := f.grades.get(name)) is not None
                     and g.value is not None]  # fmt: skip
            if given:
                row |= {name: sum(given) / len(given), f"{name}_n": len(given)}
        if len(row) > 1:
            rows.append(row)
    if not rows:
        return None
    columns = [Column("finder", "finder")]
    for name in names:
        head = name.replace("_", "\n")
        columns += [Column(name, head, "number", "mean"),
                    Column(f"{name}_n", "traces", "count", "traces graded")]  # fmt: skip
    note = "Means on the scale of 1 (bad) to 5 (good), and beside them the number of traces graded."
    return Table("grades", "Grades of whole traces", tuple(columns), tuple(rows), (note,), None,
                 detail=True)  # fmt: skip


# -- what traces hold ------------------------------------------------------------------------------


@dataclass(frozen=True)
class TraceStats:
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


def trace_stats(run: Run, budget: int | None = None) -> TraceStats:
    """Figures of a trace, condensed within `budget` tokens (None: texts are not cut)."""
    condensed = condense(run, Options(budget=budget, piece=1 << 40 if budget is None else 3000))
    reported = [n for n in map(tokens_of, run.spans) if n is not None]
    depths: list[int] = []
    known: dict[str, int] = {}
    for span in run.spans:  # a parent stands before its children
        depths.append(known.get(span.parent_id or "", 0) + 1)
        known.setdefault(span.id, depths[-1])
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
    """All traces together, then each of them."""
    columns = (
        Column("trace", "trace"), Column("spans", "spans", "count"),
        *(Column(kind, kind, "count") for kind in sorted({k for one in stats for k in one.kinds})),
        Column("depth", "depth", "count"),
        Column("errors", "errors", "count", "spans with status error"),
        Column("reported", "tokens\ntold", "count", "as LLM spans report them"),
        Column("tokens", "tokens", "count", "estimated, every repetition counted"),
        Column("condensed", "condensed", "count"), Column("ratio", "ratio", "share"),
    )  # fmt: skip
    rows = tuple(_stats_row(one) for one in stats)
    reported = [one.reported for one in stats if one.reported is not None]
    names = ("spans", "errors", "tokens", "condensed")
    whole: dict[str, Cell] = {name: sum(getattr(one, name) for one in stats) for name in names}
    kinds: Counter[str] = Counter()
    for one in stats:
        kinds.update(one.kinds)
    tokens = sum(one.tokens for one in stats)
    whole |= {
        "trace": "all", **kinds, "depth": max((one.depth for one in stats), default=0),
        "reported": sum(reported) if reported else None,
        "ratio": sum(one.condensed for one in stats) / tokens if tokens else None,
    }  # fmt: skip
    notes = ["Tokens are estimated, every repetition counted; told: as LLM spans report them."]
    if len(stats) == 1:
        return (Table("traces", "1 trace", columns, rows, tuple(notes)),)
    sizes, spans = [one.tokens for one in stats], [one.spans for one in stats]
    notes.append(
        f"Of a trace {min(sizes):,} to {max(sizes):,} tokens, median {median(sizes):,.0f}; "
        f"{min(spans):,} to {max(spans):,} spans, median {median(spans):,.0f}."
    )
    return (
        Table("all", f"{len(stats):,} traces", columns, (whole,), tuple(notes)),
        Table("traces", "Each trace", columns, rows, detail=True),
    )


def _stats_row(one: TraceStats) -> dict[str, Cell]:
    return {
        "trace": one.trace, "spans": one.spans, **one.kinds, "depth": one.depth,
        "errors": one.errors, "reported": one.reported, "tokens": one.tokens,
        "condensed": one.condensed, "ratio": one.condensed / one.tokens if one.tokens else None,
    }  # fmt: skip
