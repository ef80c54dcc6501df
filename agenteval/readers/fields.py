"""Names that tools use for the fields of a run, and parsers for their values.

Names come from the documentation of inspect_ai, promptfoo, pydantic-evals, Langfuse, LangSmith,
ragas, DeepEval and OpenAI evals. They are compared in snake case, so `expectedOutput` is
`expected_output`. If several names of a field occur, the earliest in the list with a non-null value
wins, and the others go to the metadata. Two different texts cause a warning, because both are kept.
Two different verdicts or gold answers are an error, because the wrong one might be counted.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.strict_json import Notes
from agenteval.records import Criterion, Message, RunFailure


def words(text: str) -> tuple[str, ...]:
    """Return the names in a block of text, in order."""
    return tuple(text.split())


INPUT = words("""
    input question problem user_input query prompt instruction inputs user_query user_message
    input_text instructions
""")
OUTPUT = words("""
    output actual_output response completion prediction model_output model_answer model_response
    model_completion final_answer predicted_answer generated_answer generated_text generation
    llm_response completion_message model_patch outputs output_text sampled reply response_with_ans
    answer
""")
MESSAGES = words("""
    messages conversation conversations trajectory history chat_history dialogue dialog turns
    transcript
""")
SUCCESS = words("success is_correct correct passed pass is_success resolved label")
REFERENCE = words("""
    reference expected expected_answer expected_output ground_truth ground_truths gold gold_answer
    reference_answer reference_output reference_outputs target ideal ideal_output correct_ans
    correct_answer expected_response target_answer gold_label answer_key true_answer
    canonical_solution solution
""")
SYSTEM = words("""
    system system_name agent agent_name model model_name model_id model_test generator
    model_name_or_path provider
""")
# Names of a case rather than a run: ids only if they are unique in their file
WEAK_ID = words("""
    task_id case_id sample_id problem_id question_id instance_id doc_id uid idx index name
""")
# Verdicts that a Run can only keep as metadata
VERDICT = words("""
    check_result score scores grade grades grading_result verdict metrics assertions evaluation
    rubric reward
""")
FIELDS = {
    "id": ("id", "run_id", "uuid", "trace_id"),
    "weak_id": WEAK_ID,
    "task": ("task", "task_name"),
    "system": SYSTEM,
    "input": INPUT,
    "output": OUTPUT,
    "messages": MESSAGES,
    "success": SUCCESS,
    "reference": REFERENCE,
    "spans": ("spans",),
    "metadata": ("metadata",),
}
_BY_NAME = {name: (key, rank) for key, names in FIELDS.items() for rank, name in enumerate(names)}

# Spreadsheets write booleans in the user's language.
_TRUE = words("true pass passed correct 1 yes y")
_TRUE += words("ja wahr oui vrai sí verdadero sì vero sim verdadeiro waar")
_FALSE = words("false fail failed incorrect 0 no n nein falsch non faux falso não nee onwaar")
_VERDICTS = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)
# Notations for a missing value in spreadsheets and programs
_MISSING = frozenset({"", *words("nan none null nil unknown <na> na n-a n.a. n/a #n/a")})
# A worked solution next to the answer is not a second answer.
_WORKED = frozenset({"solution", "canonical_solution"})
# These may contain a different form of the answer: a letter, a class, several answers.
_LOOSE = frozenset({"target", "ideal", "ideal_output", "gold_label", "answer_key"})
# Next to another verdict, a label is a verdict only if it is unambiguous; "1" may be a class.
_LABELS = frozenset({"pass", "passed", "fail", "failed", "correct", "incorrect"})
LONGEST_NAME = 200
_LONGEST_KEY = 40

Rows = list[tuple[str, Any]]  # keys and values of one field, best name first
Candidates = dict[str, Rows]


@dataclass(frozen=True)
class Context:
    """The location of a value (for error messages) and the target of warnings."""

    place: str
    notes: Notes


@dataclass
class RunDraft:
    """Fields of a Run. `weak_id` names the case and becomes the id only if it is unique."""

    id: str | None = None
    weak_id: str | None = None
    task: str = ""
    system: str = "unnamed"
    input: str = ""
    output: str = ""
    messages: list[Message] = field(default_factory=list)
    success: bool | None = None
    reference: str | None = None
    spans: list[Any] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    failure: RunFailure | None = None
    rubric: Criterion | None = None

    def keep(self, key: str, value: Any) -> None:
        """Add a value to the metadata; a duplicate key gets the next free number."""
        name, number = key, 2
        while name in self.metadata:
            name, number = f"{key} ({number})", number + 1
        self.metadata[name] = value


@lru_cache(maxsize=4096)
def snake(name: str) -> str:
    """Return `name` in snake case: expectedOutput and Expected-Output are expected_output."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\s\-]+", "_", text).lower()


@lru_cache(maxsize=4096)
def field_of(name: str) -> tuple[str, int] | None:
    """Return the field that a key names and the rank of the name; None for other keys."""
    return _BY_NAME.get(snake(name))


def has_field(record: dict[str, Any], *fields: str) -> bool:
    """Return whether the record has a key for one of these fields."""
    return any(
        (hit := field_of(key)) is not None and hit[0] in fields
        for key in record
        if len(key) <= _LONGEST_KEY
    )


def split(record: dict[str, Any]) -> tuple[Candidates, dict[str, Any]]:
    """Return the keys of a record by field, best name first, and all other keys."""
    ranked: dict[str, list[tuple[bool, int, str, Any]]] = {}
    unmatched: dict[str, Any] = {}
    for key, value in record.items():
        hit = field_of(key) if len(key) <= _LONGEST_KEY else None
        if hit is None:
            unmatched[key] = value
        else:
            ranked.setdefault(hit[0], []).append((value is None, hit[1], key, value))
    for rows in ranked.values():
        rows.sort(key=lambda row: row[:2])
    return {name: [row[2:] for row in rows] for name, rows in ranked.items()}, unmatched


def is_missing(value: Any) -> bool:
    """Return whether a value stands for a missing one: null, NaN, blank, "N/A" and similar."""
    return value is None or str(value).strip().lower() in _MISSING


def number_of(value: Any) -> float | None:
    """Return a value as a number, or None if it is not one.

    Text may have a decimal comma. The words of a verdict count as 1 and 0.
    """
    if isinstance(value, str):
        word = value.strip().lower()
        value = _VERDICTS.get(word, re.sub(r"^(-?\d+),(\d+)$", r"\1.\2", word))
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):  # OverflowError: an integer above any float
        return None
    return number if math.isfinite(number) else None


def verdict(value: Any, key: str, place: str) -> bool | None:
    """Return True, False or None (see `is_missing`) from the value of a success field.

    Raises InputError, naming the key, for anything but booleans, 0, 1 and the words true, false,
    yes, no, pass, fail, passed, failed, correct, incorrect (yes, no, true and false also in German,
    French, Spanish, Italian, Portuguese, Dutch), because a guess may be wrong.
    """
    if isinstance(value, bool):
        return value
    if is_missing(value):
        return None
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and (word := value.strip().lower()) in _VERDICTS:
        return _VERDICTS[word]
    raise InputError(
        f"{key!r} is {shorten(value)}: a verdict must be true, false, yes, no, 1, 0, pass, fail, "
        "correct, incorrect or null (an expected answer belongs under 'reference')",
        place,
    )


def id_text(value: Any, key: str, place: str) -> str | None:
    """Return an id as text, or None if it is missing. Raises InputError for an invalid id."""
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or _has_control_characters(value):
        raise InputError(
            f"{key!r} is {shorten(value)}: an id is text without control characters, or an integer",
            place,
        )
    return value


def _has_control_characters(text: str) -> bool:
    return any(ord(c) < 32 or ord(c) == 127 for c in text)


def json_text(value: Any) -> str:
    """Return a value as JSON for people and judges, keeping the order of keys."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def plain_text(value: Any) -> str:
    """Return strings unchanged, "" for null, a list of one as its item, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 1:
        return plain_text(value[0])
    return json_text(value)


def shorten(value: Any) -> str:
    """Format a value in at most 60 characters, for messages."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# ---- conflicting names ---------------------------------------------------------------------------


def note_unread(read: str, unread: str, context: Context) -> None:
    """Warn that one of two names of a field is ignored."""
    context.notes.add(
        f"{read!r} is read; {unread!r} differs and goes to the metadata", context.place
    )


def note_other_texts(rows: Rows, text: str, context: Context) -> None:
    """Warn about every later row with a value other than `text`, which was read."""
    for key, value in rows[1:]:
        if value is not None and _comparable(value) != text.strip():
            note_unread(rows[0][0], key, context)


def _comparable(value: Any) -> str:
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    return plain_text(value).strip()


def refuse_other_verdicts(rows: Rows, success: bool | None, context: Context) -> None:
    """Raise InputError if a later row has a different verdict."""
    for key, value in rows[1:]:
        word = value.strip().lower() if isinstance(value, str) else None
        if snake(key) == "label" and word not in _LABELS:
            continue
        try:
            other = verdict(value, key, context.place)
        except InputError:  # not a verdict: kept as data
            continue
        if other not in (None, success):
            _refuse_both(rows[0], (key, value), context)


def refuse_other_references(rows: Rows, context: Context) -> None:
    """Raise InputError if two rows have different answers; warn if they may differ."""
    exact = [row for row in rows if row[1] is not None and snake(row[0]) not in _WORKED | _LOOSE]
    for row in exact[1:]:
        if _comparable(row[1]) != _comparable(exact[0][1]):
            _refuse_both(exact[0], row, context)
    text = _comparable(rows[0][1])
    note_other_texts([rows[0], *(r for r in rows[1:] if snake(r[0]) in _LOOSE)], text, context)


def _refuse_both(row: tuple[str, Any], other: tuple[str, Any], context: Context) -> None:
    first, second = (f"{key!r} ({shorten(value)})" for key, value in (row, other))
    raise InputError(f"{first} and {second} differ: only one can be true", context.place)


# ---- systems -------------------------------------------------------------------------------------


def system_name(draft: RunDraft, rows: Rows, context: Context) -> str | None:
    """Return the first value that names a system, and keep the others; None if there is none.

    A name is text of at most 200 characters without control characters, an integer, or an object
    with such a `name`, `id` or `label`. Any other value, such as a system prompt, goes to the
    metadata with a warning if another key names the system. Raises InputError for a value of
    another kind under `system`, and if no value names the system, because a wrong name would merge
    systems.
    """
    name: str | None = None
    named_by = ""
    strange: Rows = []
    for key, value in rows:
        if value is None or value == "":
            continue
        text = _system_text(value) if name is None else None
        if name is None and text is None:
            strange.append((key, value))
        if text is None or isinstance(value, dict):
            draft.keep(key, value)
        if text is not None:
            name, named_by = text, key
    for key, value in strange:
        of_system = snake(key) in ("system", "system_name") and not isinstance(value, str)
        if name is None or of_system:
            raise InputError(
                f"{key!r} is {shorten(value)}: a system's name is text of at most {LONGEST_NAME} "
                "characters without control characters, or an integer (a prompt belongs under "
                "'messages')",
                context.place,
            )
        problem = f"{key!r} is not a system name and goes to the metadata; {named_by!r} names it"
        context.notes.add(problem, context.place)
    return name


def check_name(name: str, where: str) -> None:
    """Raise InputError if this cannot be the name of a system."""
    if _system_text(name) is None:
        raise InputError(
            f"a system's name is text of 1 to {LONGEST_NAME} characters without control characters",
            where,
        )


def _system_text(value: Any) -> str | None:
    value = name_in(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    fits = isinstance(value, str) and 0 < len(value) <= LONGEST_NAME
    return value if fits and not _has_control_characters(value) else None


def name_in(value: Any) -> Any:
    """Return the `name`, `id` or `label` of an object; any other value unchanged."""
    if not isinstance(value, dict):
        return value
    return next((value[k] for k in ("name", "id", "label") if k in value), None)
