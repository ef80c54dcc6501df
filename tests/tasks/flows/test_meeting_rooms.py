"""The role ``tasks/flows/meeting_rooms``: data against backend and chart, rules by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tasks.flows.checks import ALL, Check, load

FOLDER = Path(__file__).resolve().parents[3] / "tasks" / "flows" / "meeting_rooms"
SAID = {"none": ("nothing special", "no gadgets")}
FLOW = load(FOLDER, SAID, from_results=frozenset({"booking_id"}))


@pytest.mark.parametrize("check", ALL, ids=lambda f: f.__name__)
def test_role(check: Check) -> None:
    assert check(FLOW) == []
