"""Which spans of a trace are drawn: trees within bounds, with everything left out counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from agenteval.traces.outline import OutlineSpan


@dataclass(frozen=True)
class Drawn:
    """A span to be drawn, its children, and below it what is left out, counted by kind."""

    span: OutlineSpan
    depth: int
    children: list[Drawn] = field(default_factory=list)
    hidden: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Forest:
    """The roots of what is drawn, and how many spans beside them are left out, by kind."""

    roots: list[Drawn]
    hidden: Counter[str]

    @property
    def drawn(self) -> int:
        """Number of spans drawn."""
        count, stack = 0, list(self.roots)
        while stack:
            node = stack.pop()
            count += 1
            stack.extend(node.children)
        return count


@dataclass(frozen=True)
class Bounds:
    """How much is drawn: spans in all, children of one span, levels below a root."""

    spans: int = 200
    children: int = 25
    depth: int = 24


DEFAULT = Bounds()


def forest(
    spans: Sequence[OutlineSpan], marked: Collection[str] = (), bounds: Bounds = DEFAULT
) -> Forest:
    """The spans as trees within `bounds`; all others are counted where they would stand.

    Spans in `marked`, then those with an error, come first, with the spans above them, so that
    they are seen in a trace of any size. A span whose parent does not stand before it is a root,
    as is one more than `bounds.depth` below its own: a broken or endless chain draws no loop.
    """
    parents, depths = _places(spans, bounds.depth)
    chosen = _chosen(spans, parents, set(marked), bounds)
    nodes: dict[int, Drawn] = {}
    anchors: list[int | None] = []
    result = Forest([], Counter())
    for i, span in enumerate(spans):
        above = parents[i]
        anchor = None if above is None else anchors[above]
        into = result if anchor is None else nodes[anchor]
        if i in chosen:
            nodes[i] = Drawn(span, depths[i])
            (into.roots if isinstance(into, Forest) else into.children).append(nodes[i])
            anchors.append(i)
        else:
            into.hidden[span.kind] += 1
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
    for i in _first(spans, marked):
        path, above = [i], parents[i]
        while above is not None and above not in chosen:
            path.append(above)
            above = parents[above]
        if i not in chosen and len(chosen) + len(path) <= bounds.spans:
            chosen.update(path)
    siblings: Counter[int | None] = Counter(parents[i] for i in chosen)
    for i in range(len(spans)):
        above = parents[i]
        fits = siblings[above] < bounds.children and (above is None or above in chosen)
        if i not in chosen and fits and len(chosen) < bounds.spans:
            chosen.add(i)
            siblings[above] += 1
    return chosen


def _first(spans: Sequence[OutlineSpan], marked: Collection[str]) -> Iterator[int]:
    yield from (i for i, span in enumerate(spans) if span.id in marked)
    yield from (i for i, span in enumerate(spans) if span.status == "error")
