"""Anchor files: scores of a judge, frozen to be compared with later ones; the log of its looks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, JsonValue, ValidationError

from agenteval.errors import InputError
from agenteval.files import text_lines, write_atomically
from agenteval.readers.problems import first_problem
from agenteval.readers.strict_json import read_json
from agenteval.records import Criterion, Source, content_hash
from agenteval.records.base import Record
from agenteval.utility.evaluator import Item

VERSION = 1
Scores = dict[str, tuple[Annotated[float, Field(ge=0, le=1)], ...]]  # by criterion, of repeats


class FrozenRun(Record):
    """A run with its scores."""

    key: str
    case: str
    text: str  # hash of what the judge sees
    scores: Scores


class Anchor(Record):
    """What a judge gave, and how it was asked.

    `criteria` has a hash for each criterion, `settings` the options that ask the judge again,
    `looks` the planned number of looks a year, `statuses` the number of results by status.
    """

    anchor: int = VERSION
    created: str
    judge: Source
    settings: dict[str, JsonValue]
    criteria: dict[str, str]
    looks: int = Field(ge=1)
    statuses: dict[str, int]
    runs: tuple[FrozenRun, ...] = Field(min_length=2)

    @property
    def id(self) -> str:
        """Hash that the looks of this anchor carry."""
        return content_hash(self.model_dump(mode="json"))[:16]


class Look(Record):
    """One check: the runs asked about, and their scores once it has ended. `judge` is a hash of
    the judge without its seed: looks of different judges are never pooled."""

    anchor: str
    judge: str
    begun: str
    seed: int
    runs: tuple[str, ...]
    ended: str | None = None
    statuses: dict[str, int] = {}
    scores: dict[str, Scores] = {}


def read_anchor(path: Path) -> Anchor:
    """Read an anchor file. Raises InputError."""
    value = read_json(path)
    if not isinstance(value, dict) or "anchor" not in value:
        raise InputError("not an anchor file; `agenteval anchor create` writes one", str(path))
    if value["anchor"] != VERSION:
        supported = f"this version of agenteval reads {VERSION}"
        raise InputError(f"anchor {value['anchor']!r}: {supported}", str(path))
    try:
        return Anchor.model_validate(value)
    except ValidationError as error:
        raise InputError(first_problem(error), str(path)) from error


def read_looks(path: Path, anchor: Anchor) -> list[Look]:
    """Read a log of looks; without a file there are none. Raises InputError."""
    looks = []
    for number, line in text_lines(path) if path.exists() else ():
        try:
            looks.append(Look.model_validate_json(line))
        except ValidationError as error:
            raise InputError(first_problem(error), f"{path}:{number}") from error
        if looks[-1].anchor != anchor.id:
            what = f"a look of another anchor ({looks[-1].anchor}, not {anchor.id})"
            raise InputError(f"{what}; move this file away", f"{path}:{number}")
    return looks


def write_lines(path: Path, records: Iterable[Record]) -> None:
    """Write one record a line, in one step."""
    write_atomically(path, "".join(f"{r.model_dump_json()}\n" for r in records))


def run_key(item: Item) -> str:
    """Return the name of a run in an anchor."""
    return f"{item[0].system}/{item[0].id}"


def text_hash(item: Item) -> str:
    """Return the hash of what the judge sees of a run."""
    view = item[1]
    return content_hash([view.problem, view.trajectory, view.reference])


def criterion_hash(criterion: Criterion) -> str:
    """Return the hash of a criterion with the order of its levels."""
    return content_hash([criterion.sha256, list(criterion.accepted_values)])


def frozen_items(anchor: Anchor, items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the runs of the anchor among these. Raises InputError unless all are there with the
    same text."""
    by_key = {run_key(item): item for item in items}
    missing = [run.key for run in anchor.runs if run.key not in by_key]
    changed = [
        run.key for run in anchor.runs if not missing and text_hash(by_key[run.key]) != run.text
    ]
    for keys, what in ((missing, "are missing"), (changed, "have another text than was frozen")):
        if keys:
            count = f"{len(keys)} of {len(anchor.runs)} runs of the anchor"
            raise InputError(f"{count} {what} (first: {keys[0]})", "--runs")
    return tuple(by_key[run.key] for run in anchor.runs)


def frozen_criteria(anchor: Anchor, criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return the criteria of the anchor among these. Raises InputError unless all are there and
    unchanged."""
    by_id = {c.id: c for c in criteria}
    for id, frozen in anchor.criteria.items():
        if id not in by_id:
            raise InputError(f"criterion {id!r} of the anchor is missing", "--criteria")
        if criterion_hash(by_id[id]) != frozen:
            raise InputError(f"criterion {id!r} has changed since it was frozen", "--criteria")
    return tuple(by_id[id] for id in anchor.criteria)


def differences(frozen: Source, now: Source) -> list[str]:
    """Return a line for each part of the judge, but its seed, that is not as it was frozen."""
    parts = [_parts(source) for source in (frozen, now)]
    return [
        f"{name}: {json.dumps(parts[0].get(name))} frozen, {json.dumps(parts[1].get(name))} now"
        for name in sorted({*parts[0], *parts[1]})
        if parts[0].get(name) != parts[1].get(name)
    ]


def identity(source: Source) -> str:
    """Return a hash of a judge without its seed."""
    return content_hash(_parts(source))[:16]


def _parts(source: Source) -> dict[str, Any]:
    fields = source.model_dump(mode="json", exclude={"seed", "parameters"})
    return {**fields, **source.parameters}
