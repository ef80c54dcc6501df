"""Hostile texts in everything that goes out: pages, tables, exports; and keys that must stay in.

    python -m benchmarks.pages [--quick]

Pages. A corpus (tests/data/payloads.json) is put into every free text of judged runs, planning
trials, traces and workflow sessions, one payload per text, and every kind of page is written. A
turn moves all payloads on by one text; the full size makes 8 turns, 14 apart (of
traces, whose page has no figures, every turn), the quick one 2.
Beside each page stands the same one with harmless letters. Counted: elements, attribute names and
classes whose number differs; handlers, addresses, foreign scripts, a weak policy; payloads not
shown as text; hidden characters left in the page. Headless Chromium opens each page and unfolds
everything: what was executed, requests, dialogs, lines on the console. It is left out, and said to
be, where there is no Chromium.

Terminal. Commands on the same data, in human and JSON mode, and errors that name hostile files:
control and other hidden characters let through, JSON and JUnit XML that cannot be read, cells of
the CSV export that a spreadsheet would run.

Secrets. Keys in the environment, in a URL, in a component's config and headers, and in a proxy, on
every way of failing (statuses whose body repeats the key, cut and slow answers, redirects, no
connection, no such host, TLS, malformed URLs) with all loggers at DEBUG: what of them is found in
stdout, stderr, store, recording, report, export and every other file.

Targets: all zero.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.outcome import Row, finish
from benchmarks.pages.browser import browser_path, look
from benchmarks.pages.check import Parsed, changed_nodes, faults, hidden_in, unseen
from benchmarks.pages.echo import MODES
from benchmarks.pages.payloads import Swap, payloads
from benchmarks.pages.secrets import Secrets, secrets
from benchmarks.pages.terminal import Terminal, terminal
from benchmarks.pages.worlds import PAGES

# What the page itself says of a text that seems to talk to the judge, as some payloads do.
_SIGNS = re.compile(
    r' ?<span class="badge repair">talks to the judge</span>'
    r'|<p class="warning">(?:(?!</p>).)*(?:seems|seem) to talk to the judge.*?</p>',
    re.S,
)
_STEP = 14  # turns apart, so that long payloads do not gather


@dataclass
class Shown:
    """What the pages did and held; lists name each case."""

    pages: int = 0
    texts: int = 0
    nodes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    opened: int | None = None
    executed: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)

    def add(self, other: Shown) -> None:
        """Count pages that are not opened in the browser as well."""
        self.pages += other.pages
        self.texts += other.texts
        for name in ("nodes", "faults", "unseen", "hidden"):
            getattr(self, name).extend(getattr(other, name))


def write_pages(
    turns: Sequence[int], kinds: Sequence[str] = tuple(PAGES)
) -> tuple[Shown, list[str]]:
    """Every kind of page, once a turn, beside the harmless one; what differs, and the pages."""
    total, made = Shown(), []
    for turn in turns:
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder:
                bad, good = Swap(turn, hostile=True), Swap(turn, hostile=False)
                page, plain = (PAGES[kind](swap, Path(folder)) for swap in (bad, good))
            _compare(total, f"{kind}, turn {turn}", page, plain)
            pairs = zip(bad.given.values(), good.given.values(), strict=True)
            hostile, benign = Parsed(page), Parsed(plain)
            total.unseen += [f"{kind}: {p[:60]!a}" for p in unseen(hostile, benign, pairs)]
            total.texts += len(bad.given)
            made.append(page)
    return total, made


def _compare(total: Shown, name: str, page: str, plain: str) -> None:
    total.pages += 1
    hostile = Parsed(page)
    bare = [Parsed(_SIGNS.sub("", one)) for one in (page, plain)]
    total.nodes += [f"{name}: {text}" for text in changed_nodes(*bare)]
    total.faults += [f"{name}: {text}" for text in faults(hostile)]
    total.hidden += [f"{name}: U+{ord(c):04X}" for c in hidden_in(page)]


def open_pages(total: Shown, pages: Sequence[str], path: str) -> None:
    """Open them in the browser at `path` and add what they did."""
    total.opened = len(pages)
    for i, seen in enumerate(look(pages, path)):
        total.executed += [f"page {i}"] * seen.executed
        total.requests += seen.requests
        total.dialogs += seen.dialogs
        total.console += seen.console


def rows(shown: Shown, printed: Terminal, kept: Secrets) -> list[Row]:
    """The table: counts, each with its target of none."""

    def none(what: str, found: Sequence[str], of: str = "") -> Row:
        return Row(what, f"{len(found)}{of}", "0", not found)

    opened = f" on {shown.opened} pages" if shown.opened else ""
    acted = [
        none("executed in the browser", shown.executed, opened),
        none("requests", shown.requests, opened),
        none("dialogs", shown.dialogs, opened),
        none("lines on the console", shown.console, opened),
    ]
    if shown.opened is None:
        acted = [Row("in the browser", "not opened: no Chromium here")]
    files = f" in {kept.files:,} files of {kept.paths} failure paths"
    return [
        Row("payloads", f"{len(payloads())}"),
        Row("pages", f"{shown.pages} of {len(PAGES)} kinds, {shown.texts:,} texts replaced"),
        *acted,
        none("elements, attributes or classes changed", shown.nodes),
        none("handlers, addresses, weak policies", shown.faults),
        none("payloads not shown as text", shown.unseen),
        none("hidden characters in pages", shown.hidden),
        none("control characters let through to a terminal", printed.controls,
             f" of {printed.commands} commands"),
        none("outputs that crash or cannot be read back", printed.broken),
        none("CSV cells that a spreadsheet would run", printed.formulas,
             f" of {printed.cells:,} cells"),
        none("secrets found", kept.found, files),
        none("secrets sent to another host", kept.elsewhere),
    ]  # fmt: skip


def main() -> int:
    """Run all and print the table; the exit code is 1 when a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="2 turns, 5 ways of failing")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")  # glyphs that the font of the figures does not have
    turns = list(range(0, len(payloads()), 60 if quick else _STEP))
    modes = ("200", "401", "500", "redirect", "error200") if quick else MODES
    began = time.monotonic()
    shown, made = write_pages(turns)
    if not quick:
        shown.add(write_pages(range(len(payloads())), ("traces",))[0])
    if path := browser_path():
        open_pages(shown, made, path)
    with tempfile.TemporaryDirectory() as folder:
        printed = Terminal()
        for turn in turns[:: 1 if quick else 4]:
            (place := Path(folder) / str(turn)).mkdir()
            printed.add(terminal(turn, place))
        kept = secrets(Path(folder) / "secrets", modes)
    found = rows(shown, printed, kept)
    _print(found, shown, printed, kept)
    return finish("pages", found, quick=quick, seconds=round(time.monotonic() - began))


def _print(found: Sequence[Row], *parts: Shown | Terminal | Secrets) -> None:
    for row in found:
        mark = {True: "ok  ", False: "MISS", None: "    "}[row.met]
        print(f"{mark} {row.what:<48} {row.measured}")
    for part in parts:
        for name, value in vars(part).items():
            for line in value[:5] if isinstance(value, list) else ():
                print(f"  {name}: {json.dumps(line)}")


if __name__ == "__main__":
    sys.exit(main())
