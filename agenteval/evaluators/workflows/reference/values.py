"""How the published scorer compares values, and how it asks its judge."""

from __future__ import annotations

import string
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

TRIES = 10
_DELETED = str.maketrans("", "", string.punctuation + string.whitespace)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the judge is asked: two texts; `api` is the toolbox's block on the tool predicted."""

    api: str
    parameter: str
    gold: str
    given: str


# The text of the judge's reply.
Judge = Callable[[Asked], Awaitable[str]]


async def texts_equal(asked: Asked, judge: Judge) -> bool:
    """Equal without punctuation and blanks, or gold within the other, or the judge says so.

    "2" is within "12" and "am" within "tampa"; the other way round the judge is asked.
    """
    return by_substring(asked.gold, asked.given) or await _judged(asked, judge)


def by_substring(gold: str, given: str) -> bool:
    """Whether gold is equal to, or part of, what was given; case counts."""
    return gold.strip().translate(_DELETED) in given.strip().translate(_DELETED)


async def _judged(asked: Asked, judge: Judge) -> bool:
    """ "no" anywhere in the reply is no, also in "I do not know"; ten tries for either word."""
    for _ in range(TRIES):
        reply = (await judge(asked)).lower()
        if "no" in reply:
            return False
        if "yes" in reply:
            return True
    return False


def without_empty(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments but for "" and []."""
    return {key: value for key, value in arguments.items() if value not in ("", [])}


def same_type(gold: Any, given: Any) -> bool:
    """Identical Python types: 2 is not 2.0, and 1 is not true."""
    return type(gold) is type(given)
