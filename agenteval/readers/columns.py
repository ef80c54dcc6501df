"""Names of columns in files of ratings: what is meant by each, and what only looks like it."""

from __future__ import annotations

import difflib
import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.fields import snake

FIELDS = (
    "run", "case", "system", "criterion", "repeat", "label", "value", "status", "success",
    "variant",
)  # fmt: skip
_ALIASES = {"run_id": "run", "case_id": "case", "case_key": "case", "criterion_id": "criterion"}
_KNOWN = {**{name: name for name in (*FIELDS, "rater")}, **_ALIASES}
# Columns of `agenteval export` that hold no rating.
_EXPORTED = frozenset({
    "task", "probabilities", "explanation", "message", "rung", "match", "evidence", "evaluator",
    "model", "seed", "tries", "run_key", "criterion_key", "source_key",
})  # fmt: skip
_MEANT = {"repetition": "repeat", "repetitions": "repeat", "rep": "repeat"}
_ALIKE = 0.8  # share of equal letters (difflib): one or two slips in a word
_LONGEST = 40

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Head:
    """What the names of one row are read as; `told` are warnings, by the name they are about."""

    fields: dict[str, str]
    told: tuple[str, ...]


@lru_cache(maxsize=256)
def head_of(names: tuple[str, ...]) -> Head:
    """The fields that `names` stand for, without regard to case, spacing or hyphens.

    The known name wins over other spellings of it, which are told of. A name that is not known,
    but almost one that is missing, is told of as well; all others are left alone in silence.
    """
    fields = {name: _KNOWN[name] for name in names if name in _KNOWN}
    exact = set(fields.values())
    told = []
    for name in names:
        meant = _KNOWN.get(snake(name)) if name not in fields and len(name) <= _LONGEST else None
        if meant is not None and meant in exact:
            told.append(f"column {name!r} is not read; {meant!r} is")
        elif meant is not None:
            fields[name] = meant
    present = set(fields.values())
    for name in names:
        near = None if name in fields or len(name) > _LONGEST else _near(snake(name))
        if near is not None and _KNOWN[near] not in present:
            told.append(f"column {name!r} is not read; did you mean {near!r}?")
    return Head(fields, tuple(told))


def _near(name: str) -> str | None:
    if name in _EXPORTED or name in _KNOWN:
        return None
    if name in _MEANT:
        return _MEANT[name]
    return next(iter(difflib.get_close_matches(name, _KNOWN, n=1, cutoff=_ALIKE)), None)


def renamed(row: dict[str, Any], where: str) -> dict[str, Any]:
    """The fields of a row that are known, by their own names, and all others as they are.

    Raises InputError when two names of one field hold different values.
    """
    fields = head_of(tuple(row)).fields
    result: dict[str, Any] = {}
    for key, value in row.items():
        name = fields.get(key, key)
        if result.setdefault(name, value) != value:
            raise InputError(f"the column {name} stands twice, with different values", where)
    return result


def tell(names: tuple[str, ...], where: str, said: set[str]) -> None:
    """Log what `head_of` has to tell, each once for the file; `said` is what was told already."""
    for text in head_of(names).told:
        if text not in said:
            said.add(text)
            _say_once(f"{where}: {text}")


@lru_cache(maxsize=256)
def _say_once(line: str) -> None:
    """A file is read once for each of its raters; the cache keeps what was said already."""
    _log.warning("%s", line)
