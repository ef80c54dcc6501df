"""How a locator asks, and what asking will take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from pydantic import JsonValue

from agenteval.errors import InputError

Mode = Literal["broad", "areas"]


@dataclass(frozen=True)
class LocatorOptions:
    """How a model is asked. All of it is part of the source of every finding.

    Raises InputError for values that cannot work.
    """

    mode: Mode = "broad"  # one question over all kinds of errors, or one for each area
    context: int = 8192  # tokens of prompt and reply together
    reply_tokens: int = 1536
    repeats: int = 1
    min_votes: int = 1  # of the repeats: findings named less often are left out
    overlap: int = 1  # spans shown again at the start of the next part, where they fit
    temperature: float | None = 1.0  # None leaves it to the endpoint
    seed: int = 0
    summary: bool = True  # carried from part to part; without it parts are asked at the same time
    summary_tokens: int = 300
    task_tokens: int = 400
    longest: int = 4  # windows that one span may fill; of more, the middle is left out, visibly
    grades: bool = True
    repair: bool = True
    unverified: Literal["reject", "keep"] = "reject"  # findings whose quote is not in the span
    add_hints: bool = True  # the findings of rules stand among the findings
    same: float | None = 90.0  # likeness (to 100) from which two errors of a kind are one, again
    give_up: int = 3  # parts that fail in a row, for other reasons than their reply

    def __post_init__(self) -> None:
        at_least = {
            "context": 512, "reply_tokens": 64, "repeats": 1, "min_votes": 1, "overlap": 0,
            "summary_tokens": 16, "task_tokens": 16, "longest": 1, "give_up": 1,
        }  # fmt: skip
        for name, least in at_least.items():
            if getattr(self, name) < least:
                raise InputError(f"must be at least {least}", name)
        if self.min_votes > self.repeats:
            raise InputError(f"{self.min_votes} of {self.repeats} repeats cannot be", "min_votes")
        if self.same is not None and not 0 <= self.same <= 100:
            raise InputError("must lie between 0 and 100", "same")

    def parameters(self) -> dict[str, JsonValue]:
        """Everything but the seed, for a Source."""
        return {k: v for k, v in asdict(self).items() if k != "seed"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What reading a trace takes when nothing has to be asked twice.

    `prompt_tokens` is estimated (UTF-8 bytes / 3) with summaries of full length, `reply_tokens`
    the most that the replies may have. `parts` is the number of parts for each question.
    """

    requests: int
    prompt_tokens: int
    reply_tokens: int
    parts: tuple[int, ...]
