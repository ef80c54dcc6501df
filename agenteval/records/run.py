"""Run: one execution of one system on one input, with its messages, spans and usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, field_validator

from agenteval.records.base import FAIL_FAST, Record, content_hash
from agenteval.records.criteria import Criterion
from agenteval.text import plural

Role = Literal["system", "user", "assistant", "tool"]
SpanKind = Literal["agent", "llm", "tool", "chain", "user"]


class Usage(Record):
    """Tokens and cost of one or more requests; None if the endpoint did not report them."""

    requests: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None  # in the currency of the configured prices

    def __add__(self, other: Usage) -> Usage:
        def add(a: Any, b: Any) -> Any:
            return b if a is None else a if b is None else a + b

        return Usage(
            requests=self.requests + other.requests,
            prompt_tokens=add(self.prompt_tokens, other.prompt_tokens),
            completion_tokens=add(self.completion_tokens, other.completion_tokens),
            cost=add(self.cost, other.cost),
        )


class ToolCall(Record):
    """A call requested by an agent. `arguments` is the raw text if it was not valid JSON."""

    name: str
    arguments: JsonValue = None
    id: str | None = None


class Message(Record):
    """One turn of a conversation."""

    role: Role
    content: str = ""
    name: str | None = None
    tool_calls: Annotated[tuple[ToolCall, ...], FAIL_FAST] = ()
    tool_call_id: str | None = None


class ToolSpec(Record):
    """A tool as offered to a model; `parameters` is a JSON schema, or None if unknown."""

    name: str
    description: str = ""
    parameters: dict[str, JsonValue] | None = None


class SpanEvent(Record):
    """An event within a span, such as an exception; `at` is seconds since 1970."""

    name: str
    at: float | None = None
    attributes: dict[str, JsonValue] = Field(default_factory=dict)


class Span(Record):
    """One node of a run's trace; times are seconds since the epoch.

    Values that differ between tracing conventions are normalized: `input` and `output` as text; for
    an LLM span `messages` (sent), `reply` (received), `tools` (offered), `model`, `usage`, `finish`
    (finish reason) and `limit` (requested maximum tokens); `tool` is the name of the tool that a
    tool span ran. `attributes` has everything else under the names in the trace. Spans may share
    Messages.
    """

    id: str
    parent_id: str | None = None
    name: str = ""
    kind: SpanKind = "chain"
    start: float | None = None
    end: float | None = None
    status: Literal["ok", "error", "unset"] = "unset"
    status_message: str = ""
    input: str = ""
    output: str = ""
    messages: Annotated[tuple[Message, ...], FAIL_FAST] = ()
    reply: Annotated[tuple[Message, ...], FAIL_FAST] = ()
    tools: Annotated[tuple[ToolSpec, ...], FAIL_FAST] = ()
    tool: str | None = None
    model: str | None = None
    usage: Usage | None = None
    finish: str | None = None
    limit: int | None = None
    events: Annotated[tuple[SpanEvent, ...], FAIL_FAST] = ()
    attributes: dict[str, JsonValue] = Field(default_factory=dict)


class RunFailure(Record):
    """Why a run has no answer: its system failed, or its table row is cut off."""

    kind: Literal["error", "timeout", "cancelled", "cut_off"]
    message: str = ""


def no_answers(runs_by_kind: Mapping[str, Sequence[str]]) -> str:
    """Return a text such as "3 runs have no answer: 2 errors, 1 cut-off row", or ""."""
    nouns = {"cancelled": "cancelled run", "cut_off": "cut-off row"}
    kinds = [plural(len(runs), nouns.get(k, k)) for k, runs in sorted(runs_by_kind.items())]
    total = sum(map(len, runs_by_kind.values()))
    have = "has" if total == 1 else "have"
    return f"{plural(total, 'run')} {have} no answer: {', '.join(kinds)}" if kinds else ""


class Run(Record):
    """One execution of a system on one input.

    A run with a `failure` has no answer and is not judged. `success` and `reference` are gold
    labels, hidden from judges by default. `input` defines the case: runs of several systems on the
    same input are compared in pairs. `rubric` has criteria for this run only, used alone or with
    those of its task.
    """

    id: str = Field(min_length=1)
    task: str = ""
    system: str = "unnamed"
    input: str = ""
    output: str = ""
    messages: Annotated[tuple[Message, ...], FAIL_FAST] = ()
    success: bool | None = None
    reference: str | None = None
    spans: Annotated[tuple[Span, ...], FAIL_FAST] = ()
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    failure: RunFailure | None = Field(default=None, exclude_if=lambda value: value is None)
    rubric: Criterion | None = Field(default=None, exclude_if=lambda value: value is None)

    @field_validator("id")
    @classmethod
    def _printable(cls, value: str) -> str:
        if any(ord(c) < 32 or ord(c) == 127 for c in value):
            raise ValueError("a run id must not contain control characters")
        return value


class View(Record):
    """Everything that a judge sees of a run.

    `problem` is the input, `trajectory` the rendered work of the system, and `reference` is set
    only if the user chose to show it. `computed_from` is the hash of the reference if criteria are
    computed from it. Three fields are not shown to judges: `origin`, the sha256 of the view that a
    perturbation changed into this one; `owner`, the task and system of the run; and `failed_as`,
    how the run counts if its system failed. `sha256` identifies the run: it covers task, system,
    run id and everything shown. A source never judges the same view twice.
    """

    run_id: str
    problem: str
    trajectory: str
    reference: str | None = None
    origin: str | None = None
    computed_from: str | None = Field(default=None, exclude_if=lambda value: value is None)
    owner: tuple[str, str] | None = None
    failed_as: Literal["missing", "worst"] | None = Field(
        default=None, exclude_if=lambda value: value is None
    )

    @property
    def text_sha256(self) -> str:
        """Content hash (hex) of the run id, everything shown, and the reference computed from."""
        return content_hash(self.model_dump(exclude={"origin", "owner"}))

    @cached_property
    def sha256(self) -> str:
        """Content hash (hex) of `text_sha256` and the owner; without an owner, `text_sha256`."""
        text = self.text_sha256
        return text if self.owner is None else content_hash([text, *self.owner])
