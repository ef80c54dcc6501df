"""Every role of `tasks/flows` has a test of its own."""

from __future__ import annotations

from pathlib import Path

from tests.tasks.flows.flow import FLOWS


def test_every_role_has_its_test() -> None:
    roles = {path.parent.name for path in FLOWS.glob("*/role.yaml")}
    tests = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert roles == tests - {"roles"}
