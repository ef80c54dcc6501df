"""Make the pictures of the README: `agenteval verify` in a terminal, and its page.

Run as `python docs/pictures.py` (`make pictures`). The judge is the recorded one of the task math.
The page needs Chromium (`make browser`).
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console

import agenteval

DOCS = Path(__file__).parent
COMMAND = "agenteval verify tasks/math/runs.jsonl --model recorded"
RUNS = DOCS.parent / "tasks/math/runs.jsonl"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    """Write demo.svg and report.png beside this file. Raises FileNotFoundError without Chromium."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise FileNotFoundError("no Chromium: `make browser` installs it")
    with tempfile.TemporaryDirectory() as folder:
        store, page = Path(folder, "agenteval.db"), Path(folder, "report.html")
        report = agenteval.verify(RUNS, task="math", judge="recorded", store=store)
        agenteval.page(page, store=store)
        console = Console(record=True, file=io.StringIO(), width=110, force_terminal=True)
        console.print(f"$ {COMMAND}", style="bold", highlight=False)
        report.print(console=console)
        console.save_svg(str(DOCS / "demo.svg"), title="agenteval verify")
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            view = chromium.new_page(viewport={"width": 1280, "height": 1130})
            view.goto(page.as_uri())
            view.screenshot(path=DOCS / "report.png")
            chromium.close()


if __name__ == "__main__":
    main()
