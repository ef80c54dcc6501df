"""Judges and people who rated the same runs: every figure that `agenteval agree` reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.analysis.agreement import AgreeOptions, agree
from agenteval.analysis.agreement_tables import AuditBy, JudgeAndRater, PanelOf, agreement_tables
from agenteval.analysis.disagreement import disagreement_table, disagreements
from agenteval.analysis.human_labels import independent
from agenteval.analysis.label_audit import audit, with_and_without
from agenteval.analysis.label_tables import LabelledBy, Replacing, label_tables
from agenteval.analysis.labelled_means import calibrations, labelled_means
from agenteval.analysis.panel import RaterAgreement, agreement_among, panel, replacing
from agenteval.analysis.sampling import Sample
from agenteval.records import Criterion
from agenteval.records.table import Table
from agenteval.stats.scores import ScoreTable


@dataclass(frozen=True)
class RaterComparisonOptions:
    """Parts of a comparison of raters, and how they are computed.

    `sample` is the draw of the labelled runs, `random` declares them a random sample without one,
    and without `means` nothing is corrected. `audit` lists contradicted success labels. `epsilon`
    is the advantage of a person in the test whether a judge can replace one; None omits the test.
    """

    agreement: AgreeOptions | None = None
    sample: Sample | None = None
    random: bool = False
    means: bool = True
    audit: bool = False
    epsilon: float | None = None
    confusion: bool = False


@dataclass(frozen=True, kw_only=True)
class RaterComparison:
    """Figures about judges and raters; parts that were not requested are empty. `tables` shows them
    all."""

    pairs: tuple[JudgeAndRater, ...]
    raters: tuple[RaterAgreement, ...]
    panels: tuple[PanelOf, ...]
    audits: tuple[AuditBy, ...]
    labelled: tuple[LabelledBy, ...]
    replacing: tuple[Replacing, ...]
    tables: tuple[Table, ...]


def compare_raters(
    judges: Mapping[str, ScoreTable],
    people: Mapping[str, ScoreTable],
    criteria: Sequence[Criterion],
    options: RaterComparisonOptions,
) -> RaterComparison:
    """Compare the ratings of judges and people, by name. Raises InputError as `agreement.agree`."""
    names = {c.id: c.name for c in criteria}
    both = [(j, p, judges[j], people[p]) for j in judges for p in people]
    pairs = tuple(
        JudgeAndRater(judge, rater, tuple(agree(ratings, labels, criteria, options.agreement)))
        for judge, rater, ratings, labels in both
    )
    panels = tuple(
        PanelOf(rater, tuple(panel(judges, labels, criteria)))
        for rater, labels in people.items()
        if len(judges) > 1
    )
    raters = independent(people)
    among = agreement_among(raters, criteria, options.agreement) if len(raters) > 1 else []
    labelled = tuple(
        LabelledBy(
            judge,
            rater,
            tuple(labelled_means(ratings, labels, criteria, options.sample, random=options.random))
            if options.means
            else (),
            tuple(calibrations(ratings, labels, criteria)),
        )
        for judge, rater, ratings, labels in both
    )
    audits = tuple(_audit(*judge) for judge in judges.items()) if options.audit else ()
    tests = tuple(
        Replacing(
            judge, tuple(raters), replacing(ratings, raters, criteria, epsilon=options.epsilon)
        )
        for judge, ratings in judges.items()
        if options.epsilon is not None
    )
    among_all = disagreements({**judges, **people})
    return RaterComparison(
        pairs=pairs,
        raters=tuple(among),
        panels=panels,
        audits=audits,
        labelled=labelled,
        replacing=tests,
        tables=(
            *agreement_tables(pairs, among, panels, audits, names, confusion=options.confusion),
            *label_tables(labelled, tests, names),
            disagreement_table(among_all, names, "repeats, judges and people"),
        ),
    )


def _audit(judge: str, ratings: ScoreTable) -> AuditBy:
    suspects = tuple(audit(ratings))
    contradicted = {s.run for s in suspects if s.against}
    return AuditBy(judge, suspects, tuple(with_and_without(ratings, contradicted)))
