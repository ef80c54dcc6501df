"""Reports: one line, a page, files, and what can be pickled."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.records.table import Column, Estimate, Table
from agenteval.reporting.report import Report


@dataclass(frozen=True, kw_only=True)
class Kind(Report):
    scores: tuple[float, ...] = ()


def test_a_report_is_shown_as_one_line_and_can_be_pickled():
    rows = tuple({"a": n} for n in range(2000))
    table = Table("scores", "Scores", (Column("a", "a"),), rows)
    report = Kind(title="a judge", tables=(table,), scores=(0.5,) * 5000, exit_code=3)
    assert repr(report) == "<Kind 'a judge': scores (2,000 rows); exit code 3>"
    assert repr(Kind(title="", tables=())) == "<Kind '': no tables; exit code 0>"
    assert pickle.loads(pickle.dumps(report)) == report


def test_a_notebook_shows_the_tables_and_runs_nothing_of_them():
    table = Table("scores", "Scores", (Column("a", "a"),), ({"a": "<script>alert(1)</script>"},))
    shown = Kind(title="judge <b>", tables=(table,), notes=("a note",))._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "judge &lt;b&gt;" in shown
    assert "a note" in shown
    assert "<script" not in shown
    assert "<b>" not in shown


COLUMNS = (
    Column("who", "who"),
    Column("rate", "rate", "share", "of <all>"),
    Column("verdict", "verdict"),
)
ROWS = (
    {
        "who": "<b>a</b>\u202e",
        "rate": Estimate(0.5, 0.25, 0.75, 4, "", "passed"),
        "verdict": "keep",
    },
    {"who": "b", "rate": Estimate(None, reason="one case"), "verdict": None},
)


def page(tmp_path: Path) -> str:
    report = Report(
        title="Rates & more",
        tables=(
            Table("rates", "Rates", COLUMNS, ROWS, ("a note",)),
            Table("all", "Details", COLUMNS, ROWS, group="who", detail=True),
        ),
        notes=("read this first", "read this first"),
        unfinished=("broken off",),
    )
    return report.save(tmp_path / "x.html").read_text(encoding="utf-8")


def test_title_notes_and_tables_are_there_once(tmp_path: Path) -> None:
    html = page(tmp_path)
    assert "<h1>Rates &amp; more</h1>" in html
    assert html.count("read this first") == 1
    assert html.count('role="note">broken off') == 1
    assert html.index('data-table="rates"') < html.index('id="details"')
    assert 'title="of &lt;all&gt;"' in html


def test_cells_are_drawn_marked_sorted_and_escaped(tmp_path: Path) -> None:
    html = page(tmp_path)
    assert "&lt;b&gt;a&lt;/b&gt;[U+202E]" in html
    assert "<b>a" not in html
    cell = html[html.index('class="pass" data-k="0.5"') :]
    assert 'd="M25.0 6H75.0"' in cell[:300]
    assert "50% [25%, 75%] ✓" in cell[:400]
    assert '<td class="none" title="one case">–</td>' in html
    assert '<span class="badge keep">keep</span>' in html
    assert 'class="group"' in html


def test_only_shares_are_drawn_and_verdicts_sort_by_gravity(tmp_path: Path) -> None:
    rows = (
        {"who": "a", "rate": Estimate(-0.25, -0.5, 0.25, 4), "verdict": "drop"},
        {"who": "b", "rate": Estimate(0.5, 0.25, 0.75, 4), "verdict": "keep"},
    )
    report = Report(title="", tables=(Table("rates", "Rates", COLUMNS, rows),), notes=("n", "n"))
    html = report.save(tmp_path / "x.html").read_text(encoding="utf-8")
    assert "6H75.0" not in html  # a column that goes below 0 has no place on a line from 0 to 1
    assert report.to_json()["notes"] == ["n"]
    drop, keep = (html[: html.index(f'<span class="badge {v}">')] for v in ("drop", "keep"))
    assert drop.rsplit('data-k="', 1)[1][0] != keep.rsplit('data-k="', 1)[1][0]


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.html, \.json"):
        Report(title="", tables=()).save(tmp_path / "x.pdf")
