"""How the published session script of arXiv 2406.14884 reads its judge's verdict on the goals."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_TOTAL = re.compile(r"Total number of goals: (\d+)")
_DONE = re.compile(r"Number of accomplished goals: (\d+)")


@dataclass(frozen=True, slots=True)
class ReferenceGoals:
    """What is read from the judge's reply."""

    success: Literal["0", "1"]
    progress: float


def read_goals(reply: str) -> ReferenceGoals:
    """Success and progress from the last of the judge's replies.

    Success only if the first line is "Result: yes" to the letter: a reply that copies the
    indentation of the template shown to the judge fails. 0 where a number is missing.
    """
    total, done = _TOTAL.search(reply), _DONE.search(reply)
    progress = 0.0
    if total is not None and done is not None and int(total.group(1)):
        progress = int(done.group(1)) / int(total.group(1))
    return ReferenceGoals("1" if reply.split("\n")[0] == "Result: yes" else "0", progress)
