"""Simulated judges through client, quantifier and store: the outcome each of them must get."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.utility.probes.result import Probe
from tests.support import judges as family
from tests.support.judges import Answers
from tests.utility.probes.making import Otherwise, probed

WORDING_B = "without taking sides"
ASKED = ("scale order", "wording", "rewording")


def outcomes(probes: dict[str, Probe], *names: str) -> list[str]:
    return [probes[name].outcome for name in names]


@pytest.mark.slow
def test_the_perfect_judge_passes(tmp_path: Path) -> None:
    probes = probed(Answers(family.perfect(), seed=1), tmp_path)
    assert list(probes) == [*ASKED, "injection"]
    assert outcomes(probes, *ASKED) == ["pass"] * 3
    assert probes["wording"].checks[0].n == 40


def test_the_place_of_a_label_is_found_by_turning_the_scale_round(tmp_path: Path) -> None:
    probes = probed(Answers(family.position_only(slot=4), seed=1), tmp_path, cases=20)
    assert probes["scale order"].outcome == "fail"
    assert probes["scale order"].checks[0].estimate == -1.0  # best, then worst


@pytest.mark.slow
def test_a_judge_that_depends_on_the_wording_is_found(tmp_path: Path) -> None:
    stricter = Otherwise(family.perfect(), WORDING_B, family.lenient(-1.0))
    probes = probed(stricter, tmp_path)
    assert outcomes(probes, *ASKED) == ["pass", "fail", "pass"]
    chance = Otherwise(family.noisy(), WORDING_B, family.random())
    (folder := tmp_path / "chance").mkdir()
    agreement = probed(chance, folder)["wording"].checks[1]
    assert (agreement.name, agreement.outcome) == ("agreement", "fail")
