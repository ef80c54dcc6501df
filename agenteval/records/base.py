"""Base class of all records (frozen, no unknown fields, no NaN) and content hashes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, FailFast

# Distinct sets of fields that records were created with, to share them: a set takes 700 bytes,
# often as much as a record, and never changes, since records are frozen.
_FIELD_SETS: dict[frozenset[str], set[str]] = {}

# For long lists: only the first problem is reported, and listing a million takes a gigabyte.
FAIL_FAST = FailFast()


class Record(BaseModel):
    """Base class of immutable records. Rejects unknown fields, NaN and infinity."""

    # Validators are built on first use, because each command uses only a few of the records.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    def model_post_init(self, context: Any, /) -> None:
        """Share `model_fields_set` among records that were created with the same fields."""
        fields_set = self.__pydantic_fields_set__
        shared = _FIELD_SETS.setdefault(frozenset(fields_set), fields_set)
        object.__setattr__(self, "__pydantic_fields_set__", shared)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy; a changed copy does not inherit the cached content hash."""
        copied = super().model_copy(update=update, deep=deep)
        if update:
            copied.__dict__.pop("sha256", None)
        return copied


_canonical = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
).encode


def canonical_json(value: Any) -> str:
    """Return canonical JSON: sorted keys, no spaces. Raises ValueError for NaN or infinity, and
    TypeError for values that JSON does not support."""
    return _canonical(value)


def content_hash(value: Any) -> str:
    """Return the sha256 (hex) of the canonical JSON of `value`; lone surrogates stay distinct."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()
