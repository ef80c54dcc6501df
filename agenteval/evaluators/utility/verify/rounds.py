"""critic → quantify → verify → prune, again: which criteria go into the next round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

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
    An id that is taken gets a number behind it. Raises as `merge_criteria`.
    """
    dropped = {v.criterion_id for v in result.criteria if v.verdict == "drop"}
    old = [*seen, *judged]
    known, *clusters = cluster_members([old, *([c] for c in proposed)], embedder, tau=tau)
    taken_clusters, taken = set(known), {c.id for c in old}
    new: list[Criterion] = []
    for criterion, (cluster,) in zip(proposed, clusters, strict=True):
        if cluster in taken_clusters:
            continue
        names = (criterion.id if n == 1 else f"{criterion.id}-{n}" for n in count(1))
        free = next(name for name in names if name not in taken)
        new.append(criterion.model_copy(update={"id": free}))
        taken_clusters.add(cluster)
        taken.add(free)
    return NextRound(
        criteria=(*(c for c in judged if c.id not in dropped), *new),
        dropped=tuple(c.id for c in judged if c.id in dropped),
        new=tuple(c.id for c in new),
        known=len(proposed) - len(new),
    )
