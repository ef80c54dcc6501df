"""One line per run, against plain arithmetic over its ratings."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.records import Criterion
from agenteval.stats.scores import score_table
from agenteval.utility.page_data import JudgeMaterial, arranged
from agenteval.utility.page_runs import RunLine, run_lines, worth_reading

SUCCESS = {"a": True, "b": False}
ratings = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 2)),
    st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    min_size=1,
)


def material(found: dict[tuple[str, str, int], float | None]) -> JudgeMaterial:
    rows = [
        {
            "run": run,
            "criterion": c,
            "repeat": k,
            "value": v,
            "success": SUCCESS.get(run),
            "status": "scored" if v is not None else "unscored:parse",
        }
        for (run, c, k), v in found.items()
    ]
    criteria = tuple(
        Criterion(id=i, name=i, scale="numeric", numeric_range=(0.0, 1.0)) for i in "xy"
    )
    return JudgeMaterial("t", (), criteria, arranged(score_table(rows), "xy"))


@given(ratings)
def test_means_gaps_spreads_and_failures(found: dict[tuple[str, str, int], float | None]) -> None:
    lines = {line.run: line for line in run_lines(material(found))}
    assert set(lines) == {run for run, _, _ in found}
    for run, line in lines.items():
        values = [v for (r, _, _), v in found.items() if r == run and v is not None]
        assert line.failed == sum(v is None for (r, _, _), v in found.items() if r == run)
        assert line.mean == (pytest.approx(sum(values) / len(values)) if values else None)
        by_criterion = defaultdict(list)
        for (r, c, _), v in found.items():
            if r == run and v is not None:
                by_criterion[c].append(v)
        several = [max(v) - min(v) for v in by_criterion.values() if len(v) > 1]
        assert line.spread == (max(several) if several else None)
        label = {"a": 1, "b": 0}.get(run)
        known = label is not None and values
        assert line.gap == (pytest.approx(abs(line.mean - label)) if known else None)


def line(run: str, gap: float | None, failed: int = 0, spread: float | None = None) -> RunLine:
    outcome = "unknown" if gap is None else "success"
    return RunLine(run, "s", 0, outcome, None, gap, spread, failed)


def test_the_farthest_from_their_label_come_first() -> None:
    lines = [line("a", 0.1), line("b", 0.9), line("c", None, 5), line("d", 0.5), line("e", 0.9, 1)]
    assert [x.run for x in worth_reading(lines, 3)] == ["b", "d", "e"]
    assert worth_reading(lines, 9) == lines
    without = [line("a", None), line("b", None, 2), line("c", None, 0, 0.5)]
    assert [x.run for x in worth_reading(without, 2)] == ["b", "c"]
