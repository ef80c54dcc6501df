"""Formats of runs: AutoGen's dumps and logs, message lists, and other records.

Rules for records (our own, and those with the names of other tools, see `fields`) if names alone
are ambiguous:

- `instruction` next to `input` (Alpaca's format): the input is both, instruction first.
- `answer` is the output unless there is a clearer name of an output; then, as in question sets, it
  is kept in the metadata.
- `system` or `model` is a name or a number; a text with line breaks or above 200 characters is a
  system prompt and goes to the metadata if another key names the system.
- If two names of a text have different values, one is read and a warning names the other; two
  different verdicts or gold answers are an error.
- Without an input, the first user message is the input; without an output, the last assistant
  message with text is the output.
- Keys with a gold answer or a verdict inside a structured input or output are moved to the metadata
  (`withheld`), with a warning that names them; those that may be the system's own stay, and their
  paths are kept (`gold_left_visible`) for `find_leaks` (see `gold`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agenteval.errors import InputError
from agenteval.readers import rubrics
from agenteval.readers.failed_runs import failure_of, is_failed
from agenteval.readers.fields import (
    LONGEST_NAME,
    MESSAGES,
    OUTPUT,
    Context,
    Rows,
    RunDraft,
    has_field,
    id_text,
    json_text,
    name_in,
    note_other_texts,
    note_unread,
    plain_text,
    refuse_other_references,
    refuse_other_verdicts,
    snake,
    split,
    system_name,
    verdict,
    words,
)
from agenteval.readers.gold import LEFT_VISIBLE, WITHHELD, GoldFilter
from agenteval.readers.messages import (
    Conversation,
    is_event_list,
    is_message_list,
    messages_in,
    parse_events,
    parse_messages,
)
from agenteval.records import Span

NEEDS = (
    f"a run needs an output ({', '.join(OUTPUT)}), messages ({', '.join(MESSAGES)}) or spans; "
    "map other names with --map output=NAME,input=NAME"
)
_LOG_MARKS = frozenset({"is_correct", "correct_ans", "check_result", "response_with_ans"})
_OTHER_SIDE = {"user": "assistant", "assistant": "user"}
_PARENTS = words("parent_run_id parentRunId parentObservationId parent_observation_id")


@dataclass(frozen=True)
class Format:
    """One format of a run. `matches` is tried in the order of FORMATS and never raises; `to_draft`
    raises InputError with the key that cannot be read."""

    name: str
    matches: Callable[[Any], bool]
    to_draft: Callable[[Any, Context], RunDraft]


def recognise(value: Any) -> Format | None:
    """Return the first format that matches, or None."""
    return next((f for f in FORMATS if f.matches(value)), None)


# ---- AutoGen 0.2 ---------------------------------------------------------------------------------


def _is_log(value: Any) -> bool:
    """Return whether `value` has a problem, messages or a reply, and a field of these logs."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("problem"), str)
        and not _LOG_MARKS.isdisjoint(value)
        and (
            is_message_list(value.get("messages"))
            or (not value.get("messages") and isinstance(value.get("response_with_ans"), str))
        )
    )


def _read_log(value: Any, context: Context) -> RunDraft:
    """Read a result log: `problem`, `messages`, `is_correct`, `correct_ans`, `solution`, ...

    The worked `solution` goes to the metadata. In a log without messages (of a single call or a
    ReAct agent), the output is `response_with_ans`, and a ReAct agent's actions and observations
    (`intermediate_steps`) become messages. The id comes from the location, because `problem_id`
    repeats across folders.

    An agent logs a conversation from its own side: its own turns are `assistant`, its partner's are
    `user`. In a log of the user proxy, the problem is therefore in an `assistant` turn. If the
    first message is an assistant's and contains the problem, user and assistant are swapped, which
    the metadata records (`roles_exchanged`).
    """
    record = dict(value)
    messages = record.get("messages") or []
    aside = ("problem_id", "response_with_ans") if messages else ("problem_id",)
    metadata = {key: record.pop(key) for key in aside if key in record}
    first = messages[0] if messages else {}
    problem, content = record["problem"].strip(), first.get("content")
    says_problem = isinstance(content, str) and problem and problem in content
    if first.get("role") == "assistant" and says_problem:
        record["messages"] = [
            {**m, "role": _OTHER_SIDE.get(str(m.get("role")), m.get("role"))} for m in messages
        ]
        metadata["roles_exchanged"] = True
    elif not messages and (steps := _steps(record.get("intermediate_steps"))):
        record["messages"] = steps
        del record["intermediate_steps"]
    draft = _read_record(record, context)
    for key, item in metadata.items():
        draft.keep(key, item)
    return draft


def _steps(value: Any) -> list[dict[str, str]]:
    pairs = value if isinstance(value, list) else []
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        return []
    messages = []
    for action, observation in pairs:
        content = action["log"] if isinstance(action, dict) and "log" in action else action
        messages.append({"role": "assistant", "content": plain_text(content)})
        messages.append({"role": "tool", "content": plain_text(observation)})
    return messages


# ---- records -------------------------------------------------------------------------------------


def _is_record(value: Any) -> bool:
    is_read = isinstance(value, dict) and has_field(value, "output", "messages", "spans")
    return is_read or (isinstance(value, dict) and is_failed(value))


def _read_record(value: Any, context: Context) -> RunDraft:
    return _RecordReader(value, context).draft


class _RecordReader:
    """Reads the fields of a record into `draft`."""

    def __init__(self, record: dict[str, Any], context: Context) -> None:
        self.context = context
        self.fields, unmatched = split(record)
        self.draft = RunDraft()
        self.gold = GoldFilter()
        for key, item in self._rows("metadata"):
            if isinstance(item, dict) and not self.draft.metadata:
                self.draft.metadata.update(item)
            elif item is not None:
                self.draft.keep(key, item)
        self._read_rubric(unmatched)
        self._keep(list(unmatched.items()))
        self._read_texts()
        self._read_identity()
        self._read_verdict_and_reference()
        self._read_spans()
        self.draft.failure = failure_of(unmatched, self.draft.output.strip(), context)

    def _read_rubric(self, unmatched: dict[str, Any]) -> None:
        for key in [k for k in unmatched if snake(k) in rubrics.KEYS]:
            value = rubrics.listed(unmatched[key])
            if value is None:
                if unmatched[key] is not None and snake(key) != "criteria":  # not only a rubric
                    what = "must be a list of items or an object, null for no rubric"
                    raise InputError(what, f"{self.context.place}: {key}")
                note = f"{key!r} is not a list of items: kept as metadata, not judged"
                self.context.notes.add(note, self.context.place)
                continue
            if self.draft.rubric is not None:
                raise InputError(f"two rubrics, the other is {key!r}", self.context.place)
            del unmatched[key]
            where = f"{self.context.place}: {key}"
            self.draft.rubric = rubrics.read_rubric(value, where, self.context.notes)

    def _rows(self, field: str) -> Rows:
        return self.fields.get(field, [])

    def _keep(self, rows: Rows) -> None:
        for key, value in rows:
            self.draft.keep(key, value)

    def _read_texts(self) -> None:
        outputs = self._rows("output")
        if "messages" not in self.fields and outputs and (inside := messages_in(outputs[0][1])):
            self.fields["messages"] = [(outputs.pop(0)[0], inside)]
        conversation = self._conversation()
        self.draft.messages = conversation.messages
        if conversation.extras:
            self.draft.keep("message_fields", conversation.extras)
        for role, where, item in conversation.objects:
            self.gold.find_visible(item, where, of_system=role == "assistant")
        inputs, outputs = self._rows("input"), self._rows("output")
        self.draft.input = self._input(inputs) if inputs else conversation.first_user or ""
        self.draft.output = self._output(outputs) if outputs else conversation.answer or ""
        withheld, context = self.gold.withheld, self.context
        if withheld:
            self.draft.keep(WITHHELD, withheld)
            context.notes.add(f"gold keys withheld: {', '.join(sorted(withheld))}", context.place)
        if self.gold.visible:
            self.draft.keep(LEFT_VISIBLE, list(self.gold.visible))

    def _conversation(self) -> Conversation:
        """Return the messages; a transcript in a single text becomes the output."""
        conversation = Conversation()
        chosen: tuple[str, Any] | None = None
        for key, value in self._rows("messages"):
            if value is None:
                continue
            if chosen:
                self.draft.keep(key, value)
                if value != chosen[1]:
                    note_unread(chosen[0], key, self.context)
            elif isinstance(value, str) and value and not self._rows("output"):
                self.fields["output"] = [(key, value)]
            elif isinstance(value, str):
                self.draft.keep(key, value)
            elif isinstance(value, list):
                parse = parse_events if is_event_list(value) else parse_messages
                conversation, chosen = parse(value, key, self.context.place), (key, value)
            else:
                problem = f"{key!r} is neither a list of messages nor a text"
                raise InputError(problem, self.context.place)
        return conversation

    def _input(self, rows: Rows) -> str:
        key, value = rows[0]
        if prompt := messages_in(value):  # the input is the user's part; the whole value is kept
            messages = parse_messages(prompt, key, self.context.place).messages
            self.draft.keep(f"{key}_messages", value)
            text = "\n\n".join(m.content for m in messages if m.role == "user")
        else:
            value = self.gold.clean_input(value, key)
            if isinstance(value, dict) and len(value) == 1:
                value = next(iter(value.values()))
            text = plain_text(value)
        texts, unused = [text], list[tuple[str, Any]]()
        for other, item in rows[1:]:
            if snake(key) == "input" and snake(other) == "instruction" and isinstance(item, str):
                texts.insert(0, item)
            elif item is not None:
                unused.append((other, item))
        self._keep(unused)
        note_other_texts([rows[0], *unused], text, self.context)
        return "\n\n".join(text for text in texts if text)

    def _output(self, rows: Rows) -> str:
        key, value = rows[0]
        self._keep([row for row in rows[1:] if row[1] is not None])
        clean = self.gold.clean_output(value, key)
        text = _output_text(clean, key, self.context.place)
        if isinstance(clean, (dict, list)) and text == plain_text(clean):  # not unwrapped
            self.gold.find_visible(clean, key)
        note_other_texts(rows, text, self.context)
        return text

    def _read_identity(self) -> None:
        draft = self.draft
        for key, value in self._rows("id"):
            if draft.id is None:
                draft.id = id_text(value, key, self.context.place)
            elif value is not None:
                draft.keep(key, value)
        for key, value in self._rows("weak_id"):
            fits = isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()
            if draft.weak_id is None and (fits or type(value) is int):
                draft.weak_id = str(value)
            draft.keep(key, value)
        for key, value in self._rows("task"):
            text = name_in(value)
            fits = isinstance(text, str) and 0 < len(text) <= LONGEST_NAME and "\n" not in text
            if value not in (None, "") and (draft.task or not fits or isinstance(value, dict)):
                draft.keep(key, value)
            if fits and not draft.task:
                draft.task = text
        draft.system = system_name(draft, self._rows("system"), self.context) or "unnamed"

    def _read_verdict_and_reference(self) -> None:
        verdicts, references = self._rows("success"), self._rows("reference")
        if verdicts:
            key, value = verdicts[0]
            self.draft.success = verdict(value, key, self.context.place)
            refuse_other_verdicts(verdicts, self.draft.success, self.context)
        if references and references[0][1] is not None:
            self.draft.reference = plain_text(references[0][1])
            refuse_other_references(references, self.context)
        self._keep([*verdicts[1:], *references[1:]])

    def _read_spans(self) -> None:
        place = self.context.place
        for key, value in self._rows("spans"):
            if value is None:
                continue
            if not isinstance(value, list):
                raise InputError(f"{key!r} is not a list of spans", place)
            for i, item in enumerate(value):  # check before pydantic, which lists every problem
                if not isinstance(item, dict):
                    raise InputError(f"{key}[{i}] is not a span (an object)", place)
                strange = next((k for k in item if k not in Span.model_fields), None)
                if strange is not None:
                    keys = ", ".join(Span.model_fields)
                    problem = f"{key}[{i}]: unknown key {strange[:80]!r}; known: {keys}"
                    raise InputError(problem, place)
            self.draft.spans = value


def _output_text(value: Any, key: str, place: str) -> str:
    """Return the text of an output; unwraps known reply objects and shows others as JSON."""
    if is_message_list(value):
        return parse_messages(value, key, place).answer or ""
    if not isinstance(value, dict):
        return plain_text(value)
    first = value.get("choices", value.get("generations"))  # OpenAI's, LangChain's
    while isinstance(first, list) and first:
        first = first[0]
    if isinstance(first, dict) and isinstance(first.get("text"), str) and "generations" in value:
        return str(first["text"])
    message = first.get("message") if isinstance(first, dict) else value
    if is_message_list([message]):
        return parse_messages([message], key, place).answer or ""
    for name in ("output", "completion", "content", "text"):
        opens = len(value) == 1 or name in ("output", "completion")
        if opens and isinstance(value.get(name), str):
            return str(value[name])
    return json_text(value)


def _is_example(value: Any) -> bool:
    keys = value.keys() if isinstance(value, dict) else set()
    return {"dataset_id", "inputs"} <= keys and "run_type" not in keys


def _refuse_example(value: Any, context: Context) -> RunDraft:
    raise InputError(
        "an example of a LangSmith dataset: its outputs are the expected ones, not what a system "
        "answered; export the runs of an experiment",
        context.place,
    )


def is_part(value: Any) -> bool:
    """Return whether a record is a step of another run, as logged by Langfuse and LangSmith."""
    return isinstance(value, dict) and any(value.get(key) is not None for key in _PARENTS)


def _read_list(value: Any, context: Context) -> RunDraft:
    return _read_record({"messages": value} if isinstance(value, list) else value, context)


FORMATS: tuple[Format, ...] = (
    Format(
        "AutoGen AgentChat TaskResult",
        lambda v: is_event_list(v.get("messages") if isinstance(v, dict) else v),
        _read_list,
    ),
    Format("AutoGen 0.2 result log", _is_log, _read_log),
    Format(
        "example of a LangSmith dataset",
        lambda v: (
            isinstance(v, dict) and "run_type" not in v and {"dataset_id", "inputs"} <= v.keys()
        ),
        _refuse_example,
    ),
    Format("OpenAI message list", is_message_list, _read_list),
    Format(
        "native or generic record",
        lambda v: (
            isinstance(v, dict) and (has_field(v, "output", "messages", "spans") or is_failed(v))
        ),
        _read_record,
    ),
)
