"""What a judge's ratings and their verification say, as tables of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agenteval.records.table import Cell, Column, Estimate, Mark, Table
from agenteval.records.verification import Check, Effect, Verification
from agenteval.report.material import Material
from agenteval.report.plots import interval, systems
from agenteval.report.text import variant_label
from agenteval.stats.scores import ScoreTable

MARKS: Mapping[str, Mark] = {"pass": "passed", "fail": "failed", "unknown": "unknown"}
SIGNS = {"lower": "↓", "none": "=", "higher": "↑", "unknown": "·"}
_CRITERION = Column("criterion", "criterion")
_RATED = Column("rated", "rated", "share", "share of judgements with a result")


def rated_share(table: ScoreTable) -> float | None:
    """Share of judgements that are no failure, in [0, 1]."""
    return float(1 - table.failed.mean()) if len(table) else None


def criteria_table(material: Material) -> Table:
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
            "criterion": criterion.name, "verdict": verdict.verdict if verdict else "not verified",
            "mean": Estimate.of(overall), "rated": rated_share(own), "ratings": overall.n,
            "cases": overall.n_clusters or 0,
        }  # fmt: skip
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
    mark = MARKS[check.outcome]
    return Estimate(check.estimate, check.low, check.high, check.n, check.reason, mark)


def systems_table(material: Material) -> Table | None:
    """Means of every system on every criterion; None with a single system."""
    by_system = systems(material.originals)
    ordered = [c for c in material.criteria if c.ordered]
    if len(by_system) < 2 or not ordered:
        return None
    columns = [Column(f"system_{i}", name, "number") for i, name in enumerate(by_system)]
    rows = tuple(
        {"criterion": criterion.name}
        | {f"system_{i}": Estimate.of(interval(own.of(criterion=criterion.id)))
           for i, own in enumerate(by_system.values())}
        for criterion in ordered
    )  # fmt: skip
    return Table("systems", "Systems", (_CRITERION, *columns), rows)


def effects_table(material: Material) -> Table | None:
    """Original minus copy per criterion and perturbation; None without verified copies."""
    findings = material.findings
    rated = [v for v in findings.criteria if any(e.n for e in v.effects)] if findings else []
    if not rated:
        return None
    kinds = sorted({(e.operator, e.share or 0.0) for v in rated for e in v.effects})
    keys = {kind: f"copy_{i}" for i, kind in enumerate(kinds)}
    columns = [Column(keys[k], operator_label(*k), "signed", "original minus copy") for k in kinds]
    rows: list[dict[str, Cell]] = []
    for verification in rated:
        name = material.names.get(verification.criterion_id, verification.criterion_id)
        row: dict[str, Cell] = {"criterion": name}
        for effect in verification.effects:
            known = effect.expected != "unknown"
            row[keys[effect.operator, effect.share or 0.0]] = Estimate(
                effect.estimate, effect.low, effect.high, effect.n,
                f"expected {SIGNS[effect.expected]}. {effect.reason}",
                MARKS[effect.outcome] if known else "",
            )  # fmt: skip
        rows.append(row)
    notes = []
    for kind in kinds:
        shares = [e.shorter for v in rated for e in v.effects
                  if (e.operator, e.share or 0.0) == kind and e.shorter is not None]  # fmt: skip
        if shares:
            share = f"{sum(shares) / len(shares):.0%}"
            notes.append(f"{operator_label(*kind)}: {share} of the copies are shorter.")
    return Table(
        "perturbations", "Perturbations", (_CRITERION, *columns), tuple(rows), tuple(notes)
    )


def operator_label(name: str, share: float) -> str:
    """As in "drop sentences 25%"."""
    return variant_label(f"{name}:{share or '-'}")


def missing_table(material: Material) -> Table | None:
    """Judgements without a result by kind and criterion, copies included; None when all have one"""
    table = material.table
    kinds = sorted(n for n in table.present("status") if ":" in n)
    by_rule = ("not_applicable", "degenerate", "failed_run")
    kinds += [n for n in by_rule if n in table.present("status")]
    if not kinds:
        return None
    columns = (
        _CRITERION, Column("judgements", "judgements", "count"),
        *(Column(kind, kind.replace("_", " "), "count") for kind in kinds), _RATED,
    )  # fmt: skip
    rows: list[dict[str, Cell]] = []
    for criterion in material.criteria:
        own = table.of(criterion=criterion.id)
        counts = own.statuses()
        rows.append({
            "criterion": criterion.name, "judgements": len(own), "rated": rated_share(own),
            **{kind: counts.get(kind, 0) for kind in kinds},
        })  # fmt: skip
    return Table("missing", "Not rated", columns, tuple(rows))


def checks_table(verdict: Verification) -> Table:
    """Every check and effect of a criterion, with its reason."""
    columns = (
        Column("examined", "examined"), Column("result", "outcome"),
        Column("estimate", "estimate [95%]", "number"), Column("p", "p", "p", "raw"),
        Column("corrected", "p corrected", "p", "over all criteria"), Column("n", "n", "count"),
        Column("why", "in words"),
    )  # fmt: skip
    named: list[tuple[str, Check | Effect]] = [(c.name, c) for c in verdict.checks]
    named += [
        (f"{operator_label(e.operator, e.share or 0.0)} (expected {SIGNS[e.expected]})", e)
        for e in verdict.effects
    ]
    rows: Sequence[dict[str, Cell]] = [
        {"examined": name, "result": one.outcome, "estimate": _checked(one), "p": one.p,
         "corrected": one.p_adjusted, "n": one.n, "why": one.reason}
        for name, one in named
    ]  # fmt: skip
    return Table("checks", "What was examined", columns, tuple(rows))
