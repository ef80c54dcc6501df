"""How many attempts an endpoint takes at once, learned from its answers and its 429s.

The endpoint has an unknown ceiling that may change; each attempt too many is a 429, and
a few 429s have nothing to do with load. One idea: 429s are bought. Every answer earns SHARE of a
429; to try one attempt more costs what is refused, so trials are as rare as they are dear. The
rest comes from TCP: slow start (RFC 5681, section 3.1: one slot more for each answer, which
doubles the number each round trip), only while the limit is used (RFC 7661); above a limit that
was refused before, growth begins slowly and accelerates (the shape of CUBIC, RFC 9438, section
4.2, here in answers instead of seconds); attempts know their epoch, so that one burst is one
message. Unlike a router, an endpoint tells of a loss at once and keeps what it has accepted: the
number in flight after a burst is the ceiling itself, and nothing has to be halved.

What the tests show in virtual time under the thorough profile, from a start of 8: with ceilings of
5 to 500 and latencies of 0.05 to 3 s at least 80% of the ceiling is used and at most 2% of the
requests are refused after 10 s, or after eight round trips when these take longer; with up to 1%
of 429s that load did not cause where latencies are exponential, up to 0.1% where all are equal.
The same 20 s after the ceiling rose or fell tenfold, for exponential latencies up to 1 s. Not so
with 500 at 3 s when all latencies are equal: six round trips double to it, and the last, at one
instant, may overshoot by half. Trials cost about one 429 in 60 answers, so that with few requests
each second they are rare: a ceiling of 5 at 3 s that rises is found after a minute, and so is any
limit after everything was refused for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

SHARE = 1 / 60  # of a 429 that an answer earns: strays and trials together stay below 2%
LOW = 4  # a limit below it earns as much in a round trip as LOW would: else an outage lasts
SAVED = 2.0  # 429s that can be saved up, beside what one round trip earns; enough for a trial
OWED = -2.0  # the deepest debt: a burst does not put off the next trial for ever
CLOSE = 2  # 429s of attempts so near to one another are no accident
PAUSE = 4.0  # seconds without a trial after the limit fell; many a quick endpoint sees few trials
ROUND = 32  # attempts after the one that proves a trial (one round trip, when that is fewer)
SPEED = 2.0  # what was gained grows about e^SPEED times a round trip, until slots double in it
SHRINK = 0.93  # the fall of a limit that once worked; so many slots too few are soon regained


class Slot(NamedTuple):
    """The admission of an attempt: its sequence number, and the number of requests in flight."""

    serial: int
    rank: int  # itself counted


class Ceiling:
    """Moves `limit`, how many attempts may be in flight, between 1 and `maximum`.

    `base` is where the limit last fell to; above it the limit is being searched.

    - At the base, when a 429 is earned, one attempt more is let in: a trial. It has succeeded when
      an attempt is answered that was let in a round trip (ROUND) later; growth begins, slowly at
      first, then by one slot for each answer.
    - A lone 429 (no other CLOSE by) is paid for and changes nothing.
    - 429s CLOSE to one another end a search: base and limit are now what is in flight. At the base
      they lower it only when no 429 is saved any more, and by SHRINK at least; the 429 that comes
      right after a fall counts as close.
    - A 429 of an attempt let in before the limit fell is part of the same burst: the limit goes
      down to what is in flight, and nothing is paid.

    Attempts while less than half of the limit is used prove nothing. Raises ValueError for a limit
    below 1.
    """

    def __init__(
        self, maximum: int, start: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if maximum < 1 or start < 1:
            raise ValueError("concurrency must be at least 1")
        self.maximum = maximum
        self.limit = float(min(maximum, start))
        self.base = 0.0  # nothing was refused yet
        self._saved = SAVED
        self._serial = 0  # of the attempt let in last
        self._epoch = 0  # the same, when the limit fell or a trial began
        self._marked = -CLOSE  # the attempt refused last, or the epoch
        self._clock = clock
        self._since = clock()  # the epoch's time

    def admitted(self, in_flight: int) -> Slot:
        """An attempt was let in, and is one of `in_flight`."""
        self._serial += 1
        return Slot(self._serial, in_flight)

    def answered(self, slot: Slot) -> None:
        """An attempt was answered."""
        most = SAVED + SHARE * self.limit
        self._saved = min(most, self._saved + SHARE * max(1.0, LOW / self.limit))
        age = slot.serial - self._epoch
        if age <= 0 or 2 * slot.rank < self.limit:
            return
        gained = self.limit - self.base
        if self.base == 0 or gained > 1 or (gained == 1 and age > min(self.limit, ROUND)):
            step = min(1.0, SPEED * gained / self.limit)
            self.limit = min(float(self.maximum), self.limit + step)
        elif gained == 0 and self.limit < self.maximum and self._may_try():
            self._begin(self.base, self.limit + 1)

    def refused(self, slot: Slot, others: int) -> None:
        """An attempt was turned away with 429; `others` are in flight without it."""
        carried = max(1.0, min(self.limit, float(others)))
        if slot.serial <= self._epoch:
            if carried < self.limit:
                self.base = self.limit = carried
            return
        paid, self._saved = self._saved >= 1, max(OWED, self._saved - 1)
        lone = slot.serial - self._marked > CLOSE
        self._marked = slot.serial
        if lone:
            return
        if self.limit > self.base:
            self._begin(float(int(carried)), float(int(carried)))
        elif not paid:
            lower = max(1.0, float(int(min(carried, SHRINK * self.limit))))
            self._begin(lower, lower)

    def _may_try(self) -> bool:
        return self._saved >= SAVED and self._clock() - self._since >= PAUSE

    def _begin(self, base: float, limit: float) -> None:
        self.base, self.limit = base, limit
        self._epoch = self._marked = self._serial
        self._since = self._clock()
