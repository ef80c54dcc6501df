"""Human labels in a store: queues of runs to label, and their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.analysis.rating_sources import StoredJudge
from agenteval.analysis.sampling import By, Sample, draw, named_sample
from agenteval.errors import InputError
from agenteval.records import Criterion
from agenteval.stats.scores import ORIGINAL, ScoreTable, TableBuilder
from agenteval.store import Store
from agenteval.store.browse import criteria_by_key
from agenteval.store.labels import HumanLabel, LabelQueue, Labels
from agenteval.text import plural

ADJUDICATED = "adjudicated"  # rater name for settled differences


@dataclass(frozen=True)
class QueuePlan:
    """The name of a new queue, the criteria to label (ids; default: all rated by the judge), and
    the number of raters per item (None: all)."""

    name: str
    criteria: tuple[str, ...] = ()
    per_item: int | None = None


@dataclass(frozen=True)
class LabelledQueue:
    """A queue with its judge's ratings and its labels.

    `model` is the judge's model, `names` has its runs by key, and `people` has a table per rater.
    `sample` is None if a person chose the runs. `notes` lists unusable labels.
    """

    queue: LabelQueue
    model: str
    names: Mapping[str, str]
    criteria: tuple[Criterion, ...]
    ratings: ScoreTable
    people: Mapping[str, ScoreTable]
    sample: Sample | None
    notes: tuple[str, ...]


def drawn_queue(
    judge: StoredJudge, plan: QueuePlan, n: int, *, by: By = "random", seed: int = 0
) -> LabelQueue:
    """Return a queue of `n` runs drawn from the judge's rated runs (see `sampling.draw`).

    Raises InputError for a criterion that the judge did not rate, and like `draw`.
    """
    keys = _criterion_keys(judge, plan.criteria)
    sample = draw(judge.table(set(keys), judge.newest_runs), n, by=by, seed=seed)
    names = judge.names
    items = {names[key]: key for key in judge.newest_runs}
    return sampled_queue(judge, plan, sample, items)


def sampled_queue(
    judge: StoredJudge, plan: QueuePlan, sample: Sample, keys: Mapping[str, str]
) -> LabelQueue:
    """Return a queue with the runs of a sample; `keys` maps run names to keys.

    The order is random, so that different systems' answers to one problem are not adjacent.
    """
    drawn = list(sample.weights)
    runs = [drawn[i] for i in np.random.default_rng(sample.seed).permutation(len(drawn))]
    queue = chosen_queue(judge, plan, [keys[run] for run in runs])
    weights = tuple(sample.weights[run] for run in runs)
    return queue.model_copy(update={"weights": weights, "sample": sample.name})


def chosen_queue(judge: StoredJudge, plan: QueuePlan, items: Sequence[str]) -> LabelQueue:
    """Return a queue of items (keys) chosen by a person; its labels cannot correct means."""
    return LabelQueue(
        name=plan.name,
        task=next((str(judge.items[key]["task"] or "") for key in judge.newest_runs), ""),
        source_key=judge.key,
        items=tuple(dict.fromkeys(items)),
        criteria=_criterion_keys(judge, plan.criteria),
        per_item=plan.per_item,
    )


def labelled_queue(
    store: Store, name: str | None = None, *, queued_only: bool = False
) -> LabelledQueue:
    """Return a queue of the store (default: the newest) with the ratings of its judge and raters.
    With `queued_only`, ratings of other runs are not read (sufficient without means).

    Labels with a removed level, and labels of runs that are no longer in the store, are skipped
    with a note. Raises InputError if there is no such queue.
    """
    labels = Labels(store)
    queues = labels.queues()
    if not queues or (name is not None and name not in queues):
        queue_names = f"; available: {', '.join(queues)}" if queues else ""
        missing = "the store has no labels" if name is None else f"no queue is called {name!r}"
        raise InputError(
            f"{missing}{queue_names}; collect them with `agenteval view --label`", "--queue"
        )
    queue = list(queues.values())[-1] if name is None else queues[name]
    with store.snapshot():
        among = queue.items if queued_only else None
        judge = StoredJudge.find(store, queue.source_key, queue.task, among=among)
        by_key = criteria_by_key(store, queue.criteria)
        ratings = judge.table(set(by_key), judge.newest_runs)
        newest_labels = labels.newest(items=queue.items)
    names = judge.names
    notes: Counter[str] = Counter()
    usable: list[HumanLabel] = []
    builders: dict[str, TableBuilder] = {}
    for label in newest_labels:
        problem = _unusable(label, by_key, names)
        if problem:
            notes[problem] += 1
        elif label.status in ("scored", "not_applicable"):
            usable.append(label)
    for label in [*usable, *_agreed(usable)]:
        item = judge.items[label.item_key]
        texts = {
            "run": names[label.item_key],
            "case": item["case_key"],
            "system": item["system"],
            "criterion": by_key[label.criterion_key].id,
            "variant": ORIGINAL,
            "status": label.status,
            "label": label.label,
        }
        success = None if item["success"] is None else bool(item["success"])
        builder = builders.setdefault(label.rater, TableBuilder())
        builder.add(texts, repeat=0, success=success, value=label.value)
    sample = None
    if queue.weights is not None and queue.sample is not None:  # use the current names of the runs
        pairs = zip(queue.items, queue.weights, strict=True)
        weights = {names.get(key, key): weight for key, weight in pairs}
        sample = named_sample(queue.sample, weights, queue.name)
    return LabelledQueue(
        queue=queue,
        model=judge.source.model,
        names=names,
        criteria=tuple(by_key[key] for key in queue.criteria if key in by_key),
        ratings=ratings,
        people={rater: builder.table() for rater, builder in builders.items()},
        sample=sample,
        notes=tuple(f"{plural(n, 'label')} left out: {why}" for why, n in notes.items()),
    )


def independent(people: Mapping[str, ScoreTable]) -> dict[str, ScoreTable]:
    """Return the tables of independent raters, without the adjudication."""
    return {rater: table for rater, table in people.items() if rater != ADJUDICATED}


def _agreed(labels: Sequence[HumanLabel]) -> list[HumanLabel]:
    """Add the labels that raters agree on to the adjudicated ones, if there are any.

    On their own, the adjudicated labels cover only runs on which raters differ, which are not a
    random sample.
    """
    by_place: dict[tuple[str, str], list[HumanLabel]] = {}
    for label in labels:
        by_place.setdefault((label.item_key, label.criterion_key), []).append(label)
    if not any(label.rater == ADJUDICATED for label in labels):
        return []
    return [
        votes[0].model_copy(update={"rater": ADJUDICATED})
        for votes in by_place.values()
        if all(label.rater != ADJUDICATED for label in votes)
        and len({(label.status, label.label) for label in votes}) == 1
    ]


def _criterion_keys(judge: StoredJudge, ids: Sequence[str]) -> tuple[str, ...]:
    newest = judge.store.newest_criteria(judge.key)
    rated = [criterion.id for criterion in newest.values()]
    if unknown := [name for name in ids if name not in rated]:
        raise InputError(
            f"the judge did not rate {unknown[0]!r}; it rated: {', '.join(rated)}", "--criterion"
        )
    return tuple(key for key, criterion in newest.items() if not ids or criterion.id in ids)


def _unusable(
    label: HumanLabel, criteria: Mapping[str, Criterion], names: Mapping[str, str]
) -> str:
    """Return why a label cannot be used, or ""."""
    if label.item_key not in names:
        return "its run is not in the store"
    criterion = criteria.get(label.criterion_key)
    if criterion is None:
        return "its criterion is not in the queue" if label.criterion_key else ""
    if label.label is not None and label.label not in criterion.accepted_values:
        return f"{criterion.id} no longer has the level {label.label!r}"
    return ""
