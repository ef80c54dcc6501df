"""Page 5 of the viewer: the evidence of the verifier as pictures, linked to the runs behind it."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from agenteval.errors import InputError
from agenteval.records.verification import VerifiedSet
from agenteval.reporting import charts, plots
from agenteval.reporting.charts import Series
from agenteval.reporting.page import (
    Answer,
    AnswerKind,
    Block,
    Fragment,
    Gallery,
    Listing,
    Page,
    PageSection,
    Picture,
    Text,
    with_code,
)
from agenteval.reporting.style import svg
from agenteval.stats.proportion import proportion_interval
from agenteval.utility.page_tables import trust_table
from agenteval.utility.tables import effects_table, evidence_by_system, evidence_table
from agenteval.view.experiments import chosen_judge, judge_choices, judge_name, judge_of, minute
from agenteval.view.judge_index import JudgeIndex
from agenteval.view.server import Viewer, page_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIGURES = {
    "effects": (
        "Effects",
        "Original minus copy by criterion and perturbation. Damage that a judge notices lies right "
        "of zero.",
    ),
    "systems": (
        "Effects by system",
        "The same for each system. A judge that notices damage in one system alone should not "
        "compare them.",
    ),
    "points": (
        "Agreement and discrimination",
        "Do repeats agree, and are successful runs rated above failed ones?",
    ),
    "reliability": (
        "Reliability",
        "Share of successful runs against the judge's mean. It should rise.",
    ),
}
_drawing = threading.Lock()
_PATIENCE = 30.0  # seconds for which a figure waits for the results to be read
_MOST_PANELS = 12  # criteria in the reliability figure
_FEWEST_RUNS = 10


def trust_page(viewer: Viewer, request: Request) -> Page | Response:
    """Return the page with the verdict of `verify` on a judge, or a note that it was not
    verified."""
    store = viewer.store
    key, source = chosen_judge(store, request.query_params.get("judge"))
    title = f"Can {judge_name(key, source)} be trusted?"
    links_to_judges: list[str | Fragment] = []
    for other, name in judge_choices(store):
        links_to_judges += [Fragment(name, link=page_path("/trust", judge=other)), "  "]
    stored = store.verdict_on(key)
    if stored is None:
        command = Fragment("agenteval verify", "code")
        words: list[str | Fragment] = ["It was not verified yet: run ", command]
        sections = [
            PageSection("summary", "", [Text(words), Text(links_to_judges, "quiet", "Judges")])
        ]
        return Page("view", title, "", sections)
    index = viewer.indexes.get(key)
    result, day = stored.result, minute(stored.made)
    names = {c.id: c.name for c in index.criteria} if index else {}
    links = {
        names.get(v.criterion_id, v.criterion_id): page_path(
            "/grid", judge=key[:16], sort=v.criterion_id
        )
        for v in result.criteria
    }
    pictures = [
        Picture(title, caption, page_path("/trust/figure", judge=key[:16], name=name))
        for name, (title, caption) in _FIGURES.items()
        if _can_be_drawn(name, result, index)
    ]
    effects = Listing(effects_table(result.criteria, names), links, titled=False)
    sections = [
        PageSection("summary", "", [*_answer(result), Text(links_to_judges, "quiet", "Judges")]),
        PageSection("figures", "Evidence", [Gallery(pictures)] if pictures else []),
        PageSection(
            "criteria",
            "Criteria",
            [Listing(trust_table(result.criteria, names), links, titled=False)],
            "Each criterion links to its runs, the lowest first.",
        ),
        PageSection(
            "effects",
            "Effects of perturbations",
            [effects] if effects.table.rows else [],
            "Original minus copy, as a share of the scale: positive where the copy scores lower.",
        ),
    ]
    lead = f"Verified on {day}, task {stored.task or 'unnamed'}."
    return Page("view", title, lead, sections)


def _answer(result: VerifiedSet) -> list[Block]:
    judge = result.judge
    kinds: dict[str, AnswerKind] = {
        "trustworthy": "trustworthy",
        "not trustworthy": "not-trustworthy",
    }
    lines = [*judge.reasons, *([f"Next: {judge.next_step}"] if judge.next_step else [])]
    kind = kinds.get(judge.verdict, "trustworthy" if judge.trusted else "not-enough-data")
    tables = [evidence_table(judge), evidence_by_system(judge)]
    return [
        Answer(
            "The judge on these criteria", judge.verdict, [with_code(line) for line in lines], kind
        ),
        *(Text(with_code(line), "warning") for line in judge.warnings),
        *(Listing(table) for table in tables if table.rows),
    ]


# ---- pictures ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bin:
    """Runs of similar mean on a criterion: their mean, how many, and how many are successful."""

    criterion: str
    mean: float
    runs: int
    successful: int


def _can_be_drawn(name: str, result: VerifiedSet, index: JudgeIndex | None) -> bool:
    effects = [e for v in result.criteria for e in v.effects]
    if name == "effects":
        return any(e.estimate is not None for e in effects)
    if name == "systems":
        return any(e.systems and e.n for e in effects)
    if name == "reliability" and index is not None:
        bins = Counter(b.criterion for b in _reliability(index))
        return any(n > 1 for n in bins.values())
    return bool(result.criteria)


def figure_page(viewer: Viewer, request: Request) -> Response:
    """One figure as SVG. Raises InputError for one that cannot be drawn."""
    judge = judge_of(viewer.store, request.query_params.get("judge"))
    stored = viewer.store.verdict_on(judge[0]) if judge else None
    if judge is None or stored is None:
        raise InputError("this judge was not verified", "judge")
    name = request.query_params.get("name", "")
    if name not in _FIGURES:
        raise InputError(f"there is no figure {name!r}", "name")
    index = viewer.indexes.get(judge[0], patience=_PATIENCE)
    names = tuple((c.id, c.name) for c in index.criteria) if index else ()
    bins = _reliability(index) if index and name == "reliability" else ()
    image = _drawn(name, json.dumps(stored.result.model_dump(mode="json")), names, bins)
    return Response(image, media_type="image/svg+xml")


@lru_cache(maxsize=32)
def _drawn(
    name: str, record: str, names: tuple[tuple[str, str], ...], bins: tuple[_Bin, ...]
) -> str:
    """Return a figure of a VerifiedSet (as JSON); one at a time, as matplotlib needs it."""
    result, names_by_id = VerifiedSet.model_validate(json.loads(record)), dict(names)
    verified = {"judge": result.criteria}
    with _drawing:
        if name == "effects":
            return svg(_effects(result, names_by_id))
        if name == "systems":
            return svg(plots.effect_forest(verified, names_by_id))
        if name == "points":
            return svg(plots.judge_points(verified, names_by_id))
        return svg(_reliability_lines(bins))


def _effects(result: VerifiedSet, names: Mapping[str, str]) -> Figure:
    """Return a forest plot of effects. Raises InputError where no copy was judged."""
    effects = [(v, e) for v in result.criteria for e in v.effects if e.estimate is not None]
    if not effects:
        raise InputError("no perturbed copy was judged")
    expected = ("lower", "none", "higher", "unknown")
    groups = [word for word in expected if any(e.expected == word for _, e in effects)]
    series = [
        Series(
            f"expected: {word}",
            [plots.estimate_of(e) if e.expected == word else None for _, e in effects],
        )
        for word in groups
    ]
    rows = [
        f"{names.get(v.criterion_id, v.criterion_id)}: {e.operator.replace('_', ' ')}"
        for v, e in effects
    ]
    return charts.rows(
        rows,
        {"original − copy": series},
        title="Effects of perturbations",
        x="share of the scale; whiskers: 95%",
        level=0.0,
        limits=None,
    )


def _reliability(index: JudgeIndex) -> tuple[_Bin, ...]:
    """Return runs of known success in up to five bins of equal size by their mean."""
    labelled = np.array([run.success is not None for run in index.runs], dtype=np.bool_)
    success = np.array([bool(run.success) for run in index.runs], dtype=np.bool_)
    bins = []
    for i, criterion in enumerate(index.criteria[:_MOST_PANELS]):
        values = index.means[:, i]
        rows = np.flatnonzero(labelled & ~np.isnan(values))
        if not criterion.ordered or len(rows) < _FEWEST_RUNS:
            continue
        cuts = np.unique(np.quantile(values[rows], (0.2, 0.4, 0.6, 0.8)))
        place = np.searchsorted(cuts, values[rows], side="left")
        for b in np.unique(place):
            part = rows[place == b]
            mean = float(values[part].mean())
            bins.append(_Bin(criterion.name, mean, len(part), int(success[part].sum())))
    return tuple(bins)


def _reliability_lines(bins: Sequence[_Bin]) -> Figure:
    by_criterion: dict[str, list[_Bin]] = {}
    for b in bins:
        by_criterion.setdefault(b.criterion, []).append(b)
    panels = {}
    for criterion, some in by_criterion.items():
        if len(some) > 1:
            rates = [proportion_interval(b.successful, b.runs) for b in some]
            panels[criterion] = [Series("successful runs", rates, at=[b.mean for b in some])]
    if not panels:
        raise InputError("success is known for too few runs, or the judge gives a single value")
    return charts.lines(
        panels,
        title="Share of successful runs by the judge's mean",
        x="judge's mean",
        y="successful",
        notes=["whiskers: 95% (Wilson), runs taken as independent"],
    )
