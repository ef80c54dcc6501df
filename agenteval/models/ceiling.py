"""How many attempts an endpoint takes at once, learned from its answers and its 429s.

The endpoint has a ceiling that nobody tells and that may move. Too few attempts in flight waste
it; each one too many is a 429. TCP has the same problem, and parts of the answer come from there:
the level that last worked is remembered, not halved and climbed again (CUBIC, RFC 9438, section
4); growth above it doubles as long as it succeeds (slow start, RFC 5681, section 3.1), and only
while it is used (RFC 7661); one burst of losses is one message (RFC 5681, section 3.2); and a few
losses among many answers are noise (DCTCP, RFC 8257, reacts to the share of marks, not to each).
Unlike a router, an endpoint tells of a loss at once and keeps what it has accepted, so that the
number still in flight after a burst of 429s is the ceiling itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

NOISE = 1 / 64  # share of 429s that says nothing: stray ones, and a border that is not sharp
TOLERATED = 6.0  # 429s beyond that share until they are a message
TRIAL_NOISE, TRIAL_TOLERATED = 1 / 32, 1.0  # the same of the attempts let in during a trial
AT_ONCE = 4  # a 429 to one of the first so many let in after a fall says that it was not enough
SHRINK = 0.85  # then; gentler than CUBIC's 0.7, since the level is not climbed to again but tried
TRIAL = 32  # answers above the level (one round, when that is less) that prove a higher one
SOON, SELDOM = 16, 1024  # answers between two trials: after one failure, after many
LONG_ENOUGH = (96, 10.0)  # answers and seconds after which a trial is due, failures or not
STEP = 0.25  # longest step of a trial, as a part of the level, once the endpoint has shown a limit


class Slot(NamedTuple):
    """What an attempt carries: its number in order of admission, and how many were in flight."""

    serial: int
    rank: int  # itself counted


class Ceiling:
    """Moves `limit`, how many attempts may be in flight, between 1 and `maximum`.

    `level` is the highest limit known to work.

    - A 429 says that those still in flight are enough: the limit falls to their number at once. A
      burst of 429s so ends at what the endpoint has accepted, and costs no more than what was
      under way already.
    - While 429s stay few (NOISE), the level stands and the limit returns to it within a round.
    - More than that is a message: the level falls with the limit, and by SHRINK as long as the
      first attempts let in after a fall are refused again.
    - At the level, one more attempt is let in from time to time (a trial). When a round of such
      attempts is answered the level rises, and the next trial, twice as large, begins at once; its
      slots open one by one as answers come. When it is refused, the limit goes back to what is
      carried, and the next trial waits four times as long.

    Attempts below the level prove nothing, so the limit does not grow while there is not enough
    to do. Raises ValueError for a limit below 1.
    """

    def __init__(
        self, maximum: int, start: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if maximum < 1 or start < 1:
            raise ValueError("concurrency must be at least 1")
        self.maximum = maximum
        self.limit = self.level = self._target = float(min(maximum, start))
        self._serial = 0  # of the attempt let in last
        self._moved_at = 0  # the same, when the limit fell or a trial began
        self._debt = 0.0  # 429s above the noise: at the level, or in the trial
        self._strays = False  # a 429 at the level was no message
        self._falling = False  # nobody let in since the limit fell has been answered
        self._clean = 0  # answers that count for what is awaited: the next trial, or its success
        self._patience = 0
        self._step = 1
        self._longest = 1.0
        self._clock = clock
        self._since = clock()

    def admitted(self, in_flight: int) -> Slot:
        """An attempt was let in, and is one of `in_flight`."""
        self._serial += 1
        if self.limit > self.level:
            self._debt = max(0.0, self._debt - TRIAL_NOISE)
        return Slot(self._serial, in_flight)

    def answered(self, slot: Slot) -> None:
        """An attempt was answered."""
        fresh = slot.serial > self._moved_at
        self._falling = self._falling and not fresh
        if self.limit > self.level:
            self.limit = min(self._target, self.limit + 1)
            self._clean += fresh and slot.rank > self.level
            if self._clean >= min(self.limit, TRIAL):
                self._succeeded(slot.rank)
            return
        self._debt = max(0.0, self._debt - NOISE)
        if self.limit < self.level:
            self.limit = min(self.level, self.limit + 1 / min(self.limit, SOON))
        elif self.limit < self.maximum:
            self._clean += 1
            self._try_more()

    def refused(self, slot: Slot, others: int) -> None:
        """An attempt was turned away with 429; `others` are in flight without it."""
        fresh = slot.serial > self._moved_at
        if self.limit > self.level:
            self._refused_in_trial(fresh, others)
        elif fresh or others < self.limit:
            self._debt += 1
            self._falling = self._falling and slot.serial <= self._moved_at + AT_ONCE
            self._fall(SHRINK * self.limit if fresh and self._falling else others)
            self._strays = True
            if self._debt > TOLERATED or self._falling:
                if not self._falling:
                    self._failed()
                self.level, self._strays, self._falling = self.limit, False, True

    def _refused_in_trial(self, fresh: bool, others: int) -> None:
        self._debt += fresh
        tolerated = TRIAL_TOLERATED if self._strays or self._step > 1 else 0.0
        if fresh and self._debt <= tolerated:
            return
        self._fall(max(self.level, self.level if fresh and self._falling else others))
        self._target, self._falling = self.limit, True
        if self.limit <= self.level:
            self._failed()

    def _fall(self, to: float) -> None:
        if to < self.limit:
            self.limit = max(1.0, to)
            self._moved_at = self._serial
            self._clean = 0

    def _succeeded(self, proven: int) -> None:
        found = self._target < self.level + self._step  # 429s have brought it down to this
        tried, self.limit, self.level = self.limit, float(proven), float(proven)
        if found:
            self._failed()
            return
        self._patience //= 4
        self._step = max(1, min(2 * self._step, int(self._longest * self.level)))
        self._count_anew()
        self._try(tried)

    def _failed(self) -> None:
        self._patience = min(max(SOON, 4 * self._patience), SELDOM)
        self._longest, self._step = STEP, 1
        self._count_anew()

    def _count_anew(self) -> None:
        self._debt, self._clean, self._since = 0.0, 0, self._clock()

    def _try_more(self) -> None:
        answers, seconds = LONG_ENOUGH
        due = self._clean >= self._patience or (
            self._clean >= answers and self._clock() - self._since >= seconds
        )
        if due:
            self._try(self.limit)

    def _try(self, tried: float) -> None:
        if self.limit < self.maximum:
            self._target = min(float(self.maximum), self.level + self._step)
            self._step = int(self._target - self.level)
            self.limit = min(max(self.level + 1, tried), self._target)
            self._moved_at, self._falling = self._serial, False
            self._debt, self._clean = 0.0, 0
