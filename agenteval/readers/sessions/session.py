"""Session: what a tool recorded of an agent, step by step, and its spans and its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue

from agenteval.readers.chat_forms import first_of, to_messages
from agenteval.readers.fields import plain_text
from agenteval.readers.messages import Parts, is_answer
from agenteval.readers.span_usage import amount, token_count
from agenteval.readers.strict_json import decode_arguments
from agenteval.records import Message, Run, RunFailure, Span, ToolCall, Usage
from agenteval.records.run import Role

_AGENT = "agent"  # id of the outermost span


@dataclass
class SessionStep:
    """One message of a session; of an assistant the reply to one request.

    `thread` names the agent below the main one that the step belongs to. `result_of` is the id of
    the call that a tool message answers, `failed` whether the call failed.
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
        calls, answers = tuple(self.calls), self.result_of
        return Message(
            role=self.role,
            content=self.text,
            name=self.name,
            tool_calls=calls,
            tool_call_id=answers,
        )


@dataclass
class Session:
    """A recorded session.

    `usage` is that of the whole session if steps do not state theirs. `output` is the result stated
    by the tool (None: the last answer). `ended` is the tool's description of how it ended, and
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
        """Add the steps of a message in any provider's form: results first, then its words."""
        steps: list[SessionStep] = []
        for row in to_messages(message, role):
            parts, words = Parts(), row.get("content")
            parts.add(words)
            calls = parts.calls + [_call(call) for call in row.get("tool_calls") or ()]
            failed = _failed(words)
            for result in parts.results:
                answer = SessionStep("tool", result.content, **facts)
                answer.result_of = result.tool_call_id
                answer.failed = answer.result_of in failed
                steps.append(answer)
            text = parts.text
            if text or calls or not parts.results:
                who: Any = row["role"]
                answers = row.get("tool_call_id") if who == "tool" else None
                name = row.get("name") if isinstance(row.get("name"), str) else None
                steps.append(SessionStep(who, text, calls, name=name, result_of=answers, **facts))
        self.steps += steps
        return steps

    def result(self, call: str | None, value: Any, *, failed: bool = False, **facts: Any) -> None:
        """Add what a tool answered."""
        text = plain_text(value) if not isinstance(value, list) else _text(value)
        self.steps.append(SessionStep("tool", text, result_of=call, failed=failed, **facts))


def _failed(words: Any) -> set[Any]:
    """Return the ids of the calls whose results in a content are errors."""
    blocks = [b for b in words if isinstance(b, dict)] if isinstance(words, list) else []
    return {first_of(b, "tool_use_id", "id") for b in blocks if b.get("is_error")}


def _text(value: Any) -> str:
    parts = Parts()
    for row in to_messages(value, "tool"):
        parts.add(row.get("content"))
    return "\n".join([*filter(None, [parts.text]), *(r.content for r in parts.results)])


def _call(value: dict[str, Any]) -> ToolCall:
    function = value.get("function")
    inner = function if isinstance(function, dict) else value
    name = function if isinstance(function, str) else inner.get("name")
    return tool_call(name, inner.get("arguments", inner.get("args")), value.get("id"))


def tool_call(name: Any, arguments: Any, id: Any = None) -> ToolCall:
    """Return a call; arguments in JSON text are decoded."""
    if isinstance(arguments, str):
        arguments = decode_arguments(arguments)
    return ToolCall(name=str(name or ""), arguments=arguments, id=None if id is None else str(id))


def total_of(counts: Any, names: Sequence[str]) -> int | None:
    """Return the sum of the counts that a mapping states; None where it states none of them."""
    stated = [token_count(first_of(counts, name)) for name in names]
    known = [count for count in stated if count is not None]
    return sum(known) if known else None


def usage_of(prompt: Any, completion: Any, cost: Any = None, requests: Any = 1) -> Usage | None:
    """Return the usage of figures as a tool writes them; None where none is one."""
    tokens, written, money = token_count(prompt), token_count(completion), amount(cost)
    if (tokens, written, money) == (None, None, None):
        return None
    requests = token_count(requests) or 1
    return Usage(requests=requests, prompt_tokens=tokens, completion_tokens=written, cost=money)


def to_spans(session: Session) -> tuple[Span, ...]:
    """Return the spans of a session: the agent, and below it its model calls, tools and users.

    `messages` of a model call is what came since the call before. The span of a tool has the call's
    arguments and the answer. An agent below the main one is a span around its steps.
    """
    task, ending = _task(session), _ending(session)
    times = [step.at for step in session.steps if step.at is not None]
    root = Span(
        id=_AGENT,
        name=session.agent or "session",
        kind="agent",
        start=min(times, default=None),
        end=max(times, default=None),
        status="unset" if session.failure is None else "error",
        status_message="" if session.failure is None else session.failure.message,
        input=task,
        output=ending,
        usage=session.usage,
    )
    spans, threads = [root], {"": root.id}
    waiting: dict[str, list[Message]] = {}
    calls: dict[str | None, int] = {}
    before, ids = root.start, {root.id}
    for number, step in enumerate(session.steps, start=1):
        if step.thread not in threads:
            threads[step.thread] = f"agent-{len(threads)}"
            below = Span(id=threads[step.thread], parent_id=root.id, name=step.thread, kind="agent")
            spans.append(below.model_copy(update={"start": step.at}))
        parent, pending = threads[step.thread], waiting.setdefault(step.thread, [])
        id = step.id if step.id and step.id not in ids else f"step-{number}"
        ids.add(id)
        if step.role == "assistant":
            spans.append(_model_call(session, step, id, parent, (before, tuple(pending))))
            pending.clear()
        elif step.role == "tool" and (at := _call_of(step, calls)) is not None:
            spans[at] = _answered(spans[at], step)
            pending.append(step.message())
        else:
            if step.role != "system" and (step.text or not step.calls):
                kind: Any = step.role
                span = Span(id=id, parent_id=parent, name=step.name or kind, kind=kind)
                times_of = {"start": step.at, "end": step.at, "output": step.text}
                failed = {"status": "error", "status_message": step.text} if step.failed else {}
                spans.append(span.model_copy(update=times_of | failed))
            pending.append(step.message())
        for i, call in enumerate(step.calls, start=1):  # of a user too, in tau2-bench
            calls[call.id or f"{step.thread}:{call.name}"] = len(spans)
            spans.append(_tool(call, f"{id}.{i}", parent, step.at))
        before = step.at if step.at is not None else before
    return tuple(spans)


def _model_call(
    session: Session,
    step: SessionStep,
    id: str,
    parent: str,
    sent: tuple[float | None, tuple[Message, ...]],
) -> Span:
    start = None if step.at is None else min(step.at, step.at if sent[0] is None else sent[0])
    model = step.model or session.model or None
    return Span(
        id=id,
        parent_id=parent,
        name=step.name or model or "model",
        kind="llm",
        start=start,
        end=step.at,
        messages=sent[1],
        reply=(step.message(),),
        model=model,
        usage=step.usage,
        finish=step.finish,
    )


def _tool(call: ToolCall, id: str, parent: str, at: float | None) -> Span:
    arguments = "" if call.arguments is None else plain_text(call.arguments)
    return Span(
        id=id,
        parent_id=parent,
        name=call.name,
        kind="tool",
        tool=call.name,
        start=at,
        end=at,
        input=arguments,
    )


def _call_of(step: SessionStep, calls: dict[str | None, int]) -> int | None:
    """Take the place of the call that a step answers: by its id, its tool, else the oldest."""
    for key in (step.result_of, f"{step.thread}:{step.name}"):
        if key in calls:
            return calls.pop(key)
    return calls.pop(next(iter(calls))) if calls and step.result_of is None else None


def _answered(span: Span, step: SessionStep) -> Span:
    update: dict[str, Any] = {"output": step.text, "end": step.at or span.end}
    if step.failed:
        update |= {"status": "error", "status_message": step.text}
    return span.model_copy(update=update)


def _task(session: Session) -> str:
    if session.task is not None:
        return session.task
    return next((s.text for s in session.steps if s.role == "user" and s.text.strip()), "")


def _ending(session: Session) -> str:
    if session.output is not None:
        return session.output
    main = (s for s in reversed(session.steps) if s.role == "assistant" and not s.thread)
    return next((step.text for step in main if is_answer(step.text)), "")


def to_run(session: Session, name: str, format_name: str, task: str) -> Run:
    """Return the run of a session; `name` is its id where it has none."""
    model = session.model or next((s.model for s in session.steps if s.model), "")
    names = dict.fromkeys(filter(None, (session.agent, model)))
    facts = {"recorded_as": format_name, "ended": session.ended}
    return Run(
        id=session.id or name,
        task=task,
        system=" ".join(names)[:200] or "unnamed",
        input=_task(session),
        output=_ending(session),
        messages=tuple(step.message() for step in session.steps if not step.thread),
        success=session.success,
        reference=session.reference,
        spans=to_spans(replace(session, model=model)),
        metadata={k: v for k, v in (facts | session.metadata).items() if v not in (None, "", {})},
        failure=session.failure,
    )
