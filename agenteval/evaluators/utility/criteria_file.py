"""Criteria files: our own form, AutoGen's list, and a mapping of names; where they are found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from agenteval.errors import InputError, ReplyError
from agenteval.evaluators.utility.critic_reply import read_criteria
from agenteval.evaluators.utility.scale_order import is_not_applicable, order_of
from agenteval.files import write_atomically
from agenteval.readers.decode import read_json
from agenteval.readers.problems import first_problem
from agenteval.readers.tasks import data_folders
from agenteval.records import CriteriaSet, Criterion
from agenteval.records.criteria import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Loaded:
    """Criteria, the file they came from, and what was changed in reading, one line each."""

    criteria: CriteriaSet
    path: Path
    notes: tuple[str, ...] = ()


def find_criteria(task: str) -> Path:
    """`criteria/<task>.json`, else the reviewed set, nearest folder first.

    Raises InputError when there is neither.
    """
    folders = data_folders("criteria")
    for name in (f"{task}.json", f"{task}.reviewed.json"):
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
    raise InputError(
        f"no criteria for task {task!r}; make them with `agenteval criteria --task {task}` "
        "or name a file with --criteria",
        "--criteria",
    )


def load_criteria(path: Path, *, task: str = "") -> Loaded:
    """Read a criteria file. Raises InputError naming the file and the line or key.

    Scores are ranks, so the order of every list is checked. Without a stated order a best-first
    list is turned round and noted, and a list whose order cannot be told is refused. With a stated
    order a list that surely runs the other way is refused, unless `order_confirmed` says that a
    person has looked at it. Where only the name of a criterion speaks against the order, that is
    noted. Criteria made for another task than `task` are noted, too.
    """
    value = read_json(path)
    notes: list[str] = []
    try:
        if isinstance(value, dict) and isinstance(value.get("criteria"), list):
            _check_schema(value, path)
            items = [_checked(i, f"{path}: criteria[{n}]", notes)
                     for n, i in enumerate(value["criteria"])]  # fmt: skip
            criteria = CriteriaSet(task=str(value.get("task", "")), criteria=tuple(items))
        elif isinstance(value, list) and all(_is_plain(i) for i in value):
            items = [_checked(i, f"{path}: [{n}]", notes) for n, i in enumerate(value)]
            criteria = CriteriaSet(criteria=tuple(items))
        else:
            reading = read_criteria(value)
            notes.extend(reading.problems)
            criteria = CriteriaSet(criteria=tuple(reading.criteria))
    except ReplyError as error:
        raise InputError(f"no criteria found ({error})", str(path)) from error
    except ValidationError as error:
        raise InputError(first_problem(error), str(path)) from error
    if not criteria.criteria:
        raise InputError("the file holds no criterion", str(path))
    if task and criteria.task not in ("", task):
        notes.insert(0, f"they were made for task {criteria.task!r} and judge task {task!r}")
    return Loaded(criteria, path, tuple(notes))


def save_criteria(
    path: Path, criteria: CriteriaSet, *, more: Mapping[str, JsonValue] | None = None
) -> None:
    """Write the file in our own form, in one step; `more` stands behind the criteria.

    What is in `more` is for people and other programs: `load_criteria` passes over it.
    """
    record = criteria.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for entry, criterion in zip(record["criteria"], criteria.criteria, strict=True):
        entry.update(scale=criterion.scale, order=criterion.order)  # stated, never implied
    text = json.dumps(
        {"schema": SCHEMA_VERSION, **record, **(more or {})}, indent=2, ensure_ascii=False
    )
    write_atomically(path, text + "\n")


def _check_schema(value: dict[str, Any], path: Path) -> None:
    version = value.get("schema", SCHEMA_VERSION)
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise InputError(
            f"schema {version!r}: this agenteval reads up to {SCHEMA_VERSION}", str(path)
        )


def _is_plain(item: Any) -> bool:
    """AutoGen's form or ours: text labels in a list. Everything else is read tolerantly."""
    if not isinstance(item, dict) or "name" not in item:
        return False
    values = item.get("accepted_values", [])
    return isinstance(values, list) and all(isinstance(v, str) for v in values)


def _checked(item: Any, where: str, notes: list[str]) -> Criterion:
    try:
        criterion = Criterion.model_validate(_without_na(item, notes))
    except ValidationError as error:
        raise InputError(first_problem(error), where) from error
    stated = isinstance(item, dict) and "order" in item
    if criterion.sub_criteria:
        for number, part in enumerate(criterion.sub_criteria):
            _check_order(part, f"{where}.sub_criteria[{number}]", notes)
        return criterion
    if stated or criterion.scale != "ordinal":
        _check_order(criterion, where, notes)
        return criterion
    return _ordered(criterion, where, notes)


def _ordered(criterion: Criterion, where: str, notes: list[str]) -> Criterion:
    """A list without a stated order, worst first. Raises InputError where that cannot be told."""
    order, reason = order_of(criterion.accepted_values)
    if order == "worst_to_best" or (order == "best_to_worst" and _fewer_is_better(criterion)):
        _check_order(criterion, where, notes)
        return criterion
    if order == "best_to_worst":
        notes.append(f"{criterion.name}: accepted values stood best first and were turned round")
        turned = tuple(reversed(criterion.accepted_values))
        return criterion.model_copy(update={"accepted_values": turned})
    raise InputError(
        f"{criterion.name!r}: it is unclear whether its accepted values run from worst to best "
        f'({reason}); put them in that order and add "order": "worst_to_best", or set '
        '"scale": "nominal"',
        where,
    )


def _check_order(criterion: Criterion, where: str, notes: list[str]) -> None:
    """Refuse what surely runs from best to worst; note what only the criterion's name says so of.

    The name alone proves nothing ("Timeliness" speaks of time), so it can only acquit or warn.
    """
    if criterion.order_confirmed or not criterion.ordered or criterion.scale == "numeric":
        return
    values = criterion.accepted_values
    order, reason = order_of(values)
    if order == "best_to_worst" and not _fewer_is_better(criterion):
        raise InputError(
            f"{criterion.name!r}: its values run from best to worst ({reason}), which would turn "
            'every score round; put the worst first, or add "order_confirmed": true if '
            f"{values[0]!r} is the worst",
            f"{where}.accepted_values",
        )
    named, why = order_of(values, criterion.name)
    if named == "best_to_worst" != order:
        notes.append(
            f"{criterion.name}: {values[0]!r} counts as the worst, {values[-1]!r} as the best; by "
            f"its name it could be the other way ({why})"
        )


def _fewer_is_better(criterion: Criterion) -> bool:
    return order_of(criterion.accepted_values, criterion.name)[0] == "worst_to_best"


def _without_na(item: Any, notes: list[str]) -> Any:
    """ "Not applicable" among the levels is no level: it becomes `allow_na`."""
    levels = item.get("accepted_values") if isinstance(item, dict) else None
    if not isinstance(levels, list) or not all(isinstance(v, str) for v in levels):
        return item
    kept = [v for v in levels if not is_not_applicable(v)]
    if len(kept) == len(levels) or len(kept) < 2:
        return item
    notes.append(f'{item.get("name")}: "not applicable" is no level; read as allow_na')
    return {**item, "accepted_values": kept, "allow_na": True}
