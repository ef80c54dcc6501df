"""Trials of agents and finders in the viewer."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval.planning.api import plan_test
from agenteval.planning.evaluator import load_attempts
from agenteval.planning.suite_api import plan_suite
from agenteval.store import Store
from agenteval.traces.api import locate
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
    assert "No trial fits" in pages.get("/trials", outcome="nothing").text
