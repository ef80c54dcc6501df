"""Base of all records: frozen, no unknown fields, no NaN, a content hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, FailFast

# The sets of fields that records were made with, each once: a set takes 700 bytes, often as much as
# a record, and is never changed, since records are frozen.
_FIELD_SETS: dict[frozenset[str], set[str]] = {}

# On long lists: the first problem is told, and a million of them take a gigabyte to list.
FAIL_FAST = FailFast()


class Record(BaseModel):
    """Immutable noun. Unknown fields are errors; NaN and infinity are refused."""

    # Each command uses a few of the records: their validators are built at first use.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    def model_post_init(self, context: Any, /) -> None:
        """Share the set of the fields that were given with all records that have the same."""
        fields_set = self.__pydantic_fields_set__
        shared = _FIELD_SETS.setdefault(frozenset(fields_set), fields_set)
        object.__setattr__(self, "__pydantic_fields_set__", shared)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy; a content hash remembered by the original is not taken over by a changed one."""
        copied = super().model_copy(update=update, deep=deep)
        if update:
            copied.__dict__.pop("sha256", None)
        return copied


_canonical = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
).encode


def canonical_json(value: Any) -> str:
    """Return a canonical JSON text: sorted keys, no spaces. Raises ValueError for NaN or infinity,
    and TypeError for values that JSON does not support."""
    return _canonical(value)


def content_hash(value: Any) -> str:
    """sha256 (hex) of the canonical JSON of `value`; lone surrogates are kept apart, not lost."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()
