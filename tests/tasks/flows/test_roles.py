"""The roles of `tasks/flows` pass every check."""

from __future__ import annotations

import pytest

from tests.tasks.flows.checks import ALL
from tests.tasks.flows.flow import FLOWS, load


@pytest.mark.parametrize("name", sorted(p.parent.name for p in FLOWS.glob("*/role.yaml")))
def test_a_role_is_sound(name: str) -> None:
    flow = load(name)
    assert [fault for check in ALL for fault in check(flow)] == []
