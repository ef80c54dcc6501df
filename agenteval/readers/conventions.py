"""Read typed fields of a span from attributes of OpenInference and OpenTelemetry's GenAI.

Both are tried on every span, OpenInference first, then the names of other tools (see `vendors`).
Attributes that a field fully represents are removed; all others stay unchanged.

Names: OpenInference semantic conventions; OpenTelemetry semantic conventions for generative AI
(with the older `gen_ai.prompt.N`, the events of version 1.27 to 1.36 and the messages since 1.37);
OpenLLMetry's `traceloop.*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agenteval.models.jsonish import is_deeper
from agenteval.readers.attributes import insert, text_of, with_lists
from agenteval.readers.chat_forms import parts_of, to_messages
from agenteval.readers.fields import Context, words
from agenteval.readers.messages import ROLES, Parts
from agenteval.readers.span_usage import COMPLETION, COST, PROMPT, amount, token_count
from agenteval.readers.spans import RawSpan
from agenteval.readers.strict_json import decode_arguments, json_or_none
from agenteval.readers.vendors import PACKED, unpacked
from agenteval.records import Message, SpanEvent, ToolCall, ToolSpec, Usage
from agenteval.records.run import Role, SpanKind

# Values of the attributes in _KIND, in lower case
_KIND_WORDS: dict[SpanKind, str] = {
    "llm": """
        llm chat text_completion generate_content completion chat.completions text.completions
        chat_model generation model inference inference.framework inference.modelapi
        ai.generatetext ai.streamtext ai.generateobject ai.streamobject ai.generatetext.dogenerate
        ai.streamtext.dostream ai.generateobject.dogenerate ai.streamobject.dostream
    """,
    "tool": """
        tool retriever execute_tool ai.toolcall retrieval agentic.tool.invocation
        agentic.mcp.invocation
    """,
    "agent": """
        agent invoke_agent create_agent agentic.invocation agentic.turn agentic.request
        process_thread_run
    """,
    "chain": """
        chain invoke_workflow workflow task span event flow prompt parser embedding embeddings
        reranker memory guardrail evaluator ai.embed ai.embedmany agentic.delegation
    """,
}
_KINDS = {word: kind for kind, text in _KIND_WORDS.items() for word in words(text)}
_EXACT = frozenset({"llm", "tool", "agent", "chain"})  # values that only state the kind

# Names of attributes by meaning; the first one present is used.
_KIND = words("openinference.span.kind gen_ai.operation.name traceloop.span.kind llm.request.type")
_PROVIDER = words("gen_ai.system gen_ai.provider.name")
# Names of agent and tool spans in OpenTelemetry and Google ADK
_NAMED: dict[str, SpanKind]
_NAMED = {"invoke_agent": "agent", "agent_run": "agent", "execute_tool": "tool"}
_VENDOR_KIND = words("""
    mlflow.spanType ai.operationId operation.name langfuse.observation.type langsmith.span.kind
    span.type agentops.span.kind genkit:metadata:subtype
""")
_MODEL = words("""
    llm.model_name gen_ai.response.model gen_ai.request.model llm.request.model ai.response.model
    ai.model.id mlflow.llm.model langfuse.observation.model.name
""")
_INPUT = words("""
    input.value gen_ai.tool.call.arguments traceloop.entity.input gcp.vertex.agent.tool_call_args
    tool_arguments ai.toolCall.args mlflow.spanInputs langfuse.observation.input genkit:input
    data.input
""")
_OUTPUT = words("""
    output.value gen_ai.tool.call.result traceloop.entity.output gcp.vertex.agent.tool_response
    tool_response ai.toolCall.result mlflow.spanOutputs langfuse.observation.output genkit:output
    data.output final_result
""")
_TOOL = words("tool.name gen_ai.tool.name tool_call.function.name ai.toolCall.name")
_TOOL_STATUS = ("gen_ai.tool.status", "tool.status")
_NO_TEXT = ("N/A", "{}", "<not serializable>")  # ADK's notations for a missing text
_PARAMETERS = "llm.invocation_parameters"
_LIMIT = words("""
    gen_ai.request.max_tokens llm.request.max_tokens ai.settings.maxOutputTokens
    ai.settings.maxTokens
""")
_LIMIT_NAMES = words("""
    max_tokens max_completion_tokens max_output_tokens maxTokens maxOutputTokens num_predict
    max_new_tokens
""")
_FINISH = words("""
    llm.finish_reason gen_ai.response.finish_reasons gen_ai.response.finish_reason
    ai.response.finishReason ai.finishReason
""")
_FINISH_KEYS = ("finish_reason", "stop_reason", "finishReason")
_SENT = ("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt")
_ANSWERED = ("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion")
_INSTRUCTIONS = "gen_ai.system_instructions"
_TOOLS = ("llm.tools", "gen_ai.tool.definitions")
_TALK = (*_SENT, *_ANSWERED, _INSTRUCTIONS, *_TOOLS)
_STRUCTURED = (*_INPUT, *_OUTPUT, *PACKED)  # strings or nested values
_TREE = re.compile(rf"({'|'.join(map(re.escape, (*_TALK, *_STRUCTURED)))})(?:\.|$)")
_MESSAGE_KEYS = frozenset(words("role content contents parts message tool_calls function_call"))
# Roles in smolagents, in addition to those of message lists
_MORE_ROLES: dict[str, Role] = {"tool-response": "tool", "tool-call": "assistant"}


@dataclass
class Pool:
    """Distinct messages and tools of one reading, to share them: spans repeat them many times."""

    _messages: dict[Any, Message] = field(default_factory=dict)
    _tools: dict[str, ToolSpec | None] = field(default_factory=dict)

    def intern(self, message: Message) -> Message:
        """Return the first message equal to this one."""
        calls = tuple(call.model_dump_json() for call in message.tool_calls)
        key = (message.role, message.content, message.name, message.tool_call_id, calls)
        return self._messages.setdefault(key, message)

    def tools(self, rows: Any) -> Iterator[ToolSpec | None]:
        """Yield tools from descriptions in the format of OpenAI, Anthropic or MCP; None for
        others."""
        for row in rows if isinstance(rows, list) else ():
            tool = row.get("tool") if isinstance(row, dict) else None
            text = text_of(tool.get("json_schema", tool) if isinstance(tool, dict) else row)
            if text not in self._tools:
                self._tools[text] = _tool(json_or_none(text))
            yield self._tools[text]


def _tool(value: Any) -> ToolSpec | None:
    inner = value.get("function") if isinstance(value, dict) else None
    tool = inner if isinstance(inner, dict) else value
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    keys = ("parameters", "input_schema", "inputSchema", "inputs")
    schema = next((tool[k] for k in keys if isinstance(tool.get(k), dict)), None)
    return ToolSpec(
        name=tool["name"],
        description=text_of(tool.get("description")),
        parameters=None if is_deeper(schema, 64) else schema,
    )


class SpanReader:
    """Extracts the fields of a span from its attributes.

    Invalid numbers stay in the attributes. `single` has the remaining attributes, `trees` the
    nested lists of messages and tools rebuilt from dotted keys.
    """

    def __init__(self, raw: RawSpan, pool: Pool, context: Context) -> None:
        self.raw, self.pool, self.context = raw, pool, context
        self.sent: list[Message] = []
        self.answered: list[Message] = []
        self.single: dict[str, Any] = {}
        nested: dict[str, Any] = {}
        for key, value in raw.attributes.items():
            path = _tree_path(key)
            if path is None:
                self.single[key] = value
            else:
                insert(nested, path, value)
        self.trees = {key: with_lists(value, 1) for key, value in nested.items()}
        self.single |= {key: self.trees.pop(key) for key in _STRUCTURED if key in self.trees}
        self.events, trees = unpacked(self.single, raw.events)
        for key, rows in trees.items():
            self.trees.setdefault(key, rows)

    def fields(self) -> dict[str, Any]:
        """Return the typed fields, with the remaining attributes and events."""
        kind = self._kind()
        events = self._read_exchange()
        tools = self._tools()
        if kind is None:  # infer it from fields that only one kind has
            has_model = self._name_of(*_MODEL, *PROMPT, *COMPLETION, *_PROVIDER)
            talks = self.sent or self.answered or has_model
            is_agent = self._name_of("agent_name") and self._name_of("final_result")
            by_name = _NAMED.get(self.raw.name.partition(" ")[0])
            kind = by_name or ("agent" if is_agent else "llm" if talks else "chain")
            kind = "tool" if self._name_of(*_TOOL) else kind
        fields: dict[str, Any] = {"kind": kind, "events": tuple(events)}
        if kind == "tool" and not tools:  # some tools record arguments and result as messages
            for name, messages in ((_INPUT[0], self.sent), (_OUTPUT[0], self.answered)):
                if messages and self._name_of(name) is None:
                    arguments = [text_of(call.arguments) for call in messages[-1].tool_calls]
                    self.single[name] = messages[-1].content or "\n".join(arguments)
            self.sent, self.answered = [], []
        if self.sent or self.answered or tools:
            fields["messages"], fields["reply"] = tuple(self.sent), tuple(self.answered)
            fields["tools"] = tools
        fields |= self._input_and_output(kind)
        if kind == "tool":
            if self._peek(*_TOOL_STATUS) == "error":
                self.raw.status = "error"
            name = self._take(*_TOOL) or self._peek("traceloop.entity.name")
            fields["tool"] = name if isinstance(name, str) else self.raw.name or None
        if kind == "llm":
            model = self._take(*_MODEL)
            fields["model"] = None if model is None else text_of(model)
            fields["usage"] = self._usage()
            fields["finish"] = self._finish(fields["output"])
            fields["limit"] = self._limit()
        trees = {key: value for key, value in self.trees.items() if value is not None}
        fields["attributes"] = self.single | trees
        return fields

    def _name_of(self, *names: str) -> str | None:
        return next((name for name in names if self.single.get(name) not in (None, "")), None)

    def _peek(self, *names: str) -> Any:
        name = self._name_of(*names)
        return None if name is None else self.single[name]

    def _take(self, *names: str) -> Any:
        name = self._name_of(*names)
        return None if name is None else self.single.pop(name)

    def _count(self, *names: str) -> int | None:
        """Take a number of tokens; any other value is left in place."""
        value = self._peek(*names)
        number = token_count(value)
        if number is not None:
            self._take(*names)
        elif value is not None and not isinstance(value, (dict, list)):
            self._note_figure(names, value)
        return number

    def _note_figure(self, names: tuple[str, ...], value: Any) -> None:
        text = f"{self._name_of(*names)!r} is {value!r:.40}, not a valid amount; it is not counted"
        self.context.notes.add(text, self.context.place)

    def _rows(self, name: str) -> Any:
        value = self.trees.get(name)
        return json_or_none(value) if isinstance(value, str) else value

    def _kind(self) -> SpanKind | None:
        for name in _KIND:
            value = self._peek(name)
            word = value.lower() if isinstance(value, str) else ""
            if word in _EXACT:
                self.single.pop(name)
            if word:
                return _KINDS.get(word, "chain")
        for name in _VENDOR_KIND:
            value = self._peek(name)
            first = value.strip('"').lower().split(" ")[0] if isinstance(value, str) else ""
            if first in _KINDS:
                return _KINDS[first]
        kind = self.raw.kind
        if kind in ("", "INTERNAL", "UNSPECIFIED", "0", "1", "SPAN", "LOG"):
            return None
        if kind.lower() not in _KINDS:
            self.single.setdefault("span_kind", kind)
        return _KINDS.get(kind.lower())

    def _tools(self) -> tuple[ToolSpec, ...]:
        for name in _TOOLS:
            tools = list(self.pool.tools(self._rows(name)))
            specs = tuple(spec for spec in tools if spec is not None)
            if specs:
                if len(specs) == len(tools):
                    del self.trees[name]
                return specs
        value = self._peek(_PARAMETERS)
        sent = json_or_none(value) if isinstance(value, str) and '"tools"' in value else None
        rows = sent.get("tools") if isinstance(sent, dict) else None
        return tuple(spec for spec in self.pool.tools(rows) if spec is not None)

    def _input_and_output(self, kind: SpanKind) -> dict[str, str]:
        for name in (*_INPUT, *_OUTPUT):
            if name.startswith("gcp.") and self.single.get(name) in _NO_TEXT:
                del self.single[name]
        input = self._take_value(*_INPUT)
        if input is None and kind == "tool":  # arguments in some tools, the signature in others
            input = self._peek("tool_call.function.arguments", "tool.parameters")
        output = self._take_value(*_OUTPUT)
        log = self._peek("logs")  # decorated functions log their arguments and result
        first = log[0] if isinstance(log, list) and log else None
        body = first.get("body") if isinstance(first, dict) else None
        if isinstance(first, dict) and isinstance(body, dict):
            body = dict(body)
            input = body.pop("function.arguments", None) if input is None else input
            output = body.pop("function.output", None) if output is None else output
            self.single["logs"] = [{**first, "body": body}, *log[1:]]
        return {"input": text_of(input), "output": text_of(output)}

    def _take_value(self, *names: str) -> Any:
        """Remove and return a value; a JSON string, as most tools write it, is decoded."""
        name, value = self._name_of(*names), self._take(*names)
        quoted = isinstance(value, str) and value[:1] == '"' and name not in (_INPUT[0], _OUTPUT[0])
        decoded = json_or_none(value) if quoted else None
        return decoded if isinstance(decoded, str) else value

    def _usage(self) -> Usage | None:
        prompt, completion = self._count(*PROMPT), self._count(*COMPLETION)
        stated = self._peek(*COST)
        cost = amount(stated)
        if cost is None and stated is not None:
            self._note_figure(COST, stated)
        if prompt is None and completion is None and cost is None:
            return None
        if cost is not None:
            self._take(*COST)
        return Usage(requests=1, prompt_tokens=prompt, completion_tokens=completion, cost=cost)

    def _finish(self, output: str) -> str | None:
        value = self._peek(*_FINISH)
        if isinstance(value, str) and value.startswith("["):
            value = json_or_none(value)
        if isinstance(value, list):
            if len(value) == 1:
                self._take(*_FINISH)
            value = value[0] if value else None
        elif value is not None:
            self._take(*_FINISH)
        if isinstance(value, str) and value:
            return value
        if not (output.startswith("{") and any(f'"{key}"' in output for key in _FINISH_KEYS)):
            return None
        reply = json_or_none(output)  # the raw reply of the endpoint
        choices = reply.get("choices") if isinstance(reply, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else reply
        if not isinstance(choice, dict):
            return None
        return next((choice[k] for k in _FINISH_KEYS if isinstance(choice.get(k), str)), None)

    def _limit(self) -> int | None:
        limit = self._count(*_LIMIT)
        if limit is not None:
            return limit
        parameters = self._peek(_PARAMETERS)
        if isinstance(parameters, str):
            mentions = "max" in parameters or "num_predict" in parameters
            parameters = json_or_none(parameters) if mentions else None
        if not isinstance(parameters, dict):
            parameters = {n: self.single.get(f"{_PARAMETERS}.{n}") for n in _LIMIT_NAMES}
        limits = (token_count(parameters.get(name)) for name in _LIMIT_NAMES)
        return next((limit for limit in limits if limit is not None), None)

    # ---- messages sent to a model, and its reply -------------------------------------------------

    def _read_exchange(self) -> list[SpanEvent]:
        """Read `sent` and `answered`; return the events that contain neither."""
        if not self.trees and not any(e.name.startswith("gen_ai.") for e in self.events):
            return self.events
        unread = [event for event in self.events if not self._read_event(event)]
        instructions = self._messages_of(_INSTRUCTIONS, "system")
        for name in _SENT:
            self.sent = self.sent or self._messages_of(name, "user")
        self.sent = instructions + self.sent
        lists = [self._rows(name) for name in _ANSWERED[1:]]
        for name in _ANSWERED:
            self.answered = self.answered or self._messages_of(name, "assistant")
        rows = (row for rows in lists if isinstance(rows, list) for row in rows)
        reasons = (row.get("finish_reason") for row in rows if isinstance(row, dict))
        finish = next((reason for reason in reasons if isinstance(reason, str) and reason), None)
        if finish is not None and self._peek(*_FINISH) is None:
            self.single[_FINISH[0]] = finish
        return unread

    def _messages_of(self, name: str, role: Role) -> list[Message]:
        value, parts = self.trees.get(name), self._rows(name)
        if isinstance(value, str) and parts is None and value.strip():
            parts = value = {"role": role, "content": value}  # a plain-text prompt
        if role == "system" and parts is not None:  # instructions are the parts of one message
            value = {"role": role, "parts": parts if isinstance(parts, list) else [parts]}
        messages = self._conversation(value, role)
        if messages:
            del self.trees[name]
        return messages

    def _read_event(self, event: SpanEvent) -> bool:
        """Read the messages in an event; return whether there are any."""
        body = _body(event) if event.name.startswith("gen_ai.") else None
        if body is None:
            return False
        trees: tuple[str, ...] = ("gen_ai.input.messages", "gen_ai.output.messages", _INSTRUCTIONS)
        if "content.prompt" in event.name or "content.completion" in event.name:
            trees = ("gen_ai.prompt", "gen_ai.completion")
        role = event.name.removeprefix("gen_ai.").removesuffix(".message")
        if role == "choice":
            self.answered += self._conversation(_event_message(body, "assistant"), "assistant")
            if isinstance(body.get("finish_reason"), str):
                self.single.setdefault("gen_ai.response.finish_reasons", [body["finish_reason"]])
        elif role in ("system", "user", "assistant", "tool"):
            self.sent += self._conversation(_event_message(body, role), "user")
        elif trees[0] == "gen_ai.prompt" or any(name in body for name in trees):
            for name in trees:
                self.trees[name] = self.trees.get(name) or body.get(name)
        else:
            return False
        return True

    def _conversation(self, value: Any, default: Role) -> list[Message]:
        """Return messages from a list in the format of OpenInference, GenAI parts or OpenAI.

        Returns [] for any other list. Other items among messages are shown as JSON.
        """
        if isinstance(value, str):
            value = json_or_none(value)
        if isinstance(value, dict) and _MESSAGE_KEYS.isdisjoint(value):  # a request or a reply
            value = to_messages(value, default)
        rows = value if isinstance(value, list) else [value]
        if not any(isinstance(item, dict) for item in rows):
            texts = [text for text in rows if isinstance(text, str) and isinstance(value, list)]
            return [self.pool.intern(Message(role=default, content=text)) for text in texts]
        messages: list[Message] = []
        for item in rows:
            if isinstance(item, dict):
                inner = item.get("message")
                messages += self._message(inner if isinstance(inner, dict) else item, default)
            else:
                messages.append(self.pool.intern(Message(role=default, content=text_of(item))))
        return messages

    def _message(self, item: dict[str, Any], default: Role) -> list[Message]:
        parts = Parts()
        for key in ("content", "contents", "parts"):
            value = parts_of(item.get(key)) if isinstance(item.get(key), str) else item.get(key)
            for part in value if isinstance(value, list) else [value]:
                inner = part.get("message_content") if isinstance(part, dict) else None
                parts.add(inner if isinstance(inner, dict) else part)
        text = parts.text
        for key in ("refusal", "reasoning_content"):
            text = text or _filled_text(item.get(key)) or ""
        calls = parts.calls + _calls(item.get("tool_calls")) + _calls(item.get("function_call"))
        legacy = item.get("function_call_name")
        if isinstance(legacy, str):
            arguments = _arguments(item.get("function_call_arguments_json"))
            calls.append(ToolCall(name=legacy, arguments=arguments))
        role = self._role(item.get("role"), default)
        results = [self.pool.intern(result) for result in parts.results]
        if results and not text and not calls:
            return results
        thoughts = [Message(role=role, content=thought) for thought in parts.thoughts_before_text]
        message = Message(
            role=role,
            content=text,
            tool_calls=tuple(calls),
            name=_filled_text(item.get("name")),
            tool_call_id=_filled_text(item.get("tool_call_id", item.get("id")))
            if role == "tool"
            else None,
        )
        return [*results, *map(self.pool.intern, (*thoughts, message))]

    def _role(self, value: Any, default: Role) -> Role:
        notes, place = self.context.notes, self.context.place
        if not isinstance(value, str) or not value:
            notes.add(f"a message without role was read as of the {default}", place)
            return default
        word = value.lower().rpartition(".")[2]
        role = ROLES.get(word) or _MORE_ROLES.get(word)
        if role is None:
            notes.add(f"the role {value[:40]!r} was read as {default}", place)
        return role or default


def _tree_path(key: str) -> list[str] | None:
    match = _TREE.match(key)
    if match is None:
        return None
    inside = key[match.end() :]
    return [match[1], *inside.split(".")] if inside else [match[1]]


def _filled_text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _event_message(body: dict[str, Any], role: str) -> dict[str, Any]:
    """Return the message of an event; in a choice, it is one level deeper."""
    inner = body.get("message")
    if isinstance(inner, str):
        decoded = json_or_none(inner)
        inner = decoded if isinstance(decoded, dict) else {"content": inner}
    message = dict(inner) if isinstance(inner, dict) else body
    if isinstance(message.get("content"), str):  # some tools write the parts as JSON
        message = {**message, "content": parts_of(message["content"])}
    return message if message.get("role") else {**message, "role": role}


def _body(event: SpanEvent) -> dict[str, Any] | None:
    """Return the contents of an event: its attributes as a tree, or the JSON string in them."""
    for name in ("gen_ai.event.content", "event.body", "body"):
        value = event.attributes.get(name)
        value = json_or_none(value) if isinstance(value, str) else value
        if isinstance(value, dict):
            return value
    nested: dict[str, Any] = {}
    for key, value in event.attributes.items():
        insert(nested, _tree_path(key) or key.split("."), value)
    tree = with_lists(nested)
    return tree if isinstance(tree, dict) and tree else None


def _calls(value: Any) -> list[ToolCall]:
    if isinstance(value, str):
        value = json_or_none(value)
    calls = []
    for row in value if isinstance(value, list) else [value]:
        if isinstance(row, dict) and row:
            outer = row["tool_call"] if isinstance(row.get("tool_call"), dict) else row
            function = outer["function"] if isinstance(outer.get("function"), dict) else outer
            name, keys = function.get("name"), ("arguments", "args", "input")
            calls.append(
                ToolCall(
                    name=name if isinstance(name, str) else "",
                    arguments=_arguments(next((function[k] for k in keys if k in function), None)),
                    id=_filled_text(outer.get("id")),
                )
            )
    return calls


def _arguments(value: Any) -> Any:
    return (decode_arguments(value) if value else None) if isinstance(value, str) else value
