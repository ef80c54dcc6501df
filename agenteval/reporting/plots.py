"""Charts of ratings: a ScoreTable in, matplotlib Axes or Figure out.

All means have 95% intervals with cases as units, so that repeats of a case add nothing to n; n is
in the legend. Every function raises InputError if there is nothing to draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agenteval.analysis.labelled_means import Calibration
from agenteval.errors import InputError
from agenteval.records.table import Estimate
from agenteval.records.verification import Check, Effect, SystemFigure, Verification
from agenteval.reporting import charts
from agenteval.reporting.charts import Series
from agenteval.reporting.style import LOOKS, SeriesStyle, looks, n_label, plain, span
from agenteval.reporting.text import listed
from agenteval.stats import Interval, UniqueCurve, mean_interval
from agenteval.stats.correlation import correlation_matrix
from agenteval.stats.scores import ONLY_EMPTY, ORIGINAL, CodedColumn, ScoreTable, split_variant
from agenteval.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNNAMED = "system not named"
_GROUPS = {1: "success", 0: "failed", -1: "success unknown"}
_LOOK_OF = {
    "success": LOOKS[0],
    "failed": LOOKS[4],
    "success unknown": SeriesStyle("#666666", "-", "D", "..."),
}
USUAL_SHARE = 0.25  # of the sentences, in the published experiment
_VALUE = "mean value, 0 worst to 1 best; whiskers: 95% interval over cases"
# Status: words, colour, hatch. Answers first, then gaps due to the judge, then technical gaps; each
# family has its own colours, and hatches distinguish them in greyscale.
_STATUS = {
    "scored": ("rated", "#0072B2", ""),
    "degenerate": ("degenerate answer, worst level", "#9fd0ee", "---"),
    "not_applicable": ("not applicable", "#dddddd", ""),
    "failed_run": ("failed run, worst level", "#56B4E9", "xxx"),
    "no_answer:error": ("no answer: error", "#555555", ""),
    "no_answer:timeout": ("no answer: timeout", "#777777", "///"),
    "no_answer:cancelled": ("no answer: cancelled", "#999999", "..."),
    "no_answer:cut_off": ("no answer: cut-off row", "#bbbbbb", "---"),
    "unscored:parse": ("unscored: parse", "#E69F00", ""),
    "unscored:missing": ("unscored: missing", "#f4cf80", "///"),
    "unscored:off_scale": ("unscored: off scale", "#F0E442", "..."),
    "unscored:refusal": ("unscored: refusal", "#f8f1a0", "xxx"),
    "unscored:unsupported": ("unscored: unsupported", "#e9cfa0", "\\\\\\"),
    "unscored:too_long": ("unscored: too long", "#fbe7c4", "+++"),
    "unscored:undecided": ("unscored: for a person to decide", "#fdf3e0", "ooo"),
    "error:infrastructure": ("error: infrastructure", "#D55E00", ""),
    "error:timeout": ("error: timeout", "#e89a63", "///"),
    "error:budget": ("error: budget", "#f3c9ab", "..."),
}


def originals(table: ScoreTable) -> ScoreTable:
    """Ratings of the original runs. Raises InputError when there are none."""
    part = table.of(variant=ORIGINAL)
    if not len(part):
        raise InputError("no ratings of original runs to draw")
    return part


def with_names(table: ScoreTable, names: Mapping[str, str]) -> ScoreTable:
    """The table with criteria under their names by id, as far as these differ."""
    criterion_names = tuple(names.get(i, i) for i in table.criterion.names)
    if len(set(criterion_names)) < len(criterion_names):
        return table
    return replace(table, criterion=CodedColumn(table.criterion.codes, criterion_names))


def systems(table: ScoreTable) -> dict[str, ScoreTable]:
    """The rows of every system, by name, so that a system has one colour in all figures; runs
    without a system come last."""
    tables = {name: table.of(system=name) for name in sorted(table.present("system"))}
    nameless = table.where(table.system.codes < 0)
    return {**tables, UNNAMED: nameless} if len(nameless) else tables


def interval(table: ScoreTable) -> Interval:
    """Mean of all values with its 95% interval, cases as clusters (`stats.mean_interval`).

    There is no mean if all of them come from empty replies, which were not rated.
    """
    part = table.where(~np.isnan(table.value))
    if len(part) and part.present("status") == ["degenerate"]:
        return replace(mean_interval([]), reason=ONLY_EMPTY)
    return mean_interval(part.value.tolist(), clusters(part).tolist(), bounds=(0.0, 1.0))


def radar(table: ScoreTable, *, ax: Axes | None = None) -> Axes:
    """Mean value of every system on every criterion (figure 3a of arXiv 2402.09015).

    Only original runs. Raises InputError for fewer than three criteria with values.
    """
    part = originals(table)
    criteria, notes = drawn_criteria(part, least=3)
    style = looks(list(systems(part)), "systems")
    series = []
    for system, rows in systems(part).items():
        cells = [interval(rows.of(criterion=c)) for c in criteria]
        empty = [c for c, cell in zip(criteria, cells, strict=True) if not cell.n]
        if len(empty) == len(criteria):
            notes.append(f"{plain(system)} ({n_label(cells)})")
            continue
        series.append(Series(system, cells, f"{system} ({n_label(cells)})", look=style[system]))
        if empty:
            notes.append(f"{plain(system)}: no values on {listed([plain(c) for c in empty])}")
    title = "Mean ratings by system, 0 worst to 1 best; 95% intervals over cases"
    return charts.radar(criteria, series, title=title, notes=notes, ax=ax)


def success_bars(table: ScoreTable, *, ax: Axes | None = None) -> Axes:
    """Mean value per criterion: a dark bar for successful, a pale one for failed runs per system
    (figure 3b of arXiv 2402.09015).

    Only original runs. Where success is unknown throughout there is one bar per system.
    """
    part = originals(table)
    criteria, notes = drawn_criteria(part)
    style = looks(list(systems(part)), "systems")
    series = []
    for system, rows in systems(part).items():
        for group in _by_success(part):
            group_rows = _by_success(rows).get(group, rows.where(rows.success > 1))
            cells = [interval(group_rows.of(criterion=c)) for c in criteria]
            label = f"{system}, {group} ({n_label(cells)})"
            if any(cell.n for cell in cells):
                series.append(Series(label, cells, pale=group == "failed", look=style[system]))
            else:
                notes.append(f"{plain(system)}, {group}: {n_label(cells)}")
    if not series:  # all values belong to runs of unknown success, others have none
        cells = [interval(part.of(criterion=c)) for c in criteria]
        series = [Series(f"all runs, success unknown ({n_label(cells)})", cells)]
    return _bars(
        criteria,
        series,
        "Ratings of successful and failed runs by system",
        notes + _unlabelled(part),
        ax,
    )


def _bars(
    criteria: Sequence[str],
    series: Sequence[Series],
    title: str,
    notes: Sequence[str],
    ax: Axes | None,
) -> Axes:
    figure = charts.rows(
        criteria, {"": series}, title=title, x=_VALUE, kind="bars", notes=notes, ax=ax
    )
    return ax or figure.axes[0]


def repeat_boxes(table: ScoreTable, *, ax: Axes | None = None) -> Axes:
    """Per criterion the spread over repeats of the judge of the mean of successful and of failed
    runs (figure 7 of arXiv 2402.09015), beside each the mean with its interval over cases.

    Only original runs that were rated at every repeat.
    """
    part, criteria, notes = _repeated(table)
    series = []
    for group, rows in _by_success(part).items():
        by_criterion = [rows.of(criterion=c) for c in criteria]
        cells = [interval(ratings) for ratings in by_criterion]
        spread = [
            [c.mean for c in _per_repeat(ratings) if c.mean is not None] for ratings in by_criterion
        ]
        if not any(spread):
            notes.append(f"{group}: no cases")
            continue
        repeats = span((len(some) for some in spread), "repeat")
        label = f"{group} ({repeats}; {n_label(cells)})"
        series.append(Series(label, cells, look=_LOOK_OF[group], spread=spread))
    figure = charts.rows(
        criteria,
        {"": series},
        title="Means over repeats of the judge",
        x="mean value, 0 worst to 1 best",
        kind="boxes",
        notes=notes + _unlabelled(part),
        ax=ax,
    )
    return ax or figure.axes[0]


def repeat_lines(table: ScoreTable, *, ax: Axes | None = None) -> Figure:
    """Mean of successful and of failed runs at every repeat of the judge, a panel per criterion
    (figure 6 of arXiv 2402.09015). Only original runs that were rated at every repeat; a repeat
    without values is a gap."""
    part, criteria, notes = _repeated(table)
    groups = _by_success(part)
    counts = {
        g: n_label([interval(rows.of(criterion=c)) for c in criteria]) for g, rows in groups.items()
    }
    notes += [f"{g}: no cases" for g, rows in groups.items() if not len(rows)]
    panels = {
        c: [
            Series(g, _per_repeat(rows.of(criterion=c)), f"{g} ({counts[g]})", look=_LOOK_OF[g])
            for g, rows in groups.items()
            if len(rows)
        ]
        for c in criteria
    }
    last = int(part.repeat.max(initial=0))
    return charts.lines(
        panels,
        title="Means at every repeat, 95% intervals over cases",
        x="repeat of the judge",
        y="mean value, 0 to 1",
        notes=notes + _unlabelled(part),
        ax=ax,
        ticks={float(k): str(k) for k in range(0, last + 1, max(1, -(-last // 10)))},
    )


def correlation_map(table: ScoreTable, *, ax: Axes | None = None) -> Axes:
    """Spearman correlation of the criteria's means per original run, pairwise complete, ties with
    mid-ranks; a dash with fewer than three runs or a constant criterion.

    If the numbers of runs differ, they are in the upper half. Raises InputError with fewer
    than two criteria that have values.
    """
    part = originals(table)
    names, notes = drawn_criteria(part, least=2)
    means = np.column_stack([run_means(part.of(criterion=c)) for c in names])
    matrix = correlation_matrix(means)
    rho = np.array(matrix.rho, dtype=np.float64)  # NaN for None
    counts = np.array(matrix.n, dtype=np.int64)
    uneven = bool((counts != counts[0, 0]).any())
    if uneven:
        notes.append("lower half: ρ; upper half: runs rated on both; diagonal: runs rated")
    if np.isnan(rho[~np.eye(len(names), dtype=bool)]).any():
        notes.append("–: undefined (a constant criterion, or fewer than 3 runs rated on both)")
    runs = span(np.diag(counts).tolist(), "run")
    return charts.heatmap(
        names,
        rho,
        title=f"Correlation of criteria over means per run, n = {runs}",
        scale="Spearman ρ",
        counts=counts if uneven else None,
        notes=notes,
        ax=ax,
    )


def coverage_bars(table: ScoreTable, *, ax: Axes | None = None) -> Axes:
    """Judgements of each criterion by status as shares of all that were asked for; whiskers are
    the 95% interval of the share rated. All variants and repeats are counted."""
    if not len(table):
        raise InputError("no ratings to draw")
    rows, rated = {}, {}
    present = [*_STATUS, *sorted(set(table.present("status")) - set(_STATUS))]
    for name in table.present("criterion"):
        ratings = table.of(criterion=name)
        counts = ratings.statuses()
        rows[name] = {status: counts.get(status, 0) for status in present}
        scored = (ratings.status.codes == ratings.status.code("scored")).astype(float)
        rated[name] = mean_interval(scored.tolist(), clusters(ratings).tolist(), bounds=(0.0, 1.0))
    words = {
        k: f"{_STATUS.get(k, (k,))[0]} ({sum(row[k] for row in rows.values()):,})" for k in present
    }
    surfaces = {k: _STATUS.get(k, ("", "#CC79A7", "xxx"))[1:] for k in present}
    alone = any(share.low is None for share in rated.values())
    notes = ["without whisker: no interval (1 case)"] if alone else []
    return charts.shares(
        rows,
        title="Judgements by status",
        rated=rated,
        surfaces=surfaces,
        labels=words,
        x="share of all judgements (whiskers: share rated, 95%); at the end: their number",
        notes=notes,
        ax=ax,
    )


def estimate_of(figure: Check | Effect | SystemFigure | None) -> Estimate | None:
    """Return a figure of a verification as it is drawn."""
    return None if figure is None else Estimate(figure.estimate, figure.low, figure.high)


def judge_points(judges: Mapping[str, Sequence[Verification]], names: Mapping[str, str]) -> Figure:
    """Agreement of repeats and discrimination of success by criterion, a mark for each judge; the
    dashed line is chance of the AUC. Raises InputError where nothing was verified."""
    if not any(judges.values()):
        raise InputError("nothing was verified yet")
    ids = list(dict.fromkeys(v.criterion_id for some in judges.values() for v in some))

    def marks(check: str) -> list[Series]:
        checks = {j: {v.criterion_id: v.check(check) for v in some} for j, some in judges.items()}
        return [Series(j, [estimate_of(some.get(i)) for i in ids]) for j, some in checks.items()]

    panels = {
        "agreement of repeats, Gwet's AC2": marks("agreement"),
        "discrimination of success, AUC": marks("discrimination"),
    }
    return charts.rows(
        [names.get(i, i) for i in ids],
        panels,
        title="Agreement and discrimination",
        x="whiskers: 95%",
        level=0.5,
        notes=["dashed: 0.5, which for the AUC is chance"],
    )


def effect_forest(judges: Mapping[str, Sequence[Verification]], names: Mapping[str, str]) -> Figure:
    """Draw original minus copy by criterion and perturbation with an expected effect: one panel per
    judge, one mark per system. Copies whose original had no room to fall are excluded."""
    effects = {
        judge: {
            (v.criterion_id, e.operator): e
            for v in verified
            for e in v.effects
            if e.systems and e.n
        }
        for judge, verified in judges.items()
    }
    places = list(dict.fromkeys(place for some in effects.values() for place in some))
    if not places:
        raise InputError("no copies of several systems to draw")
    systems = sorted(
        {f.system for some in effects.values() for e in some.values() for f in e.systems}
    )

    panels: dict[str, list[Series]] = {}
    for judge, some in effects.items():
        figures = [{f.system: f for f in some[p].systems} if p in some else {} for p in places]
        series = [Series(s, [estimate_of(f.get(s)) for f in figures]) for s in systems]
        panels[judge] = series
    rows = [f"{names.get(c, c)}: {operator.replace('_', ' ')}" for c, operator in places]
    return charts.rows(
        rows,
        panels,
        title="Effect of damage by system",
        level=0.0,
        x="original − copy",
        limits=(-0.25, 1.0),
        columns=3,
        notes=["shares of the scale; whiskers: 95%"],
    )


def perturbation_bars(
    table: ScoreTable, *, share: float | None = None, ax: Axes | None = None
) -> Figure:
    """Mean value per criterion of originals and of their perturbed copies, a panel for each
    operator (figure 8 of arXiv 2402.09015).

    A panel holds only runs with both, so its two bars are of the same cases. An operator with
    several shares is drawn at the one nearest to `share` (default 0.25); seeds and systems are
    pooled. One panel can be drawn into `ax`.
    """
    shares = _shares_of(table)
    if not shares:
        raise InputError("no ratings of perturbed copies to draw")
    aim = USUAL_SHARE if share is None else share
    before = originals(table)
    criteria, notes = drawn_criteria(before)
    panels = {}
    for operator, some in shares.items():
        dose = min(some, key=lambda s: (abs(s - aim), s)) if some else None
        copies = _copies(table, operator, dose)
        pairs = [_paired(before.of(criterion=c), copies.of(criterion=c)) for c in criteria]
        cells = [pair.before for pair in pairs]
        cases = span((cell.n_clusters or cell.n for cell in cells if cell.n), "case")
        panels[f"{operator.replace('_', ' ')}{_per_cent(dose)}, {cases}"] = [
            Series("original", cells),
            Series("copy", [pair.after for pair in pairs], pale=True),
        ]
    title = "Ratings of originals and of their perturbed copies"
    title += f": {next(iter(panels))}" if len(panels) == 1 else ""
    notes.append("whiskers: 95% interval over cases")
    x = "mean value, 0 to 1"
    return charts.rows(criteria, panels, title=title, x=x, kind="bars", notes=notes, ax=ax)


def dose_lines(table: ScoreTable, *, ax: Axes | None = None) -> Figure:
    """Mean change of the value (copy minus original, paired by run) against the share perturbed:
    a panel per criterion, a line per operator. The dashed line is no change."""
    shares = {op: some for op, some in _shares_of(table).items() if some}
    if not shares:
        raise InputError("no perturbed copies with a share to draw")
    before = originals(table)
    criteria, notes = drawn_criteria(before)
    changes = {
        (c, op): [
            _paired(before.of(criterion=c), _copies(table, op, s).of(criterion=c)).change
            for s in some
        ]
        for c in criteria
        for op, some in shares.items()
    }
    label = {
        op: f"{op} ({n_label([i for c in criteria for i in changes[c, op]], 'run')})"
        for op in shares
    }
    panels = {
        c: [Series(op, changes[c, op], label[op], at=some) for op, some in shares.items()]
        for c in criteria
    }
    doses = sorted({s for some in shares.values() for s in some})
    return charts.lines(
        panels,
        title="Change of the rating by share perturbed, 95% intervals over cases",
        x="share perturbed",
        y="copy minus original",
        level=(0.0, ""),
        limits=None,
        notes=notes,
        ticks={s: _per_cent(s).strip() for s in doses},
        ax=ax,
    )


def reliability_lines(
    calibrations: Sequence[Calibration],
    names: Mapping[str, str],
    *,
    of: str = "value",
    ax: Axes | None = None,
) -> Figure:
    """Mean of the labels against the judge's value (or what else its bins are of), a panel for each
    criterion. On the dotted line the judge's value equals the labels."""
    panels = {
        names.get(c.criterion_id, c.criterion_id): [
            Series(
                "labels",
                [level_bin.label for level_bin in c.bins],
                at=[level_bin.judge for level_bin in c.bins],
            )
        ]
        for c in calibrations
        if len(c.bins) > 1
    }
    if not panels:
        raise InputError("the judge gives a single value")
    return charts.lines(
        panels,
        title=f"Labels by the judge's {of}, 95% intervals over cases",
        x="judge",
        y="labels",
        reference=charts.ReferenceCurve([0, 1], [0, 1], "judge = labels"),
        ax=ax,
    )


def unique_curves(curves: Mapping[float, UniqueCurve], *, ax: Axes | None = None) -> Axes:
    """Distinct criteria in M sets (figure 5 of arXiv 2402.09015), a line for each merging
    threshold τ; τ = 1 merges nothing but equal names.

    The line is the exact mean over draws of M sets, the band the central 95% of single draws: a
    spread, not the uncertainty of the mean.
    """
    from matplotlib.ticker import MaxNLocator

    if not curves:
        raise InputError("no curves to draw")
    series = []
    for tau, curve in sorted(curves.items(), reverse=True):
        name = "τ = 1, equal names" if tau == 1 else f"τ = {tau:g}"
        label = f"{name} (n = {plural(len(curve.m), 'set')})"
        ends = zip(curve.mean, curve.low, curve.high, strict=True)
        series.append(Series(name, [Estimate(*e) for e in ends], label, at=curve.m))
    figure = charts.lines(
        {"": series},
        title="Distinct criteria in M sets, exact mean and 95% of resampled draws",
        x="sets of criteria, M",
        y="distinct criteria",
        limits=None,
        spread=True,
        ax=ax,
    )
    axes = figure.axes[0] if ax is None else ax
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    return axes


def drawn_criteria(table: ScoreTable, least: int = 1) -> tuple[list[str], list[str]]:
    """Criteria with a value in their order, and a note on those without (nominal, all failed, or
    all replies empty). Raises InputError when fewer than `least` have one."""
    names = table.present("criterion")
    rated = ~np.isnan(table.value) & (table.status.codes != table.status.code("degenerate"))
    filled = set(np.unique(table.criterion.codes[rated]).tolist())
    drawn = [n for n in names if table.criterion.code(n) in filled]
    if len(drawn) < least:
        raise InputError(
            f"this figure needs ratings with a value on at least {least} "
            f"criteri{'on' if least == 1 else 'a'}; the table has {len(drawn)}"
        )
    empty = [n for n in names if n not in drawn]
    return drawn, [f"without values: {listed([plain(c) for c in empty])}"] if empty else []


def _by_success(table: ScoreTable) -> dict[str, ScoreTable]:
    """Return rows of successful and of failed runs, including empty groups; if success is never
    known, one group "success unknown"."""
    codes = (1, 0) if (table.success >= 0).any() else (-1,)
    return {_GROUPS[code]: table.where(table.success == code) for code in codes}


def _unlabelled(table: ScoreTable) -> list[str]:
    """Return a note that runs with unknown success are in no group, if others are known."""
    if not (table.success >= 0).any():
        return []
    missing = len(np.unique(table.run.codes[table.success < 0]))
    return [f"not shown: {plural(missing, 'run')} of unknown success"] if missing else []


def _repeated(table: ScoreTable) -> tuple[ScoreTable, list[str], list[str]]:
    """The ratings of originals by runs that have a value at every repeat of their criterion and
    group, so that the same runs are compared; the criteria, and notes on omitted runs."""
    part = originals(table)
    criteria, notes = drawn_criteria(part)
    part = part.where(~np.isnan(part.value))
    mask = np.zeros(len(part), dtype=np.bool_)
    for code in np.unique(part.criterion.codes):
        for success in np.unique(part.success):
            selected = (part.criterion.codes == code) & (part.success == success)
            counts = np.bincount(part.run.codes[selected], minlength=len(part.run.names))
            repeats = len(np.unique(part.repeat[selected]))
            mask |= selected & (counts[part.run.codes] >= repeats)
    absent = len(np.unique(part.run.codes)) - len(np.unique(part.run.codes[mask]))
    if absent:
        notes.append(f"not shown: {plural(absent, 'run')} not rated at every repeat")
    return part.where(mask), criteria, notes


def _per_repeat(rows: ScoreTable) -> list[Interval]:
    """The interval of each repeat from 0; one without values has an interval of n = 0."""
    return [
        interval(rows.where(rows.repeat == k)) for k in range(int(rows.repeat.max(initial=-1)) + 1)
    ]


def clusters(table: ScoreTable) -> NDArray[np.int64]:
    """A number per row that is equal for ratings of one case; a run without a case is its own."""
    case = table.case.codes.astype(np.int64)
    return np.where(case >= 0, case, -1 - table.run.codes.astype(np.int64))


def run_means(table: ScoreTable) -> NDArray[np.float64]:
    """Mean value of every run, by run code; NaN without a value."""
    rated, size = ~np.isnan(table.value), len(table.run.names)
    count = np.bincount(table.run.codes[rated], minlength=size)
    total = np.bincount(table.run.codes[rated], weights=table.value[rated], minlength=size)
    mean = np.full(size, np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def _shares_of(table: ScoreTable) -> dict[str, list[float]]:
    """Per operator the shares at which there are copies, rising; [] for one without a share.

    Raises InputError for a share that is not in (0, 1].
    """
    shares: dict[str, set[float]] = {}
    for name in table.present("variant"):
        if name != ORIGINAL:
            operator, share = _dose(name)
            shares.setdefault(operator, set()).update([] if share is None else [share])
    return {operator: sorted(some) for operator, some in shares.items()}


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


class _Paired(NamedTuple):
    before: Interval
    after: Interval
    change: Interval


def _paired(before: ScoreTable, after: ScoreTable) -> _Paired:
    """Means of originals and copies in [0, 1], and of the change in [-1, 1], with their intervals
    over cases.

    Each run counts once, by the mean over its repeats (and seeds). Runs that lack one of the two
    are left out.
    """
    a, b = run_means(before), run_means(after)
    both = ~np.isnan(a + b)
    cases = -1 - np.arange(len(before.run.names), dtype=np.int64)
    cases[before.run.codes] = clusters(before)
    names = cases[both].tolist()
    means = [mean_interval(v[both].tolist(), names, bounds=(0.0, 1.0)) for v in (a, b)]
    change = mean_interval((b - a)[both].tolist(), names, bounds=(-1.0, 1.0))
    return _Paired(means[0], means[1], change)


def _per_cent(share: float | None) -> str:
    return "" if share is None else f" {share:.0%}"
