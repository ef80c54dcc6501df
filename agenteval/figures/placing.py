"""Where to write names beside points so that they hide neither each other nor the points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RADII = (7.0, 12.0, 18.0, 26.0, 36.0, 48.0)  # points of type, from the mark to the text
_DIRECTIONS = 16
_MARK = 5.0  # half the room kept free around a mark


@dataclass(frozen=True)
class Box:
    """A rectangle in points of type."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """Area that two rectangles share."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0.0) * max(height, 0.0)

    def inside(self, other: Box) -> bool:
        """Whether it lies wholly in the other."""
        return (
            self.left >= other.left
            and self.bottom >= other.bottom
            and self.right <= other.right
            and self.top <= other.top
        )


def around(x: float, y: float, half: float = _MARK) -> Box:
    """The room of a mark."""
    return Box(x - half, y - half, x + half, y + half)


def place(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    thin: Sequence[Box] = (),
) -> list[Box] | None:
    """A box for the name of every point, none over another, over a mark or out of the frame.

    All in points of type; `sizes` are widths and heights of the names. `thin` are lines, which
    names avoid where there is room. Crowded points choose first. None when a name finds no room.
    """
    marks = [around(x, y) for x, y in points]
    order = sorted(range(len(points)), key=lambda i: (-_crowd(i, points), i))
    found: dict[int, Box] = {}
    for i in order:
        blocked = [*marks, *found.values()]
        best: tuple[float, Box] | None = None
        for radius, box in _candidates(points[i], sizes[i]):
            if not box.inside(frame) or any(box.overlap(b) > 0 for b in blocked):
                continue
            cost = radius + 2.0 * sum(box.overlap(t) for t in thin)
            if best is None or cost < best[0]:
                best = (cost, box)
        if best is None:
            return None
        found[i] = best[1]
    return [found[i] for i in range(len(points))]


def _crowd(i: int, points: Sequence[tuple[float, float]]) -> int:
    return sum(math.dist(points[i], p) < 60 for p in points) - 1


def _candidates(point: tuple[float, float], size: tuple[float, float]) -> list[tuple[float, Box]]:
    width, height = size
    result = []
    for radius in _RADII:
        for k in range(_DIRECTIONS):
            angle = 2 * math.pi * k / _DIRECTIONS
            cos, sin = math.cos(angle), math.sin(angle)
            x = point[0] + radius * cos + width / 2 * _sign(cos)
            y = point[1] + radius * sin + height / 2 * _sign(sin)
            box = Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            result.append((radius, box))
    return result


def _sign(number: float) -> float:
    """-1, 0 or 1; steep and flat directions centre the text over or beside the mark."""
    return 0.0 if abs(number) < 0.2 else math.copysign(1.0, number)


def text_sizes(ax: Axes, texts: Sequence[str], fontsize: float) -> list[tuple[float, float]]:
    """Width and height of texts in points of type."""
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.text import Text

    figure = ax.get_figure(root=True)
    assert figure is not None
    renderer = RendererAgg(16, 16, 72)  # type: ignore[no-untyped-call]
    sizes = []
    for text in texts:
        artist = Text(0, 0, text, fontsize=fontsize, figure=figure)
        box = artist.get_window_extent(renderer, dpi=72)
        sizes.append((box.width, box.height))
    return sizes
