"""Tells a line of a recording of replies (`--record`, `models.replay`) from a run.

`reply` is a name of an output, so such lines would else be read as runs of an unnamed system.
"""

from __future__ import annotations

from typing import Any

RECORDING = "a recording of replies (--record), no runs"
_FIELDS = frozenset({"key", "run", "repeat", "attempt", "role", "reply", "text"})
_HEXDIGITS = frozenset("0123456789abcdef")


def is_recording(value: Any) -> bool:
    """Whether `value` is a line of a recording.

    With the hash of a request under `key`: a line that holds a whole reply, or that refers to an
    earlier one by run and attempt. Recorded elsewhere (any key, or a run): an object with fields
    of a recording only, among them a whole reply or its text.
    """
    if not isinstance(value, dict) or not ("key" in value or "run" in value):
        return False
    reply = value.get("reply")
    whole = isinstance(reply, dict) and isinstance(reply.get("text"), str)
    if _is_hash(value.get("key")) and (whole or value.keys() >= {"run", "repeat", "attempt"}):
        return True
    told = whole or ("reply" not in value and isinstance(value.get("text"), str))
    return told and value.keys() <= _FIELDS


def _is_hash(key: Any) -> bool:
    return isinstance(key, str) and len(key) == 64 and _HEXDIGITS.issuperset(key)
