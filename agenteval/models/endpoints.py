"""Several endpoints of one model: which one the next attempt goes to, and which is left out."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agenteval.errors import BadRequest, Redirected, TooLong, Transient, Untrusted
from agenteval.models.ceiling import Ceiling, Slot
from agenteval.models.limits import Limiter

FIRST = 1.0  # seconds that an endpoint is left out after a failure; doubled with each further one
LONGEST = 60.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Place:
    """One of several endpoints: what it bears, what came of it."""

    name: str
    ceiling: Ceiling
    in_flight: int = 0
    answered: int = 0
    failed: int = 0
    in_a_row: int = 0  # how often it was left out since its last answer; 0: it is in
    until: float = 0.0  # when one attempt may find out whether it is back


class Endpoints(Limiter):
    """At most `maximum` attempts in flight over several endpoints, each with a Ceiling of its own.

    The next attempt goes where the smallest share of the limit is in use; among equals to the one
    with the fewest attempts so far. An endpoint that fails (no connection, no answer in time, 5xx,
    a 429 that asks for more than a minute) is left out for 1 s, then 2, 4, up to 60, or as long as
    it asks for; after that one attempt at a time tries it. Any answer brings it back. When none is
    left, all are asked as if each were the only one.
    """

    def __init__(
        self, names: Sequence[str], maximum: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(maximum, clock=clock)  # its own ceiling is the total, and does not move
        self.places = [Place(name, Ceiling(maximum, maximum, clock=clock)) for name in names]
        self._clock = clock

    def _open(self) -> list[Place]:
        places = self.places
        if any(not place.in_a_row for place in places):
            now = self._clock()
            places = [p for p in places if not p.in_a_row or (now >= p.until and not p.in_flight)]
        return [place for place in places if place.in_flight < int(place.ceiling.limit)]

    def _free(self) -> bool:
        return super()._free() and bool(self._open())

    def _admit(self) -> Slot:
        place = min(
            self._open(),
            key=lambda p: (p.in_flight / int(p.ceiling.limit), p.answered + p.failed),
        )
        self.in_flight += 1
        place.in_flight += 1
        slot = place.ceiling.admitted(place.in_flight)
        return slot._replace(place=self.places.index(place))

    def leave(self, slot: Slot) -> None:
        """The attempt is over."""
        self.places[slot.place].in_flight -= 1
        super().leave(slot)

    def answered(self, slot: Slot) -> None:
        """Its endpoint answered this attempt, and is in from now on."""
        place = self.places[slot.place]
        place.answered += 1
        place.in_a_row, place.until = 0, 0.0
        place.ceiling.answered(slot)
        self._wake()

    def overloaded(self, slot: Slot) -> None:
        """Its endpoint said to this attempt that it is too much."""
        self.overloads += 1
        place = self.places[slot.place]
        place.ceiling.refused(slot, place.in_flight - 1)
        self._wake()

    def failed(self, slot: Slot, error: Transient) -> bool:
        """Leave its endpoint out, unless its ceiling is all that was passed. Returns whether
        another one can be asked at once."""
        asked = error.retry_after or 0.0
        if error.overload and asked <= LONGEST:
            return False
        place, now = self.places[slot.place], self._clock()
        place.failed += 1
        if now >= place.until:  # else one more of the attempts that were under way
            place.in_a_row += 1
            pause = max(asked, min(LONGEST, FIRST * 2.0 ** min(place.in_a_row - 1, 10)))
            place.until = now + pause
            asyncio.get_running_loop().call_later(pause, self._wake)
        others = any(not other.in_a_row for other in self.places)
        if others and place.failed == 1:
            _log.warning("%s; it is left out for a while, the other endpoints go on", error)
        return others

    @property
    def told(self) -> str:
        """What came of each, in one line; empty when none was asked."""
        asked = any(p.answered or p.failed for p in self.places)
        each = (
            f"{p.name} answered {p.answered:,}" + (f", failed {p.failed:,}" if p.failed else "")
            for p in self.places
        )
        return f"endpoints: {'; '.join(each)}" if asked else ""


def refuses_all(error: BadRequest, model: str) -> bool:
    """Whether the endpoint will refuse every request like this one: its path is another, it serves
    another model, or its connection cannot be trusted."""
    said = str(error)
    named = re.search(rf"(?<![\w.-]){re.escape(model)}(?![\w.-])", said) and "model" in said.lower()
    alike = isinstance(error, Redirected | Untrusted) or ": HTTP 404 " in said or named
    return bool(alike) and not isinstance(error, TooLong)
