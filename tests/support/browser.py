"""Fixtures: a page opened in headless Chromium, and everything it said or asked for."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@dataclass
class Watched:
    """A page with everything it said or asked for."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    @property
    def quiet(self) -> bool:
        """Nothing on the console, no dialog, and no request but for the file itself."""
        return not (self.console or self.dialogs or self.requests[1:])


Open = Callable[..., Watched]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    # Not for the whole session: asyncio.run would fail in every later test of this process.
    found = next((p for n in _NAMES if (p := shutil.which(n))), None)
    if found is None:
        why = "NO CHROMIUM: the report is not tested in a browser (`make browser`, as root)"
        warnings.warn(why, stacklevel=1)  # shown at the end of every run, also with several workers
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    """Write HTML to a file and open it."""
    contexts = []

    def opened(html: str, *, width: int = 1400, javascript: bool = True) -> Watched:
        file = tmp_path / "page.html"
        file.write_text(html, encoding="utf-8", newline="\n")
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, java_script_enabled=javascript
        )
        contexts.append(context)
        watched = Watched(context.new_page())
        page = watched.page
        page.on("console", lambda m: watched.console.append(m.text))
        page.on("pageerror", lambda e: watched.console.append(str(e)))
        page.on("dialog", lambda d: (watched.dialogs.append(d.message), d.dismiss()))
        page.on("request", lambda r: watched.requests.append(r.url))
        page.route("**/*", _files_only)
        page.goto(file.as_uri())
        return watched

    yield opened
    for context in contexts:
        context.close()


def _files_only(route: Any) -> None:
    if route.request.url.startswith(("file:", "data:")):
        route.continue_()
    else:
        route.abort()
