"""Render the text of a run that a judge sees."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import JsonValue

from agenteval.errors import InputError
from agenteval.readers.fields import json_text
from agenteval.readers.messages import is_answer
from agenteval.records import Message, Run, Span, ToolCall, View

MIN_CHARS = 200
FINAL = "[final output]"
_MARK = "\n[... {:,} characters cut out here ...]\n"
# Heading lines, which only this module writes; `leaks` reads the speaker of a text from them.
HEADING = re.compile(
    r"^\[(?:(?:span )?(system|user|assistant|tool)(?:: [^\]\n]*)?|final output)\]$"
)
_LIKE_HEADING = r"(?=\[(?:(?:span )?(?:system|user|assistant|tool)\b|tool call\]|final output\]))"
_FAKE = re.compile("^" + _LIKE_HEADING, re.M)
_UNMARK = re.compile(r"^\\" + _LIKE_HEADING)  # the backslash before a heading
# Attributes with the result of a span, in OpenInference, OpenTelemetry and plain form
_SPAN_OUTPUT = ("output.value", "gen_ai.output.messages", "gen_ai.completion", "output")
_SPAN_ERROR = ("exception.message", "error.message")


def make_view(run: Run, *, with_reference: bool = False, max_chars: int = 200_000) -> View:
    """Return the judge's view of `run`: the problem, the trajectory and optionally the reference.

    The problem is the input. The trajectory is the messages as turns under "[role]" or "[role:
    name]", tool calls as "[tool call] name arguments". The opening user message is omitted if it
    equals the input. The output follows under "[final output]" unless the last message with text
    (other than AutoGen's TERMINATE) is the output already. Without messages, the trajectory is the
    output. Without both, or if spans of a trace have inputs or outputs, it is the spans by start
    time: their names, replies or outputs, tool calls and errors, and the output. Success, metadata,
    other attributes of spans and (by default) the reference are never shown.

    Lines of a message that look like a heading are prefixed with a backslash, so that a text cannot
    impersonate another speaker. The middle of a text longer than `max_chars` characters is cut,
    with a mark that says how much. Raises InputError if `max_chars` is below MIN_CHARS.
    """
    if max_chars < MIN_CHARS:
        raise InputError(f"max_chars is {max_chars}; at least {MIN_CHARS} are needed")
    reference = run.reference if with_reference else None
    return View(
        run_id=run.id,
        problem=_cut(run.input, max_chars),
        trajectory=_cut(_trajectory(run), max_chars),
        reference=None if reference is None else _cut(reference, max_chars),
        failed_as=None if run.failure is None else "missing",
    )


@dataclass(frozen=True, slots=True)
class ViewTurn:
    """A part of a trajectory: `heading` as in "assistant: planner" ("" before the first), and its
    text."""

    heading: str
    text: str


def split_trajectory(trajectory: str) -> list[ViewTurn]:
    """Split a trajectory from `make_view` into turns; a plain text is one turn."""
    turns: list[ViewTurn] = []
    heading, lines = "", list[str]()
    for line in trajectory.split("\n"):
        if HEADING.match(line):
            turns.append(ViewTurn(heading, "\n".join(lines).strip("\n")))
            heading, lines = line[1:-1], []
        else:
            lines.append(_UNMARK.sub("", line))
    turns.append(ViewTurn(heading, "\n".join(lines).strip("\n")))
    return [turn for turn in turns if turn.heading or turn.text]


def _trajectory(run: Run) -> str:
    if shows_spans(run):
        return _spans(run)
    if not run.messages:
        return run.output
    messages = _without_problem(run)
    turns = []
    for message in messages:
        lines = [_heading(message.role, message.name)]
        lines += [_plain(message.content)] if message.content else []
        turns.append("\n".join([*lines, *map(_call, message.tool_calls)]))
    last = next((m for m in reversed(messages) if is_answer(m.content) or m.tool_calls), None)
    repeated = last is not None and last.content.strip() == run.output.strip()
    if run.output.strip() and not repeated:
        turns.append(f"{FINAL}\n{_plain(run.output)}")
    return "\n\n".join(turns)


def shows_spans(run: Run) -> bool:
    """Return whether the trajectory of a run is rendered from its spans."""
    if run.messages or not run.spans:
        return False
    return not run.output or any(s.input or s.output or s.reply for s in run.spans)


def _without_problem(run: Run) -> list[Message]:
    """Return the messages without the opening user message if it is the input."""
    for i, message in enumerate(run.messages):
        if message.role == "user" and message.content.strip() == run.input.strip():
            return [*run.messages[:i], *run.messages[i + 1 :]]
        if message.role != "system":
            break
    return list(run.messages)


def _heading(role: str, name: str | None) -> str:
    clean = " ".join((name or "").replace("]", " ").split())[:80]
    return f"[{role}: {clean}]" if clean else f"[{role}]"


def _call(call: ToolCall) -> str:
    arguments = "" if call.arguments is None else " " + _plain(_as_text(call.arguments))
    return f"[tool call] {' '.join(call.name.split())}{arguments}"


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json_text(value)


def _plain(text: str) -> str:
    return _FAKE.sub(r"\\", text) if "[" in text else text


def _spans(run: Run) -> str:
    spans = run.spans
    ordered = sorted(enumerate(spans), key=lambda p: (p[1].start is None, p[1].start or 0, p[0]))
    turns = []
    for _, span in ordered:
        role = {"user": "user", "tool": "tool"}.get(span.kind, "assistant")
        label = f"{span.kind} {span.name}" if span.kind not in ("user", "tool") else span.name
        lines = ["[span " + _heading(role, label)[1:]]
        if span.status == "error":
            lines.append("status: error")
        if span.kind == "tool" and span.input:
            lines.append(_call(ToolCall(name=span.tool or span.name, arguments=span.input)))
        lines.extend(_plain(text) for text in _results(span))
        for message in span.reply:
            lines.extend(_call(call) for call in message.tool_calls)
        turns.append("\n".join(lines))
    if run.output.strip():
        turns.append(f"{FINAL}\n{_plain(run.output)}")
    return "\n\n".join(turns)


def _results(span: Span) -> list[str]:
    reply = "\n".join(message.content for message in span.reply if message.content)
    text = reply or ("" if span.reply else span.output)
    texts = [text] if text else _first(span.attributes, _SPAN_OUTPUT)
    texts += _first(span.attributes, _SPAN_ERROR)
    for event in span.events:
        texts += _first(event.attributes, _SPAN_ERROR)
    return texts


def _first(attributes: dict[str, JsonValue], names: tuple[str, ...]) -> list[str]:
    value = next((attributes[n] for n in names if attributes.get(n) is not None), None)
    return [] if value is None or not _as_text(value) else [_as_text(value)]


def _cut(text: str, max_chars: int) -> str:
    """Return `text`, or both ends around a mark, at most `max_chars` characters in total."""
    if len(text) <= max_chars:
        return text
    keep = max_chars - len(_MARK.format(len(text)))
    head, tail = keep - keep // 2, keep // 2
    return text[:head] + _MARK.format(len(text) - keep) + text[len(text) - tail :]
