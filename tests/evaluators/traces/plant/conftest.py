"""One loopback server for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agenteval.evaluators.traces.plant import Host


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host() as made:
        yield made
