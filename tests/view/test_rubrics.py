"""Rubrics in the viewer: totals of all cases in one column, items on the page of a run."""

from __future__ import annotations

import re
from pathlib import Path

import agenteval
from agenteval.store import Store
from tests.utility.test_rubrics import SHORT, TASK, judge, run
from tests.view.conftest import Browser


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
