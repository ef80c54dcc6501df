"""The data model of agenteval: frozen pydantic records that do no input or output."""

from agenteval.records.base import Record, canonical_json, content_hash
from agenteval.records.criteria import (
    RUBRIC,
    CriteriaSet,
    Criterion,
    Direction,
    Provenance,
    Scale,
    slug,
)
from agenteval.records.finding import GRADES, Finding, Findings, Grade, Impact, Rejected
from agenteval.records.run import (
    Message,
    Run,
    RunFailure,
    Span,
    SpanEvent,
    ToolCall,
    ToolSpec,
    Usage,
    View,
)
from agenteval.records.score import (
    CallRecord,
    CellKey,
    Failure,
    FailureStatus,
    Result,
    Score,
    ScoreStatus,
    Source,
)
from agenteval.records.task import Example, Examples, Task

__all__ = [
    "GRADES",
    "RUBRIC",
    "CallRecord",
    "CellKey",
    "CriteriaSet",
    "Criterion",
    "Direction",
    "Example",
    "Examples",
    "Failure",
    "FailureStatus",
    "Finding",
    "Findings",
    "Grade",
    "Impact",
    "Message",
    "Provenance",
    "Record",
    "Rejected",
    "Result",
    "Run",
    "RunFailure",
    "Scale",
    "Score",
    "ScoreStatus",
    "Source",
    "Span",
    "SpanEvent",
    "Task",
    "ToolCall",
    "ToolSpec",
    "Usage",
    "View",
    "canonical_json",
    "content_hash",
    "slug",
]
