"""What is said of a plan that was not done: how far it came, and no more than is true."""

from __future__ import annotations

import pytest

from agenteval.cli.running import why_stopped
from agenteval.engine import ExperimentResult, Progress
from agenteval.utility.perturb import OPERATORS
from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("left", "said"),
    [(0, "every call failed: no"), (7, "stopped, 7 calls not made: every call failed: no")],
)
def test_nothing_left_out_is_not_said_to_be(left: int, said: str) -> None:
    assert (
        why_stopped(ExperimentResult(Progress(7), "every call failed: no", left), "calls not made")
        == said
    )


def test_the_help_names_every_perturbation(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    told = " ".join(cli("verify", "--help").out.split())
    listed = told.partition("Perturbation (repeatable): ")[2].partition(";")[0].split(", ")
    assert sorted(listed) == sorted(OPERATORS)
