"""The tables of findings in traces: who examined what, errors by category, grades."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from agenteval.evaluators.traces.score_tables import PlainTable
from agenteval.records import GRADES, slug
from agenteval.records.table import Cell, Column, Table
from agenteval.report.traces_material import Finder, Material

# As in "0.500 (2 cases: too few for a bootstrap)"; "n/a (constant)" stays.
_REASON = re.compile(r"(-?[0-9][0-9.]*) \((.+)\)$")
_NUMBER = re.compile(r"-?[0-9]|-$|n/a")


def finding_tables(material: Material) -> list[Table]:
    """Coverage, categories, grades, then the scores where there are any."""
    made = [_coverage(material), _categories(material), _grades(material)]
    return [*(table for table in made if table is not None), *material.scores]


def failures(finder: Finder) -> Counter[str]:
    """Traces that a finder could not examine, by status."""
    return Counter(f.status for f in finder.findings.values() if f.status is not None)


def table_of(table: PlainTable, *, notes: Sequence[str] | None = None) -> Table:
    """A table of the scorer; `notes` in place of its own where given.

    Why numbers have no interval is said once below, not in every cell.
    """
    reasons = dict.fromkeys(m[2] for row in table.rows for c in row if (m := _REASON.match(c)))
    keys = [f"column_{i}" for i in range(len(table.columns))]
    rows = tuple(
        {key: _REASON.sub(r"\1", text) or None for key, text in zip(keys, row, strict=True)}
        for row in table.rows
    )
    columns = tuple(
        Column(key, name, "count" if _figures(row[i] for row in table.rows) else "text")
        for i, (key, name) in enumerate(zip(keys, table.columns, strict=True))
    )
    lines = [*(table.notes if notes is None else notes), *(f"no interval: {r}" for r in reasons)]
    told = tuple(f"{line[0].upper()}{line[1:].rstrip('.')}." for line in lines if line)
    return Table(f"score-{slug(table.title)}", table.title, columns, rows, told)


def _figures(cells: object) -> bool:
    texts = [str(c) for c in cells]  # type: ignore[attr-defined]
    return bool(texts) and all(_NUMBER.match(text) or not text for text in texts)


def _name(finder: Finder) -> str:
    return f"{finder.name} (gold)" if finder.gold else finder.name


def _coverage(material: Material) -> Table | None:
    if not material.finders:
        return None
    columns = (
        Column("finder", "finder"),
        Column("examined", "examined", "count", "traces about which it said something"),
        Column("failed", "failed", "count", "traces that it could not examine"),
        Column("not_tried", "not tried", "count"),
        Column("errors", "errors found", "count"),
        Column("per_trace", "per trace", "seconds", "errors for each trace examined"),
        Column("clean", "without errors", "count", "traces examined in which it found none"),
        Column("rejected", "rejected", "count",
               "said, and not taken: no such span, or words that do not stand there"),
        Column("why", "why failed"),
    )  # fmt: skip
    total = len(material.traces)
    rows: list[dict[str, Cell]] = []
    for finder in material.finders:
        known = list(finder.known())
        errors, failed = sum(len(f.findings) for f in known), failures(finder)
        rows.append({
            "finder": _name(finder), "examined": len(known), "failed": failed.total(),
            "not_tried": total - len(finder.findings), "errors": errors,
            "per_trace": errors / len(known) if known else None,
            "clean": sum(not f.findings for f in known),
            "rejected": sum(len(f.rejected) for f in finder.findings.values()),
            "why": ", ".join(f"{status} {n:,}" for status, n in failed.most_common()) or None,
        })  # fmt: skip
    note = (
        "A trace that a finder could not examine is no trace without errors: it is in none of the "
        "other tables."
    )
    return Table("coverage", f"Finders on {total:,} traces", columns, tuple(rows), (note,))


def _categories(material: Material) -> Table | None:
    names = material.categories()
    if not names:
        return None
    columns = [Column("category", "category"), Column("area", "area")]
    rows: list[dict[str, Cell]] = []
    for name in names:
        leaf = material.taxonomy.find(name)
        rows.append({"category": name, "area": leaf.area if leaf else "not in the taxonomy"})
    rows.append({"category": "all"})
    for i, finder in enumerate(material.finders):
        errors: Counter[str] = Counter()
        traces: defaultdict[str, set[str]] = defaultdict(set)
        for said in finder.known():
            for one in said.findings:
                name = material.category(one.category)
                errors[name] += 1
                traces[name].add(said.trace)
        columns += [Column(f"errors_{i}", _name(finder), "count", "errors"),
                    Column(f"traces_{i}", "traces", "count", "traces that hold them")]  # fmt: skip
        for row, name in zip(rows, names, strict=False):
            row |= {f"errors_{i}": errors[name], f"traces_{i}": len(traces[name])}
        whole = len(set().union(*traces.values()))
        rows[-1] |= {f"errors_{i}": errors.total(), f"traces_{i}": whole}
    note = "Errors of each finder, and beside them the number of traces that hold them."
    return Table("categories", "Errors by category", tuple(columns), tuple(rows), (note,))


def _grades(material: Material) -> Table | None:
    names = (*GRADES, "overall")
    rows: list[dict[str, Cell]] = []
    for finder in material.finders:
        row: dict[str, Cell] = {"finder": _name(finder)}
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
        columns += [Column(name, name.replace("_", " "), "number", "mean"),
                    Column(f"{name}_n", "traces", "count", "traces graded")]  # fmt: skip
    note = "Means on the scale of 1 (bad) to 5 (good), and beside them the number of traces graded."
    return Table("grades", "Grades of whole traces", tuple(columns), tuple(rows), (note,))
