"""A store with a judge's ratings of tasks/math, and the viewer on it without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import agenteval
from agenteval.store import Store
from agenteval.view.application import make_app
from agenteval.view.security import Access
from agenteval.view.server import Viewer

MATH = Path(__file__).parents[2] / "tasks" / "math"
HOST = "127.0.0.1:8000"


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("view") / "judged.db"
    with ThreadPoolExecutor(1) as pool:  # playwright keeps a loop running in this thread
        pool.submit(
            agenteval.quantify, MATH / "runs.jsonl", task=str(MATH), judge="recorded", store=path
        ).result()
    return path


@pytest.fixture
def store(judged: Path, tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    path.write_bytes(judged.read_bytes())
    return path


Open = Callable[..., "Browser"]


class Browser:
    """A client that opened the viewer by its token, and sends forms as a browser does."""

    def __init__(self, store: Store, **settings: Any) -> None:
        self.access = Access(8000, ("127.0.0.1", "localhost"))
        self.client = TestClient(
            make_app(Viewer(store, self.access, patience=60, **settings)),
            base_url=f"http://{HOST}",
            raise_server_exceptions=True,
        )

    def enter(self) -> Browser:
        """Get the cookie."""
        self.client.get("/", params={"token": self.access.token})
        return self

    def get(self, path: str, **params: str) -> Any:
        """Ask for a page; redirects are followed."""
        return self.client.get(path, params=params or None)

    def send(self, path: str, **fields: str) -> Any:
        """Send a form with its token and the origin of the viewer; redirects are followed."""
        data = {"form_token": self.access.form_token, **fields}
        return self.client.post(path, data=data, headers={"origin": f"http://{HOST}"})


@pytest.fixture
def browser(store: Path) -> Iterator[Open]:
    opened = []

    def make(**settings: Any) -> Browser:
        opened.append(Store(store))
        return Browser(opened[-1], **settings).enter()

    yield make
    for each in opened:
        each.close()
