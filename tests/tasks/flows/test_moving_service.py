"""The role ``tasks/flows/moving_service``: data against backend and chart, rules by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tasks.flows.checks import ALL, Check, load

FOLDER = Path(__file__).resolve().parents[3] / "tasks" / "flows" / "moving_service"
FLOW = load(FOLDER, from_results=frozenset({"van", "reference"}))


@pytest.mark.parametrize("check", ALL, ids=lambda f: f.__name__)
def test_role(check: Check) -> None:
    assert check(FLOW) == []
