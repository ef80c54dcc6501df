"""Choose the spans of a trace that are drawn: trees within bounds, with omitted spans counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agenteval.traces.outline import OutlineSpan


@dataclass(frozen=True)
class Drawn:
    """A span to draw, its drawn children, and the number of omitted ones by kind."""

    span: OutlineSpan
    depth: int
    children: list[Drawn] = field(default_factory=list)
    hidden: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Forest:
    """The roots to show, and the number of omitted spans by kind."""

    roots: list[Drawn] = field(default_factory=list)
    hidden: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Bounds:
    """Limits of the display: spans in total, children of a span, levels below a root."""

    spans: int = 200
    children: int = 25
    depth: int = 24


def nodes(roots: Iterable[Drawn]) -> Iterator[Drawn]:
    """Yield these nodes and all below them."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children)


def forest(
    spans: Sequence[OutlineSpan], marked: Collection[str] = (), bounds: Bounds = Bounds()
) -> Forest:
    """Return the spans as trees within `bounds`; the others are counted at their place.

    Spans in `marked`, then those with an error, come first, with the spans above them, so that they
    are visible in a trace of any size. A span whose parent does not come before it is a root, as is
    one more than `bounds.depth` below its own: a broken or endless chain draws no loop.
    """
    parents, depths = _places(spans, bounds.depth)
    chosen = _chosen(spans, parents, marked, bounds)
    drawn: dict[int, Drawn] = {}
    anchors: list[int | None] = []  # the drawn span at or above each span
    result = Forest()
    for i, span in enumerate(spans):
        parent = parents[i]
        anchor = None if parent is None else anchors[parent]
        above = None if anchor is None else drawn[anchor]
        if i in chosen:
            drawn[i] = Drawn(span, depths[i])
            (above.children if above else result.roots).append(drawn[i])
            anchor = i
        else:
            (above or result).hidden[span.kind] += 1
        anchors.append(anchor)
    return result


def _places(spans: Sequence[OutlineSpan], deepest: int) -> tuple[list[int | None], list[int]]:
    """Index of each span's parent, and its depth; the first of several spans of one id counts."""
    seen: dict[str, int] = {}
    parents: list[int | None] = []
    depths: list[int] = []
    for i, span in enumerate(spans):
        above = None if span.parent_id is None else seen.get(span.parent_id)
        if above is not None and depths[above] >= deepest:
            above = None
        parents.append(above)
        depths.append(0 if above is None else depths[above] + 1)
        seen.setdefault(span.id, i)
    return parents, depths


def _chosen(
    spans: Sequence[OutlineSpan],
    parents: Sequence[int | None],
    marked: Collection[str],
    bounds: Bounds,
) -> set[int]:
    """Positions of the spans to draw: marked ones, errors, then from the beginning."""
    chosen: set[int] = set()
    first = [i for i, span in enumerate(spans) if span.id in marked]
    for i in [*first, *(i for i, span in enumerate(spans) if span.status == "error")]:
        path, above = [i], parents[i]
        while above is not None and above not in chosen:
            path.append(above)
            above = parents[above]
        if i not in chosen and len(chosen) + len(path) <= bounds.spans:
            chosen.update(path)
    siblings: Counter[int | None] = Counter(parents[i] for i in chosen)
    for i, above in enumerate(parents):
        fits = siblings[above] < bounds.children and (above is None or above in chosen)
        if i not in chosen and fits and len(chosen) < bounds.spans:
            chosen.add(i)
            siblings[above] += 1
    return chosen
