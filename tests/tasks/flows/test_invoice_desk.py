"""The role ``tasks/flows/invoice_desk``: data against backend and chart, rules by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tasks.flows.checks import ALL, Check, load

FOLDER = Path(__file__).resolve().parents[3] / "tasks" / "flows" / "invoice_desk"
FLOW = load(FOLDER, from_results=frozenset({"claim_id"}))


@pytest.mark.parametrize("check", ALL, ids=lambda f: f.__name__)
def test_role(check: Check) -> None:
    assert check(FLOW) == []
