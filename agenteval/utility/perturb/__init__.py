"""Perturbations: seeded changes to the text that the judge really sees.

Usage::

    rng = rng_for(7, "drop_sentences", view)
    copy = perturb(view, "drop_sentences", share=0.25, rng=rng)   # shown to the judge instead
    variant_name("drop_sentences", 0.25, 7)      # 'drop_sentences:0.25:7'

Controls must not change scores; for the others, a criterion's `expect` has the expected direction.
All are pure, and linear in the length of the text. Applied twice, the dropping operators drop
further and `formatting` may toggle back: perturb originals, not copies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agenteval.errors import InputError
from agenteval.records import View
from agenteval.utility.perturb.changes import (
    formatting,
    pad,
    shuffle_sentences,
    swap_numbers,
    whitespace,
)
from agenteval.utility.perturb.drops import drop_middle, drop_sentences, drop_words, truncate
from agenteval.utility.perturb.layout import Edit, Layout, Unchanged, apply_edits, read_layout

SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Operator:
    """A perturbation of a trajectory. `apply` returns the edits, or raises Unchanged."""

    apply: Callable[[Layout, float, np.random.Generator], list[Edit]]
    takes_share: bool = False
    control: bool = False


OPERATORS = {
    "drop_sentences": Operator(drop_sentences, takes_share=True),
    "drop_words": Operator(drop_words, takes_share=True),
    "drop_middle": Operator(drop_middle),
    "shuffle_sentences": Operator(shuffle_sentences),
    "truncate": Operator(truncate, takes_share=True),
    "swap_numbers": Operator(swap_numbers, takes_share=True),
    "pad": Operator(pad, takes_share=True),
    "whitespace": Operator(whitespace, control=True),
    "formatting": Operator(formatting, control=True),
}
# Removed operators: stores have ratings of their copies, and criteria files may mention them.
REMOVED = ("drop_answer", "paraphrase")
CONTROLS = frozenset({*(name for name, o in OPERATORS.items() if o.control), "paraphrase"})


def perturb(view: View, operator: str, *, share: float = SHARE, rng: np.random.Generator) -> View:
    """Return a perturbed copy of `view` by one of OPERATORS: another trajectory, all else equal.

    Only what the system under evaluation wrote is touched; problem, reference, headings, fences,
    formulas and what tools and users said stay (`truncate` cuts everything behind its cut). The
    result depends on the arguments and the state of `rng` alone. Raises Unchanged with the reason
    where nothing can be changed, and InputError for an unknown operator and for a share outside
    (0, 1].
    """
    chosen = _operator(operator, share)
    edits = chosen.apply(read_layout(view.trajectory), share, rng)
    text = apply_edits(view.trajectory, edits)
    if text == view.trajectory:
        raise Unchanged("nothing could be changed")
    return view.model_copy(update={"trajectory": text})


def rng_for(seed: int, operator: str, view: View) -> np.random.Generator:
    """Return the generator of one run, operator and seed; the order of runs does not matter.

    Seeded by the SHA-256 of seed, operator name and `view.text_sha256`.
    """
    text = f"{int(seed)}|{operator}|{view.text_sha256}"
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))


def variant_name(operator: str, share: float, seed: int) -> str:
    """Return `drop_sentences:0.25:7`, or `shuffle_sentences:-:7` for an operator without a share.

    The share is written so that it reads back exactly. Raises InputError for an unknown operator
    and an impossible share.
    """
    written = repr(float(share)) if _operator(operator, share).takes_share else "-"
    return f"{operator}:{written}:{int(seed)}"


def _operator(name: str, share: float) -> Operator:
    if name not in OPERATORS:
        problem = "was removed" if name in REMOVED else "does not exist"
        raise InputError(f"the perturbation {name!r} {problem}; there are {', '.join(OPERATORS)}")
    if not 0 < share <= 1:
        raise InputError(f"share is {share}; it must be above 0 and at most 1")
    return OPERATORS[name]
