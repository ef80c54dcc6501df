"""The benchmark of the verifier: its judges, their truth, intervals, verdicts of other tools."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from benchmarks.verifier import __main__ as verifier
from benchmarks.verifier.judges import balanced, best_threshold, judges, truth
from benchmarks.verifier.rules import Judged, alpha, auc


def test_the_grid_is_fixed_and_its_truth_is_known() -> None:
    everyone = judges()
    assert len(everyone) == len({j.name for j in everyone}) == 69
    assert [j.noise for j in everyone] == [j.noise for j in judges()]
    by_name = {j.name: j for j in everyone}
    assert truth(by_name["no judge: constant"], "math") == pytest.approx(0.5, abs=0.02)
    assert truth(by_name["upside down: on 9"], "math") == pytest.approx(0.5, abs=0.02)
    assert truth(by_name["noise 0.04"], "math") > truth(by_name["noise 0.30"], "math") > 0.8


def test_figures_by_hand() -> None:
    success = np.array([True, True, True, False, False])
    assert balanced(np.array([True, True, False, True, False]), success) == pytest.approx(7 / 12)
    assert 0.2 < best_threshold(np.array([0.9, 0.8, 0.7, 0.2, 0.1]), success) <= 0.7
    assert auc(np.array([3.0, 2.0, 1.0, 1.0, 0.0]), success) == pytest.approx(5.5 / 6)
    # Krippendorff 2011, of interval data 1, 2 / 1, 2 / 3, 4: 1 - (pairs within) / (all pairs)
    assert alpha(np.array([[[1.0], [2.0]], [[1.0], [2.0]], [[3.0], [4.0]]])) == pytest.approx(
        1 - 0.5 / np.var([1, 2, 1, 2, 3, 4], ddof=1)
    )


def verdict(judge: str, trusted: bool) -> Judged:
    return Judged(judge, "f", True, "math", 0.9, 20, 0, "trusted", {"verify": trusted})


def test_intervals_count_judges_and_not_verdicts() -> None:
    alone = [verdict(f"j{i}", i < 8) for i in range(10)]
    # Clopper and Pearson's interval of 8 of 10, from the tables
    assert verifier.share(alone, lambda j: j.trusted["verify"]) == "0.800 [0.44, 0.97] (10 on 10)"
    often = [verdict(f"j{i}", i < 8) for i in range(10) for _ in range(5)]
    assert verifier.share(often, lambda j: j.trusted["verify"]) == "0.800 [0.44, 0.97] (50 on 10)"


def test_an_inverted_judge_is_never_trusted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["x", "--judges", "noise 0.04", "upside down: on 9", "--seeds", "1", "--runs", "40"]
    monkeypatch.setattr(sys, "argv", small)
    verifier.main()
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    measured = {row["what"]: row["measured"] for row in last["rows"]}
    assert measured["40 runs, verify: good, of the trusted"].startswith("1.000")
