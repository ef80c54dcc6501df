"""Charts of perturbed copies: their ratings beside those of the originals, dose and response."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from agenteval.errors import InputError
from agenteval.report import bars, charts
from agenteval.report.marks import Series
from agenteval.report.plots import clusters, drawn_criteria, interval, originals, run_means
from agenteval.report.style import looks, n_label, plain
from agenteval.stats import Interval, mean_interval
from agenteval.stats.scores import ORIGINAL, ScoreTable, split_variant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

USUAL_SHARE = 0.25  # of the sentences, in the published experiment


def perturbation_bars(
    table: ScoreTable, *, share: float | None = None, ax: Axes | None = None
) -> Axes:
    """Mean value per criterion of the originals and of the copies by every operator (figure 8 of
    arXiv 2402.09015).

    An operator with several shares is drawn at the one nearest to `share` (default 0.25); seeds
    and systems are pooled. Originals are those of runs that have a drawn copy. Whether a difference
    is real is read from `dose_lines`, which pairs.
    """
    shares = _shares_of(table)
    if not shares:
        raise InputError("there are no ratings of perturbed copies to draw")
    aim = USUAL_SHARE if share is None else share
    chosen = {op: min(some, key=lambda s: (abs(s - aim), s)) if some else None
              for op, some in shares.items()}  # fmt: skip
    parts = {op: _copies(table, op, dose) for op, dose in chosen.items()}
    touched = np.unique(np.concatenate([p.run.codes for p in parts.values()]))
    before = originals(table)
    before = before.where(np.isin(before.run.codes, touched))
    criteria, notes = drawn_criteria(before)
    named = {ORIGINAL: before}
    named |= {plain(op) + _per_cent(chosen[op]): rows for op, rows in parts.items()}
    style = looks(list(named), "variants")
    series = []
    for name, rows in named.items():
        cells = [interval(rows.of(criterion=c)) for c in criteria]
        label = f"{name} ({n_label(cells)})"
        series.append(Series(label, cells, pale=name != ORIGINAL, look=style[name]))
    title = "Ratings of originals and perturbed copies"
    return bars.bars(criteria, series, title=title, notes=notes, ax=ax)


def dose_lines(table: ScoreTable, *, ax: Axes | None = None) -> Figure:
    """Mean change of the value (copy minus original, paired by run) against the share perturbed:
    a panel per criterion, a line per operator. The dashed line is no change."""
    shares = {op: some for op, some in _shares_of(table).items() if some}
    if not shares:
        raise InputError("there are no perturbed copies with a share")
    before = originals(table)
    criteria, notes = drawn_criteria(before)
    changes = {
        (c, op): [_paired_change(before.of(criterion=c), _copies(table, op, s).of(criterion=c))
                  for s in some]
        for c in criteria for op, some in shares.items()
    }  # fmt: skip
    label = {op: f"{op} ({n_label([i for c in criteria for i in changes[c, op]], 'run')})"
             for op in shares}  # fmt: skip
    panels = {
        c: [Series(op, changes[c, op], label[op], at=some) for op, some in shares.items()]
        for c in criteria
    }
    doses = sorted({s for some in shares.values() for s in some})
    return charts.lines(
        panels, title="Change of the rating by share perturbed, 95 % intervals over cases",
        x="share perturbed", y="copy minus original", levels={0.0: ""}, limits=None, notes=notes,
        ticks={s: _per_cent(s).strip() for s in doses}, ax=ax,
    )  # fmt: skip


def _shares_of(table: ScoreTable) -> dict[str, list[float]]:
    """Per operator the shares at which there are copies, rising; [] for one without a share.

    Raises InputError for a share that is not in (0, 1].
    """
    found: dict[str, set[float]] = {}
    for name in table.present("variant"):
        if name != ORIGINAL:
            operator, share = _dose(name)
            found.setdefault(operator, set()).update([] if share is None else [share])
    return {operator: sorted(shares) for operator, shares in found.items()}


def _dose(variant: str) -> tuple[str, float | None]:
    operator, written = split_variant(variant)
    if not written:
        return operator, None
    try:
        share = float(written)
    except ValueError:
        share = float("nan")
    if not 0 < share <= 1:
        raise InputError(f"variant {variant!r}: the share must be a number in (0, 1]")
    return operator, share


def _copies(table: ScoreTable, operator: str, share: float | None) -> ScoreTable:
    """Ratings of the copies made by an operator at a share, all seeds together."""
    names = [n for n in table.present("variant") if n != ORIGINAL and _dose(n) == (operator, share)]
    return table.where(np.isin(table.variant.codes, [table.variant.code(n) for n in names]))


def _paired_change(before: ScoreTable, after: ScoreTable) -> Interval:
    """Mean change per run, copy minus original, in [-1, 1] with its interval over cases.

    Each run counts once: the mean over its repeats (and seeds) after, minus that before. Runs
    that lack one of the two are left out.
    """
    change = run_means(after) - run_means(before)
    known = ~np.isnan(change)
    cases = -1 - np.arange(len(before.run.names), dtype=np.int64)
    cases[before.run.codes] = clusters(before)
    return mean_interval(change[known].tolist(), cases[known].tolist(), bounds=(-1.0, 1.0))


def _per_cent(share: float | None) -> str:
    return "" if share is None else f" {share:.0%}".replace("%", " %")
