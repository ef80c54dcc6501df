"""Variant names: how a perturbed copy is called in the store."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agenteval.errors import InputError
from agenteval.evaluators.utility.perturb.operators import BANK_OPERATORS
from agenteval.evaluators.utility.perturb.result import check_share, operator_of

_NAME = re.compile(r"([a-z_]+):(-|[0-9.e-]+):(-?[0-9]+)")


@dataclass(frozen=True, slots=True)
class Variant:
    """What a variant name says. `share` is None for an operator without a share."""

    operator: str
    share: float | None
    seed: int


def variant_name(operator: str, share: float | None, seed: int) -> str:
    """`drop_sentences:0.25:7`, or `shuffle_sentences:-:7` for an operator without a share.

    The share is written so that it reads back exactly. A share given to an operator without one is
    left out. Raises InputError for an unknown operator and a missing or impossible share.
    """
    if not operator_of(operator).takes_share:
        return f"{operator}:-:{int(seed)}"
    if share is None:
        raise InputError(f"{operator} needs a share")
    check_share(share)
    return f"{operator}:{float(share)!r}:{int(seed)}"


def parse_variant(name: str) -> Variant:
    """The parts of a variant name. Raises InputError for anything `variant_name` does not write."""
    match = _NAME.fullmatch(name)
    if match and match.group(1) in BANK_OPERATORS:
        operator, share, seed = match.groups()
        try:
            variant = Variant(operator, None if share == "-" else float(share), int(seed))
            written = variant_name(variant.operator, variant.share, variant.seed)
        except (ValueError, InputError):
            written = ""
        if written == name:
            return variant
    raise InputError(f"{name!r} names no perturbation, as 'drop_sentences:0.25:7' would")
