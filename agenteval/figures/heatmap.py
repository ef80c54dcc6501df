"""Rank correlation of criteria: which of them say the same of the same runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agenteval.figures.groups import criteria_of, originals, run_means
from agenteval.figures.style import (
    INK,
    WIDTH,
    axes_or_new,
    drawing,
    fix_ticks,
    legend,
    new_figure,
    note,
)
from agenteval.figures.text import listed, span, wrapped
from agenteval.stats.scores import ScoreTable

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_PRINTED = 11  # criteria that fit in print width; above, the figure grows
_CELL = 0.46  # inches a cell needs for its number
_COLOURS = "PuOr_r"
_LEAST = 3  # runs with both ratings for a correlation


@dataclass(frozen=True)
class Correlations:
    """Spearman's rho (k, k), NaN where undefined, and the runs (k, k) that it rests on."""

    criteria: tuple[str, ...]
    rho: NDArray[np.float64]
    n: NDArray[np.int64]


def correlations(table: ScoreTable) -> Correlations:
    """Spearman correlation of the criteria's means per original run, pairwise complete.

    Ties get mid-ranks. Undefined (NaN) with fewer than three runs rated on both criteria or
    where one of them is constant on these. The diagonal of `n` counts the runs of a criterion.
    Raises InputError with fewer than two criteria that have values on original runs.
    """
    part = originals(table)
    names = criteria_of(part, least=2).drawn
    means = np.array([run_means(part.of(criterion=c)) for c in names])
    known = ~np.isnan(means)
    rho = np.full((len(names), len(names)), np.nan)
    for i in range(len(names)):
        for j in range(i + 1):
            both = known[i] & known[j]
            rho[i, j] = rho[j, i] = _spearman(means[i][both], means[j][both])
    counts = known.astype(np.int64)
    return Correlations(names, rho, counts @ counts.T)


def _spearman(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    from scipy.stats import rankdata

    if len(a) < _LEAST or (a == a[0]).all() or (b == b[0]).all():
        return float("nan")
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


def correlation_map(
    table: ScoreTable,
    *,
    intervals: Mapping[tuple[str, str], tuple[float, float]] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Heat map of `correlations`: numbers in the lower half, counts where they differ.

    `intervals` gives low and high of pairs of criteria, in either order; they are printed in the
    upper half. Where the numbers of runs differ between pairs, the diagonal and the rest of the
    upper half state them; else n stands in the title only. A dash is an undefined correlation.
    Beyond 11 criteria the figure grows so that numbers stay readable.

    Raises InputError with fewer than two criteria that have values on original runs.
    """
    found = correlations(table)
    size = len(found.criteria)
    with drawing():
        if ax is None and size > _PRINTED:
            side = _CELL * size
            axes = new_figure(side + 2.2, side + 1.4).add_subplot()
        else:
            axes = axes_or_new(ax, min(WIDTH, 2.2 + 0.4 * size))
        below = np.where(np.tri(size, k=-1, dtype=bool), found.rho, np.nan)
        image = axes.imshow(below, cmap=_COLOURS, vmin=-1, vmax=1, aspect="auto")
        _cells(axes, found, intervals or {})
        _names(axes, found.criteria, lower_only=not intervals and not _uneven(found))
        bar = axes.figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
        bar.set_label("Spearman ρ")
        bar.ax.tick_params(labelsize=7, width=0.7, length=2)
        axes.set_title(f"Correlation of criteria over means per run, n = {_runs(found)}")
        if ax is None:
            words = _words(found, intervals, criteria_of(originals(table)).empty)
            legend(axes, words, own=True)
    return axes


def _runs(found: Correlations) -> str:
    return span(np.diag(found.n).tolist(), "run")


def _words(
    found: Correlations,
    intervals: Mapping[tuple[str, str], tuple[float, float]] | None,
    empty: Sequence[str],
) -> list[Artist]:
    words = []
    if intervals:
        words.append("lower half: ρ; upper half: 95 % intervals")
    elif _uneven(found):
        words.append("lower half: ρ; upper half: runs rated on both; diagonal: runs rated")
    off = ~np.eye(len(found.criteria), dtype=bool)
    if np.isnan(found.rho[off]).any():
        words.append("–: undefined (a constant criterion, or fewer than 3 runs rated on both)")
    if empty:
        words.append(f"without values: {listed(empty)}")
    return [note(text) for text in words]


def _uneven(found: Correlations) -> bool:
    return bool((found.n != found.n[0, 0]).any())


def _cells(
    ax: Axes, found: Correlations, intervals: Mapping[tuple[str, str], tuple[float, float]]
) -> None:
    names, uneven = found.criteria, _uneven(found)
    for i in range(len(names)):
        for j in range(len(names)):
            rho, count = float(found.rho[i, j]), int(found.n[i, j])
            pair = intervals.get((names[i], names[j])) or intervals.get((names[j], names[i]))
            if i > j:
                text, size = ("–" if np.isnan(rho) else _short(rho)), 8.0
            elif i < j and pair is not None:
                text, size = f"{_short(pair[0])} to\n{_short(pair[1])}", 6.0
            else:
                text, size = (f"{count:,}" if uneven else ""), 6.5
            if not text:
                continue
            ink = _ink(rho) if i > j else "#666666"
            ax.text(j, i, text, ha="center", va="center", fontsize=size,
                    color=ink)  # fmt: skip


def _ink(rho: float) -> str:
    """White or dark, whichever contrasts more with the cell (WCAG 2.1, relative luminance)."""
    from matplotlib import colormaps

    if np.isnan(rho):
        return INK
    parts = np.array(colormaps[_COLOURS]((rho + 1) / 2)[:3])
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return "white" if float(linear @ (0.2126, 0.7152, 0.0722)) < 0.179 else INK


def _short(rho: float) -> str:
    """Two decimals, without the zero before the point and without a negative zero."""
    text = f"{rho + 0.0:.2f}".replace("-0.00", "0.00")
    return text if text.lstrip("-").startswith("1") else text.replace("0.", ".", 1)


def _names(ax: Axes, criteria: Sequence[str], *, lower_only: bool) -> None:
    places = list(range(len(criteria)))
    steep = len(criteria) > _PRINTED
    ax.set_xticks(
        places, [wrapped(c, 24, lines=1) for c in criteria], rotation=90 if steep else 40,
        ha="right", va="center" if steep else "top", rotation_mode="anchor",
    )  # fmt: skip
    ax.set_yticks(places, [wrapped(c, 24, lines=2) for c in criteria])
    ax.set_xticks(np.arange(len(criteria) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(criteria) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5)
    ax.spines[:].set_visible(False)
    fix_ticks(ax)
    ax.tick_params(length=0)
    if lower_only:  # the first row and the last column have nothing to say
        ax.set_xlim(-0.5, len(criteria) - 1.5)
        ax.set_ylim(len(criteria) - 0.5, 0.5)
