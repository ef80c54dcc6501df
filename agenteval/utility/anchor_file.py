"""Anchor files: scores of a judge, frozen to be compared with later ones; the log of its looks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from agenteval.errors import InputError
from agenteval.files import text_lines, write_atomically
from agenteval.readers.problems import first_problem
from agenteval.readers.strict_json import read_json
from agenteval.records import Criterion, Source, content_hash
from agenteval.records.base import Record
from agenteval.utility.evaluator import Item

VERSION = 1
Scores = dict[str, list[Annotated[float, Field(ge=0, le=1)]]]  # by criterion, of all repeats


class FrozenRun(Record):
    """A run with its scores; `text` is a hash of what the judge sees."""

    key: str
    case: str
    text: str
    scores: Scores


class AnchorSettings(Record):
    """Options that ask the judge again, with the files of runs and criteria; see `JudgeOptions`.

    What is not a file, a name or a number is left out, and has to be given again.
    """

    runs: str | None = None
    criteria: str | None = None
    judge: str | None = None
    base_url: str | None = None
    task: str | None = None
    with_reference: bool = False
    mapping: dict[str, str] | None = None
    system: str | None = None
    seed: int = 0
    temperature: float | None = 1.0
    one_per_call: bool = False
    probabilities: bool = False


class Anchor(Record):
    """Scores of a judge, and how it was asked for them.

    `criteria` has a hash for each criterion, `looks` is the planned number of looks a year,
    `statuses` the number of results by status.
    """

    anchor: int
    created: str
    judge: Source
    settings: AnchorSettings
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
    statuses: dict[str, int] = Field(default_factory=dict)
    scores: dict[str, Scores] = Field(default_factory=dict)


def read_anchor(path: Path) -> Anchor:
    """Read an anchor file. Raises InputError."""
    value = read_json(path)
    if not isinstance(value, dict) or "anchor" not in value:
        raise InputError("not an anchor file; `agenteval anchor create` writes one", str(path))
    if value["anchor"] != VERSION:
        supported = f"this version of agenteval reads {VERSION}; create the anchor again"
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
    write_atomically(path, "".join(f"{record.model_dump_json()}\n" for record in records))


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
    changed = [r.key for r in anchor.runs if not missing and text_hash(by_key[r.key]) != r.text]
    if keys := missing or changed:
        what = "are missing" if missing else "have another text than was frozen"
        count = f"{len(keys)} of {len(anchor.runs)} runs of the anchor"
        raise InputError(f"{count} {what} (first: {keys[0]})", "--runs")
    return tuple(by_key[run.key] for run in anchor.runs)


def frozen_criteria(anchor: Anchor, criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return the criteria of the anchor among these. Raises InputError unless all are there and
    unchanged."""
    by_id = {c.id: c for c in criteria}
    for id, frozen in anchor.criteria.items():
        if id not in by_id or criterion_hash(by_id[id]) != frozen:
            what = "has changed since it was frozen" if id in by_id else "of the anchor is missing"
            raise InputError(f"criterion {id!r} {what}", "--criteria")
    return tuple(by_id[id] for id in anchor.criteria)


def identity(source: Source) -> dict[str, Any]:
    """Return what identifies a judge, apart from its seed."""
    fields = source.model_dump(mode="json", exclude={"seed", "parameters"})
    return {**fields, **source.parameters}


def differences(frozen: Source, now: Source) -> list[str]:
    """Return a line for each part of the judge that is not as it was frozen."""
    old, new = identity(frozen), identity(now)
    names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    return [_difference(name, old.get(name), new.get(name)) for name in names]


def _difference(name: str, old: Any, new: Any) -> str:
    if name == "code" and isinstance(old, str) and isinstance(new, str):
        hashes = f"{old[:8]}, now {new[:8]}"
        return f"the function's code has changed since the anchor ({hashes})"
    return f"{name}: {json.dumps(old)} frozen, {json.dumps(new)} now"
