"""Which lines follow which while a function runs, and how many steps it takes.

Made with sys.settrace, since the project still runs on Python 3.11, which has no sys.monitoring.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

Arc = tuple[CodeType, int, int]  # a code object, a line in it and the next; 0 is its entry


class Arcs:
    """Runs functions and keeps what was seen of some files."""

    def __init__(self, files: list[Path]) -> None:
        self._files = frozenset(str(path.resolve()) for path in files)
        self.seen: set[Arc] = set()
        self.steps = 0

    def run(self, function: Callable[[str], Any], text: str) -> Any:
        """What the function returns; `seen` and `steps` are those of this run alone."""
        self.seen, self.steps = set(), 0
        before = sys.gettrace()
        sys.settrace(self._entered)
        try:
            return function(text)
        finally:
            sys.settrace(before)

    def _entered(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in self._files:
            return None
        last = 0

        def stepped(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal last
            if event == "line":
                self.seen.add((code, last, frame.f_lineno))
                self.steps += 1
                last = frame.f_lineno
            return stepped

        return stepped
