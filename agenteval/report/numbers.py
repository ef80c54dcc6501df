"""The tables of the page: criteria, systems, perturbations, and what could not be rated."""

from __future__ import annotations

import numpy as np

from agenteval.figures.groups import interval, systems
from agenteval.records.verification import Check, Effect, Verification
from agenteval.report.grid import (
    Cell,
    Grid,
    Head,
    count,
    estimate,
    mean,
    number,
    percent,
    plain,
    signed,
    words,
)
from agenteval.report.material import Material
from agenteval.stats import Interval
from agenteval.stats.scores import ORIGINAL, ScoreTable

MARKS = {"pass": "✓", "fail": "✗", "unknown": "?"}
SIGNS = {"lower": "↓", "none": "=", "higher": "↑", "unknown": "·"}


def originals(material: Material) -> ScoreTable:
    """Ratings of the original runs."""
    return material.table.of(variant=ORIGINAL)


def knows_success(material: Material) -> bool:
    """Whether success is known for any run."""
    return bool((material.table.success >= 0).any())


def criteria_grid(material: Material) -> Grid:
    """One row per criterion: verdict, means, what was verified, how much was rated."""
    table = originals(material)
    labelled = knows_success(material)
    heads = [
        Head("criterion"),
        Head("verdict", "keep, repair, drop or undecided"),
        Head("mean [95 %]", "0 worst, 1 best; interval over cases", True),
    ]
    if labelled:
        heads += [Head("success", "mean of successful runs", True),
                  Head("failed", "mean of failed runs", True)]  # fmt: skip
    heads += [
        Head("agreement α", "Krippendorff's alpha over repeats", True),
        Head("AUC", "success rated above failure; 0.5 is chance", True),
        Head("rated", "share of judgements with a result", True),
        Head("ratings / cases", "ratings with a value, and the independent units", True),
    ]
    rows = []
    for criterion in material.criteria:
        own = table.of(criterion=criterion.id)
        found = material.findings.of(criterion.id) if material.findings else None
        overall = interval(own)
        row = [words(criterion.name, link=f"c-{_place(material, criterion.id)}"), verdict(found)]
        no_mean = "nominal" if criterion.scale == "nominal" else "order unclear"
        row.append(mean(overall) if criterion.ordered else Cell(no_mean, None, True, "none"))
        if labelled:
            row += [plain(mean(interval(own.where(own.success == side)))) for side in (1, 0)]
        row += [checked(found, "agreement"), checked(found, "discrimination")]
        row += [percent(rated_share(own)), _sizes(overall)]
        rows.append(tuple(row))
    return Grid("criteria-table", "Criteria", tuple(heads), tuple(rows))


def _sizes(overall: Interval) -> Cell:
    text = f"{overall.n:,} / {overall.n_clusters or 0:,}"
    return Cell(text, float(overall.n), True, "" if overall.n else "zero")


def _place(material: Material, criterion_id: str) -> int:
    return [c.id for c in material.criteria].index(criterion_id)


def verdict(found: Verification | None) -> Cell:
    """The verdict as a badge, in an order from keep to drop."""
    if found is None:
        return Cell("not verified", 4.0, False, "marked none")
    order = ("keep", "repair", "undecided", "drop").index(found.verdict)
    return Cell(found.verdict, float(order), False, f"marked {found.verdict}")


def checked(found: Verification | None, name: str) -> Cell:
    """Estimate and outcome of a check."""
    check = found.check(name) if found else None
    if check is None:
        return Cell("–", None, True, "none")
    return _check(check)


def _check(check: Check) -> Cell:
    cell = estimate(check.estimate, check.low, check.high, note=check.reason)
    if check.estimate is None:
        return cell
    return Cell(f"{cell.text} {MARKS[check.outcome]}", cell.key, True, check.outcome, check.reason)


def rated_share(table: ScoreTable) -> float | None:
    """Share of judgements that are no failure, in [0, 1]."""
    return float(1 - table.failed.mean()) if len(table) else None


def systems_grid(material: Material) -> Grid | None:
    """Means of every system on every criterion; None with a single system."""
    found = systems(originals(material))
    if len(found) < 2:
        return None
    ordered = [c for c in material.criteria if c.ordered]
    heads = [Head("criterion"), *(Head(name, "", True) for name in found)]
    rows = [
        (words(c.name), *(mean(interval(rows.of(criterion=c.id))) for rows in found.values()))
        for c in ordered
    ]
    return Grid("systems-table", "Systems", tuple(_clean(heads)), tuple(rows))


def _clean(heads: list[Head]) -> list[Head]:
    return [Head(words(h.text).text, h.hint, h.number) for h in heads]


def effects_grid(material: Material) -> Grid | None:
    """Original minus copy per criterion and perturbation; None without verified copies."""
    findings = material.findings
    rated = [v for v in findings.criteria if any(e.n for e in v.effects)] if findings else []
    if not rated:
        return None
    columns = sorted({(e.operator, e.share or 0.0) for v in rated for e in v.effects})
    heads = [Head("criterion")]
    heads += [Head(_operator(op, share), "original minus copy", True) for op, share in columns]
    rows = []
    for one in rated:
        by_column = {(e.operator, e.share or 0.0): e for e in one.effects}
        cells = [_effect(by_column.get(c)) for c in columns]
        rows.append((words(material.names.get(one.criterion_id, one.criterion_id)), *cells))
    shorter = [_shorter(rated, c) for c in columns]
    rows.append((Cell("copies that are shorter", kind="quiet"), *shorter))
    return Grid("effects-table", "Perturbations", tuple(_clean(heads)), tuple(rows))


def _operator(name: str, share: float) -> str:
    return name.replace("_", " ") + (f" {share:.0%}".replace("%", " %") if share else "")


def _effect(effect: Effect | None) -> Cell:
    if effect is None or effect.estimate is None:
        return Cell("–", None, True, "none", effect.reason if effect else "")
    known = effect.expected != "unknown"
    mark = f" {MARKS[effect.outcome]}" if known else ""
    text = f"{signed(effect.estimate)} {SIGNS[effect.expected]}{mark}"
    kind = effect.outcome if known else ""
    return Cell(text, effect.estimate, True, kind, effect.reason)


def _shorter(rated: list[Verification], column: tuple[str, float]) -> Cell:
    shares = [
        e.shorter
        for one in rated
        for e in one.effects
        if (e.operator, e.share or 0.0) == column and e.shorter is not None
    ]
    return percent(sum(shares) / len(shares)) if shares else Cell("?", None, True, "none")


def missing_grid(material: Material) -> Grid | None:
    """Judgements without a result by kind and criterion, copies included; None when all have one"""
    table = material.table
    kinds = sorted(n for n in table.present("status") if ":" in n)
    other = [n for n in ("not_applicable", "degenerate") if n in table.present("status")]
    if not kinds and not other:
        return None
    heads = [Head("criterion"), Head("judgements", "", True)]
    heads += [Head(n.replace("_", " "), "", True) for n in (*kinds, *other)]
    heads.append(Head("rated", "share of judgements with a result", True))
    rows = []
    for criterion in material.criteria:
        own = table.of(criterion=criterion.id)
        counts = own.statuses()
        row = [words(criterion.name), count(len(own))]
        row += [count(counts.get(n, 0)) for n in (*kinds, *other)]
        rows.append((*row, percent(rated_share(own))))
    return Grid("missing-table", "Not rated", tuple(_clean(heads)), tuple(rows))


def checks_grid(found: Verification, place: int) -> Grid:
    """Every check and effect of a criterion, with its reason."""
    heads = (Head("examined"), Head("outcome"), Head("estimate [95 %]", "", True),
             Head("p", "raw", True), Head("p corrected", "over all criteria", True),
             Head("n", "", True), Head("in words"))  # fmt: skip
    rows = [
        (words(c.name), _outcome(c.outcome), estimate(c.estimate, c.low, c.high),
         _p(c.p), _p(c.p_adjusted), count(c.n), words(c.reason))
        for c in found.checks
    ]  # fmt: skip
    rows += [
        (words(_operator(e.operator, e.share or 0.0) + f" (expected {SIGNS[e.expected]})"),
         _outcome(e.outcome), estimate(e.estimate, e.low, e.high), _p(e.p), _p(e.p_adjusted),
         count(e.n), words(e.reason))
        for e in found.effects
    ]  # fmt: skip
    return Grid(f"checks-{place}", "What was examined", heads, tuple(rows))


def _outcome(outcome: str) -> Cell:
    order = float(("pass", "unknown", "fail").index(outcome))
    return Cell(f"{MARKS[outcome]} {outcome}", order, False, outcome)


def _p(value: float | None) -> Cell:
    if value is not None and value < 0.001:
        return Cell("< .001", value, True)
    return number(value, ".3f")


def runs_rated(table: ScoreTable) -> int:
    """Runs with at least one value."""
    return len(np.unique(table.run.codes[~np.isnan(table.value)]))
