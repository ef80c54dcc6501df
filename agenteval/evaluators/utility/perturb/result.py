"""Perturbed: a changed view with the account of what was changed; and the change itself."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.errors import InputError
from agenteval.evaluators.utility.perturb.edits import Edit, apply_edits
from agenteval.evaluators.utility.perturb.layout import Layout, read_layout
from agenteval.evaluators.utility.perturb.operators import BANK_OPERATORS, Operator
from agenteval.records import View

SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Amount:
    """How much a trajectory changed.

    `removed_chars` and `added_chars` sum over the edits (a moved sentence counts in both),
    `sentences_touched` is the share (0 to 1) of the system's sentences that an edit altered or
    took, None without any; `length_ratio` is new length over old, None for an empty original.
    """

    removed_chars: int = 0
    added_chars: int = 0
    sentences_touched: float | None = None
    length_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Perturbed:
    """A perturbed copy of a view.

    `view` has the run id, problem and reference of the original and the changed trajectory; where
    nothing could be changed it is the original, `changed` is False and `reason` says why.
    `share_asked` is None for an operator without a share. `share_applied` is `applied` / `of`:
    sentences, words, numbers, or for `pad` characters (see the operator); None where `of` is 0.
    `removed` holds the texts taken out or replaced, `detail` says in words what was done.
    """

    view: View
    operator: str
    kind: str
    changed: bool
    share_asked: float | None
    share_applied: float | None
    applied: int
    of: int
    amount: Amount
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
    return _perturbed(view, read_layout(view.trajectory), chosen, share, rng)


def dose_response(
    view: View, operator: str, shares: Sequence[float], seed: int
) -> dict[float, Perturbed]:
    """Share → perturbed copy, in rising order of the shares.

    All doses start from the same generator state, and operators draw their order before they look
    at the share: what a small share changes is a subset of what a larger one changes. Raises
    InputError for an operator without a share, no share, and a share outside (0, 1].
    """
    chosen = operator_of(operator)
    if not chosen.takes_share:
        raise InputError(f"{operator} takes no share, so it has no dose")
    if not shares:
        raise InputError("no shares given")
    for share in shares:
        check_share(share)
    layout = read_layout(view.trajectory)
    return {
        share: _perturbed(view, layout, chosen, share, rng_for(seed, operator, view))
        for share in sorted(set(shares))
    }


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


def _perturbed(
    view: View, layout: Layout, chosen: Operator, share: float, rng: np.random.Generator
) -> Perturbed:
    change = chosen.apply(layout, share, rng)
    text = apply_edits(view.trajectory, change.edits)
    changed = text != view.trajectory
    return Perturbed(
        view=view.model_copy(update={"trajectory": text}) if changed else view,
        operator=chosen.name,
        kind=chosen.kind,
        changed=changed,
        share_asked=share if chosen.takes_share else None,
        share_applied=change.applied / change.of if change.of else None,
        applied=change.applied,
        of=change.of,
        amount=_amount(layout, change.edits, text),
        removed=change.removed,
        detail=change.detail,
        reason=change.reason if not changed else None,
    )


def _amount(layout: Layout, edits: Sequence[Edit], text: str) -> Amount:
    spans = [(layout.parts[i].start, layout.parts[i].end)
             for i in layout.with_copies(layout.sentences())]  # fmt: skip
    touched, at = 0, 0
    ordered = sorted(edits)
    for start, end in spans:
        while at < len(ordered) and ordered[at].end <= start:
            at += 1
        touched += at < len(ordered) and ordered[at].start < end
    return Amount(
        removed_chars=sum(e.end - e.start for e in edits),
        added_chars=sum(len(e.new) for e in edits),
        sentences_touched=touched / len(spans) if spans else None,
        length_ratio=len(text) / len(layout.text) if layout.text else None,
    )
