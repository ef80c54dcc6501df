"""Make the pictures of the README and of the tutorial on labels.

`agenteval verify` in a terminal, its page, and the viewer while somebody labels.

Run as `python docs/pictures.py` (`make pictures`). The judge is the recorded one of the task math.
The page needs Chromium (`make browser`).
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from rich.console import Console

import agenteval

DOCS = Path(__file__).parent
COMMAND = "agenteval verify tasks/math/runs.jsonl --model recorded"
RUNS = DOCS.parent / "tasks/math/runs.jsonl"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    """Write demo.svg, report.png and label.png here. Raises FileNotFoundError without Chromium."""
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
            draw_label(chromium, store)
            chromium.close()


def draw_label(chromium: Browser, store: Path) -> None:
    """Write label.png: the second run of a queue, after the first was labelled by keys."""
    command = [sys.executable, "-m", "agenteval", "view", store, "--label", "--rater", "ann"]
    server = subprocess.Popen(  # noqa: S603  our own command
        [*command, "--no-open"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr is not None
        line = server.stderr.readline()
        view = chromium.new_page(viewport={"width": 1280, "height": 860})
        view.goto(line[line.index("http") :].strip())
        view.get_by_label("Name", exact=True).fill("Thirty runs")
        view.get_by_role("button", name="Make the queue").click()
        view.get_by_role("button", name="Label", exact=True).click()
        view.wait_for_selector("fieldset.current")
        for key in "222222222n":
            view.keyboard.press(key)
        view.wait_for_url("**after=**")
        view.wait_for_selector("fieldset.current")
        for key in "43":
            view.keyboard.press(key)
        view.screenshot(path=DOCS / "label.png")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
