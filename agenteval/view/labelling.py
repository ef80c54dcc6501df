"""Labelling without the web: a queue's items and criteria, and the actions of raters."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from agenteval.analysis.human_labels import ADJUDICATED, labelled_queue
from agenteval.analysis.rater_comparison import RaterComparisonOptions, compare_raters
from agenteval.analysis.scores import run_names
from agenteval.errors import InputError
from agenteval.readers.view import ViewTurn, split_trajectory
from agenteval.records import Criterion, Failure, Finding, Findings
from agenteval.records.table import Table
from agenteval.stats.scores import ORIGINAL
from agenteval.store import Store
from agenteval.store.browse import calls_of, criteria_by_key
from agenteval.store.labels import HumanLabel, LabelQueue, Labels
from agenteval.traces.evaluator import load_outlines

_ACTIONS = {"skip": "skipped", "decline": "declined"}
_LEVELS = ("scored", "not_applicable")  # statuses of labels with a level
_MOST_EVIDENCE = 10_000  # characters
MANY_CALLS = 5_000  # of a judge, above which a page does not read all its results


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


@dataclass(frozen=True)
class LabelScreen:
    """One item for a rater: `given` are the rater's labels so far, or those of a form that was
    refused, by criterion (content hash); `done` of `total` items are finished."""

    item: LabelItem
    criteria: Mapping[str, Criterion]  # by content hash
    given: Mapping[str, HumanLabel]
    done: int
    total: int


def screen(
    store: Store, queue: LabelQueue, rater: str, key: str, form: Mapping[str, str] | None = None
) -> LabelScreen:
    """Return an item of the queue as this rater sees it, with the choices of a form that was
    refused. Raises InputError for another item."""
    if key not in queue.items:
        raise InputError("is not in this queue", key[:12])
    (item,) = label_items(store, queue, [key])
    labels, criteria = Labels(store), label_criteria(store, queue)
    if form is None:  # undone choices stay selected
        history = [x for x in labels.history(key) if x.rater == rater and x.status in _LEVELS]
        chosen = {label.criterion_key: label for label in history}
    else:
        chosen = {
            criterion: HumanLabel(
                rater=rater,
                item_key=key,
                label=form.get(f"level.{criterion}"),
                evidence=form.get(f"evidence.{criterion}", ""),
            )
            for criterion in criteria
        }
    done = sum(states.get(rater) == "done" for states in labels.progress(queue).values())
    return LabelScreen(item, criteria, chosen, done, len(queue.items))


def save_form(
    store: Store, queue: LabelQueue, rater: str, key: str, form: Mapping[str, str]
) -> None:
    """Save a rater's form for an item: a level of every criterion, or that it was skipped or
    declined.

    All labels are one transaction. Raises InputError for a criterion without a level, or a level
    that the criterion no longer has; nothing is saved then.
    """
    if key not in queue.items:
        raise InputError("is not in this queue", key[:12])
    action, seconds = form.get("action", "save"), _seconds(form.get("seconds", ""))
    labels = []
    for criterion_key, shown in label_criteria(store, queue).items():
        make = partial(
            HumanLabel, rater=rater, item_key=key, criterion_key=criterion_key, seconds=seconds
        )
        level = form.get(f"level.{criterion_key}")
        evidence = form.get(f"evidence.{criterion_key}", "")[:_MOST_EVIDENCE]
        if action in _ACTIONS:
            labels.append(make(status=_ACTIONS[action]))
        elif level == "" and shown.allow_na:
            labels.append(make(status="not_applicable", evidence=evidence))
        elif level is None or level not in shown.accepted_values:
            problem = "choose a level" if not level else f"there is no level {level!r}"
            levels = ", ".join(shown.accepted_values)
            raise InputError(f"{problem}; the levels are: {levels}", shown.name)
        else:
            labels.append(make(label=level, value=shown.value_of(level), evidence=evidence))
    Labels(store).add(labels)


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e6 else None


def undo(store: Store, queue: LabelQueue, rater: str) -> str | None:
    """Withdraw the rater's last labels in this queue and return their item; None without any.

    The item is open again, and the form shows the earlier choices.
    """
    labels = Labels(store)
    mine = [x for x in labels.newest(rater=rater, items=queue.items) if x.criterion_key]
    if not mine:
        return None
    withdrawn = {"status": "withdrawn", "label": None, "value": None}
    key = mine[-1].item_key
    labels.add([x.model_copy(update=withdrawn) for x in mine if x.item_key == key])
    return key


@dataclass(frozen=True)
class Revealed:
    """Labels of the rater and the judge for an item on one criterion, shown after saving."""

    criterion: str
    label: str
    judge: str
    equal: bool


def revealed(store: Store, queue: LabelQueue, rater: str, key: str) -> list[Revealed]:
    """Return the rater's labels of an item and the levels of the judge's repeats."""
    levels: dict[str, Counter[str]] = {}
    for result in store.results(queue.source_key, variant=ORIGINAL, item=key):
        word = result.status if isinstance(result, Failure) else (result.label or result.status)
        levels.setdefault(result.key.criterion, Counter())[word] += 1
    names = {key: c.name for key, c in label_criteria(store, queue).items()}
    rows = []
    for label in Labels(store).newest(rater=rater, items=[key]):
        if label.status in _LEVELS and label.criterion_key in names:
            level = label.label or "not applicable"
            judged = levels.get(label.criterion_key, Counter())
            words = ", ".join(w if n == 1 else f"{w} ({n} times)" for w, n in judged.most_common())
            name, equal = names[label.criterion_key], set(judged) == {level}
            rows.append(Revealed(name, level, words or "not judged", equal))
    return rows


@dataclass(frozen=True)
class RaterDifference:
    """An item and criterion on which raters chose different levels, by rater."""

    item_key: str
    run: str
    criterion: str
    levels: Mapping[str, str]


def differences(store: Store, queue: LabelQueue) -> list[RaterDifference]:
    """Return where the raters of a queue differ without an adjudication, in its order."""
    names = {key: c.name for key, c in label_criteria(store, queue).items()}
    levels: dict[tuple[str, str], dict[str, str]] = {}
    for label in Labels(store).newest(items=queue.items):
        if label.criterion_key in names and label.status in _LEVELS:
            place = label.item_key, label.criterion_key
            levels.setdefault(place, {})[label.rater] = label.label or "not applicable"
    runs = run_names(store.items(keys=queue.items), queue.items)
    places = ((item, criterion) for item in queue.items for criterion in queue.criteria)
    return [
        RaterDifference(place[0], runs.get(place[0], place[0][:12]), names[place[1]], levels[place])
        for place in places
        if len(set(levels.get(place, {}).values())) > 1 and ADJUDICATED not in levels[place]
    ]


def is_large(store: Store, source_key: str) -> bool:
    """Return whether reading all results of a judge takes longer than a page should."""
    return calls_of(store, source_key) > MANY_CALLS


def label_results(store: Store, queue: LabelQueue) -> tuple[list[Table], list[str]]:
    """Return the tables of a queue's labels (agreement with the judge and among raters, corrected
    means, where repeats, judge and people differ most) and what could not be used.

    Without labels there are no tables, and no corrected means for a judge with many calls.
    """
    large = is_large(store, queue.source_key)
    labelled = labelled_queue(store, queue.name, queued_only=large)
    notes = list(labelled.notes)
    if large:
        notes.append(
            f"The judge has more than {MANY_CALLS:,} calls: `{agree_command(queue)}` corrects means"
        )
    if not labelled.people:
        return [], notes
    compared = compare_raters(
        {labelled.model: labelled.ratings},
        labelled.people,
        labelled.criteria,
        RaterComparisonOptions(sample=labelled.sample, means=not large),
    )
    return list(compared.tables), notes


def agree_command(queue: LabelQueue) -> str:
    """Return the command that prints the results of a queue."""
    return f"agenteval agree --queue {shlex.quote(queue.name)}"


# ---- errors in traces ----------------------------------------------------------------------------


def trace_findings(store: Store) -> dict[str, dict[str, HumanLabel]]:
    """Return the current label of every trace (key) and rater, with ordered findings."""
    by_item: dict[str, dict[str, HumanLabel]] = {}
    for label in Labels(store).newest():
        if not label.criterion_key:
            by_item.setdefault(label.item_key, {})[label.rater] = label
    return by_item


def findings_of_raters(store: Store) -> dict[str, list[Findings]]:
    """Return the findings of every rater by name, a `Findings` for each trace that they
    examined."""
    names = {key: shown.trace for key, shown in load_outlines(store).items()}
    by_rater: dict[str, list[Findings]] = {}
    for key, raters in trace_findings(store).items():
        for rater, label in raters.items():
            findings = (Finding.model_validate({**f, "source": rater}) for f in label.findings)
            examined = Findings(trace=names[key], findings=tuple(findings))
            by_rater.setdefault(rater, []).append(examined)
    return by_rater
