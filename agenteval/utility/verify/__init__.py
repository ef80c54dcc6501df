"""The verifier: decides which criteria can be kept and whether the judge can be trusted.

The VerifierAgent of AgentEval (arXiv 2405.02178) keeps criteria that are stable over repeats and
that distinguish a perturbed solution from its original. Here stability is agreement, not a
coefficient of variation, which depends on how levels are numbered; perturbations have controls;
discrimination and redundancy count as well; and the verdict is "undecided" where data are lacking.
"""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.records import Criterion
from agenteval.records.verification import VerifiedSet
from agenteval.stats.correlation import first_component
from agenteval.stats.scores import ScoreTable
from agenteval.utility.verify.checks import all_checks, redundancy, smallest_subset
from agenteval.utility.verify.effects import effects
from agenteval.utility.verify.evidence import CopyFacts, RunMeans, gather
from agenteval.utility.verify.judge import judge_verdict
from agenteval.utility.verify.options import VerifyOptions
from agenteval.utility.verify.verdict import decide

__all__ = ["CopyFacts", "VerifyOptions", "verify_table", "with_warning"]


def verify_table(
    table: ScoreTable,
    criteria: Sequence[Criterion],
    options: VerifyOptions | None = None,
    *,
    copies: CopyFacts | None = None,
    labels: Sequence[ScoreTable] = (),
) -> VerifiedSet:
    """Return verdicts on every criterion that has ratings, and on the judge as a whole.

    `table` holds the ratings of originals (variant "original") and of perturbed copies (variant
    `operator:share:seed`); the expected directions are the criteria's `expect`. `labels` are
    ratings of the runs by people, a table for each person. Criteria without an order have no better
    and worse: they are left out, with a warning. Pure; the order of rows makes no difference.
    """
    chosen = options or VerifyOptions()
    evidence = gather(table, [c for c in criteria if c.ordered], copies)
    moved = effects(evidence, chosen)
    decided = [
        decide(item, checks, of_item, chosen)
        for item, checks, of_item in zip(evidence, all_checks(evidence, chosen), moved, strict=True)
    ]
    verified = redundancy(evidence, decided, chosen)
    retained = [
        e for e, v in zip(evidence, verified, strict=True) if v.verdict != "drop" and v.runs
    ]
    result = VerifiedSet(
        judge=judge_verdict(evidence, verified, chosen, labels),
        criteria=tuple(verified),
        subset=smallest_subset(retained, least=chosen.auc),
        first_component=first_component(RunMeans.of(evidence).means).share if evidence else None,
        options=vars(chosen),
    )
    rated = set(table.present("criterion"))
    unordered = [c for c in criteria if not c.ordered and c.id in rated]
    for nominal, why in (
        (True, "nominal: counted, not averaged"),
        (False, "the order of the levels is unclear"),
    ):
        if names := ", ".join(c.id for c in unordered if (c.scale == "nominal") is nominal):
            result = with_warning(result, f"{names}: {why}: no verdict")
    return result


def with_warning(result: VerifiedSet, warning: str, *, first: bool = False) -> VerifiedSet:
    """Return the result with a further warning about the judge; an empty one changes nothing."""
    if not warning:
        return result
    warnings = result.judge.warnings
    warnings = (warning, *warnings) if first else (*warnings, warning)
    judge = result.judge.model_copy(update={"warnings": warnings})
    return result.model_copy(update={"judge": judge})
