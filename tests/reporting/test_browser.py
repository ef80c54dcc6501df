"""The page in a real browser: it works, asks nobody, and what it shows stays text."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reporting.conftest import Page
from tests.reporting.making import HOSTILE, Shape, saying
from tests.support.browser import Open

# One worker: starting a browser costs more than these tests.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


RUNS = "table[data-table=runs]"


def column(page: Any, number: int) -> list[str]:
    cells = page.locator(f"{RUNS} tbody tr > :nth-child({number})")
    return [text.strip() for text in cells.all_inner_texts()]


def test_it_renders_and_asks_nobody(open_page: Open, page_of: Page) -> None:
    watched = open_page(page_of())
    page = watched.page
    assert page.title() == "sums – agenteval report"
    assert page.locator("#figures figure img").count() >= 4
    assert page.locator(f"{RUNS} tbody tr").count() == 6
    assert watched.quiet, (watched.console, watched.requests)


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_sticks_out(open_page: Open, page_of: Page, width: int) -> None:
    page = open_page(page_of(Shape(words=HOSTILE)), width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_tables_sort(open_page: Open, page_of: Page) -> None:
    page = open_page(page_of(Shape(runs=12))).page
    head = page.locator(f"{RUNS} thead th:nth-child(5)")
    head.locator("button").click()
    falling = [float(v) for v in column(page, 5)]
    assert falling == sorted(falling, reverse=True)
    assert len(set(falling)) > 1
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").click()
    assert [float(v) for v in column(page, 5)] == sorted(falling)
    page.locator(f"{RUNS} thead th:nth-child(1) button").click()
    names = column(page, 1)
    assert names == sorted(names)


def test_runs_are_found(open_page: Open, page_of: Page) -> None:
    page = open_page(page_of()).page
    page.fill("#runs .filter input", "failed style-1")
    assert page.locator(f"{RUNS} tbody tr:visible").count() == 3  # odd runs are both
    assert page.locator("#runs [role=status]").inner_text() == "3 found"
    assert page.locator("#runs > .items > details:visible").count() == 3


def test_hostile_words_stay_words(open_page: Open, page_of: Page) -> None:
    shape = Shape(runs=len(HOSTILE), words=HOSTILE, script=saying(HOSTILE), criteria=len(HOSTILE))
    watched = open_page(page_of(shape, HOSTILE))
    page = watched.page
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.evaluate("document.querySelectorAll('th button').forEach(b => b.click())")
    assert HOSTILE[0] in page.locator("#runs").inner_text()
    assert page.locator("main").locator("script, style, img:not(.paper), iframe, link").count() == 0
    assert page.title() == "sums – agenteval report"
    assert page.locator("body").is_visible()
    handlers = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes])"
        ".filter(a => a.name.startsWith('on')).length"
    )
    assert handlers == 0
    assert page.locator("script").count() == 1
    assert watched.quiet, (watched.console, watched.dialogs, watched.requests)
