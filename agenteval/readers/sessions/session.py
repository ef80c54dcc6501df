"""Session: an agent's recorded steps, converted to spans and a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue

from agenteval.readers.chat_forms import first_of, to_messages
from agenteval.readers.fields import plain_text
from agenteval.readers.messages import Parts, is_answer
from agenteval.readers.source_files import RunDefaults
from agenteval.readers.span_usage import amount, token_count
from agenteval.readers.strict_json import decode_arguments
from agenteval.records import Message, Run, RunFailure, Span, ToolCall, Usage
from agenteval.records.run import Role


@dataclass
class SessionStep:
    """One message of a session; for an assistant, the reply to one request.

    `thread` names the subagent of the step, if any. `result_of` is the id of the call that a tool
    message answers, `failed` whether the call failed.
    """

    role: Role
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    at: float | None = None
    name: str | None = None
    id: str | None = None
    thread: str = ""
    model: str | None = None
    usage: Usage | None = None
    finish: str | None = None
    result_of: str | None = None
    failed: bool = False

    def message(self) -> Message:
        """Return the step as a message."""
        return Message(
            role=self.role,
            content=self.text,
            name=self.name,
            tool_calls=tuple(self.calls),
            tool_call_id=self.result_of,
        )


@dataclass
class Session:
    """A recorded session.

    `usage` is for the whole session if steps do not state theirs. `output` is the result stated by
    the tool (None: the last answer). `ended` is the tool's description of how it ended, and
    `failure` the reason for a missing answer.
    """

    id: str | None = None
    agent: str = ""
    model: str = ""
    steps: list[SessionStep] = field(default_factory=list)
    task: str | None = None
    output: str | None = None
    ended: str = ""
    usage: Usage | None = None
    success: bool | None = None
    reference: str | None = None
    failure: RunFailure | None = None
    metadata: dict[str, JsonValue] = field(default_factory=dict)

    def add(
        self, message: dict[str, Any], role: str = "assistant", **facts: Any
    ) -> list[SessionStep]:
        """Add the steps of a message in any provider's format: results first, then text."""
        steps: list[SessionStep] = []
        for row in to_messages(message, role):
            parts, content = Parts(), row.get("content")
            parts.add(content)
            calls = parts.calls + [_call(call) for call in row.get("tool_calls") or ()]
            blocks = content if isinstance(content, list) else ()
            failed = [
                first_of(block, "tool_use_id", "id")
                for block in blocks
                if isinstance(block, dict) and block.get("is_error")
            ]
            for result in parts.results:
                step = SessionStep("tool", result.content, result_of=result.tool_call_id, **facts)
                step.failed = step.result_of in failed
                steps.append(step)
            if parts.text or calls or not parts.results:
                step = SessionStep(row["role"], parts.text, calls, **facts)
                step.name = row["name"] if isinstance(row.get("name"), str) else None
                step.result_of = row.get("tool_call_id") if step.role == "tool" else None
                steps.append(step)
        self.steps += steps
        return steps

    def result(self, call: str | None, value: Any, *, failed: bool = False, **facts: Any) -> None:
        """Add the result of a tool."""
        parts = Parts()
        for row in to_messages(value, "tool") if isinstance(value, list) else ():
            parts.add(row.get("content"))
        texts = [*filter(None, [parts.text]), *(result.content for result in parts.results)]
        text = "\n".join(texts) if isinstance(value, list) else plain_text(value)
        self.steps.append(SessionStep("tool", text, result_of=call, failed=failed, **facts))

    def fail(self, message: Any) -> None:
        """Set the reason why the session has no answer."""
        self.failure = RunFailure(kind="error", message=str(message)[:300])


def _call(value: dict[str, Any]) -> ToolCall:
    function = value.get("function")
    inner = function if isinstance(function, dict) else value
    name = function if isinstance(function, str) else inner.get("name")
    return tool_call(name, inner.get("arguments", inner.get("args")), value.get("id"))


def tool_call(name: Any, arguments: Any, id: Any = None) -> ToolCall:
    """Return a call, with arguments decoded from JSON."""
    if isinstance(arguments, str):
        arguments = decode_arguments(arguments)
    return ToolCall(name=str(name or ""), arguments=arguments, id=None if id is None else str(id))


def total_of(counts: Any, names: Sequence[str]) -> int | None:
    """Return the sum of the counts in a mapping, or None if it has none of them."""
    stated = [token_count(first_of(counts, name)) for name in names]
    numbers = [count for count in stated if count is not None]
    return sum(numbers) if numbers else None


def usage_of(prompt: Any, completion: Any, cost: Any = None, requests: Any = 1) -> Usage | None:
    """Return usage from a tool's raw figures, or None if none of them is valid."""
    tokens, written, money = token_count(prompt), token_count(completion), amount(cost)
    if (tokens, written, money) == (None, None, None):
        return None
    requests = token_count(requests) or 1
    return Usage(requests=requests, prompt_tokens=tokens, completion_tokens=written, cost=money)


def usage_in(
    counts: Any,
    prompt: str = "prompt_tokens",
    completion: str = "completion_tokens",
    *,
    cost: Any = None,
    requests: Any = 1,
) -> Usage | None:
    """Return usage from a mapping with tokens under these names."""
    return usage_of(first_of(counts, prompt), first_of(counts, completion), cost, requests)


def to_spans(session: Session) -> tuple[Span, ...]:
    """Return the spans of a session: the agent, and below it its model calls, tools and users.

    `messages` of a model call are those since the previous call. The span of a tool has the call's
    arguments and result. A subagent is a span around its steps.
    """
    times = [step.at for step in session.steps if step.at is not None]
    root = Span(
        id="agent",
        name=session.agent or "session",
        kind="agent",
        start=min(times, default=None),
        end=max(times, default=None),
        status="unset" if session.failure is None else "error",
        status_message="" if session.failure is None else session.failure.message,
        input=_task(session),
        output=_ending(session),
        usage=session.usage,
    )
    spans, threads, ids = [root], {"": root.id}, {root.id}
    pending: dict[str, list[Message]] = {}  # messages for the next model call, by thread
    open_calls: dict[str | None, int] = {}  # positions of their spans
    before = root.start
    for number, step in enumerate(session.steps, start=1):
        if step.thread not in threads:
            threads[step.thread] = f"agent-{len(threads)}"
            facts: dict[str, Any] = {"id": threads[step.thread], "parent_id": root.id}
            spans.append(Span(name=step.thread, kind="agent", start=step.at, **facts))
        parent, sent = threads[step.thread], pending.setdefault(step.thread, [])
        id = step.id if step.id and step.id not in ids else f"step-{number}"
        ids.add(id)
        if step.role == "assistant":
            spans.append(_model_call(session, step, id, parent, tuple(sent), before))
            sent.clear()
        elif step.role == "tool" and (at := _call_of(step, open_calls)) is not None:
            ended = {"output": step.text, "end": step.at or spans[at].end, **_error(step)}
            spans[at] = spans[at].model_copy(update=ended)
            sent.append(step.message())
        else:
            if step.role != "system" and (step.text or not step.calls):
                facts = {"id": id, "parent_id": parent, "kind": step.role, **_error(step)}
                facts |= {"start": step.at, "end": step.at, "output": step.text}
                spans.append(Span(name=step.name or step.role, **facts))
            sent.append(step.message())
        for i, call in enumerate(step.calls, start=1):  # in tau2-bench, users call tools too
            open_calls[call.id or f"{step.thread}:{call.name}"] = len(spans)
            spans.append(
                Span(
                    id=f"{id}.{i}",
                    parent_id=parent,
                    name=call.name,
                    kind="tool",
                    tool=call.name,
                    start=step.at,
                    end=step.at,
                    input=plain_text(call.arguments),
                )
            )
        before = step.at if step.at is not None else before
    return tuple(spans)


def _model_call(
    session: Session,
    step: SessionStep,
    id: str,
    parent: str,
    sent: tuple[Message, ...],
    before: float | None,
) -> Span:
    model = step.model or session.model or None
    return Span(
        id=id,
        parent_id=parent,
        name=step.name or model or "model",
        kind="llm",
        start=step.at if step.at is None or before is None else min(step.at, before),
        end=step.at,
        messages=sent,
        reply=(step.message(),),
        model=model,
        usage=step.usage,
        finish=step.finish,
    )


def _error(step: SessionStep) -> dict[str, Any]:
    return {"status": "error", "status_message": step.text} if step.failed else {}


def _call_of(step: SessionStep, open_calls: dict[str | None, int]) -> int | None:
    """Pop the position of the call that a step answers: by id, by tool, else the oldest."""
    for key in (step.result_of, f"{step.thread}:{step.name}"):
        if key in open_calls:
            return open_calls.pop(key)
    oldest = next(iter(open_calls), None)
    return open_calls.pop(oldest) if open_calls and step.result_of is None else None


def _task(session: Session) -> str:
    if session.task is not None:
        return session.task
    return next((s.text for s in session.steps if s.role == "user" and s.text.strip()), "")


def _ending(session: Session) -> str:
    if session.output is not None:
        return session.output
    main = (s for s in reversed(session.steps) if s.role == "assistant" and not s.thread)
    return next((step.text for step in main if is_answer(step.text)), "")


def to_run(session: Session, format_name: str, defaults: RunDefaults) -> Run:
    """Return the run of a session."""
    model = session.model or next((s.model for s in session.steps if s.model), "")
    names = dict.fromkeys(filter(None, (session.agent, model)))
    facts = {"recorded_as": format_name, "ended": session.ended}
    return Run(
        id=session.id or defaults.id,
        task=defaults.task,
        system=" ".join(names)[:200] or defaults.system or "unnamed",
        input=_task(session),
        output=_ending(session),
        messages=tuple(step.message() for step in session.steps if not step.thread),
        success=session.success,
        reference=session.reference,
        spans=to_spans(replace(session, model=model)),
        metadata={k: v for k, v in (facts | session.metadata).items() if v not in (None, "", {})},
        failure=session.failure,
    )
