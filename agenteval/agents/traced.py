"""Traces of agents under test: OpenTelemetry spans of what they ask and do, written to a file.

Needs the OpenTelemetry SDK and OpenInference's instrumentation of openai and AutoGen AgentChat.
Spans go to a TracerProvider of their own, and at the end every method is what it was before.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.agents.openai_chat import OpenAIChatAgent
from agenteval.agents.protocol import Dialogue
from agenteval.agents.react import ReActAgent
from agenteval.agents.toolbox import Outcome, Toolbox
from agenteval.errors import InputError, ModelUnavailable
from agenteval.files import is_database
from agenteval.records.otlp import key_values

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

_LARGE = 1 << 20  # attributes of a span; the SDK's 128 are fewer than a conversation needs
_STATUS = {"UNSET": 0, "OK": 1, "ERROR": 2}
_KIND = "openinference.span.kind"
_on = threading.Lock()  # the instrumentations are one for the process
# An AutoGen agent has spans of its own for its tools.
_tools_traced: ContextVar[bool] = ContextVar("tools_traced", default=False)


@contextmanager
def traced(path: str | Path, *, service: str = "agenteval") -> Iterator[None]:
    """Write the spans of all agents that run within the block to `path`, as OTLP/JSON lines.

    One trace for each run of an agent on chat completions, the Responses API, ReAct or AutoGen, and
    for each of its turns in a dialogue: the agent, its requests with messages, tools, tokens and
    reply, and its tool calls. Any other use of the openai SDK and of AutoGen AgentChat is traced
    too. A line is a document with one span, written when the span ends, so an aborted run leaves
    what it did; what has not ended with the block is written without an end. The file is begun
    anew.
    API keys of the clients are blotted out. `service` names the system in the trace.

    Raises ModelUnavailable when the packages are missing, InputError when the file cannot be
    written, or when tracing is on already in this process.
    """
    instrumentors = _instrumentors()
    from agenteval.agents.autogen import AutogenAgent  # loads autogen-agentchat

    if not _on.acquire(blocking=False):
        raise InputError("tracing is on already; one block at a time")
    with ExitStack() as stack:
        stack.callback(_on.release)
        lines = stack.enter_context(_Lines.opened(Path(path)))
        provider = _provider(lines, service)
        stack.callback(provider.shutdown)
        for instrumentor in instrumentors:
            if instrumentor.is_instrumented_by_opentelemetry:
                raise InputError("openai or AutoGen AgentChat is instrumented by other code")
            instrumentor.instrument(tracer_provider=provider)
            stack.callback(instrumentor.uninstrument)
        stack.enter_context(_whole_replies(lines))
        tracer = provider.get_tracer("agenteval.agents")
        for agent in (OpenAIChatAgent, ReActAgent, AutogenAgent):
            wrap = _agent_span(tracer, tools_traced=agent is AutogenAgent)
            stack.enter_context(_replaced(agent, "run", wrap))
        stack.enter_context(_replaced(Toolbox, "attempt", _tool_span(tracer)))
        stack.enter_context(_replaced(Toolbox, "attempt_async", _async_tool_span(tracer)))
        yield


def _instrumentors() -> tuple[Any, Any]:
    try:
        import opentelemetry.sdk.trace  # noqa: F401  needed later, so it is missed here
        from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor
        from openinference.instrumentation.openai import OpenAIInstrumentor
    except ImportError as error:
        raise ModelUnavailable(
            f"tracing needs {error.name}: pip install 'agenteval[tracing]'"
        ) from None
    return OpenAIInstrumentor(), AutogenAgentChatInstrumentor()


def _provider(lines: _Lines, service: str) -> TracerProvider:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Span, SpanLimits, SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    class _Writer(SpanProcessor):
        """Writes a span when it ends, and at the end those that are under way, without an end."""

        def __init__(self) -> None:
            self._open: dict[int, ReadableSpan] = {}

        def on_start(self, span: Span, parent_context: Any = None) -> None:
            self._open[_number(span)] = span

        def on_end(self, span: ReadableSpan) -> None:
            if self._open.pop(_number(span), None) is not None:
                lines.write(span)

        def shutdown(self) -> None:
            while self._open:
                lines.write(self._open.popitem()[1])

    limits = SpanLimits(
        max_attributes=_LARGE, max_events=_LARGE, max_span_attributes=_LARGE,
        max_event_attributes=_LARGE, max_attribute_length=SpanLimits.UNSET,
        max_span_attribute_length=SpanLimits.UNSET,
    )  # fmt: skip
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=Resource({"service.name": service}),
        span_limits=limits,
        shutdown_on_exit=False,
    )
    provider.add_span_processor(_Writer())
    return provider


def _number(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


class _Lines:
    """The file. `secrets` are written as [key]."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self.secrets: set[str] = set()

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[_Lines]:
        try:
            if is_database(path):
                raise InputError("cannot write (this is a database, perhaps a store)", str(path))
            stream = path.open("w", encoding="utf-8", errors="replace", newline="\n")
        except OSError as error:
            raise InputError(f"cannot write ({error.strerror})", str(path)) from None
        with stream:
            yield cls(stream)

    def write(self, span: ReadableSpan) -> None:
        text = json.dumps(_document(span), ensure_ascii=False, allow_nan=False)
        for secret in self.secrets:
            text = text.replace(secret, "[key]")
        with self._lock:
            if not self._stream.closed:
                self._stream.write(text + "\n")
                self._stream.flush()


def _document(span: ReadableSpan) -> dict[str, Any]:
    """One span as an ExportTraceServiceRequest in JSON (OTLP 1, protobuf's JSON with hex ids)."""
    context = span.get_span_context()
    assert context is not None
    body: dict[str, Any] = {
        "traceId": f"{context.trace_id:032x}",
        "spanId": f"{context.span_id:016x}",
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(span.start_time),
        "attributes": key_values(span.attributes),
        "events": [
            {
                "timeUnixNano": str(event.timestamp),
                "name": event.name,
                "attributes": key_values(event.attributes),
            }
            for event in span.events
        ],
        "status": {"code": _STATUS[span.status.status_code.name]},
    }
    if span.end_time is not None:
        body["endTimeUnixNano"] = str(span.end_time)
    if span.parent is not None:
        body["parentSpanId"] = f"{span.parent.span_id:016x}"
    if span.status.description:
        body["status"]["message"] = span.status.description
    scope = span.instrumentation_scope
    named = {"name": scope.name, "version": scope.version or ""} if scope else {}
    resource = {"attributes": key_values(span.resource.attributes)}
    scoped = [{"scope": named, "spans": [body]}]
    return {"resourceSpans": [{"resource": resource, "scopeSpans": scoped}]}


@contextmanager
def _replaced(owner: type, name: str, wrap: Callable[[Any], Any]) -> Iterator[None]:
    """The method `name` of a class, wrapped for the length of the block."""
    original = getattr(owner, name)
    setattr(owner, name, wraps(original)(wrap(original)))
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextmanager
def _whole_replies(lines: _Lines) -> Iterator[None]:
    """Send what our transport sends through the SDK, which is what the instrumentation reads."""
    import openai

    from agenteval.models.openai import OpenAITransport, extra_headers, post_through

    def wrap(_: Any) -> Any:
        async def asked(transport: OpenAITransport, body: dict[str, Any]) -> bytes:
            if len(transport.key) >= 8:
                lines.secrets.add(transport.key)
            async with openai.AsyncOpenAI(
                base_url=transport.base_url,
                api_key=transport.key or "none",
                default_headers=extra_headers(),
                max_retries=0,
                timeout=None,
            ) as client:
                return await post_through(client, transport.path, body, transport.endpoint)

        return asked

    with _replaced(OpenAITransport, "_post", wrap):
        yield


def _agent_span(tracer: Any, *, tools_traced: bool) -> Callable[[Any], Any]:
    """Wrap `run`: the root of a trace."""

    def wrap(run: Any) -> Any:
        async def running(self: Any, given: Dialogue, tools: Toolbox) -> str:
            token = _tools_traced.set(tools_traced)
            try:
                with tracer.start_as_current_span(type(self).__name__) as span:
                    request = given.messages[-1].content
                    span.set_attributes({_KIND: "AGENT", "input.value": request})
                    output: str = await run(self, given, tools)
                    span.set_attribute("output.value", output)
                    span.set_status(_ok())
                    return output
            finally:
                _tools_traced.reset(token)

        return running

    return wrap


def _tool_span(tracer: Any) -> Callable[[Any], Any]:
    """Wrap `Toolbox.attempt`: a call that is not carried out is an error of the call."""

    def wrap(attempt: Any) -> Any:
        def attempting(
            self: Toolbox, name: object, arguments: object = None, *, turn: int | None = None
        ) -> Any:
            if _tools_traced.get():
                return attempt(self, name, arguments, turn=turn)
            with _calling(tracer, name, arguments) as span:
                return _ended(span, attempt(self, name, arguments, turn=turn))

        return attempting

    return wrap


def _async_tool_span(tracer: Any) -> Callable[[Any], Any]:
    """Wrap `Toolbox.attempt_async` likewise."""

    def wrap(attempt: Any) -> Any:
        async def attempting(
            self: Toolbox, name: object, arguments: object = None, *, turn: int | None = None
        ) -> Any:
            if _tools_traced.get():
                return await attempt(self, name, arguments, turn=turn)
            with _calling(tracer, name, arguments) as span:
                return _ended(span, await attempt(self, name, arguments, turn=turn))

        return attempting

    return wrap


@contextmanager
def _calling(tracer: Any, name: object, arguments: object) -> Iterator[Any]:
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    with tracer.start_as_current_span(str(name)) as span:
        span.set_attributes({_KIND: "TOOL", "tool.name": str(name), "input.value": given or ""})
        yield span


def _ended(span: Any, outcome: Outcome) -> Outcome:
    status, answer = outcome
    span.set_attribute("output.value", answer)
    if status != "ok":
        span.set_status(_error(str(status)))
    elif not _failed(span):  # an error that the tool itself reported stays
        span.set_status(_ok())
    return outcome


def _failed(span: Any) -> bool:
    from opentelemetry.trace import StatusCode

    status = getattr(span, "status", None)
    return status is not None and status.status_code is StatusCode.ERROR


def _ok() -> Any:
    from opentelemetry.trace import Status, StatusCode

    return Status(StatusCode.OK)


def _error(description: str) -> Any:
    from opentelemetry.trace import Status, StatusCode

    return Status(StatusCode.ERROR, description)
