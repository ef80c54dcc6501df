"""Criteria files: our own form, AutoGen's list, and a mapping of names; where they are found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from agenteval.errors import InputError, ReplyError
from agenteval.files import write_atomically
from agenteval.readers.problems import first_problem
from agenteval.readers.strict_json import read_json
from agenteval.readers.tasks import data_folders
from agenteval.records import CriteriaSet, Criterion
from agenteval.records.criteria import SCHEMA_VERSION
from agenteval.utility.critic_reply import read_criteria
from agenteval.utility.perturb import REMOVED
from agenteval.utility.scale_order import Settled, settle, settle_range
from agenteval.utility.scale_words import is_not_applicable


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
    if path := _of_task(task):
        return path
    raise InputError(
        f"no criteria for task {task!r}; make them with `agenteval criteria --task {task}` "
        "or name a file with --criteria",
        "--criteria",
    )


def has_criteria(task: str) -> bool:
    """Whether `find_criteria` finds any."""
    return _of_task(task) is not None


def _of_task(task: str) -> Path | None:
    names = (f"{task}.json", f"{task}.reviewed.json")
    return next((path for path in map(criteria_named, names) if path), None)


def criteria_named(name: str) -> Path | None:
    """The nearest criteria file of this name; None without one."""
    paths = (folder / name for folder in data_folders("criteria"))
    return next((path for path in paths if path.is_file()), None)


def load_criteria(path: Path, *, task: str = "") -> Loaded:
    """Read a criteria file. Raises InputError naming the file and the line or key.

    Scores are ranks, so the order of every list is settled as that of a critic's reply (see
    `scale_order.settle`): what is turned round or stays unclear is noted. A criterion whose order
    is unclear is kept; it has labels and no values. `order_confirmed` says that a person has
    looked at a stated order. Criteria made for another task than `task` are noted, too.
    """
    value = read_json(path)
    notes: list[str] = []
    try:
        if isinstance(value, dict) and isinstance(value.get("criteria"), list):
            version = value.get("schema", SCHEMA_VERSION)
            if not isinstance(version, int) or version > SCHEMA_VERSION:
                known = f"this agenteval reads up to {SCHEMA_VERSION}"
                raise InputError(f"schema {version!r}: {known}", str(path))
            items = tuple(
                _checked(item, f"{path}: criteria[{n}]", notes)
                for n, item in enumerate(value["criteria"])
            )
            criteria = CriteriaSet(task=str(value.get("task", "")), criteria=items)
        elif isinstance(value, list) and all(map(_is_plain, value)):
            items = tuple(_checked(item, f"{path}: [{n}]", notes) for n, item in enumerate(value))
            criteria = CriteriaSet(criteria=items)
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
    expected = {name for c in criteria.criteria for _, leaf in c.leaves() for name in leaf.expect}
    if removed := sorted(expected.intersection(REMOVED)):
        notes.append(f"`expect` names perturbations that no longer exist: {', '.join(removed)}")
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
    _state(record["criteria"], criteria.criteria)
    text = json.dumps(
        {"schema": SCHEMA_VERSION, **record, **(more or {})}, indent=2, ensure_ascii=False
    )
    write_atomically(path, text + "\n")


def _state(entries: list[dict[str, Any]], criteria: Sequence[Criterion]) -> None:
    """State the scale and order of every criterion and part, and drop removed perturbations."""
    for entry, criterion in zip(entries, criteria, strict=True):
        entry.update(scale=criterion.scale, order=criterion.order)
        if expect := {k: v for k, v in entry.pop("expect", {}).items() if k not in REMOVED}:
            entry["expect"] = expect
        _state(entry.get("sub_criteria", []), criterion.sub_criteria)


def _is_plain(item: Any) -> bool:
    """AutoGen's form or ours: text labels in a list. Everything else is read tolerantly."""
    if not isinstance(item, dict) or "name" not in item:
        return False
    values = item.get("accepted_values", [])
    return isinstance(values, list) and all(isinstance(v, str) for v in values)


def _checked(item: Any, where: str, notes: list[str]) -> Criterion:
    """The criterion, with its order settled. Raises InputError naming `where`."""
    entry = dict(item) if isinstance(item, dict) else {}
    levels = entry.get("accepted_values")
    if isinstance(levels, list) and all(isinstance(v, str) for v in levels):
        kept = [v for v in levels if not is_not_applicable(v)]
        if 2 <= len(kept) < len(levels):
            notes.append(f'{entry.get("name")}: "not applicable" is no level; read as allow_na')
            entry |= {"accepted_values": kept, "allow_na": True}
    parts = entry.pop("sub_criteria", None) or ()
    if isinstance(parts, list):
        entry["sub_criteria"] = tuple(
            _checked(part, f"{where}.sub_criteria[{n}]", notes) for n, part in enumerate(parts)
        )
    elif parts:
        entry["sub_criteria"] = parts  # refused below
    stated = entry.get("order")
    if stated == "best_to_worst":  # a record cannot hold it: it is turned round instead
        entry["order"] = "worst_to_best"
    try:
        criterion = Criterion.model_validate(entry or item)
    except ValidationError as error:
        raise InputError(first_problem(error), where) from error
    if criterion.sub_criteria or criterion.scale == "nominal":
        return criterion
    changes = _settled(criterion, stated, notes)
    if "scale" in entry:
        del changes["scale"]
    return criterion.model_copy(update=changes)


def _settled(criterion: Criterion, stated: Any, notes: list[str]) -> dict[str, Any]:
    """What the order that is stated and that of the values make of the criterion."""
    numeric = criterion.scale == "numeric"
    key = "numeric_range" if numeric else "accepted_values"
    values: tuple[Any, ...] = getattr(criterion, key)
    reason = criterion.order_reason or ""
    if criterion.order_confirmed:
        settled = Settled((), "worst_to_best", criterion.scale, reason or None)
        turned = stated == "best_to_worst"
    else:
        if stated == "unclear":
            why = reason or "unclear: so the file states"
            settled = Settled((), "unclear", criterion.scale, why)
        elif numeric:  # the bounds of a file are worst and best as they stand
            bounds = values[0], values[1]
            settled = settle_range(bounds, stated or "worst_to_best", criterion.name)
        else:
            settled = settle(values, stated, criterion.name, description=criterion.description)
        if settled.note is not None:
            notes.append(f"{criterion.name}: {settled.note}")
        turned = settled.turned
        values = values if numeric or turned else settled.values or values
    stands = None if reason.startswith("unclear") else reason or None
    return {
        key: values[::-1] if turned else values,
        "order": settled.order,
        "scale": settled.scale,
        "order_reason": settled.reason or stands,
    }
