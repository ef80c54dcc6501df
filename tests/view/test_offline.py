"""The page that is mailed to a rater: labelled by keys alone, and its file corrects the judge."""

from __future__ import annotations

import json
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval.app.labels import QueueDraw, export_labels
from agenteval.errors import InputError
from agenteval.store import Store
from agenteval.store.labels import HumanLabel, Labels
from tests.reporting import making
from tests.reporting.making import HOSTILE, Shape
from tests.support.browser import Open
from tests.view.conftest import MATH


@pytest.mark.slow
def test_a_rater_labels_by_keys_and_the_file_comes_back(
    store: Path, tmp_path: Path, open_page: Open
) -> None:
    export_labels(tmp_path / "page.html", store, draw=QueueDraw(3, seed=1))
    html = (tmp_path / "page.html").read_text("utf-8")
    watched = open_page(html)
    page = watched.page
    page.locator("#rater").fill("ann")
    page.keyboard.press("Escape")
    page.keyboard.press("n")  # nothing is chosen yet
    assert "Choose a level of: Accuracy" in page.locator("form:visible [role=alert]").inner_text()
    for _ in range(9):
        page.keyboard.press("2")
    page.keyboard.press("n")
    page.keyboard.press("d")  # cannot label the second
    for _ in range(9):
        page.keyboard.press("1")
    page.keyboard.press("Control+Enter")
    assert page.locator("#progress").inner_text() == "3 of 3 runs labelled"
    page.keyboard.press("u")
    assert page.locator("#progress").inner_text() == "2 of 3 runs labelled"
    page.keyboard.press("n")
    with page.expect_download() as download:
        page.locator("#download").click()
    labels = tmp_path / "labels-ann.jsonl"
    download.value.save_as(labels)
    rows = [json.loads(line) for line in labels.read_text("utf-8").splitlines()]
    assert len(rows) == 3 * 9
    assert [row["rater"] for row in rows] == ["ann"] * 9 + [None] * 9 + ["ann"] * 9
    accuracy = {r["run"]: r["label"] for r in rows if r["criterion"] == "accuracy"}
    assert list(accuracy.values()) == ["wrong result, sound start", None, "wrong throughout"]
    with ThreadPoolExecutor(1) as pool:
        report = pool.submit(agenteval.agree, labels, store=store, task=str(MATH)).result()
    assert {a.compared for a in report.criteria.values()} == {2}
    assert {m.unlabelled for m in report.labelled[0].means} == {1}
    assert watched.quiet


@pytest.mark.slow
def test_hostile_texts_are_shown_and_run_nothing(tmp_path: Path, open_page: Open) -> None:
    path = tmp_path / "hostile.db"

    def make() -> None:
        making.made(path, Shape(runs=len(HOSTILE), words=HOSTILE), ())
        export_labels(tmp_path / "label.html", path, draw=QueueDraw(len(HOSTILE)))

    with ThreadPoolExecutor(1) as pool:
        pool.submit(make).result()
    watched = open_page((tmp_path / "label.html").read_text("utf-8"))
    assert watched.quiet
    assert watched.page.locator("section").count() == len(HOSTILE)


def test_labels_of_the_store_are_written_as_agree_reads_them(store: Path, tmp_path: Path) -> None:
    """The draw stays whole: what the rater has not labelled is a row without label. Runs of several
    systems with one id are told apart."""
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("UPDATE items SET id = substr(id, 1, 7) WHERE kind = 'run'")
    export_labels(tmp_path / "page.html", store, draw=QueueDraw(3, seed=1))
    with pytest.raises(InputError, match="has no labels yet"):
        export_labels(tmp_path / "labels.jsonl", store)
    with Store(store) as opened:
        (queue,) = Labels(opened).queues().values()
        known = opened.criteria_of(queue.source_key)
        Labels(opened).add(
            [
                HumanLabel(
                    rater="ann",
                    item_key=queue.items[0],
                    criterion_key=key,
                    label=known[key].accepted_values[0],
                    value=known[key].value_of(known[key].accepted_values[0]),
                )
                for key in queue.criteria
            ]
        )
    export_labels(tmp_path / "labels.jsonl", store)
    lines: list[dict[str, Any]] = [
        json.loads(line) for line in (tmp_path / "labels.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(lines) == 3 * 9
    assert [line["rater"] for line in lines] == ["ann"] * 9 + [None] * 18
    assert len({line["sample"] for line in lines}) == 1
    about = re.findall(r'id="about-labels">(.*?)</script>', (tmp_path / "page.html").read_text())
    runs = [item["run"] for item in json.loads(about[0])["items"].values()]
    assert runs == list(dict.fromkeys(line["run"] for line in lines))
    assert all("/math-" in run for run in runs)
    from_file = agenteval.agree(tmp_path / "labels.jsonl", store=store, task=str(MATH))
    from_store = agenteval.agree(store=store)
    assert from_file.labelled[0].means == from_store.labelled[0].means


def test_a_queue_that_is_not_there_is_refused(store: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--queue"):
        export_labels(tmp_path / "page.html", store)
    assert not (tmp_path / "page.html").exists()
