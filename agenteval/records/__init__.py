"""The nouns of agenteval: frozen pydantic records without any input or output."""

from agenteval.records.base import Record, canonical_json, content_hash
from agenteval.records.criteria import CriteriaSet, Criterion, Direction, Provenance, Scale, slug
from agenteval.records.run import Message, Run, Span, ToolCall, Usage, View
from agenteval.records.score import (
    CallRecord,
    CellKey,
    Failure,
    FailureStatus,
    Result,
    Score,
    Source,
)
from agenteval.records.task import Example, Examples, Task

__all__ = [
    "CallRecord",
    "CellKey",
    "CriteriaSet",
    "Criterion",
    "Direction",
    "Example",
    "Examples",
    "Failure",
    "FailureStatus",
    "Message",
    "Provenance",
    "Record",
    "Result",
    "Run",
    "Scale",
    "Score",
    "Source",
    "Span",
    "Task",
    "ToolCall",
    "Usage",
    "View",
    "canonical_json",
    "content_hash",
    "slug",
]
