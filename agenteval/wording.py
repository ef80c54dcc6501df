"""Counts in words."""

from __future__ import annotations

_IRREGULAR = {"criterion": "criteria", "copy": "copies", "empty reply": "empty replies"}


def plural(count: int, word: str) -> str:
    """As in "1 case", "3,000 cases" and "2 criteria"."""
    return f"{count:,} {word if count == 1 else _IRREGULAR.get(word, word + 's')}"
