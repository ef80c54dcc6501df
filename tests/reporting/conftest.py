"""A page opened in headless Chromium, watched; small tables to draw, and texts that overlap."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agenteval.stats.scores import ScoreTable, score_table
from tests.reporting import making
from tests.reporting.making import Shape

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@dataclass
class Watched:
    """A page with everything it said or asked for."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    @property
    def quiet(self) -> bool:
        """Nothing on the console, no dialog, and no request but for the file itself."""
        return not (self.console or self.dialogs or self.requests[1:])


Open = Callable[..., Watched]
Page = Callable[..., str]


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """page_of(shape=None, names=()): `making.made` in a new store, once for equal arguments.

    In a thread of its own: playwright keeps an event loop running in the thread of the test.
    """

    @cache
    def drawn(shape: Shape, names: tuple[str, ...]) -> str:
        path = tmp_path_factory.mktemp("page") / "a.db"
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(making.made, path, shape, names).result()

    def page(shape: Shape | None = None, names: Sequence[str] = ()) -> str:
        return drawn(shape or PLAIN, tuple(names))

    return page


PLAIN = Shape()  # functions are compared by identity, so the usual shape is one object


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    # Not for the whole session: asyncio.run would fail in every later test of this process.
    found = next((p for n in _NAMES if (p := shutil.which(n))), None)
    if found is None:
        why = "NO CHROMIUM: the report is not tested in a browser (`make browser`, as root)"
        warnings.warn(why, stacklevel=1)  # shown at the end of every run, also with several workers
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    """Write HTML to a file and open it."""
    contexts = []

    def opened(html: str, *, width: int = 1400, javascript: bool = True) -> Watched:
        file = tmp_path / "page.html"
        file.write_text(html, encoding="utf-8", newline="\n")
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, java_script_enabled=javascript
        )
        contexts.append(context)
        watched = Watched(context.new_page())
        page = watched.page
        page.on("console", lambda m: watched.console.append(m.text))
        page.on("pageerror", lambda e: watched.console.append(str(e)))
        page.on("dialog", lambda d: (watched.dialogs.append(d.message), d.dismiss()))
        page.on("request", lambda r: watched.requests.append(r.url))
        page.route("**/*", _files_only)
        page.goto(file.as_uri())
        return watched

    yield opened
    for context in contexts:
        context.close()


def _files_only(route: Any) -> None:
    if route.request.url.startswith(("file:", "data:")):
        route.continue_()
    else:
        route.abort()


Boxes = Callable[[Sequence[Any]], list[tuple[int, int]]]


def row(criterion: str, case: str, value: float | None, **more: Any) -> dict[str, Any]:
    """A rating; the run is the case unless said otherwise."""
    return {"run": case, "case": case, "criterion": criterion, "value": value, **more}


@pytest.fixture
def overlapping() -> Boxes:
    """Pairs of artists of a drawn figure whose boxes share more than half a point."""

    def find(artists: Sequence[Any]) -> list[tuple[int, int]]:
        figure = artists[0].get_figure(root=True)
        figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        boxes = [a.get_window_extent(renderer) for a in artists]
        slack = 0.5 * figure.dpi / 72
        return [
            (i, j)
            for i in range(len(boxes))
            for j in range(i)
            if min(boxes[i].x1, boxes[j].x1) - max(boxes[i].x0, boxes[j].x0) > slack
            and min(boxes[i].y1, boxes[j].y1) - max(boxes[i].y0, boxes[j].y0) > slack
        ]

    return find


@pytest.fixture
def words() -> Callable[[Any], list[str]]:
    """Texts of the legends of a figure, its own and those of its axes."""

    def read(drawn: Any) -> list[str]:
        figure = drawn.get_figure(root=True)
        legends = [*figure.legends, *(a.get_legend() for a in figure.axes if a.get_legend())]
        return [t.get_text() for each in legends for t in each.get_texts()]

    return read


@pytest.fixture
def small() -> ScoreTable:
    """Criteria c1 to c3, systems a and b, four cases each; b has no failed run and no c3.

    System a: cases k1, k2 succeed, k3, k4 fail. Values of c1 in the order of the cases are
    .2 .4 .6 .8, of c2 0 0 1 1, of c3 .5 throughout. System b: c1 is 1 .5 .5 0, c2 all 1.
    """
    return score_table(_small())


def _small() -> Iterable[dict[str, Any]]:
    a = {"c1": (0.2, 0.4, 0.6, 0.8), "c2": (0.0, 0.0, 1.0, 1.0), "c3": (0.5,) * 4}
    b = {"c1": (1.0, 0.5, 0.5, 0.0), "c2": (1.0,) * 4, "c3": (None,) * 4}
    for system, columns in (("a", a), ("b", b)):
        for name, values in columns.items():
            for i, value in enumerate(values):
                yield {
                    "run": f"{system}{i}", "case": f"k{i + 1}", "system": system,
                    "criterion": name, "value": value, "success": system == "b" or i < 2,
                    "status": "scored" if value is not None else "not_applicable",
                }  # fmt: skip


@pytest.fixture
def forty() -> ScoreTable:
    """Forty criteria, some with long names, two cases that succeed and two that fail."""
    names = [
        f"criterion-{i:02d}" + (" whose name is so long that it must be wrapped" if i % 3 else "")
        for i in range(40)
    ]
    return score_table(
        row(name, f"k{k}", ((i * 7 + k * 3) % 5) / 4, success=k < 2, system="only", repeat=r)
        for i, name in enumerate(names)
        for k in range(4)
        for r in range(2)
    )
