"""What is said of a plan that was not done: how far it came, and no more than is true."""

from __future__ import annotations

import pytest

from agenteval.utility.perturb import OPERATORS
from tests.cli.conftest import Cli


def test_the_help_names_every_perturbation(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    told = " ".join(cli("verify", "--help").out.split())
    listed = told.partition("Perturbation (repeatable): ")[2].partition(";")[0].split(", ")
    assert sorted(listed) == sorted(OPERATORS)
