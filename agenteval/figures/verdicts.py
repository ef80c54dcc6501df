"""Map of the criteria: agreement of repeats against discrimination of success, with verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agenteval.errors import InputError
from agenteval.figures.placing import Box, place, text_sizes
from agenteval.figures.style import QUIET, axes_or_new, beneath, drawing, fix_ticks, note, outside
from agenteval.figures.text import listed, plain, span, wrapped

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_LOOK = {
    "keep": ("o", "#009E73", "#009E73"),
    "repair": ("^", "#E69F00", "#E69F00"),
    "drop": ("X", "#D55E00", "#D55E00"),
    "undecided": ("s", "#555555", "white"),
}
VERDICTS = tuple(_LOOK)
_MOST_NAMES = 18  # beyond this many, numbers on the map and their names below it
_FONT = 7.5
_CHANCE = 0.5
_CHANCE_LINE: dict[str, Any] = {"color": QUIET, "linewidth": 0.8, "linestyle": (0, (4, 3))}


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; `low` and `high` are None where there is none."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class CriterionPoint:
    """What is known of a criterion; None for an agreement or discrimination that is undefined.

    `agreement` is at most 1 (Krippendorff's alpha can be negative), `discrimination` an AUC in
    [0, 1], `n` the number of cases, `verdict` one of keep, repair, drop, undecided.
    """

    name: str
    agreement: Estimate | None
    discrimination: Estimate | None
    verdict: str
    n: int


def criteria_map(
    points: Sequence[CriterionPoint],
    *,
    agreement: str = "agreement of repeats, Krippendorff's α",
    discrimination: str = "discrimination of success, AUC",
    ax: Axes | None = None,
) -> Axes:
    """Every criterion as a mark at (agreement, AUC), thin crosses for the intervals, its verdict.

    The grey line is an AUC of .5, chance. What is undefined has no place and is listed below. Up
    to 18 names stand beside their marks and never hide each other; more, or no room for them,
    gives numbers with a key. `agreement` and `discrimination` name the axes.

    Raises InputError without criteria, for an unknown verdict and for numbers out of range.
    """
    _check(points)
    placed = [p for p in points if p.agreement is not None and p.discrimination is not None]
    with drawing():
        axes = axes_or_new(ax, 4.4 + 0.07 * max(0, len(placed) - _MOST_NAMES))
        _frame(axes, placed, (agreement, discrimination))
        for point in placed:
            _mark(axes, point)
        handles = [*_verdict_handles(points), *_unplaced(points)]
        counts = span((p.n for p in points), "case")
        axes.set_title(f"Criteria by agreement and discrimination, n = {counts}")
        key = _keyed(placed) if len(placed) > _MOST_NAMES else None
        _finish(axes, handles, key, own=ax is None)
        if key is None and not _named(axes, placed, [plain(p.name) for p in placed]):
            key = _keyed(placed)
            _finish(axes, handles, key, own=ax is None)
        if key is not None:
            _named(axes, placed, [str(i + 1) for i in range(len(placed))], forced=True)
    return axes


def _check(points: Sequence[CriterionPoint]) -> None:
    if not points:
        raise InputError("there are no criteria to draw")
    for p in points:
        if p.verdict not in _LOOK:
            raise InputError(
                f"verdict {p.verdict!r} of {p.name!r}: use one of {', '.join(VERDICTS)}"
            )
        if p.agreement is not None and not p.agreement.value <= 1:
            raise InputError(f"agreement of {p.name!r} is {p.agreement.value}, above 1")
        if p.discrimination is not None and not 0 <= p.discrimination.value <= 1:
            raise InputError(f"AUC of {p.name!r} is {p.discrimination.value}, not in [0, 1]")


def _frame(ax: Axes, placed: Sequence[CriterionPoint], names: tuple[str, str]) -> None:
    left = min([0.3, *(_lowest(p.agreement) for p in placed)])
    below = min([_CHANCE - 0.06, *(_lowest(p.discrimination) for p in placed)])
    ax.set_xlim(max(left, -1.0) - 0.04, 1.04)
    ax.set_ylim(below - 0.03, 1.03)
    ax.axhline(_CHANCE, **_CHANCE_LINE)
    ax.set_xlabel(f"{names[0]} (lines: 95 % intervals)")
    ax.set_ylabel(names[1])
    fix_ticks(ax)


def _lowest(estimate: Estimate | None) -> float:
    assert estimate is not None
    return estimate.value if estimate.low is None else estimate.low


def _mark(ax: Axes, point: CriterionPoint) -> None:
    x, y = point.agreement, point.discrimination
    assert x is not None
    assert y is not None
    marker, edge, face = _LOOK[point.verdict]
    if x.low is not None and x.high is not None:
        ax.hlines(y.value, x.low, x.high, color=edge, linewidth=0.7, zorder=1)
    if y.low is not None and y.high is not None:
        ax.vlines(x.value, y.low, y.high, color=edge, linewidth=0.7, zorder=1)
    ax.plot([x.value], [y.value], marker=marker, markersize=7, markeredgecolor="black",
            markeredgewidth=0.6, markerfacecolor=face, linestyle="none", zorder=3,
            clip_on=False)  # fmt: skip


def _verdict_handles(points: Sequence[CriterionPoint]) -> list[Artist]:
    from matplotlib.lines import Line2D

    handles: list[Artist] = []
    for verdict, (marker, _, face) in _LOOK.items():
        count = sum(p.verdict == verdict for p in points)
        if count:
            handles.append(
                Line2D([], [], marker=marker, markersize=7, markeredgecolor="black",
                       markeredgewidth=0.6, markerfacecolor=face, linestyle="none",
                       label=f"{verdict} ({count})")
            )  # fmt: skip
    handles.append(Line2D([], [], label="chance", **_CHANCE_LINE))
    return handles


def _unplaced(points: Sequence[CriterionPoint]) -> list[Artist]:
    words: Mapping[str, list[str]] = {
        "agreement": [p.name for p in points if p.agreement is None],
        "discrimination": [p.name for p in points if p.discrimination is None],
    }
    handles = [note(f"not placed, {k} unknown: {listed(v, 6)}") for k, v in words.items() if v]
    known = [e for p in points for e in (p.agreement, p.discrimination) if e is not None]
    if any(e.low is None or e.high is None for e in known):
        handles.append(note("without a line: no interval"))
    return handles


def _keyed(placed: Sequence[CriterionPoint]) -> list[Artist]:
    return [note(f"{i + 1}  {wrapped(p.name, 28, lines=1)}") for i, p in enumerate(placed)]


def _finish(ax: Axes, handles: list[Artist], key: list[Artist] | None, *, own: bool) -> None:
    """Legends, outside the axes when the figure is ours; then the layout is settled."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    if own:
        if not figure.legends:
            outside(figure, handles)
        if key:
            labels = [str(k.get_label()) for k in key]
            figure.legend(key, labels, loc="outside right upper", handlelength=0, fontsize=6.5,
                          handletextpad=0, labelspacing=0.25)  # fmt: skip
    else:
        beneath(ax, [*handles, *(key or [])], size=6.5)
    figure.draw_without_rendering()


def _named(
    ax: Axes, placed: Sequence[CriterionPoint], texts: Sequence[str], *, forced: bool = False
) -> bool:
    """Write the texts beside the marks; False, and nothing written, when there is no room.

    `forced` writes what has no room right of its mark all the same.
    """
    inner = ax.get_window_extent()
    unit = 72 / ax.figure.dpi

    def spot(x: float, y: float) -> tuple[float, float]:
        pixel: Any = ax.transData.transform((x, y))
        return float(pixel[0]) * unit, float(pixel[1]) * unit

    at = [spot(*_position(p)) for p in placed]
    frame = Box(inner.x0 * unit, inner.y0 * unit, inner.x1 * unit, inner.y1 * unit)
    lines = [box for p in placed for box in _cross(p, spot)]
    level = spot(0, _CHANCE)[1]
    lines.append(Box(frame.left, level - 0.5, frame.right, level + 0.5))
    sizes = text_sizes(ax, texts, _FONT)
    boxes = place(at, sizes, frame, lines)
    if boxes is None:
        if not forced:
            return False
        boxes = [Box(x + 6, y - h / 2, x + 6 + w, y + h / 2)
                 for (x, y), (w, h) in zip(at, sizes, strict=True)]  # fmt: skip
    for point, (x, y), box, text in zip(placed, at, boxes, texts, strict=True):
        middle = ((box.left + box.right) / 2 - x, (box.bottom + box.top) / 2 - y)
        _write(ax, text, _position(point), middle, far=_gap(x, y, box) > 12)
    return True


def _write(
    ax: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], *, far: bool
) -> None:
    arrow = {"arrowstyle": "-", "color": QUIET, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 4}
    label = ax.annotate(text, at, xytext=offset, textcoords="offset points", ha="center",
                        va="center", fontsize=_FONT, arrowprops=arrow if far else None,
                        annotation_clip=False, zorder=4)  # fmt: skip
    label.set_in_layout(False)  # it was placed for this layout and must not change it


def _position(point: CriterionPoint) -> tuple[float, float]:
    assert point.agreement is not None
    assert point.discrimination is not None
    return point.agreement.value, point.discrimination.value


def _cross(point: CriterionPoint, spot: Any) -> list[Box]:
    """The interval lines of a mark as flat boxes in points of type."""
    x, y = point.agreement, point.discrimination
    assert x is not None
    assert y is not None
    boxes = []
    if x.low is not None and x.high is not None:
        (left, middle), (right, _) = spot(x.low, y.value), spot(x.high, y.value)
        boxes.append(Box(left, middle - 0.5, right, middle + 0.5))
    if y.low is not None and y.high is not None:
        (centre, bottom), (_, top) = spot(x.value, y.low), spot(x.value, y.high)
        boxes.append(Box(centre - 0.5, bottom, centre + 0.5, top))
    return boxes


def _gap(x: float, y: float, box: Box) -> float:
    """Distance from a mark to the nearest edge of its name."""
    across = max(box.left - x, x - box.right, 0)
    along = max(box.bottom - y, y - box.top, 0)
    return float((across**2 + along**2) ** 0.5)
