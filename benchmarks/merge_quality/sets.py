"""Recorded sets of criteria, a reader's partition of their names, and draws of some of the sets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agenteval.errors import InputError
from agenteval.records import Criterion, Provenance
from agenteval.utility.critic_reply import read_criteria
from agenteval.utility.merge import fold_name

CAPABLE = Path(__file__).parents[1] / "capable" / "critics"


@dataclass(frozen=True)
class RecordedSet:
    """What one critic proposed; `mode` is how it was asked."""

    mode: str
    criteria: tuple[Criterion, ...]


def load_sets(folder: Path) -> list[RecordedSet]:
    """The sets in the *.jsonl files of a folder: lines with `mode`, `seed`, and `criteria` (a
    value) or `text` (a critic's reply). Raises InputError when there are none, ReplyError for a
    reply that holds no criterion."""
    sets = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in map(json.loads, path.read_text("utf-8").splitlines()):
            seed = Provenance(origin="critic", seeds=(int(line["seed"]),))
            criteria = read_criteria(line.get("criteria", line.get("text"))).criteria
            signed = (c.model_copy(update={"provenance": seed}) for c in criteria)
            sets.append(RecordedSet(str(line.get("mode", "")), tuple(signed)))
    if not sets:
        raise InputError("no recorded sets of criteria (*.jsonl) here", str(folder))
    return sets


def load_ideas(path: Path, sets: Sequence[RecordedSet]) -> dict[str, str]:
    """Idea by folded name, from {"name": "idea"}, or {"seed:index": "idea"} over `sets`.

    Names that stand in no partition are left out of every count.
    """
    ideas = json.loads(path.read_text("utf-8"))
    places = {
        f"{s.criteria[0].provenance.seeds[0]}:{at}": c.name
        for s in sets
        for at, c in enumerate(s.criteria)
    }
    return {fold_name(places.get(key, key)): idea for key, idea in ideas.items()}


def modes(sets: Sequence[RecordedSet]) -> list[str]:
    """The modes, sorted."""
    return sorted({s.mode for s in sets})


def draws(sets: Sequence[RecordedSet], seeds: int, times: int) -> Iterator[list[RecordedSet]]:
    """`times` draws of `seeds` sets of each mode, without replacement and always the same; one
    where a mode has no more sets."""
    rng = np.random.default_rng(0)
    for mode in modes(sets):
        own = [s for s in sets if s.mode == mode]
        for _ in range(times if len(own) > seeds else 1):
            yield [own[i] for i in sorted(rng.permutation(len(own))[:seeds])]
