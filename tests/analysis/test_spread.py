"""Where spread comes from and what more would buy, against simulation; the widest disagreements."""

from __future__ import annotations

import numpy as np
import pytest

from agenteval.analysis.disagreement import disagreement_table, disagreements
from agenteval.analysis.spread import (
    cases_for_width,
    design_table,
    half_width,
    spread_line,
    spreads,
)
from agenteval.records import Criterion
from agenteval.stats.scores import score_table

SPEED = Criterion(name="Speed", scale="numeric", numeric_range=(0.0, 1.0))


def simulated(cases: int, repeats: int, systems: int = 2, *, shared: bool = True) -> list[dict]:  # type: ignore[type-arg]
    rng = np.random.default_rng(cases + repeats)
    rows = []
    for c in range(cases):
        case = rng.normal(0, 0.10)
        for s in range(systems):
            if not shared and c % systems != s:
                continue
            value = 0.5 + case + 0.05 * s + rng.normal(0, 0.05)
            for k in range(repeats):
                rows.append(
                    {
                        "run": f"{s}-{c}",
                        "case": f"c{c}",
                        "system": f"s{s}",
                        "criterion": "speed",
                        "value": value + rng.normal(0, 0.08),
                        "repeat": k,
                    }
                )
    return rows


def test_half_widths_are_those_of_the_means_that_come() -> None:
    (got,) = spreads(score_table(simulated(400, 3)), [SPEED])
    assert (got.cases, got.repeats) == (400, 3)
    assert got.between == pytest.approx(0.10**2 + 0.05**2, rel=0.15)
    assert got.components.repeat == pytest.approx(0.08**2, rel=0.1)
    # the mean of a system over 400 cases, three repeats: by its variance
    assert got.half_width() == pytest.approx(1.96 * ((0.0125 + 0.0064 / 3) / 400) ** 0.5, rel=0.1)
    assert got.half_width(cases=20) == pytest.approx(got.half_width() * (400 / 420) ** 0.5)
    assert got.more_repeats is not None
    assert got.more_repeats < got.half_width()
    single = 0.0125 + 0.0025  # of the runs: case, system and both
    assert got.reliability.mean == pytest.approx(single / (single + 0.0064), abs=0.1)
    line = spread_line([got])
    assert line is not None
    assert f"±{got.half_width():.3f}" in line
    assert "two more repeats" in line


def test_one_repeat_says_nothing_about_repeats() -> None:
    (got,) = spreads(score_table(simulated(50, 1)), [SPEED])
    assert got.more_repeats is None
    line = spread_line([got])
    assert line is not None
    assert line.endswith("use --repeats 2 to estimate the effect of repeats")


def test_systems_without_a_common_case() -> None:
    (got,) = spreads(score_table(simulated(300, 1, shared=False)), [SPEED])
    assert got.cases == 150
    assert got.between == pytest.approx(0.0125 + 0.0064, rel=0.2)
    assert got.components.reason is not None
    assert "not shared" in got.components.reason


def test_nothing_to_say() -> None:
    assert spread_line([]) is None
    assert spread_line(spreads(score_table(simulated(5, 2)), [SPEED])) is None
    same = [{"run": f"r{i}", "criterion": "speed", "value": 0.5} for i in range(9)]
    assert spread_line(spreads(score_table(same), [SPEED])) is None
    assert spreads(score_table([{"run": "a", "criterion": "speed", "value": 0.5}]), [SPEED]) == []


def test_design_by_hand() -> None:
    table = design_table(0.04, 0.02, (100,), (1, 2), apart=0.01, systems=2, price=0.5)
    one, two = table.rows
    assert (one["calls"], one["cost"]) == (200, 100.0)
    assert one["half"] == pytest.approx(1.96 * (0.06 / 100) ** 0.5, rel=1e-4)
    assert two["half"] == pytest.approx(half_width(0.04, 0.02, 100, 2))
    # (1.96 + .8416) sqrt((.01 + 2 * .02 / 2) / 100)
    assert two["difference"] == pytest.approx(2.8016 * (0.03 / 100) ** 0.5, rel=1e-4)
    assert cases_for_width(0.1, 0.04, 0.02, 1) == 93  # (2 * 1.96 / .1)^2 * .06 = 92.2
    assert half_width(0.04, 0.02, 93, 1) <= 0.05 < half_width(0.04, 0.02, 92, 1)


def test_the_widest_disagreement_comes_first() -> None:
    judge = score_table(
        [
            {"run": "a", "criterion": "x", "value": 1.0, "label": "good", "repeat": 0},
            {"run": "a", "criterion": "x", "value": 1.0, "label": "good", "repeat": 1},
            {"run": "b", "criterion": "x", "value": 0.5, "label": "fair", "repeat": 0},
            {"run": "b", "criterion": "x", "value": 1.0, "label": "good", "repeat": 1},
            {"run": "c", "criterion": "x", "value": 0.0, "label": "bad", "repeat": 0},
        ]
    )
    bad = {"criterion": "x", "value": 0.0, "label": "bad"}
    person = score_table([{"run": "a", **bad}, {"run": "c", **bad}])
    found = disagreements({"judge": judge, "A": person})
    assert [(d.run, d.spread) for d in found] == [("a", 1.0), ("b", 0.5)]
    assert found[0].said == {"A": "bad", "judge": "good ×2"}
    table = disagreement_table(found, {"x": "X"}, "judges and people")
    assert [row["criterion"] for row in table.rows] == ["X", "X"]
    assert [column.head for column in table.columns[-2:]] == ["A", "judge"]
    alone = disagreement_table(disagreements({"judge": judge}), {}, "repeats")
    assert alone.rows[0]["said_0"] == "fair, good"
