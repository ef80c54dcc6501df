"""Draft the text of one span: lines that are always shown and sections that may be cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agenteval.records.run import Message, Span, SpanEvent, ToolCall
from agenteval.traces.condense_repeats import TELLING, Seen, plain, ranges
from agenteval.traces.excerpt import ERROR, size

Role = Literal["rules", "tools", "talk", "agent", "call", "data", "rest"]

_REST = 240  # bytes of attributes of no particular meaning
# Bytes by role: the minimum, the fair share that is filled next, and the weight by which the
# remaining room is divided.
_LEAST: dict[Role, tuple[int, int, float]] = {
    "rules": (480, 1600, 3.0),
    "tools": (96, 200, 0.5),
    "talk": (136, 480, 2.0),
    "agent": (200, 640, 4.0),
    "call": (400, 1200, 4.0),
    "data": (136, 240, 1.5),
    "rest": (48, 80, 0.5),
}
_TINY = 64  # bytes; cutting less than this, with its mark, saves nothing
_ALARM = (400, 800)  # the same of any text with signs of an error


@dataclass(slots=True)
class TextSection:
    """A labelled text. In bytes: `least` is always shown, `fair` is filled before any `wanted`."""

    label: str
    text: str
    weight: float
    least: int
    fair: int
    wanted: int


@dataclass(slots=True)
class SpanDraft:
    """The text of one span: whole lines in `head`, then the sections."""

    index: str
    span: Span
    head: list[str] = field(default_factory=list)
    sections: list[TextSection] = field(default_factory=list)

    def add(self, label: str, text: str, role: Role, most: int | None = None) -> None:
        """Add a section unless the text is empty; `most` limits its bytes."""
        if not text.strip():
            return
        least, fair, weight = _LEAST[role]
        if role not in ("call", "tools") and ERROR.search(text):
            least, fair = max(least, _ALARM[0]), max(fair, _ALARM[1])
        full = size(text) if most is None else min(size(text), most)
        least = full if full <= least + _TINY else least
        self.sections.append(
            TextSection(label, text, weight, least, max(least, min(fair, full)), full)
        )

    @property
    def fixed(self) -> int:
        """Bytes that are always needed: head, labels and line breaks."""
        return sum(size(h) + 1 for h in self.head) + sum(size(s.label) + 2 for s in self.sections)


class Writer:
    """Drafts spans in order; repeated texts, such as `task`, become references."""

    def __init__(self, task: str = "") -> None:
        self.seen = Seen(task)
        self._histories: dict[int, tuple[list[int], str]] = {}  # by first message
        self._current: dict[str, str] = {}  # the models, tools and limits last shown

    def draft(self, index: str, span: Span, place: str) -> SpanDraft:
        """Draft a span; `place` names the spans above it."""
        draft = SpanDraft(index, span)
        draft.head.append(self._headline(index, span, place))
        if span.status == "error" or span.status_message:
            text = self.seen.fold(span.status_message, f"error of {index}")
            draft.add("ERROR:" if span.status == "error" else "status:", text, "data")
            if not span.status_message:
                draft.head.append("ERROR (no message)")
        for event in span.events:
            self._event(draft, event)
        if span.tools:
            self._tools(draft)
        if span.messages:
            self._messages(draft)
        if span.kind == "tool":
            self._tool(draft)
        elif not span.messages:
            fold = self.seen.fold_start if span.kind == "llm" else self.seen.fold
            draft.add("input:", fold(span.input, f"input of {index}"), "rules")
        self._replies(draft)
        if span.kind != "tool" and not any(m.content or m.tool_calls for m in span.reply):
            role: Role = "agent" if span.kind == "llm" else "data"
            draft.add("output:", self.seen.fold(span.output, f"output of {index}"), role)
        self._attributes(draft)
        return draft

    def _changed(self, name: str, value: str) -> bool:
        """Return whether `value` differs from the one last shown."""
        changed = self._current.get(name) != value
        self._current[name] = value
        return changed

    def _headline(self, index: str, span: Span, place: str) -> str:
        name = one_line(span.name, 120)
        if span.tool and span.tool != span.name:
            name = f"{one_line(span.tool, 120)} ({name})" if name else one_line(span.tool, 120)
        facts = ", ".join(self._facts(span))
        return " ".join(filter(None, (index, span.kind, name, place, facts and f"[{facts}]")))

    def _facts(self, span: Span) -> Iterator[str]:
        """Yield status, time and tokens; also the model and token limit if they changed."""
        if span.status != "unset":
            yield span.status.upper() if span.status == "error" else span.status
        if span.start is not None and span.end is not None:
            yield f"{span.end - span.start:.3g} s"
        if span.usage and (span.usage.prompt_tokens or span.usage.completion_tokens):
            counts = (span.usage.prompt_tokens, span.usage.completion_tokens)
            sent, got = ("?" if n is None else f"{n:,}" for n in counts)
            yield f"tokens {sent} in {got} out"
        if span.finish:
            yield f"finish {one_line(span.finish, 40)}"
        if span.model and self._changed("model", span.model):
            yield f"model {one_line(span.model, 60)}"
        if span.limit is not None and self._changed("limit", str(span.limit)):
            yield f"limit {span.limit:,} tokens"

    def _event(self, draft: SpanDraft, event: SpanEvent) -> None:
        texts = {key: plain(value) for key, value in event.attributes.items()}
        keys = {key.rsplit(".", 1)[-1]: key for key in texts if key.startswith("exception.")}
        if not keys:
            draft.head.append(f"event {one_line(event.name, 80)}")
            draft.add("", self.seen.fold(_listed(texts), draft.index), "data")
            return
        draft.head.append(f"exception {one_line(texts.pop(keys.get('type', ''), ''), 80)}")
        message = texts.pop(keys.get("message", ""), "")
        if message.strip() and message.strip() not in draft.span.status_message:
            draft.add("", self.seen.fold(message, f"exception of {draft.index}"), "data")
        stack = texts.pop(keys.get("stacktrace", ""), "")
        draft.add("", self.seen.fold(stack, f"stack of {draft.index}"), "data")
        draft.add("", self.seen.fold(_listed(texts), draft.index), "rest", _REST)

    def _tools(self, draft: SpanDraft) -> None:
        names = ", ".join(t.name for t in draft.span.tools)
        before = self.seen.before(draft.index, "tools", names)
        if self._changed("tools", names):
            draft.head.append(f"tools offered: {f'as in {before}' if before else names}")
        for spec in draft.span.tools:
            parameters = plain(spec.parameters)
            key = ("tool", spec.name, spec.description, parameters)
            if not self.seen.before(draft.index, *key):
                text = f"{spec.description}\nparameters: {parameters or 'not told'}"
                draft.add(f"tool {one_line(spec.name, 80)}:", text, "tools")

    def _messages(self, draft: SpanDraft) -> None:
        numbers, repeated, new = [], [], []
        answered = False
        for message in draft.span.messages:
            number, fresh = self.seen.number(message)
            answered = answered or message.role == "assistant"
            numbers.append(number)
            if fresh:
                new.append((f"M{number}", message, answered))
            else:
                repeated.append(number)
        if repeated:
            draft.head.append(f"messages: {ranges(repeated)} as before" + (", then" * bool(new)))
        # The last call with the same first message
        before, where = self._histories.get(numbers[0], ([], ""))
        self._histories[numbers[0]] = (numbers, draft.index)
        if gone := sorted(set(before) - set(numbers)):
            draft.head.append(f"no longer sent: {ranges(gone)}, which {where} was sent")
        for label, message, late in new:
            self._message(draft, label, message.role, message, late=late)

    def _message(
        self, draft: SpanDraft, number: str, what: str, message: Message, *, late: bool = True
    ) -> None:
        role: Role = "rules" if message.role == "system" or not late else "talk"
        if message.role in ("assistant", "tool"):
            role = "agent" if message.role == "assistant" else "data"
        label = f"{number} {what}" + (f" {one_line(message.name, 40)}" if message.name else "")
        draft.add(f"{label}:", self.seen.fold(message.content, f"{number} in {draft.index}"), role)
        self._calls(draft, message.tool_calls)

    def _replies(self, draft: SpanDraft) -> None:
        for message in draft.span.reply:
            number, fresh = self.seen.number(message)
            if fresh:
                self._message(draft, f"M{number}", "reply", message)
                continue
            draft.head.append(f"reply is the same as M{number}")
            draft.add("", self.seen.fold(message.content, f"reply of {draft.index}"), "agent")
            self._calls(draft, message.tool_calls)

    def _calls(self, draft: SpanDraft, calls: tuple[ToolCall, ...]) -> None:
        for call in calls:
            text = self.seen.arguments(plain(call.arguments), draft.index)
            draft.add(f"calls {one_line(call.name, 80)} with", text or "(no arguments)", "call")

    def _tool(self, draft: SpanDraft) -> None:
        span, index = draft.span, draft.index
        draft.add("arguments:", self.seen.arguments(span.input, index) or "(none told)", "call")
        before, times = self.seen.call(span.tool or span.name, span.input, index)
        if before:
            draft.head.append(
                f"same tool and arguments as {', '.join(before)} (call number {times + 1} of these)"
            )
        output = self.seen.fold(span.output, f"output of {index}")
        if span.output.strip():
            draft.add("output:", output, "data")
        else:
            draft.head.append("output: empty")

    def _attributes(self, draft: SpanDraft) -> None:
        telling: list[str] = []
        ordinary: list[str] = []
        for key, value in draft.span.attributes.items():
            text = plain(value)
            if not text.strip() or self.seen.before(draft.index, "attribute", key, text):
                continue
            text = self.seen.fold(text, f"{one_line(key, 60)} of {draft.index}")
            signs = TELLING.search(key) or ERROR.search(text)
            (telling if signs else ordinary).append(f"{key} = {text}")
        draft.add("attributes:", "\n".join(telling), "data")
        draft.add("other attributes:", "\n".join(ordinary), "rest", _REST)


def _listed(texts: Mapping[str, str]) -> str:
    return "\n".join(f"{key} = {text}" for key, text in texts.items())


def one_line(text: str, most: int) -> str:
    """Return the text on one line, cut to `most` characters plus a mark."""
    flat = re.sub(r"\s+", " ", text).strip()
    return flat if len(flat) <= most else f"{flat[:most]}..."
