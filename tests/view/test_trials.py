"""Trials, pairs and rubrics in the viewer."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval import Run
from agenteval.planning.api import plan_test
from agenteval.planning.evaluator import load_attempts
from agenteval.planning.suite_api import plan_suite
from agenteval.records import Task
from agenteval.store import Store
from agenteval.testing import serve
from agenteval.traces.api import locate
from tests.utility.test_rubrics import SHORT, TASK, judge, run
from tests.view.conftest import Browser

TRACES = Path(__file__).parents[2] / "tasks" / "traces" / "traces"


def in_given_order(request: str, tools: Any) -> str:
    for name in tools:
        tools[name]()
    return "done"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path = tmp_path_factory.mktemp("trials") / "s.db"
    plan_test(plan_suite(6, seed=1).cases, in_given_order, store=path)
    locate([str(TRACES)], detectors_only=True, store=path)
    with Store(path, create=False) as store:
        yield store


def links(page: str) -> list[str]:
    return [html.unescape(link) for link in re.findall(r'href="(/trial\?[^"]+)"', page)]


def test_plans_show_their_violated_constraints(stored: Store) -> None:
    pages = Browser(stored).enter()
    trials = links(pages.get("/trials", evaluator="planning").text)
    attempts = load_attempts(stored)
    assert len(trials) == len(attempts) == 6
    texts = [pages.get(trial).text for trial in trials]
    for attempt in attempts:
        (page,) = (t for t in texts if attempt.case.id in t)
        assert attempt.outcome.replace("_", " ") in page
        assert attempt.verdict is not None
        marked = {s for v in attempt.verdict.violated for s in v.rule.sentences}
        assert len(re.findall("<mark>", page)) == len(marked)


def test_traces_show_their_spans(stored: Store) -> None:
    pages = Browser(stored).enter()
    trials = links(pages.get("/trials", evaluator="traces").text)
    assert len(trials) == len(list(TRACES.glob("*.jsonl")))
    assert all('class="span llm"' in pages.get(trial).text for trial in trials)


def test_trials_are_filtered_by_outcome(stored: Store) -> None:
    pages = Browser(stored).enter()
    outcome = load_attempts(stored)[0].outcome
    same = [a for a in load_attempts(stored) if a.outcome == outcome]
    assert len(links(pages.get("/trials", outcome=outcome).text)) == len(same)
    assert "No trial matches" in pages.get("/trials", outcome="nothing").text


RUNS = [
    Run(id=f"{name}-{i}", task="sums", system=name, input=f"{i} + {i}?", output=f"{name} {2 * i}")
    for i in range(3)
    for name in ("old", "new")
]


@pytest.fixture
def pages(tmp_path: Path) -> Any:
    path = tmp_path / "pairs.db"
    text = json.dumps({"preference": {"explanation": "the same sum", "label": "tie"}})
    with serve(lambda body, n: text) as server:
        agenteval.prefer(
            runs=RUNS,
            judge="m",
            base_url=server.base_url,
            task=Task(name="sums", description="Add."),
            store=path,
            verify=True,
        )
    with Store(path) as store:
        yield Browser(store).enter()


def test_the_list_leads_to_the_pairs_and_to_both_responses(pages: Browser) -> None:
    home = pages.get("/")
    assert home.status_code == 200
    assert "not enough data" in home.text  # the verdict on the judge
    grid = pages.get(re.findall(r'href="(/grid\?[^"]+)"', home.text)[0].replace("&amp;", "&"))
    assert grid.status_code == 200
    assert "old | new" in grid.text
    run = pages.get(re.findall(r'href="(/run\?[^"]+)"', grid.text)[0].replace("&amp;", "&"))
    assert run.status_code == 200
    assert "[first response]" in run.text
    assert "the same sum" in run.text


@pytest.mark.parametrize("path", ["/trust", "/compare", "/trials"])
def test_the_other_pages_answer(pages: Browser, path: str) -> None:
    assert pages.get(path).status_code in (200, 404)


def test_totals_in_the_grid_and_items_on_the_run(tmp_path: Path) -> None:
    runs = [run("a", "5 and 9", SHORT), run("b", "only 5", SHORT), run("c", "9", SHORT)]
    agenteval.quantify(runs, judge=judge, task=TASK, store=tmp_path / "s.db")
    with Store(tmp_path / "s.db") as store:
        browser = Browser(store).enter()
        grid = browser.get("/grid").text
        rows = re.sub(r"<[^>]+>", " ", grid.rpartition("<tbody")[2]).split()
        assert [word for word in rows if re.fullmatch(r"[01]\.\d\d", word)] == [
            *("0.67", "1.00", "0.00")
        ]
        link = re.findall(r'href="(/run\?[^"]*)"', grid)[0].replace("&amp;", "&")
        page = re.sub(r"<[^>]+>", " ", browser.get(link).text)
        assert re.search(r"Names 5\.\s+3\.00\s+yes\s+2\s+Names 9\.\s+−1\.00\s+yes", page)
