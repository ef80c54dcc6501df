"""Compare judges and people on the same runs: all figures of `agenteval agree`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from agenteval.analysis.agreement import AgreeOptions, agree
from agenteval.analysis.agreement_tables import (
    AuditBy,
    JudgeAndRater,
    PanelOf,
    audit_tables,
    pair_tables,
    panel_table,
    rater_table,
)
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
    """Options of a comparison of raters.

    `sample` is the sample of labelled runs; `random` declares them a random sample without one.
    `means` computes corrected means, `audit` lists contradicted success labels. `epsilon` is the
    advantage given to people in the test whether a judge can replace one; None omits the test.
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
    """Figures for judges and raters; parts that were not requested are empty. `tables` has all of
    them."""

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
    """Compare the ratings of judges and people, by name. Raises InputError like `agree`."""
    names = {c.id: c.name for c in criteria}
    how, pairs, labelled = options, [], []
    for judge, rater in product(judges, people):
        both = judges[judge], people[rater], criteria
        pairs.append(JudgeAndRater(judge, rater, tuple(agree(*both, how.agreement))))
        means = labelled_means(*both, how.sample, random=how.random) if how.means else ()
        labelled.append(LabelledBy(judge, rater, tuple(means), tuple(calibrations(*both))))
    panels = [
        PanelOf(rater, tuple(panel(judges, labels, criteria)))
        for rater, labels in people.items()
        if len(judges) > 1
    ]
    raters = independent(people)
    among = agreement_among(raters, criteria, how.agreement) if len(raters) > 1 else []
    audits = []
    for judge, ratings in judges.items() if how.audit else ():
        suspects = tuple(audit(ratings))
        contradicted = {s.run for s in suspects if s.against}
        audits.append(AuditBy(judge, suspects, tuple(with_and_without(ratings, contradicted))))
    tests = [
        Replacing(judge, tuple(raters), replacing(ratings, raters, criteria, epsilon=how.epsilon))
        for judge, ratings in judges.items()
        if how.epsilon is not None
    ]
    tables = list(pair_tables(pairs, names, confusion=how.confusion)) if pairs else []
    tables += [rater_table(among, names)] if among else []
    tables += [panel_table(panels, names)] if panels else []
    tables += [table for by in audits for table in audit_tables(by, names)]
    tables += label_tables(labelled, tests, names)
    tables.append(
        disagreement_table(disagreements({**judges, **people}), names, "repeats, judges and people")
    )
    return RaterComparison(
        pairs=tuple(pairs),
        raters=tuple(among),
        panels=tuple(panels),
        audits=tuple(audits),
        labelled=tuple(labelled),
        replacing=tuple(tests),
        tables=tuple(tables),
    )
