"""Count the lines of Python that a function runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any


def count_steps(function: Callable[[], object], files: Iterable[Path]) -> int:
    """Return how many lines of these files run while `function` is called."""
    names = {str(path.resolve()) for path in files}
    steps = 0

    def entered(frame: FrameType, event: str, _: Any) -> Any:
        return stepped if frame.f_code.co_filename in names else None

    def stepped(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return stepped

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        function()
    finally:
        sys.settrace(before)
    return steps
