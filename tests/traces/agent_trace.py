"""Traces as an agent leaves them: messages grow from request to request, tools answer calls."""

from __future__ import annotations

import json
import traceback
from typing import Any, Literal

from agenteval.records import Finding, Message, Run, Span, SpanEvent, ToolCall, ToolSpec
from agenteval.traces.detectors import detect
from agenteval.traces.spans import texts
from agenteval.traces.taxonomy import built_in


def raised(exception: BaseException, escaped: bool | str = "False") -> SpanEvent:
    """The event that OpenTelemetry's SDK records for an exception."""
    kind = type(exception)
    module = kind.__module__
    return SpanEvent(
        name="exception",
        attributes={
            "exception.type": kind.__qualname__
            if module == "builtins"
            else f"{module}.{kind.__qualname__}",
            "exception.message": str(exception),
            "exception.stacktrace": "".join(traceback.format_exception(exception)),
            "exception.escaped": escaped,
        },
    )


def named(kind: str, message: str) -> SpanEvent:
    """An exception of a library that is not installed, by the name and text of its source."""
    return SpanEvent(
        name="exception", attributes={"exception.type": kind, "exception.message": message}
    )


class Trace:
    """One agent at work. `ask` is a request to the model, `run` the execution of a tool."""

    def __init__(
        self, system: str = "", user: str = "Do the task.", tools: tuple[ToolSpec, ...] = ()
    ) -> None:
        self.tools = tools
        self.messages: list[Message] = [Message(role="system", content=system)] if system else []
        self.messages.append(Message(role="user", content=user))
        self.spans: list[Span] = [Span(id="root", kind="agent", name="agent.run", status="ok")]
        self._calls = 0

    def add(self, **fields: Any) -> str:
        number = f"s{len(self.spans)}"
        self.spans.append(Span(**{"id": number, "parent_id": "root", **fields}))
        return number

    def user(self, text: str) -> None:
        self.messages.append(Message(role="user", content=text))

    def ask(self, text: str = "", *calls: tuple[str, Any], **fields: Any) -> str:
        """A request with its reply: text and calls (name, arguments)."""
        made = []
        for name, arguments in calls:
            self._calls += 1
            made.append(ToolCall(name=name, arguments=arguments, id=f"c{self._calls}"))
        reply = Message(role="assistant", content=text, tool_calls=tuple(made))
        number = self.add(
            **{
                "kind": "llm",
                "name": "chat",
                "status": "ok",
                "model": "m",
                "messages": tuple(self.messages),
                "reply": (reply,),
                "tools": self.tools,
                "finish": "tool_calls" if calls else "stop",
                **fields,
            }
        )
        self.messages.append(reply)
        return number

    def run(
        self,
        name: str,
        output: str = "",
        status: Literal["ok", "error", "unset"] = "ok",
        arguments: Any = None,
        **fields: Any,
    ) -> str:
        """The execution of the oldest call of `name` that has no answer yet."""
        answered = {m.tool_call_id for m in self.messages}
        open_calls = [
            c
            for m in self.messages
            for c in m.tool_calls
            if c.name == name and c.id not in answered
        ]
        given = open_calls[0].arguments if open_calls else arguments
        if open_calls:
            self.messages.append(
                Message(role="tool", content=output, tool_call_id=open_calls[0].id)
            )
        text = given if isinstance(given, str) else json.dumps(given)
        return self.add(
            **{
                "kind": "tool",
                "name": f"agent.{name}",
                "tool": name,
                "input": text,
                "output": output,
                "status": status,
                **fields,
            }
        )

    def step(self, name: str, arguments: Any, output: str) -> tuple[str, str]:
        """A request with one call, and its execution: ids of both spans."""
        return self.ask("", (name, arguments)), self.run(name, output)

    def found(self) -> list[Finding]:
        """The findings, each at an existing span and with words that occur in it."""
        run = Run(id="t", spans=tuple(self.spans))
        findings = detect(run, built_in())
        check(run, findings)
        return list(findings)


def check(run: Run, findings: tuple[Finding, ...]) -> None:
    """What holds for all findings: the span exists, and the evidence stands in it."""
    spans = {span.id: span for span in reversed(run.spans)}
    for finding in findings:
        assert finding.span in spans
        assert any(finding.evidence in text for text in texts(spans[finding.span])), finding
        assert finding.impact is not None
        assert finding.description
