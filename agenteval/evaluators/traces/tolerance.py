"""Which spans lie close enough to a marked one to count as a hit, where that is asked for.

People mark the LLM or tool span in which an error shows; judges often name the tool call instead,
or the step around both. Two relations can be tolerated:

ancestor   one of the two lies within the other, and both belong to the same step
neighbour  the two have the same parent and one follows the other in the order of the trace

A step is a chain span below an agent span (any chain span that has a parent, in a trace without
agent spans). A span belongs to the nearest step around it, itself included, that is not beyond
the agent it runs in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from agenteval.records import Span

Relation = Literal["ancestor", "neighbour"]
RELATIONS: tuple[Relation, ...] = ("ancestor", "neighbour")


class Nearness:
    """Close spans of one trace.

    `spans` stand in the order of the trace, a parent before its children. Of spans with one id the
    first counts. Time is linear in the spans here, and in the spans of the step in `near`. Raises
    ValueError for no relation or an unknown one.
    """

    def __init__(self, spans: Sequence[Span], relations: Sequence[Relation] = RELATIONS) -> None:
        if not relations or not set(relations) <= set(RELATIONS):
            raise ValueError(f"relations {tuple(relations)}: one or more of {RELATIONS}")
        self._relations = relations
        self._parents: dict[str, str | None] = {}
        self._children: dict[str | None, list[str]] = {}
        self._place: dict[str, int] = {}  # among the children of its parent
        self._steps: dict[str, str | None] = {}
        agents = {span.id for span in spans if span.kind == "agent"}
        below: set[str] = set()  # spans below an agent, or below any span where there is none
        for span in spans:
            if span.id in self._parents:
                continue
            parent = span.parent_id if span.parent_id in self._parents else None
            self._parents[span.id] = parent
            siblings = self._children.setdefault(parent, [])
            self._place[span.id] = len(siblings)
            siblings.append(span.id)
            if parent is not None and (parent in agents or parent in below or not agents):
                below.add(span.id)
            outer = None if parent is None or parent in agents else self._steps[parent]
            is_step = span.kind == "chain" and span.id in below
            self._steps[span.id] = span.id if is_step else outer

    def near(self, span: str) -> frozenset[str]:
        """Ids that count as a hit of `span`: itself and what is close; only itself if unknown."""
        if span not in self._parents:
            return frozenset({span})
        close = {span}
        if "neighbour" in self._relations:
            siblings, place = self._children[self._parents[span]], self._place[span]
            close.update(siblings[max(0, place - 1) : place + 2])
        step = self._steps[span]
        if "ancestor" in self._relations and step is not None:
            above = self._parents[span]
            while above is not None and self._steps[above] == step:
                close.add(above)
                above = self._parents[above]
            waiting = [span]
            while waiting:
                for child in self._children.get(waiting.pop(), []):
                    if self._steps[child] == step:  # else all below it is of other steps too
                        close.add(child)
                        waiting.append(child)
        return frozenset(close)


def skeleton(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The spans without what they say: all that scoring needs of them, for a fraction of memory."""
    return tuple(Span(id=span.id, parent_id=span.parent_id, kind=span.kind) for span in spans)
