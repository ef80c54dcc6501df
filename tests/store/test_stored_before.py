"""A store made at commit 0f3483b is read by the current code and says the same."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.golden.freeze import differences
from tests.store.make_fixture import OUTPUTS, READING, STORE, outputs


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("stored").resolve()
    (folder / "s.db").write_bytes(gzip.decompress(STORE.read_bytes()))
    return outputs(folder)


@pytest.mark.slow
@pytest.mark.parametrize("line", READING)
def test_reading_commands_print_the_same(line: str, found: dict[str, object]) -> None:
    frozen = json.loads(OUTPUTS.read_text("utf-8"))
    changed = list(differences(found[line], frozen[line]))
    assert not changed, "\n".join(changed[:40])
