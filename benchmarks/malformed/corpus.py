"""The hand-written replies in tests/data/malformed, and what is read from each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agenteval.records import Criterion
from agenteval.utility.answers import Answers, LevelAnswer
from agenteval.utility.reading import read_text
from benchmarks.folders import ROOT

FOLDER = ROOT / "tests/data/malformed"
FILES = ("forms", "cut_and_several", "values", "names_and_shapes", "characters", "found")


@dataclass(frozen=True)
class Row:
    """A reply to a judge's request: the label or the status that each leaf must get."""

    id: str
    kind: str
    criteria: tuple[Criterion, ...]
    reply: str
    expect: dict[str, str]
    rung: str | None
    finish: str = "stop"


def text_of(pieces: Any) -> str:
    """A reply is text, or a list of texts, [text, how often] and numbers of code points."""
    if isinstance(pieces, str):
        return pieces
    return "".join(
        one if isinstance(one, str) else chr(one) if isinstance(one, int) else one[0] * one[1]
        for one in pieces
    )


@lru_cache(maxsize=1)
def criteria() -> dict[str, Criterion]:
    """The criteria that the rows refer to, by id."""
    listed = json.loads((FOLDER / "criteria.json").read_text("utf-8"))
    return {one.id: one for one in map(Criterion.model_validate, listed)}


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file; none when there is no such file."""
    if path.is_file():
        yield from map(json.loads, path.read_text("utf-8").rstrip("\n").split("\n"))


def corpus() -> list[Row]:
    """Every row of every file, in their order."""
    return [
        Row(
            id=raw["id"],
            kind=raw["kind"],
            criteria=tuple(criteria()[name] for name in raw["criteria"]),
            reply=text_of(raw["reply"]),
            expect=raw["expect"],
            rung=raw["rung"],
            finish=raw.get("finish", "stop"),
        )
        for file in FILES
        for raw in lines(FOLDER / f"{file}.jsonl")
    ]


def outcome(answers: Answers) -> dict[str, str]:
    """Label, `not_applicable` or status of each leaf."""
    return {
        path: one.status
        if not isinstance(one, LevelAnswer)
        else "not_applicable"
        if one.not_applicable
        else str(one.label)
        for path, one in answers.by_path.items()
    }


def read(
    reply: str, asked: Sequence[Criterion], finish: str = "stop"
) -> tuple[dict[str, str], str | None]:
    """What a judge's reply gives: `outcome` and the rung."""
    answers, rung = read_text(reply, asked, finish)
    return outcome(answers), rung
