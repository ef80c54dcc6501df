"""The verifier: which criteria can be kept, and whether the judge can be trusted.

AgentEval (arXiv 2405.02178, section on the VerifierAgent) keeps criteria that are stable over
repeats and that tell a perturbed solution from its original. Here stability is agreement and not
a coefficient of variation, which depends on how levels are numbered; perturbations have controls;
discrimination and redundancy count as well; and what the data cannot tell is undecided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agenteval.records import Criterion
from agenteval.records.verification import VerifiedSet
from agenteval.stats.correlation import first_component
from agenteval.stats.scores import ScoreTable
from agenteval.utility.verify.checks import CHECKS, upside_down
from agenteval.utility.verify.effects import effects
from agenteval.utility.verify.evidence import Lengths, gather
from agenteval.utility.verify.judge import judge_verdict
from agenteval.utility.verify.options import VerifyOptions
from agenteval.utility.verify.redundancy import means_of, redundancy, smallest_subset
from agenteval.utility.verify.verdict import decide

__all__ = ["Lengths", "VerifyOptions", "verify"]


def verify(
    table: ScoreTable,
    criteria: Sequence[Criterion],
    options: VerifyOptions | None = None,
    *,
    lengths: Lengths | None = None,
    unchanged: Mapping[str, Sequence[str]] | None = None,
    labels: Sequence[ScoreTable] = (),
) -> VerifiedSet:
    """Verdicts on every criterion that has ratings, and on the judge as a whole.

    `table` holds the ratings of originals (variant "original") and, if any, of perturbed copies
    (variant `operator:share:seed`); the expected directions are the criteria's `expect`. `lengths`
    gives the baseline that length alone would reach; `unchanged` names by variant the runs whose
    copy equals the original, which are left out and counted. `labels` are ratings of the runs by
    people, a table for each. Criteria without an order are left
    out, with a warning: they have no better and worse. Pure: the same input gives the same output,
    whatever the order of rows.
    """
    chosen = options or VerifyOptions()
    ordered = [c for c in criteria if c.ordered]
    evidence = gather(table, ordered, lengths=lengths, unchanged=unchanged)
    moved = effects(evidence, chosen)
    checks = [[check(e, chosen) for check in CHECKS] for e in evidence]
    for own, check in zip(checks, upside_down([own[3] for own in checks], chosen), strict=True):
        own[3] = check
    decided = [
        decide(e, own, effect, chosen)
        for e, own, effect in zip(evidence, checks, moved, strict=True)
    ]
    verified = redundancy(evidence, decided, chosen)
    retained = [
        e for e, v in zip(evidence, verified, strict=True) if v.verdict != "drop" and v.runs
    ]
    judge = judge_verdict(evidence, verified, chosen, labels)
    rated = set(table.present("criterion"))
    left_out = [c for c in criteria if not c.ordered and c.id in rated]
    for nominal, why in (
        (True, "nominal: counted, not averaged"),
        (False, "the order of the levels is unclear"),
    ):
        if names := ", ".join(c.id for c in left_out if (c.scale == "nominal") is nominal):
            warnings = (*judge.warnings, f"{names}: {why}: no verdict")
            judge = judge.model_copy(update={"warnings": warnings})
    return VerifiedSet(
        judge=judge,
        criteria=tuple(verified),
        subset=smallest_subset(retained, least=chosen.auc),
        first_component=first_component(means_of(evidence)).share if evidence else None,
        options=vars(chosen),
    )
