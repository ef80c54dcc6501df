"""The tables of agreement: judges against people, people among themselves, panels, label audits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agenteval.records.table import Cell, Column, Estimate, Table, shown
from agenteval.trust.agreement import Agreement
from agenteval.trust.label_audit import AUC, Suspect, WithAndWithout
from agenteval.trust.panel import Panel, RaterAgreement

_ID = Column("criterion_id", "criterion id", hidden=True)
_NAME = Column("criterion", "criterion")
_JUDGE, _RATER = Column("judge", "judge", hidden=True), Column("rater", "rater", hidden=True)
_PAIR = Column("pair", "judge and rater")


@dataclass(frozen=True)
class JudgeAndRater:
    """One judge against one rater."""

    judge: str
    rater: str
    criteria: tuple[Agreement, ...]


@dataclass(frozen=True)
class PanelOf:
    """All judges together against one rater."""

    rater: str
    criteria: tuple[Panel, ...]


@dataclass(frozen=True)
class AuditBy:
    """The labels that one judge contradicts."""

    judge: str
    suspects: tuple[Suspect, ...]
    auc: tuple[WithAndWithout, ...]


def agreement_tables(
    pairs: Sequence[JudgeAndRater],
    raters: Sequence[RaterAgreement],
    panels: Sequence[PanelOf],
    audits: Sequence[AuditBy],
    names: Mapping[str, str],
    *,
    confusion: bool = False,
) -> tuple[Table, ...]:
    """All of them, `names` by criterion id; those of what was not examined are left out. Labels by
    judge's levels are a detail unless `confusion` is asked for."""
    tables: list[Table] = []
    if pairs:
        tables += [_agreement(pairs, names), _coefficients(pairs, names), _left_out(pairs, names)]
        if any(a.corrected is not None for pair in pairs for a in pair.criteria):
            tables.append(_corrected(pairs, names))
        tables += [
            _confusion(pair, a, names, number, detail=not confusion)
            for number, (pair, a) in enumerate(
                ((pair, a) for pair in pairs for a in pair.criteria if a.levels), 1
            )
        ]
    if raters:
        tables.append(_raters(raters, names))
    if panels:
        tables.append(_panel(panels, names))
    for audit in audits:
        tables += _audit(audit, names)
    return tuple(tables)


def _row(pair: JudgeAndRater, criterion: str, names: Mapping[str, str]) -> dict[str, Cell]:
    return {
        "judge": pair.judge,
        "rater": pair.rater,
        "pair": f"judge {pair.judge} against labels of {pair.rater}",
        "criterion_id": criterion,
        "criterion": names.get(criterion, criterion),
    }


def _agreement(pairs: Sequence[JudgeAndRater], names: Mapping[str, str]) -> Table:
    notes: list[str] = []
    for pair in pairs:
        whose = f"{pair.judge} and {pair.rater}: " if len(pairs) > 1 else ""
        said = [(a.criterion_id, line) for a in pair.criteria for line in a.warnings]
        notes += [whose + line for line in _once(said, names, len(pair.criteria))]
    return Table(
        "agreement",
        "Judges against people",
        (
            _PAIR, _JUDGE, _RATER, _ID, _NAME,
            Column("n", "runs", "count", "runs that equal levels and alpha are over"),
            Column("exact", "equal levels", "share"),
            Column("alpha", "alpha", "number", "Krippendorff's, at the level of measurement"),
        ),
        tuple(
            _row(pair, a.criterion_id, names)
            | {"n": a.compared, "exact": Estimate.of(a.exact), "alpha": Estimate.of(a.alpha)}
            for pair in pairs
            for a in pair.criteria
        ),
        tuple(notes),
        group="pair",
    )  # fmt: skip


def _coefficients(pairs: Sequence[JudgeAndRater], names: Mapping[str, str]) -> Table:
    """The other coefficients and both means, with the reasons why something is missing."""
    notes: list[str] = []
    rows = []
    for pair in pairs:
        reasons = []
        for a in pair.criteria:
            figures = {
                "exact": a.exact, "kappa": a.kappa, "weighted": a.weighted, "alpha": a.alpha,
                "spearman": a.spearman, "bias": a.bias,
            }  # fmt: skip
            missing: dict[str, list[str]] = {}
            for name, figure in figures.items():
                if figure.reason and (figure.mean is None or figure.low is None):
                    missing.setdefault(figure.reason, []).append(name)
            reasons += [(a.criterion_id, f"{', '.join(n)}: {why}") for why, n in missing.items()]
            rows.append(
                _row(pair, a.criterion_id, names)
                | {name: Estimate.of(figures[name]) for name in ("kappa", "weighted", "spearman")}
                | {
                    "judge_mean": a.judge_mean, "label_mean": a.label_mean,
                    "bias": Estimate.of(a.bias), "both": a.n, "cases": a.cases, "tied": a.tied,
                    "measure": a.measure,
                }
            )  # fmt: skip
        whose = f"{pair.judge} and {pair.rater}: " if len(pairs) > 1 else ""
        notes += [whose + line for line in _once(reasons, names, len(pair.criteria))]
    return Table(
        "coefficients",
        "Further coefficients, and means",
        (
            _PAIR, _JUDGE, _RATER, _ID, _NAME,
            Column("kappa", "kappa", "number", "Cohen's"),
            Column("weighted", "weighted kappa", "number", "with quadratic weights"),
            Column("spearman", "Spearman", "number", "of the means over repeats"),
            Column("judge_mean", "judge", "number", "mean of the judge, 0 worst, 1 best"),
            Column("label_mean", "labels", "number", "mean of the labels"),
            Column("bias", "judge − labels", "signed", "paired by run"),
            Column("both", "runs", "count", "runs rated by both"),
            Column("cases", "cases", "count"),
            Column("tied", "ties", "count", "runs with several levels equally common"),
            Column("measure", "measured", hint="level of measurement"),
        ),
        tuple(rows),
        tuple(notes),
        group="pair",
        detail=True,
    )  # fmt: skip


def _left_out(pairs: Sequence[JudgeAndRater], names: Mapping[str, str]) -> Table:
    counted = (
        (pair, a, what, reason, n)
        for pair in pairs
        for a in pair.criteria
        for what, counts in (("runs", a.left_out), ("ratings without a level", a.failures))
        for reason, n in counts.items()
    )
    return Table(
        "left_out",
        "Left out",
        (
            _PAIR, _JUDGE, _RATER, _ID, _NAME,
            Column("what", "what"),
            Column("reason", "reason"),
            Column("n", "number", "count"),
        ),
        tuple(
            _row(pair, a.criterion_id, names) | {"what": what, "reason": reason, "n": n}
            for pair, a, what, reason, n in counted
        ),
        group="pair",
        detail=True,
    )  # fmt: skip


def _corrected(pairs: Sequence[JudgeAndRater], names: Mapping[str, str]) -> Table:
    rows = []
    for pair in pairs:
        for a in pair.criteria:
            if (c := a.corrected) is not None:
                rows.append(
                    _row(pair, a.criterion_id, names)
                    | {
                        "n": c.rate.n, "apparent": c.apparent, "rate": Estimate.of(c.rate),
                        "specificity": c.specificity, "n_bad": c.n_bad,
                        "sensitivity": c.sensitivity, "n_good": c.n_good,
                        "reason": c.rate.reason
                        or ("no runs without a label" if c.apparent is None else ""),
                    }
                )  # fmt: skip
    return Table(
        "corrected",
        "Good among the runs without a label",
        (
            _PAIR, _JUDGE, _RATER, _ID, _NAME,
            Column("n", "runs", "count", "runs without a label"),
            Column("apparent", "by the\njudge", "share"),
            Column("rate", "corrected", "share", "for the judge's errors on labelled runs"),
            Column("specificity", "right on\nbad", "share"),
            Column("n_bad", "bad", "count"),
            Column("sensitivity", "right on\ngood", "share"),
            Column("n_good", "good", "count"),
            Column("reason", "why not"),
        ),
        tuple(rows),
        group="pair",
        detail=True,
    )  # fmt: skip


def _confusion(
    pair: JudgeAndRater, a: Agreement, names: Mapping[str, str], number: int, *, detail: bool
) -> Table:
    return Table(
        f"confusion_{number}",
        f"{names.get(a.criterion_id, a.criterion_id)}: runs by level, worst first "
        f"(judge {pair.judge}, labels of {pair.rater})",
        (
            _JUDGE, _RATER, _ID, Column("level", "labels \\ judge"),
            *(Column(str(i), str(i), "count", level) for i, level in enumerate(a.levels, 1)),
        ),
        tuple(
            {"judge": pair.judge, "rater": pair.rater, "criterion_id": a.criterion_id,
             "level": f"{i} {level}", **{str(j): n for j, n in enumerate(a.confusion[i - 1], 1)}}
            for i, level in enumerate(a.levels, 1)
        ),
        detail=detail,
    )  # fmt: skip


def _raters(raters: Sequence[RaterAgreement], names: Mapping[str, str]) -> Table:
    who = ", ".join(dict.fromkeys(name for a in raters for name in a.raters))
    return Table(
        "raters",
        f"raters among themselves ({who}): what a judge could reach",
        (
            _ID, _NAME,
            Column("n", "runs", "count", "runs with two raters or more"),
            Column("exact", "equal levels", "share"),
            Column("alpha", "alpha", "number"),
        ),
        tuple(
            {"criterion_id": a.criterion_id, "criterion": names.get(a.criterion_id, a.criterion_id),
             "n": a.n, "exact": Estimate.of(a.exact), "alpha": Estimate.of(a.alpha)}
            for a in raters
        ),
        detail=True,
    )  # fmt: skip


def _panel(panels: Sequence[PanelOf], names: Mapping[str, str]) -> Table:
    """One line per criterion for the panel, then one per judge."""
    rows: list[dict[str, Cell]] = []
    for panel in panels:
        for one in panel.criteria:
            name = names.get(one.criterion_id, one.criterion_id)
            common: dict[str, Cell] = {
                "rater": panel.rater, "criterion_id": one.criterion_id,
                "criterion": name if len(panels) == 1 else f"{name}, labels of {panel.rater}",
            }  # fmt: skip
            rows.append(
                common
                | {"judge": "panel", "n": one.n, "spearman": one.spearman,
                   "error": Estimate.of(one.error)}
            )  # fmt: skip
            rows += [
                common
                | {"judge": member.name, "n": one.n, "spearman": member.spearman,
                   "error": Estimate.of(member.error), "without": Estimate.of(member.without),
                   "change": Estimate.of(member.change)}
                for member in one.members
            ]  # fmt: skip
    return Table(
        "panel",
        f"panel against labels of {', '.join(panel.rater for panel in panels)}",
        (
            _RATER, _ID, _NAME,
            Column("judge", "judge"),
            Column("n", "runs", "count", "runs that all judges and the labels rate"),
            Column("spearman", "Spearman", "number"),
            Column("error", "error", "number", "mean distance from the label"),
            Column("change", "change", "signed", "of the panel's error without this judge"),
            Column("without", "error without", "number"),
        ),
        tuple(rows),
        ("the panel is the mean of the judges, on runs that all of them rated; change is what its "
         "error grows by without this judge, so above 0 it helps",),
        group="criterion",
        detail=True,
    )  # fmt: skip


def _audit(audit: AuditBy, names: Mapping[str, str]) -> list[Table]:
    notes = [
        "unanimous: every repeat on the side of the other label; beyond: share of the runs of the "
        "same label that the ratings lie beyond"
    ]
    if not audit.suspects:
        telling = any(a.all_runs.mean is not None and a.all_runs.mean > AUC for a in audit.auc)
        notes = [
            "none: no criterion that tells success from failure contradicts a label"
            if telling
            else f"nothing to audit with: no criterion tells success from failure (AUC above {AUC})"
        ]
    changed = [
        f"{names.get(a.criterion_id, a.criterion_id)} {shown(a.all_runs.mean, 'number')} → "
        f"{shown(a.without.mean, 'number')}"
        for a in audit.auc
        if a.without.mean is not None and a.without != a.all_runs
    ]
    if audit.suspects and changed:
        notes.append(
            "AUC with all labels → without the contradicted runs (it must rise; it shows how much "
            f"hangs on them): {', '.join(changed)}"
        )
    suspects = Table(
        "audit",
        f"label audit by {audit.judge}: success labels that the judge contradicts, for a person "
        "to look at",
        (
            _JUDGE,
            Column("run", "run"),
            Column("case", "case", hidden=True),
            Column("system", "system", hidden=True),
            Column("success", "label\nsuccess", hint="whether the label says success"),
            Column("unanimous", "against", "count", "criteria that are unanimous against it"),
            Column("witnesses", "of", "count", "criteria that tell success from failure"),
            Column("outlying", "beyond", "share"),
            Column("against", "criteria unanimous against it"),
        ),
        tuple(
            {"judge": audit.judge, "run": s.run, "case": s.case, "system": s.system,
             "success": s.success, "unanimous": len(s.against), "witnesses": len(s.witnesses),
             "outlying": s.outlying, "against": ", ".join(s.against)}
            for s in audit.suspects
        ),
        tuple(notes),
    )  # fmt: skip
    auc = Table(
        "auc",
        f"AUC of {audit.judge} with all labels, and without the contradicted runs",
        (
            _JUDGE, _ID, _NAME,
            Column("all_runs", "all runs", "number"),
            Column("without", "without", "number"),
        ),
        tuple(
            {"judge": audit.judge, "criterion_id": a.criterion_id,
             "criterion": names.get(a.criterion_id, a.criterion_id),
             "all_runs": Estimate.of(a.all_runs), "without": Estimate.of(a.without)}
            for a in audit.auc
        ),
        detail=True,
    )  # fmt: skip
    witnesses = Table(
        "witnesses",
        f"What each criterion says of these runs, by {audit.judge}",
        (
            _JUDGE,
            Column("run", "run"),
            Column("criterion", "criterion"),
            Column("auc", "AUC", "number", "success against failure, without the run's case"),
            Column("low", "lowest", "number"),
            Column("mean", "mean", "number"),
            Column("high", "highest", "number"),
            Column("rated", "rated", "count", "repeats"),
            Column("asked", "of", "count"),
            Column("unanimous", "unanimous"),
            Column("outlying", "beyond", "share"),
        ),
        tuple(
            {"judge": audit.judge, "run": s.run, "criterion": w.criterion_id, "auc": w.auc,
             "low": w.low, "mean": w.mean, "high": w.high, "rated": w.rated, "asked": w.asked,
             "unanimous": w.unanimous, "outlying": w.outlying}
            for s in audit.suspects
            for w in s.witnesses
        ),
        detail=True,
    )  # fmt: skip
    return [suspects, auc, witnesses]


def _once(said: Iterable[tuple[str, str]], names: Mapping[str, str], every: int) -> list[str]:
    """Lines about criteria: what is said of several is said once."""
    groups: dict[str, list[str]] = {}
    for criterion, line in said:
        groups.setdefault(line, []).append(names.get(criterion, criterion))
    return [
        f"{'all criteria' if len(those) == every > 1 else ', '.join(those)}: {line}"
        for line, those in groups.items()
    ]
