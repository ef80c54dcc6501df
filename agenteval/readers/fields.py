"""Names that other tools give to the fields of a run, and how their values are read.

Names were gathered from the documents of inspect_ai, promptfoo, pydantic-evals, Langfuse,
LangSmith, ragas, DeepEval and OpenAI evals. They are compared in snake case, so `expectedOutput`
is `expected_output`. Where several names of one field occur, the earlier in the list wins, null
loses to any value, and the others go to the metadata (see `aliases` for names that disagree).
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from agenteval.errors import InputError

INPUT = (
    "input", "question", "problem", "user_input", "query", "prompt", "instruction", "inputs",
    "user_query", "user_message", "input_text", "instructions",
)  # fmt: skip
OUTPUT = (
    "output", "actual_output", "response", "completion", "prediction", "model_output",
    "model_answer", "model_response", "model_completion", "final_answer", "predicted_answer",
    "generated_answer", "generated_text", "generation", "llm_response", "completion_message",
    "outputs", "output_text", "sampled", "reply", "response_with_ans", "answer",
)  # fmt: skip
MESSAGES = (
    "messages", "conversation", "conversations", "trajectory", "history", "chat_history",
    "dialogue", "dialog", "turns", "transcript",
)  # fmt: skip
SUCCESS = (
    "success", "is_correct", "correct", "passed", "pass", "is_success", "resolved", "label",
)  # fmt: skip
REFERENCE = (
    "reference", "expected", "expected_answer", "expected_output", "ground_truth", "ground_truths",
    "gold", "gold_answer", "reference_answer", "reference_output", "reference_outputs", "target",
    "ideal", "ideal_output", "correct_ans", "correct_answer", "expected_response", "target_answer",
    "gold_label", "answer_key", "canonical_solution", "solution",
)  # fmt: skip
SYSTEM = ("system", "system_name", "agent", "agent_name", "model", "model_name", "provider")
TASK = ("task", "task_name")
ID = ("id", "run_id", "uuid", "trace_id")
# Names of a case rather than of a run: taken as ids only where they are unique in their file.
WEAK_ID = (
    "task_id", "case_id", "sample_id", "problem_id", "question_id", "idx", "index", "name",
)  # fmt: skip
# Verdicts that have no place in a Run but the metadata.
VERDICT = (
    "check_result", "score", "scores", "grade", "grades", "grading_result", "verdict", "metrics",
    "assertions", "evaluation", "rubric", "reward",
)  # fmt: skip

FIELDS = {
    "id": ID, "weak_id": WEAK_ID, "task": TASK, "system": SYSTEM, "input": INPUT, "output": OUTPUT,
    "messages": MESSAGES, "success": SUCCESS, "reference": REFERENCE, "spans": ("spans",),
    "metadata": ("metadata",),
}  # fmt: skip
_BY_NAME = {
    name: (field, rank) for field, names in FIELDS.items() for rank, name in enumerate(names)
}

_VERDICTS = {
    "true": True, "pass": True, "passed": True, "correct": True, "1": True,
    "false": False, "fail": False, "failed": False, "incorrect": False, "0": False,
}  # fmt: skip

Candidates = dict[str, list[tuple[str, Any]]]


@lru_cache(maxsize=4096)
def snake(name: str) -> str:
    """`name` in snake case: expectedOutput, Expected-Output and expected_output are one name."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\s\-]+", "_", text).lower()


@lru_cache(maxsize=4096)
def field_of(name: str) -> tuple[str, int] | None:
    """The field of a run that a key names, with the rank of the name; None for other keys."""
    return _BY_NAME.get(snake(name))


def split(record: dict[str, Any]) -> tuple[Candidates, dict[str, Any]]:
    """The keys of a record by field (best name first) and all other keys."""
    ranked: dict[str, list[tuple[bool, int, str, Any]]] = {}
    rest: dict[str, Any] = {}
    for key, value in record.items():
        hit = field_of(key) if len(key) <= 40 else None
        if hit is None:
            rest[key] = value
        else:
            ranked.setdefault(hit[0], []).append((value is None, hit[1], key, value))
    found = {
        field: [(key, value) for _, _, key, value in sorted(rows, key=lambda row: row[:2])]
        for field, rows in ranked.items()
    }
    return found, rest


def verdict(value: Any, key: str, place: str) -> bool | None:
    """True, False or None (null) from the value of a success field.

    Raises InputError, naming the key, for anything but booleans, 0, 1 and the words true, false,
    pass, fail, passed, failed, correct, incorrect: a guess would be a wrong label.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and (word := value.strip().lower()) in _VERDICTS:
        return _VERDICTS[word]
    raise InputError(
        f"{key!r} is {_short(value)}: a verdict must be true, false, 1, 0, pass, fail, correct, "
        "incorrect or null (an expected answer belongs under 'reference')",
        place,
    )


def id_text(value: Any, key: str, place: str) -> str | None:
    """The id as text; None when there is none. Raises InputError for values no id can have."""
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or any(ord(c) < 32 or ord(c) == 127 for c in value):
        raise InputError(
            f"{key!r} is {_short(value)}: an id is text without control characters, or an integer",
            place,
        )
    return value


def json_text(value: Any) -> str:
    """JSON of a value for reading by people and judges, keys in their own order."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def plain_text(value: Any) -> str:
    """Strings as they are, null as nothing, a list of one as its item, all else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 1:
        return plain_text(value[0])
    return json_text(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
