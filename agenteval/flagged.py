"""Runs whose text seems to talk to the judge: what tables, JSON and pages say of them.

Computed from the texts whenever a table is made, never stored: a score does not depend on it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

_NAMED = 5  # runs in a line


@dataclass(frozen=True, slots=True)
class Flag:
    """A run, and the names of the signs in what the judge sees of it. `system` is None where
    nobody tells whose run it is."""

    run: str
    system: str | None
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flags:
    """What was found in `examined` runs."""

    found: tuple[Flag, ...] = ()
    examined: int = 0

    @property
    def line(self) -> str:
        """`3 of 40 runs hold text that seems to talk to the judge: ...`, "" when there is none."""
        if not self.found:
            return ""
        often = Counter(f.run for f in self.found)
        named = "; ".join(
            f"{f.run}{_whose(f, often)} ({', '.join(f.signs)})" for f in self.found[:_NAMED]
        )
        more = len(self.found) - _NAMED
        tail = f"; and {more} more" if more > 0 else ""
        return (
            f"{len(self.found)} of {self.examined} runs hold text that seems to talk to the judge"
            f"{self._split()}: {named}{tail}"
        )

    @property
    def tile(self) -> tuple[str, str]:
        """`3 of 40` and what that is, for the head of a page."""
        return f"{len(self.found):,} of {self.examined:,}", "address the judge"

    def json(self) -> list[dict[str, Any]]:
        """One entry for each run with a sign."""
        return [{"run": f.run, "system": f.system, "signs": list(f.signs)} for f in self.found]

    def _split(self) -> str:
        systems = Counter(f.system for f in self.found if f.system is not None)
        split = ", ".join(f"{name} {n}" for name, n in sorted(systems.items()))
        return f" (by system: {split})" if split else ""


def _whose(flag: Flag, often: Counter[str]) -> str:
    """Several systems may have a run of one name."""
    return f" of {flag.system}" if often[flag.run] > 1 and flag.system is not None else ""
