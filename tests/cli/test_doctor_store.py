"""`doctor` on the store: not made yet is fine, whatever of it is there; damaged is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.app.commands.doctor import DoctorCheck, _store


@pytest.mark.parametrize("there", [None, b""])
def test_a_store_not_made_yet_is_no_fault(tmp_path: Path, there: bytes | None) -> None:
    path = tmp_path / "s.db"
    if there is not None:  # another process is about to make it
        path.write_bytes(there)
    assert _store(path) == DoctorCheck("store", None, f"{path} (created by the first quantify)")
    assert path.exists() == (there is not None)


def test_a_damaged_store_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(500))
    check = _store(path)
    assert (check.check, check.fine) == ("store", False)
    assert str(path) in check.found
