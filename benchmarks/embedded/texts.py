"""Runs of the development set and of three tasks with perturbed copies, and their statistics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agenteval.evaluators.utility.embedded import MIN_SENTENCES, read_prose
from agenteval.evaluators.utility.plan import Item
from agenteval.readers import make_view, read_runs
from agenteval.records import Run
from agenteval.trust.verification import Copies, make_copies
from benchmarks.folders import ROOT

DEVSET = ROOT / "benchmarks" / "devset" / "problems.jsonl"
DEVELOPMENT = "development"
TASKS = ("math", "household", "support")
MOVING = ("drop_sentences", "truncate", "shuffle_sentences", "swap_numbers", "pad")
CONTROLS = ("whitespace", "formatting")
SHARE, SEED = 0.25, 0  # as `agenteval verify` makes its copies


@dataclass(frozen=True)
class Text:
    """An original or a copy: its case, what is known of the run, and its statistics."""

    run: str
    case: str
    success: bool | None
    statistics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Texts:
    """One set of texts: originals by run, and by operator the copies by run."""

    originals: dict[str, Text]
    copies: dict[str, dict[str, Text]]


@dataclass(frozen=True)
class Material:
    """The runs of a set, and copies of one run of each case, the systems taking turns."""

    items: list[Item]
    copied: list[Item]
    copies: list[Copies]


def load_material(name: str, operators: Sequence[str], cases: int | None = None) -> Material:
    """A set by its name, the first `cases` cases of it."""
    by_case: dict[str, list[Item]] = {}
    for run in _development() if name == DEVELOPMENT else _task(name):
        by_case.setdefault((run.input or run.id), []).append((run, make_view(run)))
    groups = list(by_case.values())[:cases]
    copied = [group[i % len(group)] for i, group in enumerate(groups)]
    if name == DEVELOPMENT:
        copied = [group[0] for group in groups]  # the good solution
    copies = make_copies(copied, operators, share=SHARE, seed=SEED)
    return Material([item for group in groups for item in group], copied, copies)


def _task(name: str) -> list[Run]:
    return list(read_runs(ROOT / "tasks" / name / "runs.jsonl", task=name).runs)


def _development() -> list[Run]:
    """The right solution of every problem as a success, the wrong one as a failure."""
    rows = [json.loads(line) for line in DEVSET.read_text("utf-8").splitlines()]
    return [
        Run(id=f"{row['id']}-{which}", system=which, input=row["problem"], output=row[which],
            success=which == "good")
        for row in rows
        for which in ("good", "wrong")
    ]  # fmt: skip


def read_texts(material: Material) -> Texts:
    """The statistic of every text of a set: `words`, the judge's shortness, where it exists."""

    def texts(items: Sequence[Item]) -> dict[str, Text]:
        found = {}
        for run, view in items:
            prose = read_prose(view.trajectory)
            known = {"words": prose.shortness()} if len(prose.words) >= MIN_SENTENCES else {}
            found[run.id] = Text(run.id, run.input or run.id, run.success, known)
        return found

    return Texts(
        texts(material.items),
        {one.variant.partition(":")[0]: texts(one.items) for one in material.copies},
    )
