"""Requests to models and the keys of stored results, for one small use of each command.

The hashes in `requests.json` come from the code at commit 0f3483b. A changed request is paid for
again, and a changed key hides stored results, so both change only on purpose.
`python -m tests.golden.test_requests` writes the file anew.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from tests.golden.requests import COMMANDS, Command, run

FILE = Path(__file__).with_name("requests.json")


@pytest.mark.parametrize("command", [pytest.param(c, id=c.name) for c in COMMANDS])
def test_command_sends_and_stores_the_same(command: Command, tmp_path: Path) -> None:
    frozen = json.loads(FILE.read_text("utf-8"))[command.name]
    found = run(command, tmp_path)
    assert found.keys() == frozen.keys()
    for kind, hashes in frozen.items():
        assert found[kind] == hashes, kind


def test_no_frozen_command_is_left_over() -> None:
    frozen = json.loads(FILE.read_text("utf-8"))
    assert frozen.keys() == {command.name for command in COMMANDS}


def freeze() -> None:
    """Write the file."""
    found = {}
    for command in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            found[command.name] = run(command, Path(folder).resolve())
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    freeze()
