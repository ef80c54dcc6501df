"""Figures to files: the same data give the same bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.errors import InputError
from agenteval.figures.style import drawing
from agenteval.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# No date and no version of a library: a figure changes only when what it shows changes.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "agenteval"},
    "png": {"Software": "agenteval"},
}


def svg(figure: Figure | Axes) -> str:
    """The figure as the text of an SVG file, letters as outlines, for a page or a notebook."""
    return _rendered(figure, "svg", 100).decode("utf-8")


def save(figure: Figure | Axes, path: str | Path, *, dpi: int = 200) -> None:
    """Write .svg or .png in one step; `dpi` is the resolution of a PNG.

    Raises InputError for another suffix and for a path that cannot be written.
    """
    target = Path(path)
    kind = target.suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise InputError(f"figures are written as .svg or .png, not {target.suffix!r}", str(path))
    content = _rendered(figure, kind, dpi)
    with replacing(target) as temporary:
        temporary.write_bytes(content)


def _rendered(figure: Figure | Axes, kind: str, dpi: int) -> bytes:
    whole = figure.get_figure(root=True)
    if whole is None:
        raise InputError("these axes belong to no figure any more")
    buffer = io.BytesIO()
    with drawing():
        whole.savefig(buffer, format=kind, dpi=dpi, metadata=_METADATA[kind])
    return buffer.getvalue()
