"""Verdict rules: a table of conditions, of which the first match decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V", bound=str)

OTHER_JUDGE = "do not use its scores; try another judge, or reword the criteria and verify again"
WHY_MISSING = "find out why ratings are missing"
MORE_CASES = "rate more cases"
MORE_REPEATS = "rate every text three times (--repeats 3)"


@dataclass(frozen=True)
class VerdictRule(Generic[V]):
    """When `applies` is true, the verdict follows, with its reasons and what to do next."""

    applies: object
    verdict: V
    reasons: Sequence[str]
    next_step: str


def first_match(rules: Iterable[VerdictRule[V]]) -> VerdictRule[V]:
    """Return the first rule that applies. The last rule of a table must always apply."""
    return next(rule for rule in rules if rule.applies)
