"""What the test of a role says by hand, for the checks that all roles share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import JsonValue

State = Mapping[str, Any]
Step = tuple[str, tuple[JsonValue, ...]]  # a tool, and its arguments in their order


@dataclass(frozen=True)
class Told:
    """What agents tell for a fact: sums, times, numbers of bookings.

    `pattern` finds it in a reply (its first group that matched, or all of it). It must have been
    returned or said before, or be one of `known`, which stand in the procedure. `sums` is what an
    agent adds up once a result holds the key. At least `least` are told in all sessions together.
    """

    pattern: str
    known: frozenset[str] = frozenset()
    sums: Mapping[str, str] = field(default_factory=dict)
    least: int = 1


def _nothing(before: State, after: State) -> None:
    """No rule about what any calls keep."""


@dataclass(frozen=True)
class ByHand:
    """`aliases` and `from_results` are for the check of arguments (see `Spoken`): phrases that
    stand for a value, and parameters whose value the agent may take from an earlier result.

    `weekdays` is how many days at least are named with their weekday.
    All orders of `steps` are tried, and of the goals of all users but those of `follow`, whose
    goals need what an earlier one made. `refused` are calls with what their refusal says. `values`
    of parameters are tried in any calls, and `keeps` asserts what holds after these. What 2.0 does
    where 2 is meant is the same to the letter, or of equal value, or unchecked (`numbers`).
    """

    told: Told
    refused: Sequence[tuple[str, str, tuple[JsonValue, ...]]]
    steps: Sequence[Step]
    values: Mapping[str, Sequence[JsonValue]]
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    from_results: frozenset[str] = frozenset()
    weekdays: int = 0
    follow: frozenset[str] = frozenset()
    numbers: Literal["same", "equal", "unchecked"] = "same"
    keeps: Callable[[State, State], None] = _nothing
