"""critic → quantify → verify → prune, again: which criteria go into the next round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.evaluators.utility.merge import cluster_members
from agenteval.models.embeddings import Embedder
from agenteval.records import Criterion
from agenteval.records.verification import VerifiedSet


@dataclass(frozen=True)
class NextRound:
    """What the next round judges: the criteria not dropped, and proposals that say something new.

    `dropped` and `new` are ids, `known` counts proposals that repeat a criterion already judged,
    dropped ones included.
    """

    criteria: tuple[Criterion, ...]
    dropped: tuple[str, ...]
    new: tuple[str, ...]
    known: int


@dataclass(frozen=True)
class Round:
    """A round that was judged, and what follows from it; None for the last."""

    result: VerifiedSet
    following: NextRound | None = None


def next_round(
    judged: Sequence[Criterion],
    result: VerifiedSet,
    proposed: Sequence[Criterion],
    embedder: Embedder | None,
    *,
    seen: Sequence[Criterion] = (),
    tau: float | None = None,
) -> NextRound:
    """Prune what was judged and add what is new among the proposals.

    A proposal is known when it falls into one cluster (`merge_criteria` at `tau`) with a criterion
    judged now or `seen` in an earlier round: what was dropped does not come back in other words.
    Raises as `merge_criteria`.
    """
    dropped = {v.criterion_id for v in result.criteria if v.verdict == "drop"}
    kept = tuple(c for c in judged if c.id not in dropped)
    old = [*seen, *judged]
    sets = [old, *([c] for c in proposed)]
    clusters = cluster_members(sets, embedder, tau=tau)
    known = set(clusters[0])
    taken = {c.id for c in old}
    new: list[Criterion] = []
    for criterion, (cluster,) in zip(proposed, clusters[1:], strict=True):
        if cluster in known:
            continue
        known.add(cluster)
        new.append(_with_free_id(criterion, taken))
        taken.add(new[-1].id)
    return NextRound(
        criteria=(*kept, *new),
        dropped=tuple(c.id for c in judged if c.id in dropped),
        new=tuple(c.id for c in new),
        known=len(proposed) - len(new),
    )


def _with_free_id(criterion: Criterion, taken: set[str]) -> Criterion:
    """The criterion, with a number behind its id where another has it already."""
    if criterion.id not in taken:
        return criterion
    number = 2
    while f"{criterion.id}-{number}" in taken:
        number += 1
    return criterion.model_copy(update={"id": f"{criterion.id}-{number}"})
