"""The tables of findings: one form for the page, one of plain text for the terminal."""

from __future__ import annotations

from collections import Counter, defaultdict

from agenteval.evaluators.traces.tables import Finder
from agenteval.records import GRADES, slug
from agenteval.records.table import Table
from agenteval.records.table import shown as text_of
from agenteval.report.grid import Cell, Grid, Head, count, number, words
from agenteval.report.sheet import Sheet
from agenteval.report.text import shown
from agenteval.report.traces_material import Material


def sheets(material: Material) -> list[Sheet]:
    """Coverage, categories, grades, then the scores where there are any."""
    made = [_coverage(material), _categories(material), _grades(material)]
    return [*(s for s in made if s is not None), *map(sheet_of, material.scores)]


def sheet_of(table: Table) -> Sheet:
    """A table as the page shows it."""
    heads = tuple(Head(shown(c.head.replace("\n", " ")), c.hint, c.number) for c in table.columns)
    rows = tuple(
        tuple(Cell(shown(text_of(row.get(c.key), c.form)), None, c.number) for c in table.columns)
        for row in table.rows
    )
    note = ". ".join(one[0].upper() + one[1:] for one in table.notes if one)
    return Sheet(Grid(f"score-{slug(table.title)}", shown(table.title), heads, rows), shown(note))


def failures(finder: Finder) -> Counter[str]:
    """Traces that a finder could not examine, by status."""
    return Counter(f.status for f in finder.findings.values() if f.status is not None)


def _coverage(material: Material) -> Sheet | None:
    if not material.finders:
        return None
    heads = (Head("finder"), Head("examined", "traces about which it said something", True),
             Head("failed", "traces that it could not examine", True),
             Head("not tried", "", True), Head("errors found", "", True),
             Head("per trace", "errors for each trace examined", True),
             Head("without errors", "traces examined in which it found none", True),
             Head("rejected", "said, and not taken: no such span, or words that do not stand there",
                  True), Head("why failed"))  # fmt: skip
    total = len(material.traces)
    rows = []
    for finder in material.finders:
        known = list(finder.known())
        found = sum(len(f.findings) for f in known)
        failed = failures(finder)
        why = ", ".join(f"{status} {n:,}" for status, n in failed.most_common())
        rows.append((
            words(_name(finder)), count(len(known)),
            Cell(f"{failed.total():,}", failed.total(), True, "fail" if failed else "zero"),
            count(total - len(finder.findings)), count(found),
            number(found / len(known) if known else None, ".1f"),
            count(sum(not f.findings for f in known)),
            count(sum(len(f.rejected) for f in finder.findings.values())), words(why),
        ))  # fmt: skip
    note = (
        "A trace that a finder could not examine is no trace without errors: it is in none of the "
        "other tables."
    )
    return Sheet(Grid("coverage", f"Finders on {total:,} traces", heads, tuple(rows)), note)


def _categories(material: Material) -> Sheet | None:
    names = material.categories()
    if not names:
        return None
    heads = [Head("category"), Head("area")]
    columns = []
    for finder in material.finders:
        heads.append(Head(_name(finder), "errors (in so many traces)", True))
        errors: Counter[str] = Counter()
        traces: defaultdict[str, set[str]] = defaultdict(set)
        for said in finder.known():
            for one in said.findings:
                name = material.category(one.category)
                errors[name] += 1
                traces[name].add(said.trace)
        columns.append((errors, traces))
    rows = []
    for name in names:
        leaf = material.taxonomy.find(name)
        area = words(leaf.area) if leaf else words("not in the taxonomy", kind="fail")
        cells = [_times(errors[name], len(traces[name])) for errors, traces in columns]
        rows.append((words(name), area, *cells))
    totals = [_times(errors.total(), len(set().union(*traces.values())))
              for errors, traces in columns]  # fmt: skip
    rows.append((words("all"), words(""), *totals))
    note = "Errors, and in brackets the number of traces that hold them."
    return Sheet(Grid("categories", "Errors by category", tuple(heads), tuple(rows)), note)


def _times(errors: int, traces: int) -> Cell:
    return Cell(
        f"{errors:,} ({traces:,})" if errors else "0", errors, True, "" if errors else "zero"
    )


def _grades(material: Material) -> Sheet | None:
    names = (*GRADES, "overall")
    rows = []
    for finder in material.finders:
        given = {n: [g.value for f in finder.known() if (g := f.grades.get(n)) is not None
                     and g.value is not None] for n in names}  # fmt: skip
        if any(given.values()):
            rows.append((words(_name(finder)), *(_average(given[n]) for n in names)))
    if not rows:
        return None
    heads = (Head("finder"), *(Head(n.replace("_", " "), "mean (number of traces)", True)
                               for n in names))  # fmt: skip
    note = "Means on the scale of 1 (bad) to 5 (good); in brackets the number of traces graded."
    return Sheet(Grid("grades", "Grades of whole traces", heads, tuple(rows)), note)


def _average(values: list[float]) -> Cell:
    if not values:
        return number(None)
    average = sum(values) / len(values)
    return Cell(f"{average:.2f} ({len(values):,})", average, True)


def _name(finder: Finder) -> str:
    return shown(f"{finder.name} (gold)" if finder.gold else finder.name)
