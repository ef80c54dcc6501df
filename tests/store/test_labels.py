"""Labels are only added: the newest counts, nothing is lost, and queues show what is open."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.store import Store
from agenteval.store.export import copy_store
from agenteval.store.labels import HumanLabel, LabelQueue, Labels, LabelStatus
from tests.store.making import ScriptedJudge, criteria, items

DIMENSIONS = criteria(2)
RUNS = items(6)
KEYS = tuple(view.sha256 for _, view in RUNS)
SOURCE = ScriptedJudge().source


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "s.db")
    store.register(RUNS, DIMENSIONS, SOURCE)
    return store


def queue(n: int = 3, **changed: object) -> LabelQueue:
    fields = {
        "name": "first",
        "task": "essays",
        "source_key": SOURCE.sha256,
        "items": KEYS[:n],
        "criteria": tuple(c.sha256 for c in DIMENSIONS),
    }
    return LabelQueue.model_validate({**fields, **changed})


def said(
    rater: str, item: str, at: int = 0, status: LabelStatus = "scored", level: int = 0
) -> HumanLabel:
    criterion = DIMENSIONS[at]
    label = criterion.accepted_values[level] if status == "scored" else None
    return HumanLabel(
        rater=rater, item_key=item, criterion_key=criterion.sha256, status=status, label=label
    )


def both(rater: str, item: str, status: LabelStatus = "scored") -> list[HumanLabel]:
    return [said(rater, item, at, status) for at in range(2)]


def test_the_newest_label_counts_and_the_others_are_its_history(store: Store) -> None:
    labels = Labels(store)
    assert labels.newest() == []
    assert labels.queues() == {}
    labels.add([said("ann", KEYS[0], level=0)])
    labels.add([said("ann", KEYS[0], level=1), said("bob", KEYS[0], level=2)])
    levels = DIMENSIONS[0].accepted_values
    assert [(x.rater, x.label) for x in labels.newest()] == [("ann", levels[1]), ("bob", levels[2])]
    assert [x.label for x in labels.history(KEYS[0])] == list(levels[:3])
    labels.add([said("bob", KEYS[0], status="withdrawn")])
    assert [x.rater for x in labels.newest(items=KEYS[:1])] == ["ann"]
    assert labels.newest(rater="bob") == []
    assert Counter(x.rater for x in labels.newest()) == {"ann": 1}


def test_each_rater_is_shown_what_is_open_and_skipped_items_last(store: Store) -> None:
    labels, all_raters = Labels(store), queue()
    labels.add_queue(all_raters)
    assert labels.next_item(all_raters, "ann") == KEYS[0]
    labels.add([said("ann", KEYS[0])])  # one of two criteria
    assert labels.next_item(all_raters, "ann") == KEYS[0]
    labels.add([said("ann", KEYS[0], 1), *both("ann", KEYS[1], "skipped")])
    assert labels.next_item(all_raters, "ann") == KEYS[2]
    assert labels.next_item(all_raters, "bob") == KEYS[0]
    labels.add(both("ann", KEYS[2], "declined"))
    assert labels.next_item(all_raters, "ann") == KEYS[1]
    assert labels.progress(all_raters)[KEYS[0]] == {"ann": "done"}
    labels.add(both("ann", KEYS[1]))
    assert labels.next_item(all_raters, "ann") is None
    assert labels.next_item(all_raters, "bob", after=KEYS[0]) == KEYS[1]


def test_an_item_for_one_rater_is_claimed(store: Store) -> None:
    labels, shared = Labels(store), queue(per_item=1)
    labels.add_queue(shared)
    assert labels.next_item(shared, "ann") == KEYS[0]
    assert labels.next_item(shared, "ann") == KEYS[0]
    assert labels.next_item(shared, "bob") == KEYS[1]
    labels.add(both("ann", KEYS[0]))
    assert labels.next_item(shared, "ann") == KEYS[2]
    assert labels.next_item(shared, "eve") is None
    labels.add(both("bob", KEYS[1]))
    assert labels.next_item(shared, "bob") is None


def test_a_queue_has_a_name_of_its_own_and_something_in_it(store: Store) -> None:
    labels = Labels(store)
    labels.add_queue(queue())
    with pytest.raises(InputError, match="first"):
        labels.add_queue(queue(2))
    with pytest.raises(InputError, match="second"):
        labels.add_queue(queue(0, name="second"))
    assert {name: len(q.items) for name, q in labels.queues().items()} == {"first": 3}


def test_two_raters_at_once_lose_nothing(store: Store) -> None:
    """1,000 labels of two raters from four threads, each with a store of its own."""
    labels, everything = Labels(store), queue(6)
    labels.add_queue(everything)

    def work(rater: str, part: int) -> None:
        with Store(store.path) as mine:
            for i in range(250):
                Labels(mine).add([said(rater, KEYS[i % 6], i % 2, level=(i + part) % 3)])

    threads = [threading.Thread(target=work, args=(r, p)) for r in ("ann", "bob") for p in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    history = [label for key in KEYS for label in labels.history(key)]
    assert {r: sum(x.rater == r for x in history) for r in ("ann", "bob")} == {
        "ann": 500,
        "bob": 500,
    }
    assert len(labels.newest()) == 2 * 6  # item i % 6 always has criterion i % 2


def test_labels_are_copied_and_a_store_of_before_gets_the_tables(
    store: Store, tmp_path: Path
) -> None:
    store.close()
    with closing(sqlite3.connect(tmp_path / "s.db")) as db, db:
        for table in ("labels", "queues", "claims"):
            db.execute(f"DROP TABLE {table}")
    with Store(tmp_path / "s.db") as old, Store(tmp_path / "copy.db") as copy:
        assert Labels(old).newest() == []
        assert Labels(old).progress(queue()) == {}
        Labels(old).add_queue(queue())
        Labels(old).add([said("ann", KEYS[0])])
        copied = copy_store(old, copy)
        assert (copied["labels"], copied["queues"]) == (1, 1)
        assert Labels(copy).newest() == Labels(old).newest()
