"""Contents of a labelling queue: the text of an item, and the criteria to label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.errors import InputError
from agenteval.readers.view import ViewTurn, split_trajectory
from agenteval.records import Criterion, Finding, Findings
from agenteval.store import Store
from agenteval.store.browse import criteria_by_key
from agenteval.store.labels import HumanLabel, LabelQueue, Labels
from agenteval.traces.evaluator import load_outlines


@dataclass(frozen=True)
class LabelItem:
    """A run as raters see it: neither its system nor any score is shown."""

    key: str
    problem: str
    turns: tuple[ViewTurn, ...]


def label_items(store: Store, queue: LabelQueue, keys: Sequence[str]) -> list[LabelItem]:
    """Return items of a queue with their texts, in the order of `keys`.

    Raises InputError for one that is no longer in the store.
    """
    items = store.items(keys=keys)
    if missing := [key for key in keys if key not in items]:
        raise InputError(f"a run of this queue is not in the store: {missing[0][:12]}", queue.name)
    return [
        LabelItem(
            key,
            str(body.get("problem", "")),
            tuple(split_trajectory(str(body.get("trajectory", "")))),
        )
        for key, body in store.bodies(keys)
    ]


def label_criteria(store: Store, queue: LabelQueue) -> dict[str, Criterion]:
    """Return the criteria of a queue that people can label, by content hash: those with levels.

    Raises InputError when there is none.
    """
    by_key = criteria_by_key(store, queue.criteria)
    criteria = {k: by_key[k] for k in queue.criteria if k in by_key and by_key[k].accepted_values}
    if not criteria:
        raise InputError("no criterion of this queue has levels to choose from", queue.name)
    return criteria


def trace_findings(store: Store) -> dict[str, dict[str, HumanLabel]]:
    """Return the label that counts of every trace (key) and rater; its findings are in order."""
    by_item: dict[str, dict[str, HumanLabel]] = {}
    for label in Labels(store).newest():
        if not label.criterion_key:
            by_item.setdefault(label.item_key, {})[label.rater] = label
    return by_item


def findings_of_raters(store: Store) -> dict[str, list[Findings]]:
    """Return what every rater found, by name, a `Findings` for each trace that they examined."""
    names = {key: shown.trace for key, shown in load_outlines(store).items()}
    by_rater: dict[str, list[Findings]] = {}
    for key, raters in trace_findings(store).items():
        for rater, label in raters.items():
            found = tuple(
                Finding.model_validate({**entry, "source": rater}) for entry in label.findings
            )
            by_rater.setdefault(rater, []).append(Findings(trace=names[key], findings=found))
    return by_rater
