"""A report says in one line what it is, and can be pickled."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from agenteval.records.table import Column, Table
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
