"""Gold answers and verdicts inside structured values: withheld, or left visible and named.

In an input no answer can be the system's, so every name of gold or of a verdict is withheld. In an
output it can, so three kinds of names are told apart:

- ONLY_GOLD can be nothing but gold or a verdict: withheld at any depth.
- EVERYDAY words are gold or a verdict where an answer stands beside them at the top of the output
  ({"answer": ..., "expected": ..., "score": ...}), and are withheld there. Elsewhere they may be
  the answer itself (of a classifier, of a writer of tests), or cite a source: they stay, and are
  named.
- DOUBTFUL words are a part of an answer as often as gold: they stay, and are named where an answer
  stands beside them. A `solution` is withheld in a log: where an answer stands beside it and the
  problem, or what can only be gold, as well.

In messages nothing is withheld, since they are the work; what stands in objects there is named. A
text is what somebody said (see `leaks`), except an output that is a log written as JSON: an object
with an answer and with what can only be gold, or with problem and `solution`.
"""

from __future__ import annotations

from typing import Any

from agenteval.readers.assignment import value_in
from agenteval.readers.fields import (
    INPUT,
    OUTPUT,
    REFERENCE,
    SUCCESS,
    VERDICT,
    json_text,
    snake,
)

# Where in the metadata of a run the paths of what was left visible stand.
LEFT_VISIBLE = "gold_left_visible"
# What `leaks` finds in any text, quoted and with a value; not named a second time.
VERDICT_NAMES = ("is_correct", "check_result")
GOLD_NAMES = (
    "correct_ans",
    "correct_answer",
    "ground_truth",
    "gold_answer",
    "gold_label",
    "expected_answer",
    "reference_answer",
    "target_answer",
    "answer_key",
)

_IN_TEXT = frozenset({*VERDICT_NAMES, *GOLD_NAMES})
_ANSWERS = frozenset({*OUTPUT, "text", "content", "messages"})
_EVERYDAY_GOLD = frozenset({"expected", "gold"})
EVERYDAY = frozenset(
    {
        *_EVERYDAY_GOLD,
        "reference",
        "success",
        "is_success",
        "correct",
        "passed",
        "pass",
        "verdict",
        "grade",
        "grades",
        "score",
        "scores",
        "reward",
    }
)
DOUBTFUL = frozenset(
    {
        "target",
        "ideal",
        "solution",
        "label",
        "resolved",
        "evaluation",
        "rubric",
        "metrics",
        "assertions",
    }
)
# Names in rows of public sets (GAIA, SWE-bench and their kind) and in what is made after them.
_OF_A_SET = frozenset(
    {
        "annotator_metadata",
        "test_patch",
        "fail_to_pass",
        "pass_to_pass",
        "hints_text",
        *(
            f"{word}_{noun}"
            for word in ("true", "gold", "golden", "correct", "expected", "reference", "oracle")
            for noun in (
                "answer",
                "answers",
                "output",
                "outputs",
                "response",
                "label",
                "labels",
                "solution",
                "solutions",
                "patch",
                "sql",
            )
        ),
    }
)
ONLY_GOLD = (
    frozenset({"is_correct", "check_result", "grading_result", *REFERENCE, *_OF_A_SET})
    - EVERYDAY
    - DOUBTFUL
)
# Gold where a name of ONLY_GOLD stands in the same row.
BESIDE_GOLD = frozenset({"patch", "hint", "hints", "solution"})
_OF_A_LOG = ONLY_GOLD | frozenset(INPUT)
GOLD_IN_INPUT = frozenset({*SUCCESS, *REFERENCE, *VERDICT, *_OF_A_SET, "answer", "answers"})
_VERDICTS = frozenset({*SUCCESS, *VERDICT})


def is_verdict(key: str) -> bool:
    """Whether the name stands for a verdict; else for a gold answer."""
    return snake(key) in _VERDICTS


def withhold_from_input(value: Any, path: str, kept: dict[str, Any]) -> Any:
    """`value` without gold and verdicts, at any depth; they are moved into `kept` by path."""
    return _without(value, GOLD_IN_INPUT, frozenset(), path, kept)


def withhold_from_output(value: Any, path: str, kept: dict[str, Any]) -> Any:
    """`value` without what is surely gold or a verdict (see the module), moved into `kept`.

    A text is given back as it is, unless it is a log in JSON.
    """
    if not isinstance(value, str):
        return _without(value, ONLY_GOLD, EVERYDAY, path, kept)
    log = _log_in(value)
    if log is None:
        return value
    before = len(kept)
    clean = _without(log, ONLY_GOLD, frozenset(), path, kept)
    return json_text(clean) if len(kept) > before else value


def _log_in(text: str) -> dict[str, Any] | None:
    """The object that a text is, when it has an answer."""
    value = value_in(text)
    return value if isinstance(value, dict) and _has_answer(value) else None


def _without(
    value: Any, gold: frozenset[str], at_top: frozenset[str], path: str, kept: dict[str, Any]
) -> Any:
    """`at_top` goes as well, beside an answer, until the first object has been entered."""
    if isinstance(value, list):
        return [_without(v, gold, at_top, f"{path}[{i}]", kept) for i, v in enumerate(value)]
    if not isinstance(value, dict):
        return value
    here = gold
    if _has_answer(value):
        in_log = any(snake(key) in _OF_A_LOG for key in value)
        here = gold | at_top | (frozenset({"solution"}) if in_log else frozenset())
    elif gold is GOLD_IN_INPUT and any(snake(key) in ONLY_GOLD for key in value):
        here = gold | BESIDE_GOLD
    clean: dict[str, Any] = {}
    for key, item in value.items():
        if snake(key) in here:
            kept[f"{path}.{key}"] = item
        else:
            clean[key] = _without(item, gold, frozenset(), f"{path}.{key}", kept)
    return clean


def _has_answer(value: dict[str, Any]) -> bool:
    return any(snake(key) in _ANSWERS for key in value)


def left_visible(value: Any, path: str, *, own: bool = True) -> list[str]:
    """Paths of keys in `value` that may be gold or a verdict, each once; "[]" for any position.

    `own` says that the value is the system's. What a tool or a user says of `success` or of a
    `score` is its own result: there only names of gold are told.
    """
    paths: dict[str, None] = {}
    stack = [(value, path)]
    while stack:
        item, at = stack.pop()
        if isinstance(item, list):
            stack.extend((child, f"{at}[]") for child in reversed(item))
        elif isinstance(item, dict):
            names = _telling(own, own and _has_answer(item))
            for key in item:
                if snake(key) in names and key.lower() not in _IN_TEXT:
                    paths[f"{at}.{key}"] = None
            stack.extend((child, f"{at}.{key}") for key, child in reversed(item.items()))
    return list(paths)


def _telling(own: bool, answered: bool) -> frozenset[str]:
    if not own:
        return ONLY_GOLD | _EVERYDAY_GOLD
    return ONLY_GOLD | EVERYDAY | DOUBTFUL if answered else ONLY_GOLD | EVERYDAY
