"""Page 4 of the viewer: two systems, or two judges, case by case, the largest difference first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response

from agenteval.analysis.compared_ratings import RatingQuery, compared_stores
from agenteval.analysis.comparison import CompareOptions
from agenteval.analysis.comparison import compare as compare_tables
from agenteval.analysis.comparison_tables import comparison_tables, comparison_warnings
from agenteval.analysis.gates import gate_lines, regression_gates
from agenteval.errors import InputError
from agenteval.records.table import Cell, Column, Table
from agenteval.reporting.page import (
    Block,
    Columns,
    Fragment,
    Lines,
    Listing,
    Page,
    PageSection,
    Text,
    Tiles,
)
from agenteval.store import Store
from agenteval.store.browse import OriginalRun
from agenteval.utility.page_runs import copy_diff
from agenteval.view.experiments import chosen_judge, judge_choices, judge_name, judge_of
from agenteval.view.grid import page_number, turn_links, waiting_page
from agenteval.view.judge_index import JudgeIndex
from agenteval.view.run import levels_in_words, run_of
from agenteval.view.server import Viewer, page_path, respond

PER_PAGE = 50
MOST_TESTED = 50_000  # results up to which the gate is computed before the page is sent
_ROUND = 1e-9


@dataclass(frozen=True)
class Side:
    """One of two sides: a judge, its index with the runs that take part, and criteria (ids)."""

    name: str
    judge: str
    index: JudgeIndex
    rows: Mapping[str, Sequence[int]]  # pair → positions of its runs
    criteria: Sequence[str]

    def means(self, pairs: Sequence[str], criteria: Sequence[str]) -> NDArray[np.float64]:
        """Return means over the runs of each pair (pairs, criteria), NaN without a value."""
        rows = [i for pair in pairs for i in self.rows[pair]]
        place = np.repeat(np.arange(len(pairs)), [len(self.rows[pair]) for pair in pairs])
        columns = [self.index.column(criterion) for criterion in criteria]
        values = self.index.means[np.ix_(rows, columns)].astype(np.float64)
        rated = ~np.isnan(values)
        total = np.zeros((len(pairs), len(criteria)))
        count = np.zeros((len(pairs), len(criteria)))
        np.add.at(total, place, np.where(rated, values, 0.0))
        np.add.at(count, place, rated)
        means = np.full(total.shape, np.nan)
        np.divide(total, count, out=means, where=count > 0)
        return means

    def run(self, pair: str) -> OriginalRun:
        """Return the first run of a pair."""
        return self.index.runs[self.rows[pair][0]]


@dataclass(frozen=True)
class PairedRun:
    """A case with its mean on both sides; `difference` is b - a."""

    first: OriginalRun
    second: OriginalRun
    a: float
    b: float
    difference: float


def compare_page(viewer: Viewer, request: Request) -> Response:
    """Two systems under one judge (`a`, `b`), or two judges (`judge`, `other`) on the same runs."""
    store, query = viewer.store, request.query_params
    key, source = chosen_judge(store, query.get("judge"))
    index = viewer.indexes.get(key)
    if index is None:
        return waiting_page(request, judge_name(key, source))
    other = judge_of(store, query.get("other")) if query.get("other") else None
    criterion = query.get("criterion") or ""
    sides: list[Side] = []
    if other is not None:
        second = viewer.indexes.get(other[0])
        if second is None:
            return waiting_page(request, judge_name(*other))
        for judge, of_judge in (((key, source), index), (other, second)):
            sides.append(_side(judge_name(*judge), judge[0], of_judge, criterion, None))
    elif len(index.systems) > 1:
        a = query.get("a") or index.systems[0]
        b = query.get("b") or next(s for s in index.systems if s != a)
        sides = [_side(system, key, index, criterion, system) for system in (a, b)]
    pairs = _pairs(*sides) if sides else []
    differing = [p for p in pairs if abs(p.difference) > _ROUND]  # they come first
    number = page_number(query, len(differing), PER_PAGE)
    part = differing[(number - 1) * PER_PAGE : number * PER_PAGE]
    before, after = turn_links(request, number, len(differing), PER_PAGE)
    page = Page("view", "Compare", "", _sections(store, sides, pairs, part))
    return respond(
        request,
        "compare.html",
        page=page,
        query=query,
        judge=key[:16],
        other=other[0][:16] if other else "",
        judges=judge_choices(store),
        system_choices=[(name, name) for name in index.systems],
        sides=[side.name for side in sides],
        criteria=[(c.id, c.name) for c in index.criteria],
        before=before,
        after=after,
    )


def _side(name: str, judge: str, index: JudgeIndex, criterion: str, system: str | None) -> Side:
    """Return a side on a criterion (id; "": the mean of all). Runs of a system are paired by case,
    without a system each run is paired with itself.

    Raises InputError for an unknown criterion or system.
    """
    if criterion and index.column(criterion) < 0:
        raise InputError(f"{name} has no results on {criterion!r}", "criterion")
    if system is not None and system not in index.systems:
        systems = ", ".join(index.systems)
        raise InputError(f"unknown system {system!r}; choose from: {systems}", "system")
    criteria = [criterion] if criterion else [c.id for c in index.criteria]
    rows: dict[str, list[int]] = {}
    for i, run in enumerate(index.runs):
        if system is None:
            rows.setdefault("\0".join((run.task, run.system, run.id)), []).append(i)
        elif run.system == system:
            rows.setdefault(run.case, []).append(i)
    return Side(name, judge, index, rows, criteria)


def _pairs(first: Side, second: Side) -> list[PairedRun]:
    """Return the common cases with a value on both sides, the largest difference first.

    Means are over the criteria that both sides have a value on, so that a failure of one side on a
    criterion does not look like a difference.
    """
    common = [pair for pair in first.rows if pair in second.rows]
    criteria = [criterion for criterion in first.criteria if criterion in second.criteria]
    a, b = (side.means(common, criteria) for side in (first, second))
    both = ~(np.isnan(a) | np.isnan(b))
    count = both.sum(axis=1)
    of_a, of_b = (np.where(both, side, 0.0).sum(axis=1) for side in (a, b))
    pairs = []
    for i, pair in enumerate(common):
        if count[i]:
            mean_a, mean_b = of_a[i] / count[i], of_b[i] / count[i]
            runs = first.run(pair), second.run(pair)
            pairs.append(PairedRun(*runs, mean_a, mean_b, mean_b - mean_a))
    return sorted(pairs, key=lambda p: (-round(abs(p.difference), 9), p.first.id))


# ---- the page ------------------------------------------------------------------------------------


def _sections(
    store: Store, sides: Sequence[Side], pairs: Sequence[PairedRun], part: Sequence[PairedRun]
) -> list[PageSection]:
    if not sides:
        text = "Only one system and one judge: choose another judge to compare with."
        return [PageSection("summary", "", [Text(text)])]
    a, b = sides
    words = ("Got worse", "Got better") if a.judge == b.judge else ("Lower", "Higher")
    lower = sum(p.difference < -_ROUND for p in pairs)
    higher = sum(p.difference > _ROUND for p in pairs)
    counts = (
        (len(pairs), "common cases with values"),
        (sum(p in b.rows for p in a.rows) - len(pairs), "without a common value"),
        (lower, words[0].lower()),
        (higher, words[1].lower()),
        (len(pairs) - lower - higher, "equal"),
    )
    halves = Columns(
        [_cases(words[0], "worse", [p for p in part if p.difference < 0], sides)],
        [_cases(words[1], "better", [p for p in part if p.difference > 0], sides)],
    )
    return [
        PageSection("counts", f"B = {b.name} against A = {a.name}", [Tiles(counts)]),
        PageSection("gate", "Verdict and gate", _gate(store, sides)),
        PageSection("cases", "Cases, largest difference first", [halves] if part else []),
    ]


def _cases(title: str, name: str, pairs: Sequence[PairedRun], sides: Sequence[Side]) -> Block:
    if not pairs:
        return Text("none on this page", "quiet", title)
    columns = (
        Column("run", "run"),
        Column("a", "A", "number"),
        Column("b", "B", "number"),
        Column("difference", "B − A", "signed"),
    )
    a, b = (side.judge[:16] for side in sides)
    rows: list[dict[str, Cell]] = []
    links = {}
    for pair in pairs:
        rows.append({"run": pair.first.id, "a": pair.a, "b": pair.b, "difference": pair.difference})
        links[pair.first.id] = page_path(
            "/compare/case",
            a=pair.first.key,
            b=pair.second.key,
            judge=a,
            other=None if a == b else b,
        )
    return Listing(Table(name, title, columns, tuple(rows)), links)


def _gate(store: Store, sides: Sequence[Side]) -> list[Block]:
    """Return the verdict on every criterion and the gate of `agenteval compare --fail-if`."""
    names, judges = [side.name for side in sides], list(dict.fromkeys(s.judge for s in sides))
    command = f"agenteval compare {names[0]!r} {names[1]!r} --source {judges[0][:12]}"
    if len(judges) == 2:
        command = " ".join(["agenteval compare", *(f"--source {key[:12]}" for key in judges)])
    if sum({side.index.calls: side.index.cells for side in sides}.values()) > MOST_TESTED:
        return [
            Text(
                [
                    f"With more than {MOST_TESTED:,} results the tests take longer than a page "
                    "should. Run ",
                    Fragment(f"{command} --fail-if surely-worse", "code"),
                ]
            )
        ]
    query = RatingQuery(
        systems=tuple(names) if len(judges) == 1 else (),
        judges=tuple(judges),
        task=None,
        two_places=False,
        place_names=(store.shown, store.shown),
    )
    try:
        pair = compared_stores(query, [store, store])
        comparison = compare_tables(
            pair.first, pair.second, pair_by=pair.pair_by, options=CompareOptions()
        )
    except InputError as error:  # for example runs of several tasks
        return [Text(["Not tested: ", str(error), ". Run ", Fragment(command, "code")])]
    gates = gate_lines(regression_gates(comparison, "surely-worse"))
    return [
        Listing(comparison_tables(pair, comparison)[0], titled=False),
        Lines(gates, "Gate: B must not surely be worse than A", empty="No row has a mean."),
        *(Text(line, "warning") for line in comparison_warnings(pair, comparison)),
        Text(["The same with options: ", Fragment(command, "code")], "note"),
    ]


def case_page(viewer: Viewer, request: Request) -> Page:
    """Both runs of a case: their levels side by side, and the difference of their texts."""
    query = request.query_params
    compared = [run_of(viewer.store, query.get(side, "")) for side in ("a", "b")]
    judges = [query.get("judge") or "", query.get("other") or query.get("judge") or ""]
    columns, heads = [Column("criterion", "criterion")], list[str | Fragment]()
    names = {c.id: c.name for run in compared for c in run.criteria.values()}
    rows: list[dict[str, Cell]] = [{"criterion": name} for name in names.values()]
    for side, run, key in zip("ab", compared, judges, strict=True):
        judge = next((j for j in run.judges if j.key.startswith(key)), None)
        letter, system = side.upper(), run.run.system
        head = f"{letter}: {system or run.run.id}" + (f", {judge.name}" if judge else "")
        columns.append(Column(side, head))
        link = page_path("/run", item=run.run.key, judge=key or None)
        heads += [Fragment(f"{letter}: {run.run.id} ({system})", link=link), "  "]
        for row, criterion in zip(rows, names, strict=True):
            results = [r for r in judge.results if r.criterion_id == criterion] if judge else []
            row[side] = levels_in_words(results) if results else None
    first, second = (str(run.body["trajectory"]) for run in compared)
    difference = Text("Both sides are about the same text.", "quiet")
    if first != second:
        diff = copy_diff(first, second)
        difference = Text(diff, "pre", "From A to B: deletions and insertions")
    sections = [
        PageSection("runs", "", [Text(heads)]),
        PageSection("levels", "Levels", [Table("levels", "", tuple(columns), tuple(rows))]),
        PageSection("request", "Request", [Text(str(compared[0].body["problem"]) or "–", "pre")]),
        PageSection("texts", "Work of the systems", [difference]),
    ]
    return Page("view", compared[0].run.id, "", sections)
