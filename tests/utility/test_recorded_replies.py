"""Recorded replies of real judges, against a literal evaluation of their text: no level is made up.

They are not part of the project; without them this skips.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agenteval.records import Criterion
from agenteval.utility.answers import LevelAnswer
from agenteval.utility.reading import read_text

REFERENCE = Path(__file__).parents[3] / "shared" / "reference"
PROJECT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not REFERENCE.is_dir(), reason="the recorded data is not here")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def literal(text: str) -> Any:
    """The value that Python itself finds in the text; None where it finds none."""
    for candidate in (text, text.strip().removeprefix("```json").removesuffix("```")):
        for evaluate in (json.loads, ast.literal_eval):
            try:
                return evaluate(candidate.strip())
            except (ValueError, SyntaxError):
                continue
    return None


def literal_levels(text: str) -> dict[str, str]:
    """Criterion to level, where the value is a level or an object with one."""
    value = literal(text)
    levels = {}
    for name, level in (value if isinstance(value, dict) else {}).items():
        if isinstance(level, dict):
            level = level.get("label", level.get("accepted_values"))
        if isinstance(level, str):
            levels[name] = level
    return levels


def folded(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text).strip().lower()


def criteria_of(value: Any) -> list[Criterion]:
    """Criteria as the recorded prompt listed them."""
    listed = value if isinstance(value, list) else [{"name": k, **v} for k, v in value.items()]
    return [
        Criterion(
            id=c.get("id", ""),
            name=c["name"],
            accepted_values=tuple(map(str, c["accepted_values"])),
            allow_na=c["name"].startswith("Code"),
        )
        for c in listed
    ]


def recorded(name: str) -> list[tuple[str, list[Criterion]]]:
    """(reply, criteria) of a set."""
    utility = REFERENCE / "utility"
    if name == "prealgebra":
        asked = json.loads((utility / "samples" / "sample_math_criteria.json").read_text())
        rows = lines(utility / "quantifier_runs" / "prealgebra_8runs.jsonl")
        return [(row["raw"], criteria_of(asked)) for row in rows]
    if name == "notebooks":
        rows = lines(utility / "quantifier_runs" / "other_notebook_replies.jsonl")
        readable = [(row["raw"], literal(row["criteria"])) for row in rows]
        return [(raw, criteria_of(value)) for raw, value in readable if value is not None]
    asked = json.loads((PROJECT / "criteria" / "math.reviewed.json").read_text())["criteria"]
    rows = lines(REFERENCE / "capable" / "verify_math_120.jsonl")
    return [(row["reply"]["text"], criteria_of(asked)) for row in rows]


@pytest.mark.parametrize(
    ("name", "read", "unread"),
    [("prealgebra", 958, 2), ("notebooks", 155, 0), ("capable", 1080, 0)],
)
def test_every_level_stands_in_the_reply_and_none_in_plain_sight_is_lost(
    name: str, read: int, unread: int
) -> None:
    counts: Counter[str] = Counter()
    for raw, criteria in recorded(name):
        answers, _ = read_text(raw, criteria)
        levels = literal_levels(raw)
        for criterion in criteria:
            answer = answers.by_path[criterion.id]
            literally = levels.get(criterion.name, levels.get(criterion.id))
            if isinstance(answer, LevelAnswer) and answer.not_applicable:
                assert literally in (None, "not applicable", "N/A")
                assert "not applicable" in raw or "N/A" in raw
                counts["read"] += 1
            elif isinstance(answer, LevelAnswer):
                assert literally is None or folded(answer.label or "") == folded(literally)
                assert answer.label in criterion.accepted_values
                assert folded(answer.label or "") in folded(raw)
                counts["read"] += 1
            else:
                assert literally not in criterion.accepted_values
                counts[answer.status] += 1
    assert counts.pop("read") == read
    assert counts.total() == unread


@pytest.mark.slow
def test_feedback_that_ends_without_a_score_gives_none_and_with_one_that_one() -> None:
    """GPT-4's feedback speaks of rubrics, levels and other ratings; the score stood apart."""
    quality = Criterion(name="Quality", accepted_values=("1", "2", "3", "4", "5"))
    read: Counter[bool] = Counter()
    for name in ("mt_bench_eval", "vicuna_eval"):
        with gzip.open(REFERENCE / "stats" / "prometheus" / f"{name}.json.gz") as file:
            items = json.load(file)
        for item in items:
            for feedback, score in zip(item["gpt4_feedback"], item["gpt4_score"], strict=True):
                answers, _ = read_text(feedback, [quality])
                answer = answers.by_path["quality"]
                assert not isinstance(answer, LevelAnswer) or answer.label == str(score)
                for tail in (f" [RESULT] {score}", f"\n\nScore: {score}/5"):
                    answers, rung = read_text(feedback + tail, [quality])
                    answer = answers.by_path["quality"]
                    assert not isinstance(answer, LevelAnswer) or answer.label == str(score)
                    read[rung is not None] += 1
    assert read[True] >= 0.99 * read.total()
