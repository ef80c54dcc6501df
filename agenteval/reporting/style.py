"""Style, labels and files of all charts: the same data give the same bytes."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.errors import InputError
from agenteval.files import replacing
from agenteval.stats import Interval
from agenteval.text import plural

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 6.3  # inches, 16 cm: the text width of an A4 page
INK = "#222222"
_LINE = 104  # characters of a legend that fit in the width of print
_LONGEST = 100  # characters of a name: a legend's line holds no more

_SETTINGS: dict[Any, Any] = {
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
# No date and no version of a library: a chart changes only when what it shows changes.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "agenteval"},
    "png": {"Software": "agenteval"},
    "pdf": {"Creator": "agenteval", "Producer": None, "CreationDate": None},
}


@dataclass(frozen=True)
class SeriesStyle:
    """Distinguishes series: colour, and line, marker and hatch for greyscale prints."""

    colour: str
    line: Any
    marker: str
    hatch: str

    def light(self, share: float = 0.62) -> str:
        """The colour mixed with white (`share` of white), for the pale one of a pair."""
        parts = (int(self.colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return "#" + "".join(f"{round(255 * (p + (1 - p) * share)):02x}" for p in parts)


# Okabe & Ito, "Color Universal Design" (2008); its yellow is too pale for lines on white.
LOOKS = (
    SeriesStyle("#0072B2", "-", "o", ""),
    SeriesStyle("#D55E00", (0, (5, 1.6)), "s", "///"),
    SeriesStyle("#009E73", (0, (1.2, 1.2)), "^", "..."),
    SeriesStyle("#CC79A7", (0, (5, 1.2, 1.2, 1.2)), "D", "xxx"),
    SeriesStyle("#E69F00", (0, (2.5, 1.2)), "v", "\\\\\\"),
    SeriesStyle("#56B4E9", (0, (7, 1.2, 1.2, 1.2, 1.2, 1.2)), "P", "---"),
    SeriesStyle("#000000", (0, (1, 2.4)), "X", "+++"),
)


def looks(names: Sequence[str], what: str) -> dict[str, SeriesStyle]:
    """Return a style per name, in order. Raises InputError for more names than there are styles."""
    if len(names) > len(LOOKS):
        raise InputError(
            f"{len(names)} {what} in one figure: at most {len(LOOKS)} can be told apart; draw fewer"
        )
    return dict(zip(names, LOOKS, strict=False))


# ---- figures -------------------------------------------------------------------------------------


@contextmanager
def drawing() -> Iterator[None]:
    """matplotlib's settings of this package, and the caller's own again afterwards."""
    from matplotlib import rc_context

    with rc_context(_SETTINGS):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure (inches) that belongs to no window and to no pyplot state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def figure_of(ax: Figure | Axes) -> Figure:
    """The figure that the axes belong to."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise InputError("these axes no longer belong to a figure")
    return figure


def axes_or_new(ax: Axes | None, height: float, *, polar: bool = False) -> Axes:
    """The caller's axes, or new ones over a figure of print width and `height` inches."""
    if ax is None:
        return new_figure(WIDTH, height).add_subplot(projection="polar" if polar else None)
    if (ax.name == "polar") != polar:
        raise InputError(f"this figure needs {'polar' if polar else 'plain'} axes, not {ax.name}")
    return ax


def finish_axes(*axes: Axes, grid: Any = None) -> None:
    """Create ticks and grid lines now, with our settings; matplotlib would create them later."""
    for ax in axes:
        if grid:
            ax.grid(True, axis=grid, color=_SETTINGS["grid.color"], linewidth=0.5)
        ax.tick_params(axis="both", labelsize=8, width=0.7, length=3, colors=INK)
        ax.tick_params(axis="both", which="minor", length=0)


def legend(
    ax: Axes, handles: Sequence[Artist], notes: Iterable[str] = (), *, own: bool = True
) -> None:
    """The legend with `notes` as lines without a mark: below a whole figure of our own, which grows
    by its height and has it in as many columns as its words allow; else beneath the caller's
    axes."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    handles = [*handles, *(Line2D([], [], linestyle="none", marker="", label=n) for n in notes)]
    if not handles:
        return
    figure, labels = figure_of(ax), [str(h.get_label()) for h in handles]
    if own:
        columns = max(min(_LINE // (max(map(len, labels)) + 7), len(labels), 5), 1)
        rows = -(-len(labels) // columns)
        figure.set_figheight(float(figure.get_size_inches()[1]) + 0.17 * rows)
        figure.legend(handles, labels, loc="outside lower left", ncols=columns, alignment="left")
        return
    down = ScaledTranslation(0, -44 / 72, figure.dpi_scale_trans)
    ax.legend(
        handles,
        labels,
        loc="upper left",
        fontsize=7,
        bbox_to_anchor=(0, 0),
        borderaxespad=0,
        bbox_transform=ax.transAxes + down,
    )


# ---- words ---------------------------------------------------------------------------------------


def plain(name: str) -> str:
    """Return a name that is drawn literally: control characters are shown as codes, and `$` is
    never a formula. Names above 100 characters are cut to 98 and an ellipsis, because outlines of
    100,000 letters take matplotlib half a minute."""
    some = name[: 4 * _LONGEST]
    printable = "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in some)
    text = " ".join(printable.split())
    if len(text) > _LONGEST or len(some) < len(name):
        text = f"{text[: _LONGEST - 2].rstrip()} …".lstrip()
    return text.replace("$", r"\$")


def wrapped(name: str, width: int, *, lines: int = 3) -> str:
    """The name in at most `lines` lines of `width` characters; a cut name ends in an ellipsis."""
    parts = textwrap.wrap(plain(name), width, max_lines=lines, placeholder=" …")
    return "\n".join(parts) or "(no name)"


def span(numbers: Iterable[int], word: str) -> str:
    """Return "12 cases" if all are 12, otherwise "10 to 12 cases", or "no cases" without any."""
    different = sorted(set(numbers))
    if not different or different == [0]:
        return f"no {word}s"
    low, high = different[0], different[-1]
    return plural(low, word) if low == high else f"{low:,} to {high:,} {word}s"


def n_label(intervals: Sequence[Interval], each: str = "rating") -> str:
    """Return a label such as "n = 12 cases", with the values too (`each` names one) if a case has
    several. Differing intervals give a range; intervals without values are ignored."""
    filled = [i for i in intervals if i.n]
    cases = span((i.n_clusters or i.n for i in filled), "case")
    if all(i.n == (i.n_clusters or i.n) for i in filled):
        return f"n = {cases}" if filled else cases
    return f"n = {cases}, {span((i.n for i in filled), each)}"


# ---- files ---------------------------------------------------------------------------------------


def svg(figure: Figure | Axes) -> str:
    """The chart as the text of an SVG file, letters as outlines, for a page or a notebook."""
    return _rendered(figure, "svg", 100).decode("utf-8")


def save(figure: Figure | Axes, path: str | Path, *, dpi: int = 200) -> None:
    """Write .svg, .png or .pdf in one step; `dpi` is the resolution of a PNG.

    Raises InputError for another suffix and for a path that cannot be written.
    """
    check_ending(path)
    content = _rendered(figure, Path(path).suffix.lower().removeprefix("."), dpi)
    with replacing(Path(path)) as temporary:
        temporary.write_bytes(content)


def check_ending(path: str | Path) -> None:
    """Raises InputError for a file that is neither .png nor .svg nor .pdf by its name."""
    suffix = Path(path).suffix
    if suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"figures are written as .png, .svg or .pdf, not {suffix!r}", str(path))


def _rendered(figure: Figure | Axes, kind: str, dpi: int) -> bytes:
    buffer = io.BytesIO()
    with drawing():
        figure_of(figure).savefig(buffer, format=kind, dpi=dpi, metadata=_METADATA[kind])
    return buffer.getvalue()
