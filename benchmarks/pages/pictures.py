"""The pictures of the README, from the demo: its terminal and its page.

    python -m benchmarks.pages.pictures      # writes docs/demo.svg and docs/report.png

Needs Chromium for the page.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from benchmarks.folders import ROOT

DOCS = ROOT / "docs"
WIDTH = 110  # columns of the terminal
PARTS = ("2. A capable judge", "3. The embedded judge")  # what is shown, up to the second
PAGE = (1280, 1130)  # pixels


def main() -> int:
    """Run the demo in a temporary folder and write both pictures."""
    from playwright.sync_api import sync_playwright

    environment = os.environ | {"COLUMNS": str(WIDTH), "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "agenteval", "demo", "--dir", folder], cwd=folder, check=True,
            env=environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        shown = done.stdout[done.stdout.index(PARTS[0]) : done.stdout.index(PARTS[1])].rstrip()
        console = Console(record=True, width=WIDTH, file=io.StringIO())
        console.print(Text(shown))
        console.save_svg(str(DOCS / "demo.svg"), title="make demo")
        with sync_playwright() as browsers:
            browser = browsers.chromium.launch(executable_path=_chromium())
            page = browser.new_page(viewport={"width": PAGE[0], "height": PAGE[1]})
            page.goto((Path(folder) / "capable.html").as_uri())
            page.screenshot(path=DOCS / "report.png")
            browser.close()
    return 0


def _chromium() -> str | None:
    paths = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
    return next((path for path in paths if Path(path).exists()), None)


if __name__ == "__main__":
    sys.exit(main())
