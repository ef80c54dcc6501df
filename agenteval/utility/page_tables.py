"""What a judge's ratings and their verification say, as tables of the page."""

from __future__ import annotations

from collections.abc import Mapping

from agenteval.records.table import Cell, Column, Estimate, Mark, Table, cells_of
from agenteval.records.verification import Check, Effect, Verification
from agenteval.reporting.plots import interval, systems
from agenteval.reporting.text import variant_label
from agenteval.stats.scores import ScoreTable
from agenteval.utility.page_data import JudgeMaterial

_MARKS: Mapping[str, Mark] = {"pass": "passed", "fail": "failed", "unknown": "unknown"}
_SIGNS = {"lower": "↓", "none": "=", "higher": "↑", "unknown": "·"}
_CRITERION = Column("criterion", "criterion")
_RATED = Column("rated", "rated", "share", "share of judgements with a result")


def rated_share(table: ScoreTable) -> float | None:
    """Share of judgements that are no failure, in [0, 1]."""
    return float(1 - table.failed.mean()) if len(table) else None


def criteria_table(material: JudgeMaterial) -> Table:
    """One row per criterion: verdict, means, what was verified, how much was rated."""
    ratings = material.originals
    labelled = bool((material.table.success >= 0).any())
    sides = (
        Column("success", "success", "number", "mean of successful runs"),
        Column("failed", "failed", "number", "mean of failed runs"),
    )
    columns = (
        _CRITERION,
        Column("verdict", "verdict", hint="keep, repair, drop or undecided"),
        Column("mean", "mean [95%]", "number", "0 worst, 1 best; interval over cases"),
        *(sides if labelled else ()),
        Column("agreement", "agreement AC2", "number", "Gwet's AC2 over repeats, linear weights"),
        Column("discrimination", "AUC", "number", "success rated above failure; 0.5 is chance"),
        _RATED,
        Column("ratings", "ratings", "count", "ratings with a value"),
        Column("cases", "cases", "count", "the independent units"),
    )
    rows: list[dict[str, Cell]] = []
    notes = []
    for criterion in material.criteria:
        own = ratings.of(criterion=criterion.id)
        verdict = material.findings.of(criterion.id) if material.findings else None
        overall = interval(own)
        row: dict[str, Cell] = {
            "criterion": criterion.name,
            "verdict": verdict.verdict if verdict else "not verified",
            "mean": Estimate.of(overall),
            "rated": rated_share(own),
            "ratings": overall.n,
            "cases": overall.n_clusters or 0,
        }
        if not criterion.ordered:
            why = "is nominal" if criterion.scale == "nominal" else "has levels of unclear order"
            notes.append(f"{criterion.name} {why}, so it has no mean.")
            row["mean"] = Estimate(None, reason=why)
        if labelled:
            row |= {
                name: interval(own.where(own.success == side)).mean if criterion.ordered else None
                for name, side in (("success", 1), ("failed", 0))
            }
        for name in ("agreement", "discrimination"):
            check = verdict.check(name) if verdict else None
            row[name] = _checked(check) if check else None
        rows.append(row)
    return Table("criteria", "Criteria", columns, tuple(rows), tuple(notes))


def _checked(check: Check | Effect) -> Estimate:
    """The estimate of a check with what came of it."""
    mark = _MARKS[check.outcome]
    return Estimate(check.estimate, check.low, check.high, check.n, check.reason, mark)


def systems_table(material: JudgeMaterial) -> Table | None:
    """Means of every system on every criterion; None with a single system."""
    by_system = systems(material.originals)
    ordered = [c for c in material.criteria if c.ordered]
    if len(by_system) < 2 or not ordered:
        return None
    columns = [Column(f"system_{i}", name, "number") for i, name in enumerate(by_system)]
    rows = tuple(
        {"criterion": criterion.name}
        | {
            f"system_{i}": Estimate.of(interval(own.of(criterion=criterion.id)))
            for i, own in enumerate(by_system.values())
        }
        for criterion in ordered
    )
    return Table("systems", "Systems", (_CRITERION, *columns), rows)


def missing_table(material: JudgeMaterial) -> Table | None:
    """Return judgements without a result by kind and criterion, copies included; None when all
    have one."""
    table = material.table
    by_rule = ("not_applicable", "degenerate", "failed_run")
    present = sorted(table.present("status"))
    kinds = [n for n in present if ":" in n] + [n for n in by_rule if n in present]
    if not kinds:
        return None
    columns = (
        _CRITERION,
        Column("judgements", "judgements", "count"),
        *(Column(kind, kind.replace("_", " "), "count") for kind in kinds),
        _RATED,
    )
    rows: list[dict[str, Cell]] = []
    for criterion in material.criteria:
        own = table.of(criterion=criterion.id)
        rows.append(
            dict.fromkeys(kinds, 0)
            | {k: n for k, n in own.statuses().items() if k in kinds}
            | {"criterion": criterion.name, "judgements": len(own), "rated": rated_share(own)}
        )
    return Table("missing", "Not rated", columns, tuple(rows))


def checks_table(verdict: Verification) -> Table:
    """Return every check and effect of a criterion, with its reason."""
    columns = (
        Column("examined", "examined"),
        Column("result", "outcome"),
        Column("estimate", "estimate [95%]", "number"),
        Column("p", "p", "p", "raw"),
        Column("p_adjusted", "p corrected", "p", "over all criteria"),
        Column("n", "n", "count"),
        Column("reason", "in words"),
    )
    named: list[tuple[str, Check | Effect]] = [(c.name, c) for c in verdict.checks]
    for e in verdict.effects:
        label = variant_label(f"{e.operator}:{e.share or '-'}")
        named.append((f"{label} (expected {_SIGNS[e.expected]})", e))
    rows = tuple(
        cells_of(check, columns, examined=name, result=check.outcome, estimate=_checked(check))
        for name, check in named
    )
    return Table("checks", "What was examined", columns, rows)
