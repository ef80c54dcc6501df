"""What every recipe is tried on: a right answer, a wrong one, one whose clarity is not rated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

QUESTION, EXPECTED = "2 + 2?", "4"
SAID = ("It is 4", "It is 5", "?! 4")
# by criterion; what could not be judged must not be there
SCORES = [
    {"clarity": 1.0, "right-answer": 1.0},
    {"clarity": 1.0, "right-answer": 0.0},
    {"right-answer": 1.0},
]
FAILURE = "unscored:missing"
CRITERIA = [
    {"name": "Right answer", "accepted_values": ["wrong", "right"], "scale": "binary"},
    {"name": "Clarity", "accepted_values": ["unclear", "clear"]},
]
JUDGE = """
def judge(run, criterion):
    if criterion.id == "clarity":
        return None if "?!" in run.output else "clear"
    return "right" if run.output.endswith(run.reference) else "wrong", "compared"
"""


def write() -> None:
    """The judge and the criteria of the recipes, into the current folder."""
    criteria: dict[str, Any] = {"task": "sums", "criteria": CRITERIA}
    Path("criteria.json").write_text(json.dumps(criteria))
    Path("judges.py").write_text(JUDGE)
