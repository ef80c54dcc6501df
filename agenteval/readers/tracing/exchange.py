"""What an LLM span was sent and what it answered, from attributes and from events."""

from __future__ import annotations

from typing import Any

from agenteval.readers.draft import Context
from agenteval.readers.tracing.bag import FINISH, TREE, Attributes
from agenteval.readers.tracing.flat import insert, json_or_none, with_lists
from agenteval.readers.tracing.raw import RawEvent, RawSpan
from agenteval.readers.tracing.talk import Pool, parse_talk
from agenteval.records import Message
from agenteval.records.run import Role


def exchange(
    raw: RawSpan, bag: Attributes, pool: Pool, context: Context
) -> tuple[list[Message], list[Message], list[RawEvent]]:
    """Messages sent, messages answered, and the events that say nothing of them."""
    if not bag.trees and not any(event.name.startswith("gen_ai.") for event in raw.events):
        return [], [], raw.events
    sent, answered, events = _from_events(raw.events, bag, pool, context)
    instructions = _one(bag, "gen_ai.system_instructions", "system", pool, context)
    for name in ("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt"):
        sent = sent or _one(bag, name, "user", pool, context)
    finishes = _finishes(bag)
    for name in ("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion"):
        answered = answered or _one(bag, name, "assistant", pool, context)
    if finishes and bag.peek(*FINISH) is None:
        bag.rest[FINISH[0]] = finishes[0]
    return instructions + sent, answered, events


def _one(bag: Attributes, name: str, role: Role, pool: Pool, context: Context) -> list[Message]:
    value = bag.trees.get(name)
    if isinstance(value, str) and json_or_none(value) is None and value.strip():
        value = {"role": role, "content": value}  # a prompt in plain words
    parts = json_or_none(value) if isinstance(value, str) else value
    if role == "system" and parts is not None:  # instructions are parts of one message
        value = {"role": role, "parts": parts if isinstance(parts, list) else [parts]}
    found = parse_talk(value, role, pool, context)
    if found:
        bag.trees[name] = None
    return found or []


def _finishes(bag: Attributes) -> list[str]:
    found = []
    for name in ("gen_ai.output.messages", "gen_ai.completion"):
        value = bag.trees.get(name)
        rows = json_or_none(value) if isinstance(value, str) else value
        for row in rows if isinstance(rows, list) else []:
            reason = row.get("finish_reason") if isinstance(row, dict) else None
            if isinstance(reason, str) and reason:
                found.append(reason)
    return found


def _from_events(
    events: list[RawEvent], bag: Attributes, pool: Pool, context: Context
) -> tuple[list[Message], list[Message], list[RawEvent]]:
    sent: list[Message] = []
    answered: list[Message] = []
    left: list[RawEvent] = []
    for event in events:
        body = _body(event)
        if not event.name.startswith("gen_ai.") or body is None:
            left.append(event)
            continue
        if "content.prompt" in event.name or "content.completion" in event.name:
            for name in ("gen_ai.prompt", "gen_ai.completion"):
                bag.trees[name] = bag.trees.get(name) or body.get(name)
            continue
        role = event.name.removeprefix("gen_ai.").removesuffix(".message")
        if event.name == "gen_ai.choice":
            answered += parse_talk(_said(body, "assistant"), "assistant", pool, context) or []
            if isinstance(body.get("finish_reason"), str):
                bag.rest.setdefault("gen_ai.response.finish_reasons", [body["finish_reason"]])
        elif role in ("system", "user", "assistant", "tool"):
            sent += parse_talk(_said(body, role), "user", pool, context) or []
        elif "gen_ai.input.messages" in body or "gen_ai.output.messages" in body:
            for name in ("gen_ai.input.messages", "gen_ai.output.messages"):
                bag.trees[name] = bag.trees.get(name) or body.get(name)
        else:
            left.append(event)
    return sent, answered, left


def _said(body: dict[str, Any], role: str) -> dict[str, Any]:
    """The message of an event; a choice holds it one level down."""
    inner = body.get("message")
    if isinstance(inner, str):
        inner = json_or_none(inner) or {"content": inner}
    said = dict(inner) if isinstance(inner, dict) else body
    return said if said.get("role") else {**said, "role": role}


def _body(event: RawEvent) -> dict[str, Any] | None:
    """The contents of an event: its attributes as a tree, or the JSON text among them."""
    for name in ("gen_ai.event.content", "event.body", "body"):
        held = event.attributes.get(name)
        value = json_or_none(held) if isinstance(held, str) else held
        if isinstance(value, dict):
            return value
    nested: dict[str, Any] = {}
    for key, value in event.attributes.items():
        match = TREE.match(key)
        inside = key[match.end() :] if match else ""
        path = [match[1], *inside.split(".")] if match and inside else [key]
        insert(nested, path if match else key.split("."), value)
    tree = with_lists(nested)
    return tree if isinstance(tree, dict) and tree else None
