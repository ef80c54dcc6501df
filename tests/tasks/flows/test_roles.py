"""The roles of `tasks/flows` pass every check that needs nothing by hand."""

from __future__ import annotations

import pytest

from tests.tasks.flows import checks
from tests.tasks.flows.flow import FLOWS, load
from tests.tasks.flows.hand import ByHand, Told

CHECKS = (
    checks.check_size,
    checks.check_tools,
    checks.check_gold,
    checks.check_writing,
    checks.check_results,
    checks.check_calls,
    checks.check_form,
    checks.check_walks,
    checks.check_coverage,
    checks.check_charts,
    checks.check_conformance,
)


@pytest.mark.parametrize("name", sorted(p.parent.name for p in FLOWS.glob("*/role.yaml")))
def test_a_role_is_sound(name: str) -> None:
    flow = load(name, ByHand(told=Told(r"$^"), refused=(), steps=(), values={}))
    assert [fault for check in CHECKS for fault in check(flow)] == []
