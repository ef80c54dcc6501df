"""Rubrics of runs: read their file, split long ones, and summarise them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.fields import INPUT, snake
from agenteval.readers.messages import messages_in, parse_messages
from agenteval.readers.rubrics import KEYS, listed, read_rubric
from agenteval.readers.strict_json import Notes
from agenteval.readers.table_files import file_items
from agenteval.records import Criterion, Run
from agenteval.text import plural

MOST_ITEMS = 40  # per request; longer rubrics need several requests


def parts_of(criteria: Sequence[Criterion], most: int = MOST_ITEMS) -> list[tuple[Criterion, ...]]:
    """Return the criteria of each request about a unit. A rubric with more than `most` items is
    split evenly; anything else is one request."""
    if len(criteria) != 1 or not criteria[0].is_rubric:
        return [tuple(criteria)]
    (rubric,) = criteria
    items = rubric.sub_criteria
    count = -(-len(items) // most)
    bounds = [len(items) * i // count for i in range(count + 1)]
    return [
        (rubric.model_copy(update={"sub_criteria": items[start:end]}),)
        for start, end in pairwise(bounds)
    ]


def with_rubrics(runs: Sequence[Run], path: str | Path | None, notes: Notes) -> list[Run]:
    """Return the runs with the rubrics of a file, matched by the run's id or input.

    Each record of the file has `id` or `run_id`, or the input under any of its usual names, and the
    rubric (see `agenteval.readers.rubrics`). Raises InputError with the line if a record has
    neither or a run has two rubrics, and if no run has a rubric.
    """
    if path is None:
        return list(runs)
    rubrics: dict[tuple[str, str], Criterion] = {}
    for item in file_items(Path(path), notes):
        values = item.value if isinstance(item.value, list) else [item.value]
        for number, value in enumerate(values):
            place = item.place if item.value is value else f"{item.place}[{number}]"
            key = _key_of(value, place)
            if key in rubrics:
                raise InputError(f"a second rubric for {key[0]} {key[1][:60]!r}", place)
            items = [listed(v) for k, v in value.items() if snake(k) in KEYS]
            if len(items) != 1 or items[0] is None:
                raise InputError(f"one of {', '.join(KEYS)} must hold the list of items", place)
            rubrics[key] = read_rubric(items[0], place, notes)
    used, result = set[tuple[str, str]](), list[Run]()
    for run in runs:
        names = ("run", run.id), ("input", _folded(run.input))
        match = next((name for name in names if name in rubrics), None)
        if match is not None and run.rubric is not None:
            raise InputError(f"run {run.id!r} already has a rubric; remove one", str(path))
        result.append(run.model_copy(update={"rubric": rubrics[match]}) if match else run)
        used.update([match] if match else [])
    if not used:
        raise InputError(f"none of its {plural(len(rubrics), 'rubric')} matches a run", str(path))
    if len(used) < len(rubrics):
        kind, name = next(unused for unused in rubrics if unused not in used)
        what = f"{len(rubrics) - len(used)} of {len(rubrics)} rubrics match no run"
        notes.add(f"{what} (first: {kind} {name[:60]!r})", str(path))
    return result


def _folded(text: str) -> str:
    return " ".join(text.split())


def _key_of(value: Any, place: str) -> tuple[str, str]:
    """Return the subject of a record: ("run", id) or ("input", text)."""
    if not isinstance(value, dict):
        raise InputError("not an object with a run or an input, and a rubric", place)
    keys = {snake(key): item for key, item in value.items()}
    for name in ("run", "run_id", "id"):
        if isinstance(keys.get(name), str):
            return "run", keys[name]
    for name in INPUT:
        if messages_in(keys.get(name)):
            messages = parse_messages(keys[name], name, place).messages
            return "input", _folded("\n\n".join(m.content for m in messages if m.role == "user"))
        if isinstance(keys.get(name), str):
            return "input", _folded(keys[name])
    raise InputError("the record needs the run it is about (`run`) or its input (`input`)", place)


@dataclass(frozen=True)
class JudgedRubrics:
    """Counts of the runs with rubrics."""

    runs: int
    without: int
    sizes: tuple[int, ...]
    shared: int
    unjudged: int

    @property
    def line(self) -> str:
        """One line about the judged and skipped runs."""
        few, many = min(self.sizes), max(self.sizes)
        items = plural(few, "item") if few == many else f"{few} to {many} items"
        text = f"{plural(self.runs, 'run')} with rubrics of {items}"
        if self.shared:
            text += f"; all runs are judged by {plural(self.shared, 'criterion')} as well"
        elif self.without:
            text += f"; {plural(self.without, 'run')} without a rubric: not judged"
        if self.unjudged:
            text += f"; the task's {self.unjudged} criteria are not judged: add --criteria"
        if many > MOST_ITEMS:
            calls = sum(-(-size // MOST_ITEMS) for size in self.sizes)
            text += f"; at most {MOST_ITEMS} items per request: {calls} requests per repeat"
        return text
