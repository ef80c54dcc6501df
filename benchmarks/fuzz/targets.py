"""What is fuzzed, and what must hold of it whatever the text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agenteval
from agenteval.errors import ReplyError
from agenteval.evaluators.utility.answers import Answer, leaves_of
from agenteval.evaluators.utility.reading import read_text
from agenteval.models.reply import parse_reply
from agenteval.records import Criterion
from benchmarks.malformed.corpus import criteria
from benchmarks.malformed.readers import READERS

SOURCES = (
    "models/reply.py", "models/jsonish.py",
    "evaluators/utility/answers.py", "evaluators/utility/labels.py",
    "evaluators/utility/reading.py", "evaluators/utility/critic_reply.py",
    "evaluators/utility/levels.py", "evaluators/traces/locator_reply.py",
    "evaluators/workflows/reply_text.py",
    "evaluators/workflows/session_judge.py", "agents/react_text.py", "agents/arguments.py",
)  # fmt: skip
SEVERAL = ("clarity", "accuracy", "correctness", "points", "passed", "quality")
WORDS = (
    "{", "}", "[", "]", "(", ")", '"', "'", ":", ",", "\\", "\\u", "\\ud800", "\n", " ", "\t",
    "\x00", "```", "```json\n", "//", "#", "/*", "*/", "<think>", "</think>", "<!--", "true",
    "True", "null", "None", "NaN", "-Infinity", "1e999", "0", "-1", "3.5", "4/5", "four",
    "out of", "stars", "%", "range(", "list(", "1, 5)", "\ufeff", "\ud800", "\u200b", "：", "“",
    "”", "｛", "é", "😀", "clarity", "accuracy", "quality", "structure", "tone", "points",
    "passed", "correctness", "label", "score", "explanation", "probabilities",
    "accepted_values", "criterion", "criteria", "name", "unclear", "fair", "clear",
    "partly right", "right", "wrong", "2 - Mostly correct", "kind", "not applicable", "N/A",
    "Action:", "Action Input:", "Final Answer:", "Observation:", "Thought:", "Response:",
    "findings", "span", "S1", "evidence", "nine birds", "category", "Invention", "goals",
    "number", "achieved", "success", "equal", "reason", "reliability", "professions", "role",
    "activities", "Result: yes", "Total number of goals: 2", '{"clarity": "fair"}',
    '"label": "right"', "I cannot help",
)  # fmt: skip


class Broken(AssertionError):
    """Something that must hold of every text does not hold of this one."""


def files() -> list[Path]:
    """The files whose arcs count."""
    root = Path(agenteval.__file__).parent
    return [root / name for name in SOURCES]


def _plain(value: Any) -> None:
    """Can be stored, and written into any file."""
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")


def ladder(text: str) -> None:
    """parse_reply: a plain value that its own JSON gives again, or ReplyError."""
    try:
        value = parse_reply(text).value
    except ReplyError:
        return
    _plain(value)
    for ascii_only in (True, False):
        again = parse_reply(json.dumps(value, ensure_ascii=ascii_only))
        if repr(again.value) != repr(value):
            raise Broken(f"its own JSON is read as {again.value!r:.200}")


def _judge(asked: tuple[Criterion, ...], finish: str) -> Callable[[str], object]:
    listed = dict(leaves_of(asked))

    def judge(text: str) -> None:
        """read_text: an accepted value or a status for each criterion that was asked for."""
        answers, _ = read_text(text, asked, finish)
        if answers.by_path.keys() != listed.keys():
            raise Broken("not one outcome per criterion")
        for path, one in answers.by_path.items():
            if isinstance(one, Answer):
                _checked(one, listed[path])

    return judge


def _checked(one: Answer, leaf: Criterion) -> None:
    """An accepted value (or a number of the range) with its rank, or not applicable if allowed."""
    _plain([one.label, one.value, one.explanation, one.probabilities])
    if one.not_applicable:
        if not leaf.allow_na or one.value is not None:
            raise Broken("not applicable where it is not allowed")
    elif one.value is None or not 0 <= one.value <= 1:
        raise Broken(f"the value {one.value}")
    elif leaf.scale == "numeric":
        low, high = sorted(leaf.numeric_range or ())
        if not low <= float(one.label or "nan") <= high:
            raise Broken(f"{one.label} is outside the range")
    elif one.probabilities is None and leaf.value_of(one.label or "") != one.value:
        raise Broken(f"{one.label} with the value {one.value}")


def _reader(name: str) -> Callable[[str], object]:
    def read(text: str) -> None:
        try:
            _plain(READERS[name](text))
        except ReplyError:
            return

    return read


def targets() -> dict[str, Callable[[str], object]]:
    """By name. The tool simulator is left out: it is the ladder behind an event loop."""
    known = criteria()
    several = tuple(known[name] for name in SEVERAL)
    found: dict[str, Callable[[str], object]] = {
        "ladder": ladder,
        "judge": _judge(several, "stop"),
        "judge, one criterion": _judge((known["overall"],), "stop"),
        "judge, cut off": _judge(several[:2], "length"),
    }
    return found | {name: _reader(name) for name in READERS if name != "tool"}
