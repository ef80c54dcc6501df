"""Convert messages of providers and frameworks to OpenAI's format with parts.

Anthropic, Bedrock, Gemini (also Google's SDK for Python), LangChain, OpenAI (chat completions and
responses) and Vercel's AI SDK each have their own format for calls, results and texts.
"""

from __future__ import annotations

from typing import Any

from agenteval.readers.messages import ROLES, constructed, role_of
from agenteval.readers.strict_json import json_or_none

Row = dict[str, Any]
# Keys of requests and replies that contain messages or the text of one.
_ALTERNATIVES = ("choices", "candidates", "generations")
_LISTS = ("messages", "contents", "input", "history")
# Items of OpenAI's responses other than messages
RESPONSES = ("function_call", "function_call_output", "reasoning")
_ONE = ("output", "message", "content", "text", "output_text", "prompt")


def first_of(value: Any, *keys: str) -> Any:
    """Return the first non-null value of an object under these keys."""
    held = value if isinstance(value, dict) else {}
    return next((held[key] for key in keys if held.get(key) is not None), None)


def to_messages(value: Any, role: str) -> list[Row]:
    """Return the messages of a request or a reply; text without a speaker gets `role`."""
    if isinstance(value, str):
        decoded = json_or_none(value) if value.lstrip()[:1] in ("{", "[", '"') else None
        if decoded is None or isinstance(decoded, str):
            text = value if decoded is None else decoded
            return [{"role": role, "content": text}] if text else []
        value = decoded
    if isinstance(value, list):
        return _of_list(value, role)
    return _of_object(value, role) if isinstance(value, dict) and value else []


def _of_list(rows: list[Any], role: str) -> list[Row]:
    if len(rows) == 1 and isinstance(rows[0], list):  # LangChain: a batch of conversations
        return _of_list(rows[0], role)
    items = [constructed(row) for row in rows]
    if any(isinstance(item, dict) and _is_message(item) for item in items):
        return [message for item in items for message in to_messages(item, role)]
    return [{"role": role, "content": parts_of(items)}] if items else []


def _is_message(item: Row) -> bool:
    kinds = ("message", *RESPONSES)
    return role_of(item) is not None or "role" in item or item.get("type") in kinds


def _of_object(value: Row, role: str) -> list[Row]:
    value = constructed(value)
    first = next((value[key] for key in _ALTERNATIVES if value.get(key)), None)
    while isinstance(first, list) and first:
        first = first[0]
    if isinstance(first, dict):  # a reply with alternatives
        inner = next((first[k] for k in ("message", "content", "text") if first.get(k)), None)
        return to_messages(inner, role)
    if "role" in value or role_of(value) is not None:
        return _message(value, role)
    if value.get("type") in RESPONSES:
        who = "tool" if value["type"] == "function_call_output" else "assistant"
        return [{"role": who, "content": [part_of(value)]}]
    system = value.get("system") or value.get("instructions")
    before = [{"role": "system", "content": parts_of(system)}] if system else []
    for key in _LISTS:
        if isinstance(value.get(key), (list, str)) and value[key]:
            return before + to_messages(value[key], role)
    if isinstance(value.get("parts"), list):
        return _message(value, role)
    text = first_of({key: value.get(key) or None for key in _ONE}, *_ONE)
    return before + to_messages([value] if text is None else text, role)


def _message(value: Row, role: str) -> list[Row]:
    who = role_of(value) or ROLES.get(str(value.get("role")).lower()) or role
    content = value.get("parts", value.get("content"))
    message: Row = {"role": who, "content": parts_of(content)}
    extra = value.get("additional_kwargs")
    calls = value.get("tool_calls") or (extra.get("tool_calls") if isinstance(extra, dict) else 0)
    for key, item in (("tool_calls", calls), ("name", value.get("name"))):
        if item:
            message[key] = item
    if value.get("tool_call_id"):
        message["tool_call_id"] = value["tool_call_id"]
    return [message]


def parts_of(content: Any) -> Any:
    """Normalize the parts of a content; texts are unchanged."""
    if isinstance(content, str):
        decoded = json_or_none(content) if content.startswith('[{"') else None
        is_parts = isinstance(decoded, list) and all(map(_is_part, decoded))
        return parts_of(decoded) if is_parts else content
    if isinstance(content, list):
        return [part_of(part) if isinstance(part, dict) else part for part in content]
    if isinstance(content, dict):
        return parts_of(content["parts"]) if "parts" in content else [part_of(content)]
    return content


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and ("type" in value or not _BEDROCK.isdisjoint(value))


_MEDIA = ("image", "document", "video", "audio", "file")
_BEDROCK = frozenset({"text", "toolUse", "toolResult", "reasoningContent", *_MEDIA})
_CALLS = ("toolUse", "function_call", "functionCall")
_RESULTS = ("toolResult", "function_response", "functionResponse")


def part_of(part: Row) -> Row:
    """Normalize a part of a message: a call becomes `tool_call`, a result `tool_result`."""
    kind = part.get("type")
    inner = next((part[k] for k in (*_CALLS, *_RESULTS) if isinstance(part.get(k), dict)), part)
    id = first_of(inner, "toolUseId", "toolCallId", "call_id", "id", "tool_use_id")
    if kind in ("tool-call", "function_call") or any(k in part for k in _CALLS):
        arguments = first_of(inner, "input", "args", "arguments")
        name = str(inner.get("toolName") or inner.get("name") or "")
        return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}
    if kind in ("tool-result", "function_call_output") or any(k in part for k in _RESULTS):
        result, failed = first_of(inner, "output", "result", "response", "content"), False
        if isinstance(result, dict) and "value" in result and "type" in result:
            failed, result = str(result["type"]).startswith("error"), result["value"]
        failed = failed or inner.get("status") == "error"
        return {"type": "tool_result", "id": id, "response": result, "is_error": failed}
    if kind == "reasoning" and isinstance(part.get("summary"), list):
        texts = [str(s.get("text", "")) for s in part["summary"] if isinstance(s, dict)]
        return {"type": "reasoning", "text": "\n".join(texts)}
    if kind in ("input_text", "output_text", "summary_text"):
        return {"type": "text", "text": part.get("text")}
    if kind is None and "text" in part:
        return {"type": "thinking" if part.get("thought") is True else "text", "text": part["text"]}
    if kind is None and "reasoningContent" in part:
        text = first_of(first_of(part["reasoningContent"], "reasoningText"), "text")
        return {"type": "thinking", "text": text or "[thinking]"}
    media = next(
        (name for name in _MEDIA if kind is None and len(part) == 1 and name in part), None
    )
    return part if media is None else {"type": media}
