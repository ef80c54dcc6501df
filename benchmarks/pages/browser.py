"""Pages in headless Chromium: what they did, other than show text."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
# Every element by name, outside of figures; what the page calls itself; and what was carried out.
_LOOK = """() => ({
  title: document.title,
  ran: typeof window.owned !== 'undefined' || document.title === 'owned',
  elements: [...document.querySelectorAll('*')].filter(e => !e.closest('svg')).length,
  handlers: [...document.querySelectorAll('*')].flatMap(e => [...e.attributes])
    .filter(a => a.name.startsWith('on')).length,
  wide: document.documentElement.scrollWidth > window.innerWidth,
})"""
_FORBIDDEN = "script:not([type]), style, img, iframe, link, object, embed, base, meta"


@dataclass
class Seen:
    """What a page did and what it held."""

    title: str = ""
    elements: int = 0
    executed: int = 0
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    wide: bool = False


def browser_path() -> str | None:
    """The installed Chromium, None without one."""
    return next((p for n in _NAMES if (p := shutil.which(n))), None)


def look(pages: Sequence[str], path: str) -> list[Seen]:
    """Open every page, and on it everything that unfolds."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        found = [_one(browser, page, Path(folder) / f"{i}.html") for i, page in enumerate(pages)]
        browser.close()
    return found


def _note_dialog(seen: Seen, dialog: Any) -> None:
    seen.dialogs.append(dialog.message)
    dialog.dismiss()


def _one(browser: Any, page: str, file: Path) -> Seen:
    file.write_text(page, encoding="utf-8", newline="\n")
    seen = Seen()
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    tab = context.new_page()
    tab.on("console", lambda m: seen.console.append(m.text))
    tab.on("pageerror", lambda e: seen.console.append(str(e)))
    tab.on("dialog", lambda d: _note_dialog(seen, d))
    tab.on("request", lambda r: seen.requests.append(r.url))
    tab.on("popup", lambda p: seen.requests.append(f"popup {p.url}"))
    tab.route("**/*", lambda r: r.continue_() if r.request.url == file.as_uri() else r.abort())
    tab.goto(file.as_uri())
    seen.elements = tab.evaluate(_LOOK)["elements"]
    _unfold(tab, seen)
    told = tab.evaluate(_LOOK)
    seen.title, seen.wide = told["title"], told["wide"]
    seen.executed += int(told["ran"]) + told["handlers"]
    # the page itself, and figures inside of it
    seen.requests = [
        r for r in seen.requests if r != file.as_uri() and not r.startswith("data:image/png")
    ]
    context.close()
    return seen


def _unfold(tab: Any, seen: Seen) -> None:
    """Open everything, sort the tables, touch what can be touched."""
    tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    seen.executed += tab.locator("main").locator(_FORBIDDEN).count()
    tab.evaluate("document.querySelectorAll('th button').forEach(b => b.click())")
    tab.evaluate(
        "document.querySelectorAll('main *').forEach(e => ['mouseover', 'focus', 'pointerenter',"
        "'toggle', 'click'].forEach(n => e.tagName === 'A' || e.tagName === 'BUTTON' ||"
        "e.dispatchEvent(new Event(n, {bubbles: false}))))"
    )
