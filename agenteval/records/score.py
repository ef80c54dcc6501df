"""Score and Failure: one judgement, or why it is missing. Source: the judge and its settings."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import Field, JsonValue

from agenteval.records.base import Record, content_hash
from agenteval.records.run import Usage

ScoreStatus = Literal["scored", "not_applicable", "degenerate", "failed_run"]
FailureStatus = Literal[
    "unscored:parse",
    "unscored:missing",
    "unscored:off_scale",
    "unscored:refusal",
    "unscored:unsupported",
    "unscored:too_long",
    "unscored:undecided",
    "no_answer:error",
    "no_answer:timeout",
    "no_answer:cancelled",
    "no_answer:cut_off",
    "error:infrastructure",
    "error:timeout",
    "error:budget",
    "error:judge",
]
INFRASTRUCTURE: frozenset[str] = frozenset(
    {"error:infrastructure", "error:timeout", "error:budget"}
)


class Source(Record):
    """Everything about a judge that can change its answers. Its hash is in the key of every
    result."""

    evaluator: str
    version: int
    model: str
    prompt_sha256: str | None = None
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    seed: int = 0

    @cached_property
    def sha256(self) -> str:
        """Content hash (hex)."""
        return content_hash(self.model_dump())


class CellKey(Record):
    """Key of one result: run and variant, criterion, source and repeat."""

    run: str  # View.sha256
    variant: str = "original"  # or a perturbation with its seed
    criterion: str  # Criterion.sha256
    source: str  # Source.sha256
    repeat: int = Field(ge=0)


class Score(Record):
    """One judgement.

    `value` is in [0, 1] for `scored`, `degenerate` and `failed_run`, and None for `not_applicable`
    and nominal labels. `rung` is the step of the reply ladder that parsed the reply, and `match`
    tells whether the label matched exactly or tolerantly.
    """

    key: CellKey
    criterion_id: str
    status: ScoreStatus = "scored"
    label: str | None = None
    value: float | None = Field(default=None, ge=0, le=1)
    probabilities: dict[str, float] | None = None
    explanation: str | None = None
    evidence: dict[str, JsonValue] = Field(default_factory=dict)
    rung: str | None = None
    match: Literal["exact", "tolerant"] | None = None


class Failure(Record):
    """A judgement that failed. It never has a value."""

    key: CellKey
    criterion_id: str
    status: FailureStatus
    message: str = ""
    rung: str | None = None

    @property
    def retry_on_resume(self) -> bool:
        """Whether a later attempt may succeed (failures of the infrastructure)."""
        return self.status in INFRASTRUCTURE


class CallRecord(Record):
    """One call: the criteria in the order shown, the reply, and the usage."""

    shown: tuple[str, ...] = ()  # criterion ids in the order shown
    replies: tuple[str, ...] = ()  # keys of the stored replies
    raw: str | None = None  # text of the last reply
    rung: str | None = None
    extra: tuple[str, ...] = ()  # names in the reply that were not requested
    attempts: int = 0
    repaired: bool = False
    cache_hit: bool = False
    usage: Usage = Usage()
    latency: float | None = None  # seconds
    model: str | None = None  # the model named in the last reply


Result = Score | Failure
