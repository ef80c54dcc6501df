"""Finding: one located error in a run. Findings: the findings of one finder on one run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from agenteval.records.base import Record
from agenteval.records.score import FailureStatus

Impact = Literal["HIGH", "MEDIUM", "LOW"]
GRADES = ("reliability", "security", "instruction_adherence", "plan_opt")


class Finding(Record):
    """One error: its location, category and evidence.

    `span` is the id of a span of the run, and `category` a leaf of a taxonomy. `evidence` is quoted
    from the span. `confidence` is in [0, 1]. `source` names the finder, such as
    "detector:failed-code" or "locator".
    """

    span: str
    category: str
    evidence: str = ""
    description: str = ""
    impact: Impact | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    source: str = ""


class Grade(Record):
    """A score of the whole run on a scale of 1 to 5, with the reason given."""

    value: float | None = None
    reason: str = ""


class Rejected(Record):
    """A rejected entry of a finder, for example because its span does not exist."""

    why: str
    said: JsonValue = None


class Findings(Record):
    """Findings of one finder on one run.

    `grades` has the names in GRADES and "overall" as keys. `status` is None if the finder completed
    (with or without findings), else the reason for missing findings.
    """

    trace: str
    findings: tuple[Finding, ...] = ()
    grades: dict[str, Grade] = Field(default_factory=dict)
    rejected: tuple[Rejected, ...] = ()
    status: FailureStatus | None = None
    message: str = ""
