"""The page in a real browser: it works, asks nobody, and what it shows stays text."""

from __future__ import annotations

from typing import Any

import pytest

from tests.report.conftest import Open, Page
from tests.report.making import HOSTILE, Shape, refusing, saying

# One worker: starting a browser costs more than these tests.
pytestmark = pytest.mark.xdist_group("browser")


def column(page: Any, table: str, number: int) -> list[str]:
    cells = page.locator(f"#{table} tbody tr > :nth-child({number})")
    return [text.strip() for text in cells.all_inner_texts()]


def test_it_renders_and_asks_nobody(open_page: Open, page_of: Page) -> None:
    watched = open_page(page_of())
    page = watched.page
    assert page.title() == "sums – agenteval report"
    assert page.locator("#figures figure svg").count() >= 4
    assert page.locator("#runs-table tbody tr").count() == 6
    assert watched.quiet, (watched.console, watched.requests)


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_sticks_out(open_page: Open, page_of: Page, width: int) -> None:
    page = open_page(page_of(Shape(words=HOSTILE)), width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_style_sheet_counts(open_page: Open, page_of: Page) -> None:
    """A wrong hash in the policy would leave the page without style or script."""
    page = open_page(page_of()).page
    assert page.locator("nav").evaluate("e => getComputedStyle(e).position") == "sticky"
    fills = page.locator("#figures svg path[fill]").evaluate_all(
        "es => es.map(e => e.style.length)"
    )
    assert fills
    assert set(fills) == {0}  # style attributes are refused by the policy, so there are none


def test_tables_sort(open_page: Open, page_of: Page) -> None:
    page = open_page(page_of(Shape(runs=12))).page
    head = page.locator("#runs-table thead th:nth-child(5)")
    head.locator("button").click()
    falling = [float(v) for v in column(page, "runs-table", 5)]
    assert falling == sorted(falling, reverse=True)
    assert len(set(falling)) > 1
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").click()
    assert [float(v) for v in column(page, "runs-table", 5)] == sorted(falling)
    page.locator("#runs-table thead th:nth-child(1) button").click()
    names = column(page, "runs-table", 1)
    assert names == sorted(names)


def test_missing_numbers_stay_at_the_end(open_page: Open, page_of: Page) -> None:
    shape = Shape(script=lambda unit: refusing(unit) if unit.run.id == "run-3" else None)
    page = open_page(page_of(shape)).page
    for _ in range(2):
        page.locator("#runs-table thead th:nth-child(5) button").click()
        assert column(page, "runs-table", 5)[-1] == "–"


def test_runs_are_found(open_page: Open, page_of: Page) -> None:
    page = open_page(page_of()).page
    page.fill("#find", "failed style-1")
    assert page.locator("#runs-table tbody tr:visible").count() == 3  # odd runs are both
    assert page.locator("#found").inner_text() == "3 found"


def test_a_run_unfolds(open_page: Open, page_of: Page) -> None:
    said = ("It shows <b>both</b> sums.",)
    watched = open_page(page_of(Shape(script=saying(said))))
    page = watched.page
    page.get_by_role("button", name="run-2", exact=True).click()
    dialog = page.locator("#detail")
    assert dialog.is_visible()
    text = dialog.inner_text()
    assert "It adds the numbers. It says why. The sum is right. Number 2. The end of it." in text
    assert "It shows <b>both</b> sums." in text
    assert "quote: It shows" in text
    assert page.url.endswith("#run-2")
    assert dialog.locator(".card").count() >= 3
    # The copy that lost its end: marked on the left, nothing marked on the right.
    page.select_option("#copy", label="drop sentences 25 %")
    assert dialog.locator(".panes > :nth-child(1) del").all_inner_texts() == [
        "Number 2. The end of it."
    ]
    assert dialog.locator(".panes ins").count() == 0
    page.select_option("#copy", label="whitespace")
    assert dialog.locator(".panes ins").count() > 0
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert watched.quiet, (watched.console, watched.requests)


def test_both_sides_are_the_texts_that_were_judged(open_page: Open, page_of: Page) -> None:
    page = open_page(page_of(Shape(words=("One 😀. Two é. Three \u4e09.",)))).page
    page.get_by_role("button", name="run-0", exact=True).click()
    original = "One 😀. Two é. Three \u4e09. Number 0. The end of it."
    for label, copy in (
        ("drop sentences 25 %", "One 😀. Two é. Three \u4e09. "),
        ("whitespace", original.replace(" ", "  ")),
    ):
        page.select_option("#copy", label=label)
        sides = page.locator(".panes pre").evaluate_all("es => es.map(e => e.textContent)")
        assert sides == [original, copy]


def test_a_failure_shows_what_came_back(open_page: Open, page_of: Page) -> None:
    page = open_page(page_of(Shape(script=refusing))).page
    page.get_by_role("button", name="run-0", exact=True).click()
    text = page.locator("#detail").inner_text()
    assert "unscored:parse" in text
    assert "no JSON <b>here</b>" in text


def test_hostile_words_stay_words(open_page: Open, page_of: Page) -> None:
    shape = Shape(runs=len(HOSTILE), words=HOSTILE, script=saying(HOSTILE), criteria=len(HOSTILE))
    watched = open_page(page_of(shape, HOSTILE))
    page = watched.page
    for i in range(len(HOSTILE)):
        page.evaluate(
            f"location.hash = ''; document.querySelector('[data-open=run-{i}] button').click()"
        )
        for label in ("drop sentences 25 %", "whitespace"):
            page.select_option("#copy", label=label)
        if i == 0:
            assert HOSTILE[0] in page.locator("#detail pre").nth(1).inner_text()
        assert page.locator("#detail").locator("script, style, img, iframe, link").count() == 0
        page.keyboard.press("Escape")
    assert page.title() == "sums – agenteval report"
    assert page.locator("body").is_visible()
    handlers = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes])"
        ".filter(a => a.name.startsWith('on')).length"
    )
    assert handlers == 0
    assert page.locator("script:not([type])").count() == 1
    assert watched.quiet, (watched.console, watched.dialogs, watched.requests)


def test_a_line_of_a_megabyte(open_page: Open, page_of: Page) -> None:
    watched = open_page(page_of(Shape(words=("x" * 1_000_000,), runs=2)), width=390)
    page = watched.page
    page.locator("[data-open=run-0] button").click()
    assert "cut: 60,000 of 1,000,0" in page.locator("#detail pre").nth(1).inner_text()
    assert page.evaluate("document.querySelector('#detail').scrollWidth") <= 390
    assert watched.quiet, watched.console


def test_it_can_be_read_without_javascript(open_page: Open, page_of: Page) -> None:
    page = open_page(page_of(), javascript=False).page
    assert page.locator("#runs-table tbody tr").count() == 6
    assert "Without JavaScript" in page.locator("noscript").inner_text()
    assert not page.locator("#filter").is_visible()
