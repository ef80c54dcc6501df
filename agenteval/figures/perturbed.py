"""Original against perturbed ratings, and the change against the dose: the paper's figure 8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from agenteval.errors import InputError
from agenteval.figures.grouped import Series, draw_groups, lone_point, swatch
from agenteval.figures.groups import (
    Criteria,
    criteria_of,
    interval,
    originals,
    run_clusters,
    run_means,
)
from agenteval.figures.style import Look, drawing, legend, looks, note
from agenteval.figures.text import listed, n_label, plain
from agenteval.stats import Interval, mean_interval
from agenteval.stats.scores import ORIGINAL, ScoreTable, split_variant

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

USUAL_SHARE = 0.25  # of the sentences, in the published experiment


@dataclass(frozen=True)
class Variant:
    """A perturbation read from its name "operator:share:seed"; share and seed may be missing."""

    name: str
    operator: str
    share: float | None


def variants_of(table: ScoreTable) -> list[Variant]:
    """Perturbations in the table. Raises InputError for a share that is not in (0, 1]."""
    return [_variant(name) for name in table.present("variant") if name != ORIGINAL]


def _variant(name: str) -> Variant:
    operator, written = split_variant(name)
    if not written:
        return Variant(name, operator, None)
    try:
        share = float(written)
    except ValueError:
        share = float("nan")
    if not 0 < share <= 1:
        raise InputError(f"variant {name!r}: the share must be a number in (0, 1]")
    return Variant(name, operator, share)


def copies(table: ScoreTable, operator: str, share: float | None) -> ScoreTable:
    """Ratings of the copies made by an operator at a share, all seeds together."""
    names = [v.name for v in variants_of(table) if (v.operator, v.share) == (operator, share)]
    codes = [table.variant.code(n) for n in names]
    return table.where(np.isin(table.variant.codes, codes))


def chosen_shares(table: ScoreTable, wanted: float | None = None) -> dict[str, float | None]:
    """Per operator the share nearest to `wanted` (default 0.25), the lower one on a tie."""
    aim = USUAL_SHARE if wanted is None else wanted
    found: dict[str, list[Variant]] = {}
    for variant in variants_of(table):
        found.setdefault(variant.operator, []).append(variant)
    result: dict[str, float | None] = {}
    for operator, group in found.items():
        shares = sorted({v.share for v in group if v.share is not None})
        result[operator] = min(shares, key=lambda s: (abs(s - aim), s)) if shares else None
    return result


def perturbation_bars(
    table: ScoreTable, *, share: float | None = None, ax: Axes | None = None
) -> Axes:
    """Mean value per criterion: a dark bar for the originals, a pale one for every operator.

    The axes of figure 8 of arXiv 2402.09015. An operator with several shares is drawn at the one
    nearest to `share` (default 0.25), which its label names; seeds and systems are pooled.
    Originals are those of runs that have a drawn copy. Whiskers are 95 % intervals over cases of
    each mean by itself; whether a difference is real is read from `dose_response`, which pairs.

    Raises InputError without original or without perturbed ratings.
    """
    shares = chosen_shares(table, share)
    if not shares:
        raise InputError("there are no ratings of perturbed copies to draw")
    parts = {op: copies(table, op, part) for op, part in shares.items()}
    style = looks([ORIGINAL, *parts], "variants")
    touched = np.unique(np.concatenate([p.run.codes for p in parts.values()]))
    before = originals(table)
    before = before.where(np.isin(before.run.codes, touched))
    criteria = criteria_of(before)
    series = [_series(ORIGINAL, before, criteria, style[ORIGINAL], light=False)]
    for operator, rows in parts.items():
        dose = "" if shares[operator] is None else f" {shares[operator]:.0%}".replace("%", " %")
        series.append(_series(plain(operator) + dose, rows, criteria, style[operator], light=True))
    with drawing():
        axes = draw_groups(ax, criteria.drawn, series)
        axes.set_title("Ratings of originals and perturbed copies")
        handles: list[Artist] = [*map(swatch, series), *lone_point(series)]
        if criteria.empty:
            handles.append(note(f"without values: {listed(criteria.empty)}"))
        legend(axes, handles, own=ax is None)
    return axes


def _series(name: str, rows: ScoreTable, criteria: Criteria, look: Look, *, light: bool) -> Series:
    cells = {c: interval(rows.of(criterion=c)) for c in criteria.drawn}
    return Series(f"{name} ({n_label(list(cells.values()))})", look, light, cells)


def paired_change(before: ScoreTable, after: ScoreTable) -> Interval:
    """Mean change per run, copy minus original, with its 95 % interval over cases.

    Each run counts once: the mean over its repeats (and seeds) after, minus that before. Runs
    that lack one of the two are left out. The change lies in [-1, 1].
    """
    change = run_means(after) - run_means(before)
    known = ~np.isnan(change)
    cases = run_clusters(before)[known]
    return mean_interval(change[known].tolist(), cases.tolist(), bounds=(-1.0, 1.0))


def operators_with_shares(table: ScoreTable) -> dict[str, Sequence[float]]:
    """Per operator the shares at which there are copies, rising; those without any left out."""
    found: dict[str, set[float]] = {}
    for variant in variants_of(table):
        if variant.share is not None:
            found.setdefault(variant.operator, set()).add(variant.share)
    return {operator: sorted(shares) for operator, shares in found.items()}
