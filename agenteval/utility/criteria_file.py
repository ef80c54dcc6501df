"""Find, read and write criteria files: our own format, AutoGen's list, or a mapping of names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

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
class LoadedCriteria:
    """Criteria, their file, and one line for each change made while reading."""

    criteria: CriteriaSet
    path: Path
    notes: tuple[str, ...] = ()


def find_criteria(task: str) -> Path:
    """Return the path of `criteria/<task>.json`, else of the reviewed set, nearest folder first.

    Raises InputError if neither exists.
    """
    for name in (f"{task}.json", f"{task}.reviewed.json"):
        if path := criteria_named(name):
            return path
    how = f"create them with `agenteval criteria --task {task}` or choose a file with --criteria"
    raise InputError(f"no criteria for task {task!r}; {how}", "--criteria")


def has_criteria(task: str) -> bool:
    """Return whether `find_criteria` finds a file."""
    return any(criteria_named(f"{task}{ending}") for ending in (".json", ".reviewed.json"))


def criteria_named(name: str) -> Path | None:
    """Return the nearest criteria file with this name, or None."""
    paths = (folder / name for folder in data_folders("criteria"))
    return next((path for path in paths if path.is_file()), None)


def load_criteria(path: Path, *, task: str = "") -> LoadedCriteria:
    """Read a criteria file. Raises InputError naming the file and the line or key.

    Scores are ranks, so the order of every list is resolved as for a critic's reply (see
    `scale_order.settle`); notes list the scales that were reversed or are unclear. A criterion with
    unclear order is kept, but its scores have labels and no values. `order_confirmed` means that a
    person has checked the order. Criteria for a task other than `task` are also noted.
    """
    value = read_json(path)
    notes: list[str] = []
    entries, of_task, where = None, "", f"{path}: "
    if isinstance(value, dict) and isinstance(value.get("criteria"), list):
        version = value.get("schema", SCHEMA_VERSION)
        if not isinstance(version, int) or version > SCHEMA_VERSION:
            supported = f"this version of agenteval reads up to {SCHEMA_VERSION}"
            raise InputError(f"schema {version!r}: {supported}", str(path))
        entries, of_task, where = value["criteria"], str(value.get("task", "")), f"{path}: criteria"
    elif isinstance(value, list) and all(map(_is_plain, value)):
        entries = value
    try:
        if entries is None:
            reading = read_criteria(value)
            notes.extend(reading.problems)
            criteria = tuple(reading.criteria)
        else:
            criteria = tuple(
                _checked(entry, f"{where}[{n}]", notes) for n, entry in enumerate(entries)
            )
        loaded = CriteriaSet(task=of_task, criteria=criteria)
    except ReplyError as error:
        raise InputError(f"no criteria found ({error})", str(path)) from error
    except ValidationError as error:
        raise InputError(first_problem(error), str(path)) from error
    if not criteria:
        raise InputError("the file has no criteria", str(path))
    expected = {name for c in criteria for _, leaf in c.leaves() for name in leaf.expect}
    if removed := sorted(expected.intersection(REMOVED)):
        notes.append(f"`expect` names perturbations that no longer exist: {', '.join(removed)}")
    if task and of_task not in ("", task):
        notes.insert(0, f"the criteria are for task {of_task!r}, but judge task {task!r}")
    return LoadedCriteria(loaded, path, tuple(notes))


def save_criteria(
    path: Path, criteria: CriteriaSet, *, more: Mapping[str, JsonValue] | None = None
) -> None:
    """Write the file atomically in our own format, followed by the keys of `more`.

    `more` is for people and other programs; `load_criteria` ignores it.
    """
    record = criteria.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    _add_orders(record["criteria"], criteria.criteria)
    text = json.dumps(
        {"schema": SCHEMA_VERSION, **record, **(more or {})}, indent=2, ensure_ascii=False
    )
    write_atomically(path, text + "\n")


def _add_orders(entries: list[dict[str, Any]], criteria: Sequence[Criterion]) -> None:
    """State the scale and order of every criterion and part, and drop removed perturbations."""
    for entry, criterion in zip(entries, criteria, strict=True):
        entry.update(scale=criterion.scale, order=criterion.order)
        if expect := {k: v for k, v in entry.pop("expect", {}).items() if k not in REMOVED}:
            entry["expect"] = expect
        _add_orders(entry.get("sub_criteria", []), criterion.sub_criteria)


def _are_texts(values: Any) -> TypeGuard[list[str]]:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _is_plain(item: Any) -> bool:
    """Whether an item has AutoGen's format or ours, with a list of text labels."""
    return isinstance(item, dict) and "name" in item and _are_texts(item.get("accepted_values", []))


def _checked(item: Any, where: str, notes: list[str]) -> Criterion:
    """Validate a criterion and resolve its order. Raises InputError naming `where`."""
    entry = dict(item) if isinstance(item, dict) else {}
    levels = entry.get("accepted_values")
    if _are_texts(levels):
        applicable = [v for v in levels if not is_not_applicable(v)]
        if 2 <= len(applicable) < len(levels):
            notes.append(f'{entry.get("name")}: "not applicable" is not a level; read as allow_na')
            entry |= {"accepted_values": applicable, "allow_na": True}
    parts = entry.pop("sub_criteria", None) or ()
    if isinstance(parts, list):
        parts = tuple(
            _checked(part, f"{where}.sub_criteria[{n}]", notes) for n, part in enumerate(parts)
        )
    if parts:
        entry["sub_criteria"] = parts
    stated = entry.get("order")
    if stated == "best_to_worst":  # a Criterion cannot express this: its levels are reversed below
        entry["order"] = "worst_to_best"
    try:
        criterion = Criterion.model_validate(entry or item)
    except ValidationError as error:
        raise InputError(first_problem(error), where) from error
    if criterion.sub_criteria or criterion.scale == "nominal":
        return criterion
    changes = _resolved(criterion, stated, notes)
    if "scale" in entry:
        del changes["scale"]
    return criterion.model_copy(update=changes)


def _resolved(criterion: Criterion, stated: Any, notes: list[str]) -> dict[str, Any]:
    """Return changes to the criterion by its stated order and its values."""
    reason = criterion.order_reason or ""
    bounds = criterion.numeric_range if criterion.scale == "numeric" else None
    values: tuple[Any, ...] = criterion.accepted_values if bounds is None else bounds
    turned = stated == "best_to_worst"
    if criterion.order_confirmed:
        settled = Settled((), "worst_to_best", criterion.scale, reason or None)
    else:
        if stated == "unclear":
            why = reason or "unclear according to the file"
            settled = Settled((), "unclear", criterion.scale, why)
        elif bounds is not None:  # the bounds of a file are worst and best
            settled = settle_range(bounds, stated or "worst_to_best", criterion.name)
        else:
            settled = settle(values, stated, criterion.name, description=criterion.description)
        if settled.note is not None:
            notes.append(f"{criterion.name}: {settled.note}")
        turned = settled.turned
        if bounds is None and not turned:
            values = settled.values or values
    unchanged = None if reason.startswith("unclear") else reason or None
    key = "accepted_values" if bounds is None else "numeric_range"
    return {
        key: values[::-1] if turned else values,
        "order": settled.order,
        "scale": settled.scale,
        "order_reason": settled.reason or unchanged,
    }
