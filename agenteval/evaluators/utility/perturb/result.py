"""Perturbed: a changed view with the account of what was changed; and the change itself."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from agenteval.errors import InputError
from agenteval.evaluators.utility.perturb.edits import apply_edits
from agenteval.evaluators.utility.perturb.layout import read_layout
from agenteval.evaluators.utility.perturb.operators import BANK_OPERATORS, Operator
from agenteval.records import View

SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Perturbed:
    """A perturbed copy of a view.

    `view` has the run id, problem and reference of the original and the changed trajectory; where
    nothing could be changed it is the original, `changed` is False and `reason` says why.
    `applied` and `of` count sentences, words, numbers, or for `pad` characters (see the operator).
    `removed` holds the texts taken out or replaced, `detail` says in words what was done.
    """

    view: View
    operator: str
    kind: str
    changed: bool
    applied: int
    of: int
    removed: tuple[str, ...] = ()
    detail: str = ""
    reason: str | None = None


def perturb(
    view: View, operator: str, *, share: float = SHARE, rng: np.random.Generator
) -> Perturbed:
    """A perturbed copy of `view` by one operator of BANK_OPERATORS.

    Only what the system under evaluation wrote is touched; problem, reference, headings, fences,
    formulas and what tools and users said stay (`truncate` cuts everything behind its cut). The
    result depends on the arguments and the state of `rng` alone. Raises InputError for an unknown
    operator and for a share outside (0, 1].
    """
    chosen = operator_of(operator)
    check_share(share)
    change = chosen.apply(read_layout(view.trajectory), share, rng)
    text = apply_edits(view.trajectory, change.edits)
    changed = text != view.trajectory
    return Perturbed(
        view=view.model_copy(update={"trajectory": text}) if changed else view,
        operator=chosen.name,
        kind=chosen.kind,
        changed=changed,
        applied=change.applied,
        of=change.of,
        removed=change.removed,
        detail=change.detail,
        reason=change.reason if not changed else None,
    )


def rng_for(seed: int, operator: str, view: View) -> np.random.Generator:
    """The generator of one run, operator and seed; the order of runs makes no difference.

    Seeded by the SHA-256 of seed, operator name and `view.sha256`.
    """
    text = f"{int(seed)}|{operator}|{view.sha256}"
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))


def operator_of(name: str) -> Operator:
    """The operator of this name. Raises InputError that lists the names."""
    if name not in BANK_OPERATORS:
        raise InputError(f"unknown operator {name!r}; known are {', '.join(BANK_OPERATORS)}")
    return BANK_OPERATORS[name]


def check_share(share: float) -> None:
    """Raises InputError unless 0 < share <= 1."""
    if not (math.isfinite(share) and 0 < share <= 1):
        raise InputError(f"share is {share}; it must be above 0 and at most 1")
