"""The next step of an agent: read strictly from text in the two templates of arXiv 2406.14884,
listing 1, or requested at one turn of a conversation.

    Thought: ...                     Thought: ...
    Response: ...                    Action: <tool>
                                     Action Input: <JSON object>

Labels are at the start of a line; `Action Input:` may also follow its `Action:` on one line.
Markdown emphasis around a label, a code fence around the text or around the JSON, blanks, and the
prefix "functions." are accepted. Text in neither form is `unreadable`; the parser never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from pydantic import JsonValue

from agenteval.agents import Dialogue, System, drive
from agenteval.agents.protocol import AgentFailure, AgentLimits, AgentLog, Tool
from agenteval.agents.toolbox import Toolbox
from agenteval.models.jsonish import NotJsonish, scan
from agenteval.models.wire import printable
from agenteval.workflows.procedure import Call
from agenteval.workflows.session import Prediction

_LABEL = re.compile(
    r"^[ \t*]{0,8}(thought|response|action[ \t]?input|action)[ \t*]{0,4}[:：]\*{0,2}", re.I | re.M
)
_INPUT = re.compile(r"[ \t*`]action[ \t]?input[ \t*]{0,4}[:：]\*{0,2}", re.I)
_FENCE = re.compile(r"\A```[\w+-]{0,20}[ \t]{0,8}(?=\s|\{)")
_TOOL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")
_NO_TOOL = frozenset({"none", "null", "nil"})
_NODE = re.compile(
    r"\b(current|last)[_ ]?node[ \t]{0,4}=[ \t]{0,4}['\"`\[({]{0,3}([A-Za-z0-9_][\w-]{0,63})", re.I
)
_INTENT = re.compile(r"\bintent[ \t]{0,4}=[ \t]{0,4}(?P<value>[^\n]{0,1000})", re.I)
# An unquoted intent ends at the next item of the thought or at the end of its sentence.
_INTENT_END = re.compile(
    r"[\];\n]|\.(?=\s|\Z|['\"])|,(?=[ \t]{0,4}\w{1,40}[ \t]{0,4}=)|['\"](?!\w)"
)
_QUOTES = {"'": "'", '"': '"', "“": "”", "‘": "’", "`": "`"}


def read_reply(text: str) -> Prediction:
    """Return the text as a Prediction with `raw`; never raises.

    It is a call if an `Action:` with the name of a tool has its `Action Input:`, or if there is no
    `Response:`. `arguments` is None without an `Action Input:`, and the raw text if that is not a
    strict JSON object (duplicate keys, NaN, more than 64 levels, and numbers outside the range of a
    float are not strict). It is a reply if `Response:` has text, else `unreadable`. Time is linear
    in the length.
    """
    text = printable(text)
    parts = _parts(text)
    thought = next((content for kind, content in parts if kind == "thought"), "")
    response = next((content for kind, content in parts if kind == "response"), "")
    calls = _calls(parts)
    node, intent = thought_items(thought)
    prediction = Prediction(
        form="reply" if response else "unreadable",
        response=response,
        thought=thought,
        node=node,
        intent=intent,
        raw=text,
    )
    if not calls or (calls[0].arguments is None and response):
        return prediction
    further = tuple(call.tool for call in calls[1:])
    called = {"form": "call", "tool": calls[0].tool, "arguments": calls[0].arguments}
    return prediction.model_copy(update={**called, "further": further})


def read_actions(text: str) -> tuple[Call, ...]:
    """Return every call in a text of several messages; arguments as in `read_reply`."""
    return tuple(_calls(_parts(printable(text))))


def thought_items(thought: str) -> tuple[str | None, str | None]:
    """Return `current_node=` and `intent=` of a thought, each None if missing, `None` or `null`.
    The last of several counts."""
    node = intent = None
    for match in _NODE.finditer(thought):
        if match[1].lower() == "current":
            node = None if match[2].lower() in _NO_TOOL else match[2]
    for match in _INTENT.finditer(thought):
        intent = _intent(match["value"]) or intent
    return node, intent


def read_object(text: str) -> dict[str, JsonValue] | None:
    """Return the strict JSON object at the start of the text (optionally in a code fence), else
    None."""
    text = _unfenced(text.strip()).lstrip("`").lstrip()
    if not text.startswith("{"):
        return None
    try:
        read = scan(text, 0)
    except NotJsonish:
        return None
    return None if read.loose or read.cut else read.value


def _parts(text: str) -> list[tuple[str, str]]:
    """Return the labelled parts in order: (thought | response | action | input, content)."""
    text = _whole(text)
    labels = list(_LABEL.finditer(text))
    ends = [*(label.start() for label in labels), len(text)][1:]
    parts: list[tuple[str, str]] = []
    for label, end in zip(labels, ends, strict=bool(labels)):
        kind = label.group(1).lower()
        content = text[label.end() : end]
        if kind.startswith("action") and kind != "action":
            parts.append(("input", content.strip()))
        elif kind == "action" and (inside := _INPUT.search(content)):
            parts.append(("action", content[: inside.start()].strip()))
            parts.append(("input", content[inside.end() :].strip()))
        else:
            parts.append((kind, content.strip()))
    return parts


def _calls(parts: list[tuple[str, str]]) -> list[Call]:
    """Return every action with a tool name; arguments are None without an input."""
    calls = []
    for (kind, content), (following, raw) in zip_longest(parts, parts[1:], fillvalue=("", "")):
        tool = _tool(content) if kind == "action" else None
        if tool is not None:
            read = read_object(raw) if following == "input" else None
            arguments = raw if read is None and following == "input" else read
            calls.append(Call(tool=tool, arguments=arguments))
    return calls


def _tool(content: str) -> str | None:
    name = content.partition("\n")[0].strip().strip("`'\"* \t").rstrip(".").rstrip("`'\"")
    name = name.removeprefix("functions.")
    if not _TOOL.fullmatch(name) or name.lower() in _NO_TOOL:
        return None
    return name


def _whole(text: str) -> str:
    """Return the text without a code fence around all of it."""
    stripped = text.strip()
    if _FENCE.match(stripped) and stripped.endswith("```"):
        return stripped[stripped.find("\n") + 1 : -3] if "\n" in stripped else stripped
    return text


def _unfenced(text: str) -> str:
    """Return the content of the code fence at the start of the text."""
    opening = _FENCE.match(text)
    return text if opening is None else text[opening.end() :].partition("```")[0].strip()


def _intent(value: str) -> str | None:
    value = value.strip()
    close = _QUOTES.get(value[:1])
    if close is not None:
        # a letter follows an apostrophe, but not a closing quote
        end = re.search(rf"{close}(?!\w)", value[1:])
        value = value[1:] if end is None else value[1 : 1 + end.start()]
    else:
        end = _INTENT_END.search(value)
        value = value if end is None else value[: end.start()]
    value = value.strip().strip("*`").strip()
    return value or None


async def predict_next(
    system: System,
    dialogue: Dialogue,
    tools: Sequence[Tool],
    limits: AgentLimits | None = None,
    *,
    in_words: bool = False,
) -> Prediction | AgentFailure:
    """Return the agent's first action in the dialogue: a call or a reply.

    The agent is asked once, and its call is not executed; an invalid call is also a call. Malformed
    calls, silence and timeouts are `unreadable`. Node and intent are those named in the text. With
    `in_words`, text in the templates of arXiv 2406.14884 counts as a call or reply for every kind
    of agent. Raises what `drive` raises.
    """
    box = Toolbox(tools, lambda name, arguments: "", limits, stop_after=1)
    log = await drive(system.make(), dialogue, box)
    if isinstance(log, AgentFailure):
        return log
    prediction, read = _prediction(log, tuple(box.beyond)), read_reply(log.output)
    if not in_words or prediction.form != "reply" or read.form == "unreadable":
        return prediction
    names = ("form", "tool", "arguments", "further", "response")
    return prediction.model_copy(update={name: getattr(read, name) for name in names})


def _prediction(log: AgentLog, beyond: tuple[str, ...]) -> Prediction:
    """`beyond` are the tools called after the first call."""
    first = log.events[0] if log.events else None
    called = first is not None and first.status != "malformed"
    spoken = next((m for m in reversed(log.messages) if m.role == "assistant"), None)
    unread = first.arguments if first is not None and not first.name else ""
    raw = spoken.content if spoken is not None else (log.output or str(unread))
    read = read_reply(raw)
    thought, node, intent = read.thought, read.node, read.intent
    if not thought and read.form == "unreadable":  # text next to a call is its thought
        thought, (node, intent) = raw if called else "", thought_items(raw)
    common: dict[str, Any] = {
        "thought": thought,
        "node": node,
        "intent": intent,
        "raw": raw,
        "usage": log.usage,
        "seconds": log.seconds,
        "model": log.model,
    }
    if first is not None and called:
        calls = spoken.tool_calls if spoken is not None else ()
        further = tuple(call.name for call in calls[1:] if call.name) or beyond or read.further
        step = {"form": "call", "tool": first.name, "arguments": first.arguments}
        return Prediction(**step, further=further, **common)
    if first is not None or not log.output.strip():
        return Prediction(form="unreadable", **common)
    return Prediction(form="reply", response=log.output, **common)
