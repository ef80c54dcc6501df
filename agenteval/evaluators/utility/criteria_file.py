"""Criteria files: our own form, AutoGen's list, and a mapping of names; where they are found."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

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


def load_criteria(path: Path) -> Loaded:
    """Read a criteria file. Raises InputError naming the file and the line or key.

    Lists without a stated order are checked: a best-first list is turned round and noted, a list
    whose order cannot be told is refused.
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
    return Loaded(criteria, path, tuple(notes))


def save_criteria(path: Path, criteria: CriteriaSet) -> None:
    """Write the file in our own form, in one step."""
    record = criteria.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for entry, criterion in zip(record["criteria"], criteria.criteria, strict=True):
        entry.update(scale=criterion.scale, order=criterion.order)  # stated, never implied
    text = json.dumps({"schema": SCHEMA_VERSION, **record}, indent=2, ensure_ascii=False)
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
    if stated or criterion.scale != "ordinal" or criterion.sub_criteria:
        return criterion
    order, reason = order_of(criterion.accepted_values)
    if order == "worst_to_best":
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
