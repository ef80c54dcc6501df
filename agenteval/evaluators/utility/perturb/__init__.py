"""Perturbations: seeded changes to the text that the judge really sees.

Usage::

    rng = rng_for(7, "drop_sentences", view)
    copy = perturb(view, "drop_sentences", share=0.25, rng=rng)
    copy.view                # what the judge is shown instead
    copy.changed, copy.reason, copy.applied, copy.of
    variant_name("drop_sentences", 0.25, 7)      # 'drop_sentences:0.25:7'

`directional` operators have an expected effect in a criterion's `expect`; `invariant` ones are
controls. All are pure, and linear in the length of the text. Applied twice, the dropping operators
drop further, `formatting` toggles back where it only toggled, `drop_answer` may find an earlier
statement: perturb originals, not copies.
"""

from agenteval.evaluators.utility.perturb.operators import BANK_OPERATORS, Operator
from agenteval.evaluators.utility.perturb.result import (
    SHARE,
    Perturbed,
    perturb,
    rng_for,
)
from agenteval.evaluators.utility.perturb.variant import Variant, parse_variant, variant_name

__all__ = [
    "BANK_OPERATORS",
    "SHARE",
    "Operator",
    "Perturbed",
    "Variant",
    "parse_variant",
    "perturb",
    "rng_for",
    "variant_name",
]
