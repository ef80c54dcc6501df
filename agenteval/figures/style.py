"""How every figure looks: print width, colours for all eyes, marks that survive grey print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agenteval.errors import InputError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WIDTH = 6.3  # inches, 16 cm: the text width of an A4 page
INK = "#222222"
QUIET = "#8c8c8c"
VALUE = "mean value, 0 worst to 1 best"
_WHISKERS = "whiskers: 95 % interval over cases"
_LINE = 104  # characters of a legend that fit in the width of print

_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same picture on every machine
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "text.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.6,
    "figure.facecolor": "white",
    "figure.dpi": 100,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "agenteval",
    "path.simplify": False,
}


@dataclass(frozen=True)
class Look:
    """What tells one series from another: colour, and line, marker and hatch for grey print."""

    colour: str
    line: Any
    marker: str
    hatch: str

    def light(self, share: float = 0.62) -> tuple[float, float, float]:
        """The colour mixed with white (`share` of white), for the pale one of a pair."""
        parts = (int(self.colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        red, green, blue = (part + (1 - part) * share for part in parts)
        return red, green, blue


# Okabe & Ito, "Color Universal Design" (2008); its yellow is too pale for lines on white.
LOOKS = (
    Look("#0072B2", "-", "o", ""),
    Look("#D55E00", (0, (5, 1.6)), "s", "///"),
    Look("#009E73", (0, (1.2, 1.2)), "^", "..."),
    Look("#CC79A7", (0, (5, 1.2, 1.2, 1.2)), "D", "xxx"),
    Look("#E69F00", (0, (2.5, 1.2)), "v", "\\\\\\"),
    Look("#56B4E9", (0, (7, 1.2, 1.2, 1.2, 1.2, 1.2)), "P", "---"),
    Look("#000000", (0, (1, 2.4)), "X", "+++"),
)
SUCCESS, FAILED, UNKNOWN = LOOKS[0], LOOKS[4], Look("#666666", "-", "D", "...")


def looks(names: Sequence[str], what: str) -> dict[str, Look]:
    """A look per name, in order. Raises InputError for more names than can be told apart."""
    if len(names) > len(LOOKS):
        raise InputError(
            f"{len(names)} {what} in one figure: at most {len(LOOKS)} can be told apart; draw fewer"
        )
    return dict(zip(names, LOOKS, strict=False))


@contextmanager
def drawing() -> Iterator[None]:
    """matplotlib's settings of this package, and the caller's own again afterwards."""
    from matplotlib import rc_context

    with rc_context(_RC):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure (inches) that belongs to no window and to no pyplot state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def axes_or_new(ax: Axes | None, height: float, *, polar: bool = False) -> Axes:
    """The caller's axes, or new ones over a figure of print width and `height` inches."""
    if ax is None:
        projection = "polar" if polar else None
        return new_figure(WIDTH, height).add_subplot(projection=projection)
    if (ax.name == "polar") != polar:
        raise InputError(f"this figure needs {'polar' if polar else 'plain'} axes, not {ax.name}")
    return ax


def grid(panels: int, title: str, x: str, y: str) -> tuple[Figure, list[Axes]]:
    """A figure with `panels` axes, at most three in a row, that share their scales and labels."""
    columns = min(panels, 3)
    rows = -(-panels // columns)
    figure = new_figure(WIDTH, 1.9 * rows + 0.8)
    cells = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    flat = list(cells.flat)
    for unused in flat[panels:]:
        unused.remove()
    for lowest in flat[max(panels - columns, 0) : panels]:  # of its column, also above a gap
        lowest.tick_params(labelbottom=True)
        lowest.set_xlabel(x)
    for start in flat[:panels:columns]:
        start.set_ylabel(y)
    figure.suptitle(title, x=0.01, ha="left", fontsize=9.5)
    return figure, flat[:panels]


def fix_ticks(*axes: Axes) -> None:
    """Ticks are made late, with the settings of that moment: give them ours now."""
    for ax in axes:
        ax.tick_params(axis="both", labelsize=8, width=0.7, length=3, colors=INK)
        ax.tick_params(axis="both", which="minor", length=0)


def value_axis(ax: Axes, *, horizontal: bool, label: str | None = None) -> None:
    """Scale, grid and label of the axis that shows values in [0, 1]."""
    axis = ax.xaxis if horizontal else ax.yaxis
    (ax.set_xlim if horizontal else ax.set_ylim)(0, 1.02)
    axis.set_ticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    light_grid(axis)
    whole = f"{VALUE}; {_WHISKERS}" if horizontal else f"{VALUE}\n{_WHISKERS}"
    axis.set_label_text(whole if label is None else label)


def light_grid(axis: Axis) -> None:
    """Thin grid lines, also in axes that were made with other settings."""
    axis.grid(True, color=_RC["grid.color"], linewidth=_RC["grid.linewidth"])


def note(text: str) -> Artist:
    """A line of words for the legend, without a mark."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", marker="", label=text)


def legend(ax: Axes, handles: Sequence[Artist], *, own: bool) -> None:
    """Legend below a whole figure of our own, or right beneath the caller's axes."""
    if not handles:
        return
    if own:
        outside(ax.get_figure(root=True), handles)
        return
    beneath(ax, handles)


def beneath(ax: Axes, handles: Sequence[Artist], *, size: float = 7) -> None:
    """Legend under the names of an axis; a layout engine of the caller's figure makes room."""
    from matplotlib.transforms import ScaledTranslation

    figure = ax.get_figure(root=True)
    assert figure is not None
    down = ScaledTranslation(0, -44 / 72, figure.dpi_scale_trans)
    ax.legend(
        handles, [str(h.get_label()) for h in handles], loc="upper left", fontsize=size,
        bbox_to_anchor=(0, 0), bbox_transform=ax.transAxes + down, borderaxespad=0,
    )  # fmt: skip


def outside(figure: Figure | None, handles: Sequence[Artist]) -> None:
    """One legend for a whole figure, below its panels, in as many columns as its words allow.

    The figure grows by its height.
    """
    assert figure is not None
    labels = [str(h.get_label()) for h in handles]
    columns = max(min(_LINE // (max(map(len, labels)) + 7), len(labels), 5), 1)
    _, height = figure.get_size_inches()
    rows = -(-len(labels) // columns)
    figure.set_figheight(float(height) + 0.17 * rows)  # the panels keep their size
    figure.legend(handles, labels, loc="outside lower left", ncols=columns, alignment="left")
