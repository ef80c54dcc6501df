"""Tables of the page of a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.records.table import Cell, Column, Estimate, Table, column, columns_headed, table_of
from agenteval.records.verification import Check, Effect, Verification
from agenteval.reporting.plots import interval, systems
from agenteval.reporting.text import variant_label
from agenteval.stats.scores import ScoreTable
from agenteval.utility.page_data import JudgeMaterial
from agenteval.utility.tables import figure_of, marked, moved

_SIGNS = {"lower": "↓", "none": "=", "higher": "↑", "unknown": "·"}
_VERDICTS = ("keep", "repair", "undecided", "drop")
_RATED = "share of judgements with a result"


def rated_share(table: ScoreTable) -> float | None:
    """Return the share of judgements that did not fail, in [0, 1]."""
    return float(1 - table.failed.mean()) if len(table) else None


@dataclass(frozen=True)
class _CriterionMeansRow:
    criterion: str = column("criterion")
    verdict: str = column("verdict", hint="keep, repair, drop or undecided")
    mean: Estimate = column("mean [95%]", "number", "0 worst, 1 best; interval over cases")
    success: float | None = column("success", "number", "mean of successful runs")
    failed: float | None = column("failed", "number", "mean of failed runs")
    rated: float | None = column("rated", "share", _RATED)
    ratings: int = column("ratings", "count", "ratings with a value")
    cases: int = column("cases", "count", "the independent units")


def criteria_table(material: JudgeMaterial) -> Table:
    """Return one row per criterion: verdict, means, how much was rated."""
    labelled = bool((material.table.success >= 0).any())
    rows, notes = [], []
    for criterion in material.criteria:
        ratings = material.originals.of(criterion=criterion.id)
        verdict = material.findings.of(criterion.id) if material.findings else None
        overall = interval(ratings)
        mean = Estimate.of(overall)
        success = failed = None
        if not criterion.ordered:
            why = "is nominal" if criterion.scale == "nominal" else "has levels of unclear order"
            notes.append(f"{criterion.name} {why}, so it has no mean.")
            mean = Estimate(None, reason=why)
        elif labelled:
            success, failed = (interval(ratings.where(ratings.success == s)).mean for s in (1, 0))
        rows.append(
            _CriterionMeansRow(
                criterion.name,
                verdict.verdict if verdict else "not verified",
                mean,
                success,
                failed,
                rated_share(ratings),
                overall.n,
                overall.n_clusters or 0,
            )
        )
    empty = () if labelled else ("success", "failed")
    return table_of(_CriterionMeansRow, "criteria", "Criteria", rows, notes=notes, drop_empty=empty)


@dataclass(frozen=True)
class _TrustRow:
    criterion: str = column("criterion")
    verdict: str = column("verdict", hint="keep, repair, drop or undecided")
    agreement: Estimate | None = column(
        "repeats agree, AC2", "number", "Gwet's AC2 over repeats, linear weights"
    )
    discrimination: Estimate | None = column(
        "success / failed, AUC", "number", "success rated above failure; 0.5 is chance"
    )
    effect: Estimate | None = column(
        "largest drop", "number", "original minus perturbed copy, where a drop was expected"
    )
    as_expected: str | None = column(
        "moved as expected", hint="perturbations that should lower or raise scores, and did"
    )
    why: str | None = column("why it is not kept")


def trust_table(verdicts: Sequence[Verification], names: Mapping[str, str]) -> Table:
    """Return one row per criterion, kept ones first: verdict, checks, and why it is not kept."""
    rows = []
    for v in sorted(verdicts, key=lambda v: _VERDICTS.index(v.verdict)):
        drops = [e for e in v.effects if e.expected == "lower" and e.estimate is not None]
        largest = max(drops, key=lambda e: e.estimate or 0.0, default=None)
        rows.append(
            _TrustRow(
                names.get(v.criterion_id, v.criterion_id),
                v.verdict,
                figure_of(v.check("agreement")),
                figure_of(v.check("discrimination")),
                marked(largest) if largest else None,
                moved(v),
                None if v.verdict == "keep" else v.reasons[0],
            )
        )
    empty = ("agreement", "discrimination", "effect", "as_expected", "why")
    return table_of(_TrustRow, "trust", "What can be trusted", rows, drop_empty=empty)


def systems_table(material: JudgeMaterial) -> Table | None:
    """Return the means of every system on every criterion; None with a single system."""
    by_system = systems(material.originals)
    ordered = [c for c in material.criteria if c.ordered]
    if len(by_system) < 2 or not ordered:
        return None
    keys = {f"system_{i}": name for i, name in enumerate(by_system)}
    rows: list[dict[str, Cell]] = [
        {"criterion": criterion.name}
        | {
            key: Estimate.of(interval(by_system[name].of(criterion=criterion.id)))
            for key, name in keys.items()
        }
        for criterion in ordered
    ]
    columns = (Column("criterion", "criterion"), *columns_headed(keys, "number"))
    return Table("systems", "Systems", columns, tuple(rows))


def missing_table(material: JudgeMaterial) -> Table | None:
    """Return judgements without a result by kind and criterion, copies included.

    None when all have one.
    """
    table = material.table
    by_rule = ("not_applicable", "degenerate", "failed_run")
    present = sorted(table.present("status"))
    kinds = [n for n in present if ":" in n] + [n for n in by_rule if n in present]
    if not kinds:
        return None
    columns = (
        Column("criterion", "criterion"),
        Column("judgements", "judgements", "count"),
        *columns_headed({kind: kind.replace("_", " ") for kind in kinds}, "count"),
        Column("rated", "rated", "share", _RATED),
    )
    rows: list[dict[str, Cell]] = []
    for criterion in material.criteria:
        ratings = table.of(criterion=criterion.id)
        counts = ratings.statuses()
        row: dict[str, Cell] = {"criterion": criterion.name, "judgements": len(ratings)}
        row |= {kind: counts.get(kind, 0) for kind in kinds}
        rows.append(row | {"rated": rated_share(ratings)})
    return Table("missing", "Not rated", columns, tuple(rows))


@dataclass(frozen=True)
class _CheckRow:
    examined: str = column("examined")
    result: str = column("outcome")
    estimate: Estimate = column("estimate [95%]", "number")
    p: float | None = column("p", "p", "raw")
    p_adjusted: float | None = column("p corrected", "p", "over all criteria")
    n: int = column("n", "count")
    reason: str = column("in words")


def checks_table(verdict: Verification) -> Table:
    """Return every check and effect of a criterion, with its reason."""
    checks: list[tuple[str, Check | Effect]] = [(check.name, check) for check in verdict.checks]
    for effect in verdict.effects:
        label = variant_label(f"{effect.operator}:{effect.share or '-'}")
        checks.append((f"{label} (expected {_SIGNS[effect.expected]})", effect))
    rows = [
        _CheckRow(name, c.outcome, marked(c), c.p, c.p_adjusted, c.n, c.reason)
        for name, c in checks
    ]
    return table_of(_CheckRow, "checks", "Examined data", rows)
