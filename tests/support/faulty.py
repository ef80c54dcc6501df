"""The n-th call of a kind fails: n = 1, 2, 3 … until a run gets by without meeting the fault.

The idea is that of SQLite's own tests ("How SQLite Is Tested", section 3, sqlite.org/testing.html):
whatever the number of the call that fails, what is left behind must be sound. `faulty_disk` and
`faulty_sqlite` put such a fault under real calls of this process.
"""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import dataclass, field
from enum import Enum


class Verdict(Enum):
    """What becomes of one call."""

    CARRY_OUT = "carry out"
    HALF = "half"  # a write that takes half of its bytes, as the system may
    FAIL = "fail"


@dataclass
class NthCall:
    """The call with number `n` (from 1) fails with the system's `error`.

    `lasting`: every later one fails as well, as on a disk that stays full. `half`: the n-th is
    told to write half of its bytes first, and the one after it fails. With n = 0 nothing fails and
    `seen` counts. Calls of several threads are counted together. Raises ValueError for n < 0.
    """

    n: int
    error: int = errno.ENOSPC
    lasting: bool = False
    half: bool = False
    seen: int = 0
    fired: int = 0
    _gate: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError(f"calls are counted from 1, not {self.n}")

    def next(self) -> Verdict:
        """Count one call and say what becomes of it."""
        with self._gate:
            self.seen += 1
            if not self.n or self.seen < self.n:
                return Verdict.CARRY_OUT
            first = self.n + 1 if self.half else self.n
            if self.seen < first:
                self.fired += 1
                return Verdict.HALF
            if self.lasting or self.seen == first:
                self.fired += 1
                return Verdict.FAIL
            return Verdict.CARRY_OUT

    def check(self) -> None:
        """Count one call of a kind that cannot be half done; raises OSError when it is to fail."""
        if self.next() is not Verdict.CARRY_OUT:
            raise self.exception()

    def exception(self) -> OSError:
        """The system's error, of the subclass that Python gives it."""
        return OSError(self.error, os.strerror(self.error))
