"""The viewer on a store with comparisons of pairs: every page answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval import Run, Store
from agenteval.records import Task
from agenteval.testing import serve
from tests.view.conftest import Browser

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
