"""Where a benchmark finds and leaves things, and how it starts a part of itself as a process."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "benchmarks" / "out"  # figures and logs; not in the repository


def module(name: str, *arguments: str) -> list[str]:
    """The command of a module below `benchmarks`, to be run with `ROOT` as its folder."""
    return [sys.executable, "-m", f"benchmarks.{name}", *arguments]
