"""What an agent's text says in the two templates of arXiv 2406.14884, listing 1, read strictly.

    Thought: ...                     Thought: ...
    Response: ...                    Action: <tool>
                                     Action Input: <JSON object>

Labels stand at the start of a line; `Action Input:` may also follow its `Action:` on one line.
Markdown emphasis around a label, a code fence around the whole or around the JSON, blanks, and the
prefix "functions." are let pass. Whatever is in neither form is `unreadable`, never guessed at.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from agenteval.evaluators.workflows.align import Call
from agenteval.evaluators.workflows.session import Prediction
from agenteval.models.jsonish import MAX_DEPTH, number, to_object
from agenteval.models.wire import printable

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
# An unquoted intent ends where the next item of the thought begins, or its sentence.
_INTENT_END = re.compile(
    r"[\];\n]|\.(?=\s|\Z|['\"])|,(?=[ \t]{0,4}\w{1,40}[ \t]{0,4}=)|['\"](?!\w)"
)
_QUOTES = {"'": "'", '"': '"', "“": "”", "‘": "’", "`": "`"}


@dataclass(frozen=True, slots=True)
class ThoughtItems:
    """What the items of a thought name; None for what they do not. Of several the last counts."""

    node: str | None = None
    last_node: str | None = None
    intent: str | None = None


def read_reply(text: str) -> Prediction:
    """What the text says, as a Prediction with `raw`; never raises.

    A call where an `Action:` with the name of a tool has its `Action Input:`, or no `Response:`
    stands beside it; `arguments` is None where there is no `Action Input:` at all, and the raw
    text where that is no strict JSON object (one key with two values, NaN, deeper than 64 levels
    and numbers beyond a float are none). A reply where `Response:` says something. Otherwise
    `unreadable`. Time is linear in the length.
    """
    text = printable(text)
    parts = _parts(text)
    thought = next((content for kind, content in parts if kind == "thought"), "")
    response = next((content for kind, content in parts if kind == "response"), "")
    calls = _calls(parts)
    items = thought_items(thought)
    kept: dict[str, Any] = {
        "response": response, "thought": thought, "node": items.node, "intent": items.intent,
        "raw": text,
    }  # fmt: skip
    if calls and (calls[0][2] or not response):
        tool, arguments, _ = calls[0]
        further = tuple(name for name, _, _ in calls[1:])
        return Prediction(form="call", tool=tool, arguments=arguments, further=further, **kept)
    return Prediction(form="reply" if response else "unreadable", **kept)


def read_actions(text: str) -> tuple[Call, ...]:
    """Every call in a text of several messages, in order; arguments as `read_reply` has them."""
    parts = _parts(printable(text))
    return tuple(Call(tool=tool, arguments=found) for tool, found, _ in _calls(parts))


def thought_items(thought: str) -> ThoughtItems:
    """`current_node=`, `last_node=` and `intent=` of a thought. `None` and `null` name nothing."""
    nodes: dict[str, str | None] = {}
    for match in _NODE.finditer(thought):
        name = match.group(2)
        nodes[match.group(1).lower()] = None if name.lower() in _NO_TOOL else name
    intent = None
    for match in _INTENT.finditer(thought):
        intent = _intent(match.group("value")) or intent
    return ThoughtItems(nodes.get("current"), nodes.get("last"), intent)


def read_object(text: str) -> dict[str, JsonValue] | None:
    """The JSON object with which the text begins (a code fence around it aside), else None."""
    text = _unfenced(text.strip()).lstrip("`").lstrip()
    if not text.startswith("{"):
        return None
    decoder = json.JSONDecoder(
        object_pairs_hook=to_object,
        parse_float=number,
        parse_int=number,
        parse_constant=_refuse,
    )
    try:
        value, _ = decoder.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if _depth(value) > MAX_DEPTH:
        return None
    decoded: dict[str, JsonValue] = _whole_characters(value) if "\\u" in text else value
    return decoded


def _parts(text: str) -> list[tuple[str, str]]:
    """The labelled parts in their order: (thought | response | action | input, content)."""
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


def _calls(parts: list[tuple[str, str]]) -> list[tuple[str, JsonValue, bool]]:
    """(tool, arguments, whether an input was given) of every action that names a tool."""
    calls: list[tuple[str, JsonValue, bool]] = []
    for i, (kind, content) in enumerate(parts):
        tool = _tool(content) if kind == "action" else None
        if tool is None:
            continue
        given = i + 1 < len(parts) and parts[i + 1][0] == "input"
        raw = parts[i + 1][1] if given else ""
        arguments = read_object(raw)
        calls.append((tool, (raw if given else None) if arguments is None else arguments, given))
    return calls


def _tool(content: str) -> str | None:
    name = content.partition("\n")[0].strip().strip("`'\"* \t").rstrip(".").rstrip("`'\"")
    name = name.removeprefix("functions.")
    if not _TOOL.fullmatch(name) or name.lower() in _NO_TOOL:
        return None
    return name


def _whole(text: str) -> str:
    """The text without a code fence around all of it."""
    stripped = text.strip()
    if _FENCE.match(stripped) and stripped.endswith("```"):
        return stripped[stripped.find("\n") + 1 : -3] if "\n" in stripped else stripped
    return text


def _unfenced(text: str) -> str:
    """What stands in the code fence with which the text begins."""
    opening = _FENCE.match(text)
    return text if opening is None else text[opening.end() :].partition("```")[0].strip()


def _intent(value: str) -> str | None:
    value = value.strip()
    close = _QUOTES.get(value[:1])
    if close is not None:
        # an apostrophe within is followed by a letter; the closing quote is not
        end = re.search(rf"{close}(?!\w)", value[1:])
        value = value[1:] if end is None else value[1 : 1 + end.start()]
    else:
        end = _INTENT_END.search(value)
        value = value if end is None else value[: end.start()]
    value = value.strip().strip("*`").strip()
    return value or None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _whole_characters(value: Any) -> Any:
    """Half characters (lone surrogates), which an escape can write, become U+FFFD."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _whole_characters(inner) for key, inner in value.items()}
    return [_whole_characters(inner) for inner in value] if isinstance(value, list) else value


def _depth(value: Any) -> int:
    """Levels of nesting, counted without recursion."""
    depth, level = 0, [value]
    while level := [v for v in level if isinstance(v, dict | list)]:
        depth += 1
        level = [c for v in level for c in (v.values() if isinstance(v, dict) else v)]
    return depth
