"""Seeded choices: the same words give the same choices, on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Dice:
    """Choices from a generator whose seed is the sha256 of `words`."""

    def __init__(self, *words: object) -> None:
        digest = hashlib.sha256("\x1f".join(map(str, words)).encode()).digest()
        self._rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))

    def between(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return int(self._rng.integers(low, high + 1))

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.between(0, len(items) - 1)]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different items in a random order."""
        return [items[int(i)] for i in self._rng.permutation(len(items))[:count]]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self._rng.random() < probability)
