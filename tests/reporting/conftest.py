"""Pages, small tables to draw, and texts that overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest

from agenteval.stats.scores import ScoreTable, score_table
from tests.reporting import making
from tests.reporting.making import Shape

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
                    "run": f"{system}{i}",
                    "case": f"k{i + 1}",
                    "system": system,
                    "criterion": name,
                    "value": value,
                    "success": system == "b" or i < 2,
                    "status": "scored" if value is not None else "not_applicable",
                }


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
