"""Our own record, and any record that uses the names of other tools (see `fields`).

Rules where names alone do not settle the matter:

- `instruction` beside `input` (Alpaca's form): the input is both, instruction first.
- `answer` is the output unless a clearer name of an output stands beside it; then, as in question
  sets, it is kept in the metadata.
- `system` or `model` is a name or a number; a text with line breaks or above 200 characters is a
  system prompt and goes to the metadata where another key names the system (see `systems`).
- where two names of a text differ, one is read and a warning tells of the other; two different
  verdicts or gold answers are an error (see `aliases`).
- without an input, the first user message is the input; without an output, the last assistant
  message with text is the output.
- keys with a gold answer or a verdict inside a structured input or output are moved to the
  metadata (`withheld`), with a warning that names them; those that may be the system's own stay,
  and their paths are kept (`gold_left_visible`) for `find_leaks` (see `gold`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.aliases import (
    refuse_other_references,
    refuse_other_verdicts,
    tell,
    tell_left,
)
from agenteval.readers.draft import Context, Draft
from agenteval.readers.events import is_event_list, parse_events
from agenteval.readers.fields import (
    MESSAGES,
    OUTPUT,
    Candidates,
    field_of,
    id_text,
    json_text,
    plain_text,
    snake,
    split,
    verdict,
)
from agenteval.readers.gold import (
    LEFT_VISIBLE,
    left_visible,
    withhold_from_input,
    withhold_from_output,
)
from agenteval.readers.messages import Conversation, is_message_list, parse_messages
from agenteval.readers.systems import LONGEST_NAME, system_name
from agenteval.records import Span

_EVIDENCE = frozenset({"output", "messages", "spans"})
NEEDS = f"a run needs an output ({', '.join(OUTPUT)}), messages ({', '.join(MESSAGES)}) or spans"


def matches(value: Any) -> bool:
    """Whether `value` is an object with a key for an output, messages or spans."""
    return isinstance(value, dict) and any(
        (hit := field_of(key)) is not None and hit[0] in _EVIDENCE
        for key in value
        if len(key) <= 40
    )


def to_draft(value: Any, context: Context) -> Draft:
    """The fields of a run. Raises InputError naming the key that cannot be read."""
    found, rest = split(value)
    draft = Draft()
    if "messages" not in found and "output" in found and is_message_list(found["output"][0][1]):
        found["messages"] = [found["output"].pop(0)]
        if not found["output"]:
            del found["output"]
    _metadata(draft, found, rest)
    talk = _messages(draft, found, context)
    draft.messages = talk.messages
    if talk.extras:
        draft.keep("message_fields", talk.extras)
    kept = _Kept(draft, context)
    kept.look_into(talk)
    draft.input = _input(kept, found["input"]) if "input" in found else talk.first_user or ""
    draft.output = _output(kept, found["output"]) if "output" in found else talk.answer or ""
    if kept.gold:
        draft.keep("withheld", kept.gold)
        names = ", ".join(sorted(kept.gold))
        context.notes.add(f"gold keys withheld: {names}", context.place)
    if kept.visible:
        draft.keep(LEFT_VISIBLE, list(kept.visible))
    _identity(draft, found, context)
    _gold(draft, found, context)
    _spans(draft, found, context)
    return draft


def _metadata(draft: Draft, found: Candidates, rest: dict[str, Any]) -> None:
    for key, value in found.pop("metadata", []):
        if isinstance(value, dict) and not draft.metadata:
            draft.metadata.update(value)
        elif value is not None:
            draft.keep(key, value)
    for key, value in rest.items():
        draft.keep(key, value)


def _messages(draft: Draft, found: Candidates, context: Context) -> Conversation:
    talk = Conversation()
    taken: tuple[str, Any] | None = None
    for key, value in found.pop("messages", []):
        if taken or value is None:
            if value is not None:
                draft.keep(key, value)
            if taken and value not in (None, taken[1]):
                tell(taken[0], key, context)
            continue
        if isinstance(value, str) and value and "output" not in found:
            found["output"] = [(key, value)]  # a transcript in one text
        elif isinstance(value, str):
            draft.keep(key, value)
        elif isinstance(value, list):
            parse = parse_events if is_event_list(value) else parse_messages
            talk, taken = parse(value, key, context.place), (key, value)
        else:
            raise InputError(f"{key!r} is neither a list of messages nor a text", context.place)
    return talk


@dataclass
class _Kept:
    """Where texts are read for, and the gold keys found inside them: withheld, left visible."""

    draft: Draft
    context: Context
    gold: dict[str, Any] = field(default_factory=dict)
    visible: dict[str, None] = field(default_factory=dict)  # a set in order

    def look_into(self, talk: Conversation) -> None:
        """Note the gold keys in objects that messages show."""
        for role, path, value in talk.objects:
            self.visible |= dict.fromkeys(left_visible(value, path, own=role == "assistant"))


def _input(kept: _Kept, rows: list[tuple[str, Any]]) -> str:
    key, value = rows[0]
    texts = [_input_text(value, key, kept)]
    left = [rows[0]]
    for other, item in rows[1:]:
        if snake(key) == "input" and snake(other) == "instruction" and isinstance(item, str):
            texts.insert(0, item)
        elif item is not None:
            kept.draft.keep(other, item)
            left.append((other, item))
    tell_left(left, texts[-1], kept.context)
    return "\n\n".join(text for text in texts if text)


def _input_text(value: Any, key: str, kept: _Kept) -> str:
    """Text of an input. Of a prompt given as messages, the user's part; the whole is kept."""
    if is_message_list(value):
        messages = parse_messages(value, key, kept.context.place).messages
        kept.draft.keep(f"{key}_messages", value)
        return "\n\n".join(m.content for m in messages if m.role == "user")
    value = withhold_from_input(value, key, kept.gold)
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    return plain_text(value)


def _output(kept: _Kept, rows: list[tuple[str, Any]]) -> str:
    key, value = rows[0]
    for other, item in rows[1:]:
        if item is not None:
            kept.draft.keep(other, item)
    clean = withhold_from_output(value, key, kept.gold)
    text = _output_text(clean, key, kept.context.place)
    if isinstance(clean, (dict, list)) and text == plain_text(clean):  # not an opened envelope
        kept.visible |= dict.fromkeys(left_visible(clean, key))
    tell_left(rows, text, kept.context)
    return text


def _output_text(value: Any, key: str, place: str) -> str:
    """Text of an output; known envelopes of replies are opened, other objects shown as JSON."""
    if is_message_list(value):
        return parse_messages(value, key, place).answer or ""
    if not isinstance(value, dict):
        return plain_text(value)
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else value
    if is_message_list([message]):
        return parse_messages([message], key, place).answer or ""
    for name in ("output", "completion", "content", "text"):
        opens = len(value) == 1 or name in ("output", "completion")
        if opens and isinstance(value.get(name), str):
            return str(value[name])
    return json_text(value)


def _identity(draft: Draft, found: Candidates, context: Context) -> None:
    for key, value in found.pop("id", []):
        if draft.id is None:
            draft.id = id_text(value, key, context.place)
        elif value is not None:
            draft.keep(key, value)
    for key, value in found.pop("weak_id", []):
        if draft.weak_id is None and _is_case_id(value):
            draft.weak_id = str(value)
        draft.keep(key, value)
    draft.task = _name(draft, found.pop("task", [])) or ""
    draft.system = system_name(draft, found.pop("system", []), context) or "unnamed"


def _is_case_id(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()


def _name(draft: Draft, rows: list[tuple[str, Any]]) -> str | None:
    """The first value that can be a name (or an object with one); the others are kept."""
    name: str | None = None
    for key, value in rows:
        text = value
        if isinstance(value, dict):
            text = next((value[k] for k in ("name", "id", "label") if k in value), None)
        fits = isinstance(text, str) and text and len(text) <= LONGEST_NAME and "\n" not in text
        if name is None and fits:
            name = str(text)
            if isinstance(value, dict):
                draft.keep(key, value)
        elif value is not None and value != "":
            draft.keep(key, value)
    return name


def _gold(draft: Draft, found: Candidates, context: Context) -> None:
    rows = found.pop("success", [])
    if rows:
        key, value = rows[0]
        draft.success = verdict(value, key, context.place)
        refuse_other_verdicts(rows, draft.success, context)
    for key, value in rows[1:]:
        draft.keep(key, value)
    rows = found.pop("reference", [])
    if rows and rows[0][1] is not None:
        draft.reference = plain_text(rows[0][1])
        refuse_other_references(rows, context)
    for key, value in rows[1:]:
        draft.keep(key, value)


def _spans(draft: Draft, found: Candidates, context: Context) -> None:
    for key, value in found.pop("spans", []):
        if value is None:
            continue
        if not isinstance(value, list):
            raise InputError(f"{key!r} is no list of spans", context.place)
        for i, item in enumerate(value):  # before pydantic lists every single problem
            if not isinstance(item, dict):
                raise InputError(f"{key}[{i}] is no span, which is an object", context.place)
            strange = next((k for k in item if k not in Span.model_fields), None)
            if strange is not None:
                known = ", ".join(Span.model_fields)
                raise InputError(
                    f"{key}[{i}]: unknown key {strange[:80]!r}; known: {known}", context.place
                )
        draft.spans = value
