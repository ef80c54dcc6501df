"""Page 2 of the viewer: runs by criteria, repeats as dots, sorted and filtered by the address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from agenteval.errors import InputError
from agenteval.records import RUBRIC
from agenteval.reporting.page import Page, PageSection, Text
from agenteval.stats.scores import ORIGINAL
from agenteval.store import Store
from agenteval.store.browse import OriginalRun, calls_of, runs_with_text
from agenteval.view.experiments import chosen_judge, judge_choices, judge_name
from agenteval.view.judge_index import JudgeIndex
from agenteval.view.server import Viewer, page_path, page_url, respond

PER_PAGE = 50
MOST_CRITERIA = 40  # columns
_PATIENCE = 30.0  # seconds for which a form waits for a judge to be read
_SUCCESS = {"yes": True, "no": False, "unknown": None}
_SORTS = {
    "id": "id",
    "mean": "mean of all criteria",
    "spread": "disagreement of repeats",
    "failed": "failures",
    "length": "length",
}


@dataclass(frozen=True)
class Dot:
    """One repeat: `kind` is "low", "middle", "high", "plain" (no order) or "failure", `text` its
    level."""

    kind: str
    text: str
    title: str


@dataclass(frozen=True)
class GridCell:
    """The repeats of a run on a criterion, and the most common level in words."""

    text: str
    kind: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class GridRow:
    """A run with its link and one cell for each column; None where it was not judged."""

    name: str
    about: str
    link: str
    success: bool | None
    cells: Sequence[GridCell | None]
    links: Sequence[str] = ()


@dataclass(frozen=True)
class GridHead:
    """Head of a column; `link` sorts by it ("": it cannot), `aria` says how it is sorted."""

    name: str
    link: str = ""
    aria: str = "none"


@dataclass(frozen=True)
class GridView:
    """One page of the grid; `first` is the number of its first row of `total`."""

    heads: Sequence[GridHead]
    rows: Sequence[GridRow]
    total: int
    first: int
    before: str | None
    after: str | None


def waiting_page(request: Request, name: str) -> Response:
    """Return the page that is shown while a judge is being read; it reloads by itself."""
    line = f"Reading the results of {name}. The page reloads by itself."
    sections = [PageSection("reading", "", [Text(line)])]
    response = respond(request, "view.html", page=Page("view", "One moment", "", sections))
    response.headers["refresh"] = "1"
    return response


def grid_page(viewer: Viewer, request: Request) -> Response:
    """Runs by criteria of one judge, or cases by systems on one criterion."""
    store, query = viewer.store, request.query_params
    key, source = chosen_judge(store, query.get("judge"))
    index = viewer.indexes.get(key)
    name = judge_name(key, source)
    if index is None:
        return waiting_page(request, name)
    chosen = np.flatnonzero(_filter(store, index, query))
    make = _by_system if query.get("by") else _by_criterion
    return respond(
        request,
        "grid.html",
        page=Page("view", f"Runs judged by {name}", "", ()),
        view=make(request, store, key, index, chosen),
        index=index,
        query=query,
        filter=str(query),
        judge=key[:16],
        judges=judge_choices(store),
        choices=_choices(index),
        filtered=any(query.get(name) for name in ("system", "success", "status", "level")),
        old=index.calls != calls_of(store, key),
    )


def ready_index(viewer: Viewer, source_key: str) -> JudgeIndex:
    """Return the index of a judge. Raises InputError while it is being read."""
    index = viewer.indexes.get(source_key, patience=_PATIENCE)
    if index is None:
        raise InputError("the judge is still being read; try again", "judge")
    return index


def filtered_runs(viewer: Viewer, query: QueryParams) -> tuple[str, list[str]]:
    """Return the judge of a filter (source key) and the runs that fit, in the order of the grid.

    Raises InputError as the grid, and while the judge is still being read.
    """
    key, _ = chosen_judge(viewer.store, query.get("judge"))
    index = ready_index(viewer, key)
    chosen = np.flatnonzero(_filter(viewer.store, index, query))
    falling = query.get("order") == "desc"
    ordered = _order(index, chosen, query.get("sort") or "id", falling=falling)
    return key, [index.runs[i].key for i in ordered]


def _choices(index: JudgeIndex) -> dict[str, list[tuple[str, str]]]:
    """Return the filter's choices: pairs of value and text by parameter."""
    criteria = [(c.id, c.name) for c in index.criteria]
    levels = dict.fromkeys(level for c in index.criteria for level in c.accepted_values)
    return {
        "system": [(name, name) for name in index.systems],
        "success": [("yes", "successful"), ("no", "failed"), ("unknown", "unknown")],
        "status": [("rated", "all rated"), ("failure", "with a failure")]
        + [(status, status) for status in index.statuses],
        "level": [(level, level) for level in levels],
        "criterion": criteria,
        "sort": [*list(_SORTS.items())[1:], *criteria],
        "order": [("desc", "falling")],
        "by": criteria,
    }


# ---- which runs ----------------------------------------------------------------------------------


def _filter(store: Store, index: JudgeIndex, query: QueryParams) -> NDArray[np.bool_]:
    """Return the runs that the address selects. Raises InputError for an invalid word."""
    keep = np.ones(len(index.runs), dtype=np.bool_)
    if system := query.get("system"):
        keep &= np.array([run.system == system for run in index.runs], dtype=np.bool_)
    if success := query.get("success"):
        if success not in _SUCCESS:
            raise InputError(f"must be yes, no or unknown, not {success!r}", "success")
        keep &= np.array([run.success is _SUCCESS[success] for run in index.runs], dtype=np.bool_)
    if status := query.get("status"):
        keep &= _with_status(index, status)
    if level := query.get("level"):  # of any repeat, on the criterion or on any
        having = np.zeros(len(index.runs), dtype=np.bool_)
        for i, c in enumerate(index.criteria):
            if query.get("criterion") in (None, "", c.id) and level in c.accepted_values[:32]:
                having |= (index.levels[:, i] >> c.accepted_values.index(level)) & 1 == 1
        keep &= having
    if text := query.get("text"):
        matching = runs_with_text(store, text)
        keep &= np.array([run.key in matching for run in index.runs], dtype=np.bool_)
    return keep


def _with_status(index: JudgeIndex, status: str) -> NDArray[np.bool_]:
    if status == "rated":
        return np.equal(index.failed, 0)
    if status == "failure":
        return np.greater(index.failed, 0)
    if status in index.statuses:
        return np.greater(index.failures[:, index.statuses.index(status)], 0)
    return np.zeros(len(index.runs), dtype=np.bool_)


def _order(
    index: JudgeIndex, chosen: NDArray[np.int64], sort: str, *, falling: bool
) -> NDArray[np.int64]:
    """Return the chosen runs in order; those without a value are last. Raises InputError."""
    if sort == "id":
        names = [(index.runs[i].id, index.runs[i].system) for i in chosen]
        ranked = sorted(range(len(chosen)), key=names.__getitem__, reverse=falling)
        return chosen[np.array(ranked, dtype=np.int64)]
    if sort == "length":
        values = np.array([run.length for run in index.runs], dtype=np.float64)
    elif sort == "failed":
        values = index.failed.astype(np.float64)
    elif (column := index.column(sort)) >= 0:
        values = index.means[:, column].astype(np.float64)
    elif sort in _SORTS:
        values = across(index.means if sort == "mean" else index.spreads, mean=sort == "mean")
    else:
        raise InputError(f"cannot sort by {sort!r}", "sort")
    keys = values[chosen]
    keys = np.where(np.isnan(keys), np.inf, -keys if falling else keys)
    return chosen[np.argsort(keys, kind="stable")]


def across(values: NDArray[np.float32], *, mean: bool) -> NDArray[np.float64]:
    """Return the mean or the largest value of each row, NaN for a row without any."""
    rated = ~np.isnan(values)
    if mean:
        total, count = np.where(rated, values, 0).sum(axis=1), rated.sum(axis=1)
        result = np.full(len(values), np.nan)
        np.divide(total, count, out=result, where=count > 0)
        return result
    largest = np.where(rated, values, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(np.isinf(largest), np.nan, largest)


# ---- one page ------------------------------------------------------------------------------------


def page_number(query: QueryParams, total: int, size: int) -> int:
    """Return the page that the address names, from 1 to the last one."""
    text = query.get("page", "1")
    last = max(-(-total // size), 1)
    return min(max(int(text), 1), last) if text.isascii() and text.isdigit() else 1


def turn_links(
    request: Request, number: int, total: int, size: int
) -> tuple[str | None, str | None]:
    """Return the addresses of the previous and next page, or None."""
    before = page_url(request, page=str(number - 1)) if number > 1 else None
    after = page_url(request, page=str(number + 1)) if number * size < total else None
    return before, after


def _by_criterion(
    request: Request, store: Store, key: str, index: JudgeIndex, chosen: NDArray[np.int64]
) -> GridView:
    query = request.query_params
    sort, falling = query.get("sort") or "id", query.get("order") == "desc"
    ordered = _order(index, chosen, sort, falling=falling)
    number = page_number(query, len(ordered), PER_PAGE)
    first = (number - 1) * PER_PAGE
    part = [index.runs[i] for i in ordered[first : first + PER_PAGE]]
    shown = range(min(len(index.criteria), MOST_CRITERIA))
    cells = _cells(store, key, index, part)
    rows = []
    for run in part:
        of_run = [cells.get((run.key, index.keys[i])) for i in shown]
        rows.append(GridRow(run.id, run.system, _run_link(run, key), run.success, of_run))
    heads = []
    for c in index.criteria[: len(shown)]:
        order = "desc" if sort == c.id and not falling else None
        aria = ("descending" if falling else "ascending") if sort == c.id else "none"
        heads.append(GridHead(c.name, page_url(request, sort=c.id, order=order, page=None), aria))
    turns = turn_links(request, number, len(ordered), PER_PAGE)
    return GridView(heads, rows, len(ordered), first + 1, *turns)


def _run_link(run: OriginalRun, key: str) -> str:
    return page_path("/run", item=run.key, judge=key[:16])


def _by_system(
    request: Request, store: Store, key: str, index: JudgeIndex, chosen: NDArray[np.int64]
) -> GridView:
    """Return cases by systems on one criterion. Raises InputError for an unknown criterion."""
    criterion = request.query_params["by"]
    column = index.column(criterion)
    if column < 0:
        raise InputError(f"the judge has not rated {criterion!r}", "by")
    by_case: dict[str, dict[str, OriginalRun]] = {}
    for run in (index.runs[i] for i in chosen):
        by_case.setdefault(run.case, {}).setdefault(run.system, run)
    cases = sorted(by_case.values(), key=lambda runs: min(run.id for run in runs.values()))
    number = page_number(request.query_params, len(cases), PER_PAGE)
    first = (number - 1) * PER_PAGE
    part = cases[first : first + PER_PAGE]
    cells = _cells(store, key, index, [run for runs in part for run in runs.values()])
    rows = []
    for runs in part:
        name, link = min(run.id for run in runs.values()), _run_link(next(iter(runs.values())), key)
        places = [runs.get(system) for system in index.systems]
        of_case = [cells.get((run.key, index.keys[column])) if run else None for run in places]
        links = [_run_link(run, key) if run else "" for run in places]
        rows.append(GridRow(name, "", link, None, of_case, links))
    heads = [GridHead(system) for system in index.systems]
    turns = turn_links(request, number, len(cases), PER_PAGE)
    return GridView(heads, rows, len(cases), first + 1, *turns)


def _cells(
    store: Store, key: str, index: JudgeIndex, runs: Sequence[OriginalRun]
) -> dict[tuple[str, str], GridCell]:
    """Return the cells of these runs by the keys of run and criterion."""
    criteria = dict(zip(index.keys, index.criteria, strict=True))
    of_rubrics = next((k for k, c in criteria.items() if c.id == RUBRIC), "")
    rubrics = store.rubrics_of(key) if of_rubrics else {}
    repeats: dict[tuple[str, str], list[Dot]] = {}
    cells = store.cells(key, variant=ORIGINAL, items=[run.key for run in runs])
    for item, _, criterion, repeat, status, label, value, _ in cells:
        column = of_rubrics if rubrics.get(item) == criterion else criterion
        superseded = column == of_rubrics and rubrics.get(item) != criterion
        if column in criteria and not superseded:
            failed = ":" in status
            word = status.partition(":")[2].replace("_", " ") if failed else label
            word = word or ("" if value is None else f"{value:.2f}") or status
            dot = Dot(_kind(value, failed=failed), word, f"repeat {repeat + 1}: {word}")
            repeats.setdefault((item, column), []).append(dot)
    return {place: _grid_cell(dots) for place, dots in repeats.items()}


def _grid_cell(dots: Sequence[Dot]) -> GridCell:
    (text, kind), count = Counter((dot.text, dot.kind) for dot in dots).most_common(1)[0]
    if count < len(dots):
        text += f" {count}/{len(dots)}"
    return GridCell(text, kind, tuple(dots))


def _kind(value: float | None, *, failed: bool) -> str:
    if failed:
        return "failure"
    if value is None:
        return "plain"
    return "low" if value < 1 / 3 else "middle" if value < 2 / 3 else "high"
