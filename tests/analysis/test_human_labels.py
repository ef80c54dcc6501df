"""Labels of the store correct the judge's mean as labels in a file do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import agenteval
from agenteval.analysis.human_labels import (
    QueuePlan,
    chosen_queue,
    drawn_queue,
    labelled_queue,
)
from agenteval.analysis.rating_sources import StoredJudge
from agenteval.errors import InputError
from agenteval.store import Store
from agenteval.store.labels import HumanLabel, LabelQueue, Labels

MATH = Path(__file__).parents[2] / "tasks" / "math"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels") / "judged.db"
    agenteval.quantify(MATH / "runs.jsonl", task=str(MATH), judge="recorded", store=path)
    return path


@pytest.fixture
def store(judged: Path, tmp_path: Path) -> Store:
    (tmp_path / "s.db").write_bytes(judged.read_bytes())
    return Store(tmp_path / "s.db")


def label_as(
    store: Store, queue: LabelQueue, rater: str, recorded: dict[tuple[str, str], str]
) -> None:
    """Label every item of a queue as a rater of tasks/math did."""
    criteria, items = store.criteria_of(queue.source_key), store.items()
    Labels(store).add(
        [
            HumanLabel(
                rater=rater,
                item_key=item,
                criterion_key=key,
                label=(level := recorded[items[item]["run_id"], criteria[key].id]),
                value=criteria[key].value_of(level),
            )
            for item in queue.items
            for key in queue.criteria
        ]
    )


def recorded_labels(rater: str) -> dict[tuple[str, str], str]:
    lines = (MATH / "ratings.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {(r["run"], r["criterion"]): r["label"] for r in rows if r["rater"] == rater}


def test_agree_reads_the_labels_of_the_store_as_those_of_a_file(store: Store) -> None:
    """All runs are drawn, so both ways see the same labels and the same draw."""
    judge = StoredJudge.find(store, None, None)
    queue = drawn_queue(judge, QueuePlan("all"), 60)
    Labels(store).add_queue(queue)
    recorded = recorded_labels("A")
    label_as(store, queue, "A", recorded)
    from_store = agenteval.agree(store=store)
    from_file = agenteval.agree(
        MATH / "ratings.jsonl", raters=["A"], task=str(MATH), store=store, random_labels=True
    )
    for name, agreement in from_file.criteria.items():
        assert from_store.criteria[name].alpha == agreement.alpha
    means = [[m.mean for m in report.labelled[0].means] for report in (from_store, from_file)]
    assert means[0] == means[1]
    assert None not in means[0]


def test_labels_of_chosen_runs_correct_nothing(store: Store) -> None:
    judge = StoredJudge.find(store, None, None)
    queue = chosen_queue(judge, QueuePlan("picked", ("accuracy",)), sorted(judge.newest_runs)[:12])
    Labels(store).add_queue(queue)
    label_as(store, queue, "A", recorded_labels("A"))
    report = agenteval.agree(store=store, queue="picked")
    assert list(report.criteria) == ["accuracy"]
    assert report.criteria["accuracy"].compared == 12
    assert [m.mean for m in report.labelled[0].means] == [None]


def test_what_cannot_be_used_is_left_out_and_said(store: Store) -> None:
    judge = StoredJudge.find(store, None, None)
    queue = drawn_queue(judge, QueuePlan("part", ("accuracy",)), 3)
    Labels(store).add_queue(queue)
    (key,) = queue.criteria
    gone = HumanLabel(rater="A", item_key=queue.items[0], criterion_key=key, label="superb")
    later = HumanLabel(rater="A", item_key=queue.items[1], criterion_key=key, status="skipped")
    Labels(store).add([gone, later])
    labelled = labelled_queue(store)
    assert labelled.people == {}
    assert len(labelled.notes) == 1
    assert "'superb'" in labelled.notes[0]
    with pytest.raises(InputError, match="has no labels yet"):
        agenteval.agree(store=store)


def test_a_queue_or_rater_that_is_not_there_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="agenteval view --label"):
        agenteval.agree(store=store)
    judge = StoredJudge.find(store, None, None)
    with pytest.raises(InputError, match="'wit'"):
        drawn_queue(judge, QueuePlan("q", ("wit",)), 3)
    queue = drawn_queue(judge, QueuePlan("q"), 3)
    Labels(store).add_queue(queue)
    label_as(store, queue, "A", recorded_labels("A"))
    with pytest.raises(InputError, match="no queue is called 'r'"):
        agenteval.agree(store=store, queue="r")
    with pytest.raises(InputError, match="no rater 'bob'"):
        agenteval.agree(store=store, raters=["bob"])
