"""Labelling in the viewer: blind until saved, undone, shared by raters, and used by `agree`."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import agenteval
from agenteval.store import Store
from agenteval.store.labels import Labels
from tests.view.conftest import Browser, Open

QUEUE = {"name": "q", "n": "4", "by": "random", "seed": "1"}


@pytest.fixture
def rater(browser: Open) -> Browser:
    client = browser(labelling=True, rater="ann")
    client.send("/label/queue", **QUEUE)
    return client


def levels(page: str, at: int) -> dict[str, str]:
    """A level for every criterion of the form: that at this place, as far as there are so many."""
    by_name: dict[str, list[str]] = {}
    for name, value in re.findall(r'type="radio" name="(level\.\w+)" value="([^"]+)"', page):
        by_name.setdefault(name, []).append(value)
    return {name: values[min(at, len(values) - 1)] for name, values in by_name.items()}


def item_of(page: str) -> str:
    (key,) = re.findall(r'name="item" value="(\w+)"', page)
    return str(key)


def label(client: Browser, name: str, at: int, **more: str) -> str:
    """Label the next item; return the page that comes then."""
    page = client.get("/label/item", queue="q", rater=name).text
    form = {"queue": "q", "rater": name, "item": item_of(page), **levels(page, at), **more}
    return str(client.send("/label/save", **form).text)


def test_the_judge_is_shown_only_after_saving(rater: Browser) -> None:
    first = rater.get("/label/item", queue="q", rater="ann").text
    assert "the judge" not in first
    assert len(levels(first, 0)) == 9
    second = label(rater, "ann", 0)
    assert "1 of 4 runs labelled" in second
    assert "your levels and the judge's" in second  # folded: what it says would sway the next
    assert item_of(second) != item_of(first)


def test_the_labels_correct_the_judge_at_once(rater: Browser, store: Path) -> None:
    for _ in range(4):
        page = label(rater, "ann", 1, seconds="2.5")
    assert "Means: judge" in page  # nothing is left: the results
    report = agenteval.agree(store=store)
    assert {a.compared for a in report.criteria.values()} == {4}
    with Store(store) as opened:
        assert {x.seconds for x in Labels(opened).newest()} == {2.5}
    assert "agenteval agree --queue" in page


def test_the_newest_label_counts_and_undo_goes_back_item_by_item(
    rater: Browser, store: Path
) -> None:
    page = rater.get("/label/item", queue="q", rater="ann").text
    for at in (0, 1):
        form = {"queue": "q", "rater": "ann", "item": item_of(page), **levels(page, at)}
        rater.send("/label/save", **form)
    with Store(store) as opened:
        labels = Labels(opened)
        assert {x.label for x in labels.newest()} == set(levels(page, 1).values())
        label(rater, "ann", 0)
        assert Counter(x.rater for x in labels.newest()) == {"ann": 18}
        rater.send("/label/undo", queue="q", rater="ann")
        assert {x.item_key for x in labels.newest()} == {item_of(page)}
        rater.send("/label/undo", queue="q", rater="ann")
        assert labels.newest() == []
        assert len(labels.history(item_of(page))) == 27


def test_a_queue_holds_what_the_grid_shows(browser: Open, store: Path) -> None:
    client = browser(labelling=True)
    page = client.get("/grid", system="duo", sort="accuracy", order="desc").text
    assert "system=duo" in page
    form = {"filter": "system=duo&sort=accuracy&order=desc", "name": "worst", "n": "5"}
    client.send("/label/chosen", **form)
    with Store(store) as opened:
        queue = Labels(opened).queues()["worst"]
        items = opened.items()
    assert {items[key]["system"] for key in queue.items} == {"duo"}
    assert (len(queue.items), queue.weights) == (5, None)
    assert client.send("/label/chosen", **{**form, "filter": "system=none"}).status_code == 422


def test_differences_of_raters_are_adjudicated(rater: Browser, store: Path) -> None:
    page = rater.get("/label/item", queue="q", rater="ann").text
    item, chosen = item_of(page), levels(page, 0)
    other = {**chosen, next(iter(chosen)): next(iter(levels(page, 1).values()))}
    for name, answer in (("ann", chosen), ("bob", other)):
        rater.send("/label/save", queue="q", rater=name, item=item, **answer)
    results = rater.get("/label/results", queue="q").text
    assert results.count("rater=adjudicated") == 1
    shown = rater.get("/label/item", queue="q", rater="adjudicated", item=item).text
    assert "ann says" in shown
    rater.send("/label/save", queue="q", rater="adjudicated", item=item, **other)
    assert "rater=adjudicated" not in rater.get("/label/results", queue="q").text
    # the adjudication holds what raters agree on too, and is no third rater
    other_item = item_of(rater.get("/label/item", queue="q", rater="ann").text)
    for name in ("ann", "bob"):
        rater.send("/label/save", queue="q", rater=name, item=other_item, **chosen)
    report = agenteval.agree(store=store)
    compared = {p.rater: {a.compared for a in p.criteria} for p in report.pairs}
    assert compared["adjudicated"] == {2}
    assert report.raters[0].raters == ("ann", "bob")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"missing": "yes"}, "choose a level"),
        ({"other": "superb"}, "there is no level &#39;superb&#39;"),
    ],
)
def test_a_form_without_all_levels_saves_nothing(
    rater: Browser, store: Path, change: dict[str, str], said: str
) -> None:
    page = rater.get("/label/item", queue="q", rater="ann").text
    chosen = levels(page, 0)
    name = next(iter(chosen))
    if "missing" in change:
        del chosen[name]
    else:
        chosen[name] = change["other"]
    form = {"queue": "q", "rater": "ann", "item": item_of(page), **chosen}
    answer = rater.send("/label/save", **form, **{name.replace("level", "evidence"): "so he says"})
    assert (answer.status_code, said in answer.text) == (422, True)
    assert answer.text.count(" checked") == 8  # what was chosen is not lost
    assert ">so he says</textarea>" in answer.text
    with Store(store) as opened:
        assert Labels(opened).newest() == []


def test_skipped_runs_come_back_and_declined_ones_do_not(rater: Browser) -> None:
    first = item_of(rater.get("/label/item", queue="q", rater="ann").text)
    label(rater, "ann", 0, action="skip")
    declined = item_of(rater.get("/label/item", queue="q", rater="ann").text)
    label(rater, "ann", 0, action="decline")
    assert "ann: 1 of 4, 1 declined, 1 skipped" in rater.get("/label").text
    shown = [item_of(rater.get("/label/item", queue="q", rater="ann").text)]
    label(rater, "ann", 0)
    label(rater, "ann", 0)
    shown.append(item_of(rater.get("/label/item", queue="q", rater="ann").text))
    assert declined not in shown
    assert shown[1] == first


def test_a_run_that_was_removed_is_passed_over_and_its_labels_are_left_out(
    rater: Browser, store: Path
) -> None:
    page = rater.get("/label/item", queue="q", rater="ann").text
    label(rater, "ann", 1)
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("DELETE FROM items WHERE item_key = ?", (item_of(page),))
    for _ in range(3):
        page = label(rater, "ann", 1)
    assert "9 labels left out: its run is not in the store" in page


@pytest.mark.parametrize("by", ["random", "value"])
def test_a_large_judge_has_the_same_draws_and_agreement_and_no_means(
    rater: Browser, monkeypatch: pytest.MonkeyPatch, store: Path, by: str
) -> None:
    def results() -> tuple[set[str], str]:
        page = rater.get("/label/results", queue="q").text
        (table,) = re.findall(r'data-table="agreement".*?</table>', page, re.S)
        return set(re.findall(r'data-table="(\w+)"', page)), table

    for _ in range(4):
        label(rater, "ann", 1)
    rater.send("/label/queue", name="small", n="9", by=by, seed="5")
    small = results()
    monkeypatch.setattr("agenteval.view.labelling.MANY_CALLS", 10)
    rater.send("/label/queue", name="large", n="9", by=by, seed="5")
    large = results()
    assert large[1] == small[1]
    assert small[0] - large[0] == {"means", "left_out"}
    with Store(store) as opened:
        queues = Labels(opened).queues()
    assert queues["large"].items == queues["small"].items
    assert queues["large"].weights == queues["small"].weights
    assert queues["large"].sample == queues["small"].sample


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/label/item", {"queue": "none", "rater": "ann"}),
        ("/label/item", {"queue": "q", "rater": " "}),
        ("/label/item", {"queue": "q", "rater": "ann", "item": "f" * 64}),
        ("/label/results", {"queue": "none"}),
    ],
)
def test_what_is_not_there_has_a_page_with_one_line(
    rater: Browser, path: str, query: dict[str, str]
) -> None:
    answer = rater.get(path, **query)
    assert answer.status_code == 404
    assert "Cannot be shown" in answer.text


@pytest.mark.parametrize("change", [{"name": " "}, {"n": "0"}, {"n": "x"}, {"by": "luck"}])
def test_a_queue_that_cannot_be_made_is_refused(rater: Browser, change: dict[str, str]) -> None:
    assert rater.send("/label/queue", **{**QUEUE, "name": "r", **change}).status_code == 422
    assert rater.send("/label/queue", **QUEUE).status_code == 422  # the name is taken
