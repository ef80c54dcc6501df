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
from agenteval.records import RUBRIC, Criterion
from agenteval.reporting.page import Page, PageSection, Text
from agenteval.stats.scores import ORIGINAL
from agenteval.store import Store
from agenteval.store.browse import OriginalRun, calls_of, runs_with_text
from agenteval.view.experiments import judge_choices, judge_name, judge_of
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
    cells: tuple[GridCell | None, ...]
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class GridHead:
    """Head of a column; `link` sorts by it ("": it cannot), `aria` says how it is sorted."""

    name: str
    link: str = ""
    aria: str = "none"


@dataclass(frozen=True)
class GridView:
    """One page of the grid."""

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
    judge = judge_of(store, query.get("judge"))
    if judge is None:
        raise InputError("no judge of this store has results yet", query.get("judge", "judge"))
    key, source = judge
    index = viewer.indexes.get(key)
    name = judge_name(key, source)
    if index is None:
        return waiting_page(request, name)
    chosen = np.flatnonzero(_filter(store, index, query))
    if criterion := query.get("by"):
        view = _by_system(request, store, key, index, chosen, criterion)
    else:
        view = _by_criterion(request, store, key, index, chosen)
    return respond(
        request,
        "grid.html",
        page=Page("view", f"Runs judged by {name}", "", ()),
        view=view,
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
    judge = judge_of(viewer.store, query.get("judge"))
    if judge is None:
        raise InputError("no judge of this store has results yet", "judge")
    index = ready_index(viewer, judge[0])
    chosen = np.flatnonzero(_filter(viewer.store, index, query))
    falling = query.get("order") == "desc"
    ordered = _order(index, chosen, query.get("sort") or "id", falling=falling)
    return judge[0], [index.runs[i].key for i in ordered]


def _choices(index: JudgeIndex) -> dict[str, list[tuple[str, str]]]:
    """Return what the filter offers: pairs of value and text by parameter."""
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
    """Return which runs the address asks for. Raises InputError for a word that it cannot mean."""
    keep = np.ones(len(index.runs), dtype=np.bool_)
    if system := query.get("system"):
        keep &= np.array([run.system == system for run in index.runs], dtype=np.bool_)
    if success := query.get("success"):
        if success not in _SUCCESS:
            raise InputError(f"must be yes, no or unknown, not {success!r}", "success")
        keep &= np.array([run.success is _SUCCESS[success] for run in index.runs], dtype=np.bool_)
    if status := query.get("status"):
        keep &= _with_status(index, status)
    if level := query.get("level"):
        keep &= _with_level(index, query.get("criterion"), level)
    if text := query.get("text"):
        matching = runs_with_text(store, text)
        keep &= np.array([run.key in matching for run in index.runs], dtype=np.bool_)
    return keep


def _with_status(index: JudgeIndex, status: str) -> NDArray[np.bool_]:
    counts = index.failed
    if status in index.statuses:
        counts = index.failures[:, index.statuses.index(status)]
    elif status not in ("rated", "failure"):
        counts = np.zeros(len(index.runs), dtype=np.int32)
    return np.equal(counts, 0) if status == "rated" else np.greater(counts, 0)


def _with_level(index: JudgeIndex, criterion: str | None, level: str) -> NDArray[np.bool_]:
    """Return runs of which a repeat has the level, on the criterion or on any."""
    keep = np.zeros(len(index.runs), dtype=np.bool_)
    for i, c in enumerate(index.criteria):
        if criterion in (None, "", c.id) and level in c.accepted_values[:32]:
            keep |= (index.levels[:, i] >> c.accepted_values.index(level)) & 1 == 1
    return keep


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
    """Return the addresses of the pages before and after, None where there is none."""
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
    part = [index.runs[i] for i in ordered[(number - 1) * PER_PAGE : number * PER_PAGE]]
    columns = range(min(len(index.criteria), MOST_CRITERIA))
    cells = _cells(store, key, index, part)
    rows = [
        GridRow(
            run.id,
            run.system,
            page_path("/run", item=run.key, judge=key[:16]),
            run.success,
            tuple(cells.get((run.key, index.keys[i])) for i in columns),
        )
        for run in part
    ]
    heads = [_head(request, index.criteria[i], sort, falling=falling) for i in columns]
    first = (number - 1) * PER_PAGE + 1
    return GridView(
        heads, rows, len(ordered), first, *turn_links(request, number, len(ordered), PER_PAGE)
    )


def _head(request: Request, c: Criterion, sort: str, *, falling: bool) -> GridHead:
    order = "desc" if sort == c.id and not falling else None
    aria = ("descending" if falling else "ascending") if sort == c.id else "none"
    return GridHead(c.name, page_url(request, sort=c.id, order=order, page=None), aria)


def _by_system(
    request: Request,
    store: Store,
    key: str,
    index: JudgeIndex,
    chosen: NDArray[np.int64],
    criterion: str,
) -> GridView:
    """Return cases by systems on one criterion. Raises InputError for an unknown criterion."""
    column = index.column(criterion)
    if column < 0:
        raise InputError(f"the judge has not rated {criterion!r}", "by")
    by_case: dict[str, dict[str, OriginalRun]] = {}
    for i in chosen:
        run = index.runs[i]
        by_case.setdefault(run.case, {}).setdefault(run.system, run)
    systems = index.systems
    cases = sorted(by_case.values(), key=lambda runs: min(run.id for run in runs.values()))
    number = page_number(request.query_params, len(cases), PER_PAGE)
    part = cases[(number - 1) * PER_PAGE : number * PER_PAGE]
    cells = _cells(store, key, index, [run for runs in part for run in runs.values()])
    rows = []
    for runs in part:
        first = next(iter(runs.values()))
        places = [runs.get(system) for system in systems]
        rows.append(
            GridRow(
                min(run.id for run in runs.values()),
                "",
                page_path("/run", item=first.key, judge=key[:16]),
                None,
                tuple(cells.get((run.key, index.keys[column])) if run else None for run in places),
                tuple(
                    page_path("/run", item=run.key, judge=key[:16]) if run else "" for run in places
                ),
            )
        )
    heads = [GridHead(system) for system in systems]
    start = (number - 1) * PER_PAGE + 1
    return GridView(
        heads, rows, len(cases), start, *turn_links(request, number, len(cases), PER_PAGE)
    )


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
